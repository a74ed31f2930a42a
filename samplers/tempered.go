package samplers

import (
	"context"
	"fmt"
	"math"
)

// Tempered is a target at a temperature: π_T(θ) ∝ exp(U(θ)/T). Energies and
// gradients are divided by T; conditionals are raised to the power 1/T and
// normalised again, which is what the conditionals of π become. It offers to
// the kernels exactly the interfaces that the target below it offers.
type Tempered struct {
	target      Target
	temperature float64
}

var (
	_ StochasticGradientTarget = (*Tempered)(nil)
	_ ConditionalTarget        = (*Tempered)(nil)
	_ MaskedConditionalTarget  = (*Tempered)(nil)
	_ MetricTarget             = (*Tempered)(nil)
	_ OrdinalTarget            = (*Tempered)(nil)
	_ RelaxedTarget            = (*Tempered)(nil)
	_ layered                  = (*Tempered)(nil)
)

// NewTempered wraps a target. The temperature must be positive and finite.
func NewTempered(target Target, temperature float64) (*Tempered, error) {
	if err := checkTemperature(temperature); err != nil {
		return nil, err
	}
	return &Tempered{target, temperature}, nil
}

func checkTemperature(temperature float64) error {
	if !(temperature > 0) || math.IsInf(temperature, 1) {
		return fmt.Errorf("temperature %v: it must be above 0 and finite", temperature)
	}
	return nil
}

// Temperature is T.
func (t *Tempered) Temperature() float64 { return t.temperature }

func (t *Tempered) below() Target { return t.target }

// Categories implements [Target].
func (t *Tempered) Categories() []int { return t.target.Categories() }

// Energy implements [Target].
func (t *Tempered) Energy(ctx context.Context, states []int, energy []float64) error {
	err := t.target.Energy(ctx, states, energy)
	t.cool(energy)
	return err
}

// EnergyGradient implements [GradientTarget].
func (t *Tempered) EnergyGradient(ctx context.Context, states []int, energy, gradient []float64) error {
	target, err := gradientTarget(t.target, "a tempered gradient")
	if err != nil {
		return err
	}
	err = target.EnergyGradient(ctx, states, energy, gradient)
	t.cool(energy)
	t.cool(gradient)
	return err
}

// Terms implements [StochasticGradientTarget]. It is 0 when the target below
// has no terms.
func (t *Tempered) Terms() int {
	target, err := stochasticGradientTarget(t.target, "a tempered gradient by terms")
	if err != nil {
		return 0
	}
	return target.Terms()
}

// EnergyGradientOf implements [StochasticGradientTarget].
func (t *Tempered) EnergyGradientOf(ctx context.Context, terms []int, states []int, energy, gradient []float64) error {
	target, err := stochasticGradientTarget(t.target, "a tempered gradient by terms")
	if err != nil {
		return err
	}
	err = target.EnergyGradientOf(ctx, terms, states, energy, gradient)
	t.cool(energy)
	t.cool(gradient)
	return err
}

// LogConditionals implements [ConditionalTarget].
func (t *Tempered) LogConditionals(ctx context.Context, states []int, slots []int, logp []float64) error {
	target, err := conditionalTarget(t.target, "a tempered conditional")
	if err != nil {
		return err
	}
	if err := target.LogConditionals(ctx, states, slots, logp); err != nil {
		return err
	}
	categories := t.Categories()
	wide := width(categories)
	for c, j := range slots {
		t.coolConditional(logp[c*wide : c*wide+categories[j]])
	}
	return nil
}

// LogMaskedConditionals implements [MaskedConditionalTarget].
func (t *Tempered) LogMaskedConditionals(ctx context.Context, states []int, open []bool, logp []float64) error {
	target, err := maskedConditionalTarget(t.target, "a tempered masked conditional")
	if err != nil {
		return err
	}
	if err := target.LogMaskedConditionals(ctx, states, open, logp); err != nil {
		return err
	}
	categories := t.Categories()
	wide := width(categories)
	for i, o := range open {
		if o {
			t.coolConditional(logp[i*wide : i*wide+categories[i%len(categories)]])
		}
	}
	return nil
}

// Distances implements [MetricTarget]: a temperature leaves distances alone.
// It leaves distance as it is when the target below has no distances.
func (t *Tempered) Distances(slot, from, first int, distance []float64) {
	if target, err := capability[MetricTarget](t.target, "a tempered target", "distances"); err == nil {
		target.Distances(slot, from, first, distance)
	}
}

// Values implements [OrdinalTarget]. It is nil when the target below has no
// numbers.
func (t *Tempered) Values() [][]float64 {
	if target, err := capability[OrdinalTarget](t.target, "a tempered target", "categories that are numbers"); err == nil {
		return target.Values()
	}
	return nil
}

// EnergyDerivative implements [OrdinalTarget].
func (t *Tempered) EnergyDerivative(ctx context.Context, states []int, energy, derivative []float64) error {
	target, err := capability[OrdinalTarget](t.target, "a tempered target", "categories that are numbers")
	if err != nil {
		return err
	}
	err = target.EnergyDerivative(ctx, states, energy, derivative)
	t.cool(energy)
	t.cool(derivative)
	return err
}

// RelaxedEnergyGradient implements [RelaxedTarget].
func (t *Tempered) RelaxedEnergyGradient(ctx context.Context, x []float64, energy, gradient []float64) error {
	target, err := capability[RelaxedTarget](t.target, "a tempered target", "an energy over slots between 0 and 1")
	if err != nil {
		return err
	}
	err = target.RelaxedEnergyGradient(ctx, x, energy, gradient)
	t.cool(energy)
	t.cool(gradient)
	return err
}

// coolConditional raises one normalised conditional to the power 1/T.
func (t *Tempered) coolConditional(logp []float64) {
	t.cool(logp)
	total := logSumExp(logp)
	for v := range logp {
		logp[v] -= total
	}
}

func (t *Tempered) cool(x []float64) {
	for i := range x {
		x[i] /= t.temperature
	}
}
