package samplers

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
)

// RelaxedHMC is R-HMC, the relaxed Hamiltonian Monte Carlo sampler that
// Grathwohl et al., "Oops I Took A Gradient" (ICML 2021), compare with. Binary
// slots are the signs of z. A momentum p ~ N(0, I) is drawn and L leapfrog
// steps follow the smooth surrogate; the end is accepted against the target:
//
//	p ← p + ε/2 ∇log s(z);  z ← z + ε p;  p ← p + ε/2 ∇log s(z)
//	A = min(1, exp(H(z, p) - H(z', p'))),  H = |p|²/2 + |z|²/2 - U([z > 0])
//
// The leapfrog map keeps volume and is its own inverse up to the sign of p,
// whatever field it follows, so the sampler is exact for π over x = [z > 0].
//
// Step size: ε of a leapfrog step, 0.001 by default, not the α of the package.
// Smoothing: t of the surrogate, 0.1 by default. Cost: one energy and L relaxed
// gradients a step. Only binary slots.
type RelaxedHMC struct {
	*relaxation
	leapfrog int
	momentum []float64
	kinetic  []float64 // |p|² before, [chains]
}

var (
	_ Kernel     = (*RelaxedHMC)(nil)
	_ transition = (*RelaxedHMC)(nil)
	_ StepSizer  = (*RelaxedHMC)(nil)
)

// NewRelaxedHMC makes the sampler. It uses StepSize, Smoothing and Leapfrog
// (L, default 5) of the options; the target must be a [RelaxedTarget].
func NewRelaxedHMC(target Target, o Options) (*RelaxedHMC, error) {
	r, err := newRelaxation("r-hmc", target, o, 0.001, 0.1)
	if err != nil {
		return nil, err
	}
	k := &RelaxedHMC{relaxation: r, leapfrog: o.Leapfrog}
	if k.leapfrog == 0 {
		k.leapfrog = 5
	}
	if k.leapfrog < 1 {
		return nil, fmt.Errorf("%d leapfrog steps: take at least one", k.leapfrog)
	}
	return k, nil
}

// Step implements [Kernel].
func (k *RelaxedHMC) Step(ctx context.Context, state *State, streams []*rand.Rand, info *Info) error {
	return k.step(ctx, k, state, streams, info)
}

func (k *RelaxedHMC) transition(ctx context.Context, state *State, sources []source, info *Info) error {
	chains, slots := state.Chains(), state.Slots()
	info.reset(chains, slots)
	k.room(state)
	if len(k.kinetic) != chains {
		k.momentum = make([]float64, chains*slots)
		k.kinetic = make([]float64, chains)
	}
	for i := range k.momentum {
		k.momentum[i] = normalAround(0, 1, sources[i/slots])
	}
	for c := range k.kinetic {
		k.kinetic[c] = squares(k.momentum[c*slots : (c+1)*slots])
	}
	copy(k.z, state.z)
	copy(k.score, state.score)
	if err := k.flow(ctx); err != nil {
		return err
	}
	signs(k.z, info.Proposal)
	if err := k.target.Energy(ctx, info.Proposal, k.energy); err != nil {
		return err
	}
	info.Cost = Cost{Energies: chains, Gradients: chains * k.leapfrog}
	for c, src := range sources {
		lo, hi := c*slots, (c+1)*slots
		ratio := k.energy[c] - state.Energy[c] +
			(squares(state.z[lo:hi])-squares(k.z[lo:hi])+k.kinetic[c]-squares(k.momentum[lo:hi]))/2
		k.settle(c, state, info, ratio, src)
	}
	return nil
}

// flow takes the leapfrog steps from z, its score and the momentum.
func (k *RelaxedHMC) flow(ctx context.Context) error {
	half := k.stepSize / 2
	for range k.leapfrog {
		for i, s := range k.score {
			k.momentum[i] += half * s
			k.z[i] += k.stepSize * k.momentum[i]
		}
		if err := k.surrogate(ctx, k.z, k.score); err != nil {
			return err
		}
		for i, s := range k.score {
			k.momentum[i] += half * s
		}
	}
	return nil
}

// normalAround draws from N(mean, variance).
func normalAround(mean, variance float64, src source) float64 {
	return mean + math.Sqrt(variance)*src.normal()
}

func relaxedHMCEntry() entry {
	return entry{
		Description: Description{
			Name: "r-hmc", Title: "relaxed Hamiltonian Monte Carlo over the signs of real numbers",
			Paper: "Grathwohl et al., Oops I Took A Gradient, ICML 2021",
			Exact: true, Target: onlyExp, Cost: "1 energy and L relaxed gradients", Tunable: true,
		},
		uses: append(relaxedOptions(), leapfrogOption), nature: "it moves real numbers behind binary slots",
		make:  func(t Target, o Options) (Kernel, error) { return NewRelaxedHMC(t, o) },
		adapt: tuneContinuous,
	}
}
