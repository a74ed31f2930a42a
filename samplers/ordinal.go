package samplers

import (
	"context"
	"fmt"
)

// An OrdinalTarget has categories that stand for numbers, and an energy that
// extends to real slots.
type OrdinalTarget interface {
	Target
	// Values returns the number each category stands for, [slots][categories].
	// The caller must not change it.
	Values() [][]float64
	// EnergyDerivative writes U to energy [chains] and ∂U/∂θ_j at the
	// state's values to derivative [chains × slots].
	EnergyDerivative(ctx context.Context, states []int, energy, derivative []float64) error
}

// OrdinalLangevin is the discrete Langevin proposal over numbers instead of
// one-hot vectors: equation 2 of Zhang, Liu and Liu (ICML 2022), with one
// derivative per slot:
//
//	q_j(v | θ) ∝ exp(log g(exp(U'_j(θ) (v - θ_j))) - (v - θ_j)² / (2 α g_j))
//
// On slots of two categories with the values 0 and 1 it is the binary form of
// appendix A, algorithm 2: a slot flips with probability sigmoid(-½ U'_j (2θ_j
// - 1) - 1/(2α)). A target that is no [OrdinalTarget] but has a gradient and
// binary slots is taken that way.
//
// DULA (unadjusted) has its own stationary law; DMALA targets π exactly. Step
// size: α of the paper's equation 2, where two neighbouring integers are at
// squared distance 1, half that of two one-hot vectors: on binary slots 0 and 1
// this α is half the α of [DLP] that has the same penalty. Cost: one energy and
// derivative a step.
type OrdinalLangevin struct{ *DistanceLangevin }

var _ Kernel = (*OrdinalLangevin)(nil)

// NewOrdinalDULA makes the unadjusted sampler. It uses StepSize (default 1),
// Balance and Preconditioner of the options.
func NewOrdinalDULA(target Target, o Options) (*OrdinalLangevin, error) {
	return newOrdinal("dula-ordinal", target, o, false)
}

// NewOrdinalDMALA makes the adjusted sampler, with the options of
// [NewOrdinalDULA].
func NewOrdinalDMALA(target Target, o Options) (*OrdinalLangevin, error) {
	return newOrdinal("dmala-ordinal", target, o, true)
}

func newOrdinal(name string, target Target, o Options, adjusted bool) (*OrdinalLangevin, error) {
	if err := checkTarget(target); err != nil {
		return nil, err
	}
	ordinal, err := ordinalTarget(target, name)
	if err != nil {
		return nil, err
	}
	k, err := newDistanceLangevin(name, &onLine{OrdinalTarget: ordinal}, o, adjusted)
	if err != nil {
		return nil, err
	}
	return &OrdinalLangevin{k}, nil
}

// ordinalTarget finds or makes a target over numbers.
func ordinalTarget(target Target, name string) (OrdinalTarget, error) {
	ordinal, err := capability[OrdinalTarget](target, name, "categories that are numbers")
	if err == nil {
		return ordinal, nil
	}
	gradient, failed := gradientTarget(target, name)
	if failed != nil || width(target.Categories()) > 2 {
		return nil, fmt.Errorf("%w (binary slots with a gradient would do)", err)
	}
	b := &zeroOne{GradientTarget: gradient}
	for range target.Categories() {
		b.values = append(b.values, []float64{0, 1})
	}
	return b, nil
}

// onLine lays an ordinal target's categories on a line: the gradient of
// category v is U'_j·v, so that differences are U'_j (v - θ_j), and the
// distances are squared differences of values.
type onLine struct {
	OrdinalTarget
	derivative []float64
}

var _ MetricTarget = (*onLine)(nil)

func (t *onLine) EnergyGradient(ctx context.Context, states []int, energy, gradient []float64) error {
	if cap(t.derivative) < len(states) {
		t.derivative = make([]float64, len(states))
	}
	t.derivative = t.derivative[:len(states)]
	if err := t.EnergyDerivative(ctx, states, energy, t.derivative); err != nil {
		return err
	}
	values := t.Values()
	wide := width(t.Categories())
	for i, d := range t.derivative {
		for v, x := range values[i%len(values)] {
			gradient[i*wide+v] = d * x
		}
	}
	return nil
}

func (t *onLine) Distances(slot, from, first int, distance []float64) {
	values := t.Values()[slot]
	for i := range distance {
		d := values[first+i] - values[from]
		distance[i] = d * d
	}
}

// zeroOne gives slots of at most two categories the values 0 and 1.
type zeroOne struct {
	GradientTarget
	values   [][]float64
	gradient []float64
}

func (t *zeroOne) Values() [][]float64 { return t.values }

func (t *zeroOne) EnergyDerivative(ctx context.Context, states []int, energy, derivative []float64) error {
	wide := width(t.Categories())
	if cap(t.gradient) < len(states)*wide {
		t.gradient = make([]float64, len(states)*wide)
	}
	t.gradient = t.gradient[:len(states)*wide]
	if err := t.EnergyGradient(ctx, states, energy, t.gradient); err != nil {
		return err
	}
	categories := t.Categories()
	for i := range derivative {
		derivative[i] = 0
		if categories[i%len(categories)] == 2 {
			derivative[i] = t.gradient[i*wide+1] - t.gradient[i*wide]
		}
	}
	return nil
}

func ordinalDULAEntry() entry {
	return entry{
		Description: Description{
			Name: "dula-ordinal", Title: "discrete unadjusted Langevin over numbers; its binary form", Paper: langevinPaper,
			Exact: false, Target: "its own law, near exp(U) for a small step size", Cost: "1 energy and derivative", Tunable: true,
		},
		uses:   []option{stepSizeOption, balanceOption, preconditionerOption},
		nature: "it takes one derivative per slot",
		make:   func(t Target, o Options) (Kernel, error) { return NewOrdinalDULA(t, o) },
	}
}

func ordinalDMALAEntry() entry {
	return entry{
		Description: Description{
			Name: "dmala-ordinal", Title: "discrete Metropolis-adjusted Langevin over numbers; its binary form", Paper: langevinPaper,
			Exact: true, Target: onlyExp, Cost: "1 energy and derivative", Tunable: true,
		},
		uses:   []option{stepSizeOption, balanceOption, preconditionerOption},
		nature: "it takes one derivative per slot",
		make:   func(t Target, o Options) (Kernel, error) { return NewOrdinalDMALA(t, o) },
		adapt:  tuneStepSize,
	}
}
