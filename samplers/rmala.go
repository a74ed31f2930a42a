package samplers

import (
	"context"
	"math/rand/v2"
)

// RelaxedMALA is R-MALA, the relaxed Metropolis-adjusted Langevin sampler that
// Grathwohl et al., "Oops I Took A Gradient" (ICML 2021), compare with. Binary
// slots are the signs of z, which takes Langevin steps along a smooth
// surrogate s and is accepted against the target itself:
//
//	z' ~ N(z + ε ∇log s(z), 2ε I),  x = [z > 0]
//	p(z) ∝ N(z; 0, I) exp(U(x)),  s(z) = N(z; 0, I) exp(U(sigmoid(z/t)))
//
// Target: π exactly, over x. Step size: ε of the continuous step, 0.001 by
// default, not the α of the package. Smoothing: t, 0.1 by default. Cost: one
// energy and one relaxed gradient a step. Only binary slots.
type RelaxedMALA struct{ *relaxation }

var (
	_ Kernel     = (*RelaxedMALA)(nil)
	_ transition = (*RelaxedMALA)(nil)
	_ StepSizer  = (*RelaxedMALA)(nil)
)

// NewRelaxedMALA makes the sampler. It uses StepSize and Smoothing of the
// options; the target must be a [RelaxedTarget].
func NewRelaxedMALA(target Target, o Options) (*RelaxedMALA, error) {
	r, err := newRelaxation("r-mala", target, o, 0.001, 0.1)
	if err != nil {
		return nil, err
	}
	return &RelaxedMALA{r}, nil
}

// Step implements [Kernel].
func (k *RelaxedMALA) Step(ctx context.Context, state *State, streams []*rand.Rand, info *Info) error {
	return k.step(ctx, k, state, streams, info)
}

func (k *RelaxedMALA) transition(ctx context.Context, state *State, sources []source, info *Info) error {
	chains, slots := state.Chains(), state.Slots()
	info.reset(chains, slots)
	k.room(state)
	for i, z := range state.z {
		k.z[i] = normalAround(z+k.stepSize*state.score[i], 2*k.stepSize, sources[i/slots])
	}
	if err := k.propose(ctx, info); err != nil {
		return err
	}
	info.Cost = Cost{Energies: chains, Gradients: chains}
	for c, src := range sources {
		lo, hi := c*slots, (c+1)*slots
		ratio := k.energy[c] - state.Energy[c] + (squares(state.z[lo:hi])-squares(k.z[lo:hi]))/2 +
			k.logMove(k.z[lo:hi], k.score[lo:hi], state.z[lo:hi]) -
			k.logMove(state.z[lo:hi], state.score[lo:hi], k.z[lo:hi])
		k.settle(c, state, info, ratio, src)
	}
	return nil
}

// propose evaluates what the proposals of z need.
func (r *relaxation) propose(ctx context.Context, info *Info) error {
	signs(r.z, info.Proposal)
	if err := r.target.Energy(ctx, info.Proposal, r.energy); err != nil {
		return err
	}
	return r.surrogate(ctx, r.z, r.score)
}

// logMove is the log density of the Langevin step, up to a constant.
func (k *RelaxedMALA) logMove(from, score, to []float64) float64 {
	sum := 0.0
	for i, z := range from {
		d := to[i] - z - k.stepSize*score[i]
		sum += d * d
	}
	return -sum / (4 * k.stepSize)
}

func relaxedMALAEntry() entry {
	return entry{
		Description: Description{
			Name: "r-mala", Title: "relaxed MALA over the signs of real numbers",
			Paper: "Grathwohl et al., Oops I Took A Gradient, ICML 2021",
			Exact: true, Target: onlyExp, Cost: "1 energy and 1 relaxed gradient", Tunable: true,
		},
		uses: relaxedOptions(), nature: "it moves real numbers behind binary slots",
		make:  func(t Target, o Options) (Kernel, error) { return NewRelaxedMALA(t, o) },
		adapt: tuneContinuous,
	}
}

// tuneContinuous adapts a continuous step, whose bounds are far smaller.
func tuneContinuous(kernel Kernel) (Adaptation, error) {
	return NewStepSizeAdaptation(kernel.(StepSizer).StepSize(), AdaptationOptions{Min: 1e-6, Max: 10})
}
