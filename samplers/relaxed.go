package samplers

import (
	"context"
	"fmt"
	"math"
	"slices"

	"infill/internal/logmath"
)

// relaxation is the common part of the samplers by continuous relaxation. Slots
// are the signs of real numbers z ∈ R^m with a normal prior. Under
//
//	p(z) ∝ N(z; 0, I) exp(U([z > 0]))
//
// the law of [z > 0] is π. The gradient of log p is useless, because U([z > 0])
// is constant almost everywhere. Moves follow the surrogate s(z) = N(z; 0, I)
// exp(U(sigmoid(z/t))) instead.
type relaxation struct {
	target    RelaxedTarget
	epsilon   float64 // the step size
	smoothing float64 // t

	soft     []float64 // sigmoid(z/t), [chains × slots]
	discard  []float64
	energy   []float64
	z, score []float64 // z and ∇log s(z) of the proposals, [chains × slots]
}

func newRelaxation(name string, target Target, stepSize, smoothing float64) (*relaxation, error) {
	t, err := capability[RelaxedTarget](target, name)
	if err != nil {
		return nil, err
	}
	for j, n := range t.Categories() {
		if n != 2 {
			return nil, fmt.Errorf("%s: slot %d has %d categories, and a sign has two: %w", name, j, n, ErrUnsupported)
		}
	}
	r := &relaxation{target: t, smoothing: smoothing}
	return r, r.SetStepSize(stepSize)
}

// relaxed holds the numbers that a relaxation keeps with a state, all [chains × slots].
type relaxed struct {
	z, score      []float64 // the numbers whose signs are the slots, and ∇log s(z)
	first, second []float64 // the two moments of Adam
	step          int
}

// StepSize returns ε.
func (r *relaxation) StepSize() float64 { return r.epsilon }

// SetStepSize sets ε.
func (r *relaxation) SetStepSize(stepSize float64) error {
	if !(stepSize > 0) || math.IsInf(stepSize, 1) {
		return fmt.Errorf("step size %v: it must be above 0 and finite", stepSize)
	}
	r.epsilon = stepSize
	return nil
}

// start puts z at ±√(2/π), the mean of a half normal, with the signs of the slots.
func (r *relaxation) start(ctx context.Context, state *State) error {
	if err := evaluate(ctx, r.target, state); err != nil {
		return err
	}
	n := len(state.Positions)
	z := make([]float64, n)
	for i, v := range state.Positions {
		z[i] = math.Copysign(math.Sqrt(2/math.Pi), float64(2*v-1))
	}
	state.own = &relaxed{z: z, score: make([]float64, n), first: make([]float64, n), second: make([]float64, n)}
	known := r.known(state)
	if err := r.surrogate(ctx, known.z, known.score); err != nil {
		return err
	}
	for i, g := range known.score {
		if !logmath.Finite(g) {
			return fmt.Errorf("chain %d starts where the gradient is not finite: start it elsewhere", i/state.Slots())
		}
	}
	return nil
}

// known returns the numbers kept with a state, and makes scratch memory for a step.
func (r *relaxation) known(s *State) *relaxed {
	n := len(s.Positions)
	if len(r.energy) != s.Chains() {
		r.energy = make([]float64, s.Chains())
		r.discard = make([]float64, s.Chains())
		r.soft = make([]float64, n)
		r.z = make([]float64, n)
		r.score = make([]float64, n)
	}
	return s.own.(*relaxed)
}

// surrogate writes ∇log s(z) to score.
func (r *relaxation) surrogate(ctx context.Context, z, score []float64) error {
	for i, v := range z {
		r.soft[i] = logmath.Sigmoid(v / r.smoothing)
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

func signs(z []float64, positions []int) {
	for i, v := range z {
		positions[i] = logmath.Indicator(v > 0)
	}
}

func squares(z []float64) float64 {
	sum := 0.0
	for _, v := range z {
		sum += v * v
	}
	return sum
}

// evaluateProposals writes the signs of r.z to info.Proposal and computes their energies.
func (r *relaxation) evaluateProposals(ctx context.Context, info *Info) error {
	signs(r.z, info.Proposal)
	return r.target.Energy(ctx, info.Proposal, r.energy)
}

// settle accepts or rejects r.z of a chain, together with the chain's proposal in info.
func (r *relaxation) settle(chain int, state *State, info *Info, logRatio float64, src source) {
	slots := state.Slots()
	lo := chain * slots
	hi := (chain + 1) * slots
	if !logmath.Finite(r.energy[chain]) ||
		slices.ContainsFunc(r.score[lo:hi], func(g float64) bool { return !logmath.Finite(g) }) {
		logRatio = math.Inf(-1)
	}
	info.settle(chain, state, r.energy[chain], logRatio, src)
	if info.Accepted[chain] {
		known := state.own.(*relaxed)
		copy(known.z[lo:hi], r.z[lo:hi])
		copy(known.score[lo:hi], r.score[lo:hi])
	}
}
