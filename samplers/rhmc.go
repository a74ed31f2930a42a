// R-HMC is relaxed Hamiltonian Monte Carlo, with which Grathwohl et al., "Oops
// I Took A Gradient" (ICML 2021), compare their sampler. Binary slots are the
// signs of z. A momentum p ~ N(0, I) is drawn, and L leapfrog steps follow the
// smooth surrogate s. The end is accepted against the target:
//
//	p ← p + ε/2 ∇log s(z);  z ← z + ε p;  p ← p + ε/2 ∇log s(z)
//	A = min(1, exp(H(z, p) - H(z', p'))),  H = |p|²/2 + |z|²/2 - U([z > 0])
//
// The leapfrog map keeps volume and is its own inverse up to the sign of p,
// whatever field it follows. So the sampler is exact for π over x = [z > 0].
//
// Step size: ε of a leapfrog step, 0.001 by default, not the α of the package.
// Smoothing: t of the surrogate, 0.1 by default. Cost: one energy and L relaxed
// gradients a step. All slots must be binary.

package samplers

import (
	"context"
	"math/rand/v2"
)

type relaxedHMC struct {
	*relaxation
	leapfrog int
	momentum []float64
	kinetic  []float64 // |p|² before the leapfrog steps, [chains]
}

var (
	_ mover     = (*relaxedHMC)(nil)
	_ stepSizer = (*relaxedHMC)(nil)
)

// transition draws momenta, follows the flow, and accepts by the target's
// energy, the prior of z and the kinetic energy, before and after.
func (k *relaxedHMC) transition(ctx context.Context, state *State, sources []source, info *Info) error {
	chains := state.Chains()
	slots := state.Slots()
	info.reset(chains, slots)
	known := k.known(state)
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
	copy(k.z, known.z)
	copy(k.score, known.score)
	if err := k.flow(ctx); err != nil {
		return err
	}
	if err := k.evaluateProposals(ctx, info); err != nil {
		return err
	}
	info.Cost = Cost{Energies: chains, Gradients: chains * k.leapfrog}
	for c, src := range sources {
		lo := c * slots
		hi := (c + 1) * slots
		ratio := k.energy[c] - state.Energy[c] +
			(squares(known.z[lo:hi])-squares(k.z[lo:hi])+k.kinetic[c]-squares(k.momentum[lo:hi]))/2
		k.settle(c, state, info, ratio, src)
	}
	return nil
}

// flow does the leapfrog steps from k.z, k.score and k.momentum.
func (k *relaxedHMC) flow(ctx context.Context) error {
	half := k.epsilon / 2
	for range k.leapfrog {
		for i, s := range k.score {
			k.momentum[i] += half * s
			k.z[i] += k.epsilon * k.momentum[i]
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

// RelaxedHMC is relaxed Hamiltonian Monte Carlo over the signs of real numbers. A warm-up
// adapts the step size if it is zero.
type RelaxedHMC struct {
	// StepSize is ε of a step of the real numbers behind the slots.
	StepSize float64 `option:"step-size" default:"0.001" exclusiveMinimum:"0"`
	// Smoothing is t, the temperature of the sigmoid that stands for a sign.
	Smoothing float64 `option:"smoothing" default:"0.1" exclusiveMinimum:"0"`
	// Leapfrog is L, the leapfrog steps of each step.
	Leapfrog int `option:"leapfrog" default:"5" minimum:"1"`
}

var _ Sampler = RelaxedHMC{}

func (s RelaxedHMC) Kernel(target Target, _ *rand.Rand) (Kernel, error) {
	return newKernel(s, target, unlessSaid(s.StepSize != 0, tuneContinuous), func(s RelaxedHMC) (mover, error) {
		r, err := newRelaxation("r-hmc", target, s.StepSize, s.Smoothing)
		if err != nil {
			return nil, err
		}
		return &relaxedHMC{relaxation: r, leapfrog: s.Leapfrog}, nil
	})
}

func (RelaxedHMC) Describe() Description {
	return Description{
		Name: "r-hmc", Title: "relaxed Hamiltonian Monte Carlo over the signs of real numbers",
		Paper: "Grathwohl et al., Oops I Took A Gradient, ICML 2021",
		Exact: true, Target: onlyExp, Cost: "1 energy and L relaxed gradients",
	}
}
