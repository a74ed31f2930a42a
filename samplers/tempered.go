package samplers

import (
	"context"
	"fmt"
	"math"

	"infill/internal/logmath"
)

// Temper returns a target at a temperature: π_T(θ) ∝ exp(U(θ)/T). Energies
// and gradients are divided by T. Conditionals are raised to the power 1/T
// and normalised again, as for the conditionals of π_T. The result gives
// gradients and conditionals only if target does. The temperature must be
// positive and finite.
func Temper(target Target, temperature float64) (Target, error) {
	if err := checkTarget(target); err != nil {
		return nil, err
	}
	if !(temperature > 0) || math.IsInf(temperature, 1) {
		return nil, fmt.Errorf("temperature %v: it must be above 0 and finite", temperature)
	}
	return &tempered{target, temperature}, nil
}

type tempered struct {
	target      Target
	temperature float64
}

var (
	_ ConditionalTarget       = (*tempered)(nil)
	_ MaskedConditionalTarget = (*tempered)(nil)
	_ GradientTarget          = (*tempered)(nil)
)

func (t *tempered) Categories() []int { return t.target.Categories() }

func (t *tempered) Energy(ctx context.Context, states []int, energy []float64) error {
	err := t.target.Energy(ctx, states, energy)
	t.cool(energy)
	return err
}

func (t *tempered) EnergyGradient(ctx context.Context, states []int, energy, gradient []float64) error {
	target, err := capability[GradientTarget](t.target, "a tempered gradient")
	if err != nil {
		return err
	}
	err = target.EnergyGradient(ctx, states, energy, gradient)
	t.cool(energy)
	t.cool(gradient)
	return err
}

func (t *tempered) LogConditionals(ctx context.Context, states []int, slots []int, logp []float64) error {
	target, err := capability[ConditionalTarget](t.target, "a tempered conditional")
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

func (t *tempered) LogMaskedConditionals(ctx context.Context, states []int, open []bool, logp []float64) error {
	target, err := capability[MaskedConditionalTarget](t.target, "a tempered conditional")
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

// coolConditional raises one normalised conditional to the power 1/T.
func (t *tempered) coolConditional(logp []float64) {
	t.cool(logp)
	logmath.Normalise(logp)
}

func (t *tempered) cool(x []float64) {
	for i := range x {
		x[i] /= t.temperature
	}
}
