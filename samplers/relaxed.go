package samplers

import (
	"context"
	"fmt"
	"math"
	"slices"
)

// A RelaxedTarget has binary slots and an energy that extends to slots between
// 0 and 1.
type RelaxedTarget interface {
	Target
	// RelaxedEnergyGradient writes U at x [chains × slots], each in [0,1], to
	// energy [chains] and ∂U/∂x_j to gradient [chains × slots].
	RelaxedEnergyGradient(ctx context.Context, x []float64, energy, gradient []float64) error
}

// relaxation is what the continuous relaxations share. Slots are signs of real
// numbers z ∈ R^m under a normal base, so that
//
//	p(z) ∝ N(z; 0, I) exp(U([z > 0]))
//
// has π as the law of [z > 0]. Its gradient is zero almost everywhere; moves
// follow the surrogate s(z) = N(z; 0, I) exp(U(sigmoid(z/t))) instead.
type relaxation struct {
	frame
	name      string
	target    RelaxedTarget
	stepSize  float64
	smoothing float64 // t

	soft     []float64 // sigmoid(z/t), [chains × slots]
	discard  []float64
	energy   []float64
	z, score []float64 // at the proposals
}

// newRelaxation checks the target and the options.
func newRelaxation(name string, target Target, o Options, stepSize, smoothing float64) (*relaxation, error) {
	if err := checkTarget(target); err != nil {
		return nil, err
	}
	t, err := capability[RelaxedTarget](target, name, "an energy over slots between 0 and 1")
	if err != nil {
		return nil, err
	}
	for j, n := range t.Categories() {
		if n != 2 {
			return nil, fmt.Errorf("%s: slot %d has %d categories, and a sign has two: %w", name, j, n, errUnsupported)
		}
	}
	if o.StepSize != 0 {
		stepSize = o.StepSize
	}
	if o.Smoothing != 0 {
		smoothing = o.Smoothing
	}
	if !(smoothing > 0) || math.IsInf(smoothing, 1) {
		return nil, fmt.Errorf("smoothing %v: it must be above 0 and finite", smoothing)
	}
	r := &relaxation{name: name, target: t, smoothing: smoothing}
	return r, r.SetStepSize(stepSize)
}

// StepSize implements [StepSizer]: it is ε.
func (r *relaxation) StepSize() float64 { return r.stepSize }

// SetStepSize implements [StepSizer].
func (r *relaxation) SetStepSize(stepSize float64) error {
	if !(stepSize > 0) || math.IsInf(stepSize, 1) {
		return fmt.Errorf("step size %v: it must be above 0 and finite", stepSize)
	}
	r.stepSize = stepSize
	return nil
}

// Init implements [Kernel]. z starts at ± √(2/π), the mean of a half normal.
func (r *relaxation) Init(ctx context.Context, positions []int) (*State, error) {
	s, err := initWithEnergy(ctx, r.target, positions)
	if err != nil {
		return nil, err
	}
	s.z = make([]float64, len(positions))
	s.score = make([]float64, len(positions))
	for i, v := range positions {
		s.z[i] = math.Copysign(math.Sqrt(2/math.Pi), float64(2*v-1))
	}
	r.room(s)
	if err := r.surrogate(ctx, s.z, s.score); err != nil {
		return nil, err
	}
	for i, g := range s.score {
		if !finite(g) {
			return nil, fmt.Errorf("chain %d starts where the gradient is not finite: start it elsewhere", i/s.Slots())
		}
	}
	return s, nil
}

func (r *relaxation) room(s *State) {
	if len(r.energy) == s.Chains() {
		return
	}
	n := len(s.Positions)
	r.energy, r.discard = make([]float64, s.Chains()), make([]float64, s.Chains())
	r.soft, r.z, r.score = make([]float64, n), make([]float64, n), make([]float64, n)
}

// surrogate writes ∇ log s(z) to score.
func (r *relaxation) surrogate(ctx context.Context, z, score []float64) error {
	for i, v := range z {
		r.soft[i] = sigmoid(v / r.smoothing)
	}
	if err := r.target.RelaxedEnergyGradient(ctx, r.soft, r.discard, score); err != nil {
		return err
	}
	for i, v := range z {
		x := r.soft[i]
		score[i] = score[i]*x*(1-x)/r.smoothing - v
	}
	return nil
}

// signs writes [z > 0] to positions.
func signs(z []float64, positions []int) {
	for i, v := range z {
		positions[i] = 0
		if v > 0 {
			positions[i] = 1
		}
	}
}

// squares is |z|².
func squares(z []float64) float64 {
	sum := 0.0
	for _, v := range z {
		sum += v * v
	}
	return sum
}

// settle accepts or rejects a chain's z, which goes with info's proposal.
func (r *relaxation) settle(chain int, state *State, info *Info, ratio float64, src source) {
	slots := state.Slots()
	lo, hi := chain*slots, (chain+1)*slots
	if !finite(r.energy[chain]) || slices.ContainsFunc(r.score[lo:hi], func(g float64) bool { return !finite(g) }) {
		ratio = math.Inf(-1)
	}
	info.settle(chain, state, r.energy[chain], ratio, src)
	if info.Accepted[chain] {
		copy(state.z[lo:hi], r.z[lo:hi])
		copy(state.score[lo:hi], r.score[lo:hi])
	}
}

func relaxedOptions() []option { return []option{stepSizeOption, smoothingOption} }
