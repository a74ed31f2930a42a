// RBM Gibbs is block Gibbs on a bipartite model: it draws all latent units
// given all slots, then all slots given all latent units. The papers of
// discrete Langevin and of GWG use it as the ground truth on restricted
// Boltzmann machines:
//
//	h ~ Bernoulli(sigmoid(W v + a)),  v ~ Bernoulli(sigmoid(Wᵀ h + b))
//
// Target: π exactly. There is no step size, no rejection and no temperature.
// Cost: two passes over the weights, counted as one conditional, and no energy.
// State.Energy of a moved chain is NaN until [State.Evaluate].

package samplers

import (
	"context"
	"math"
	"math/rand/v2"

	"infill/internal/logmath"
)

type latentGibbs struct {
	target  LatentTarget
	latents []bool
	logits  []float64
}

var _ mover = (*latentGibbs)(nil)

func (k *latentGibbs) start(_ context.Context, state *State) error {
	leaveOpen(state)
	return nil
}

// transition draws the latent units given the slots, and then the slots given
// the latent units. Both are exact conditionals, so that nothing is rejected.
func (k *latentGibbs) transition(_ context.Context, state *State, sources []source, info *Info) error {
	chains := state.Chains()
	slots := state.Slots()
	latents := k.target.Latents()
	info.reset(chains, slots)
	if len(k.latents) != chains*latents {
		k.latents = make([]bool, chains*latents)
		k.logits = make([]float64, chains*max(latents, slots))
	}
	logits := k.logits[:len(k.latents)]
	k.target.LatentLogits(state.Positions, logits)
	for i, l := range logits {
		k.latents[i] = sources[i/latents].chance(logmath.Sigmoid(l))
	}
	logits = k.logits[:len(state.Positions)]
	k.target.SlotLogits(k.latents, logits)
	for i, l := range logits {
		info.Proposal[i] = 0
		if sources[i/slots].chance(logmath.Sigmoid(l)) {
			info.Proposal[i] = 1
		}
	}
	info.Cost.Conditionals = chains
	for c, energy := range state.Energy {
		info.move(c, state, energy)
		if info.Changed[c] > 0 {
			state.Energy[c] = math.NaN()
		}
	}
	return nil
}

// LatentGibbs is block Gibbs on latent units and slots.
type LatentGibbs struct{}

var _ Sampler = LatentGibbs{}

func (s LatentGibbs) Kernel(target Target, _ *rand.Rand) (Kernel, error) {
	return newKernel(s, target, untuned, func(_ LatentGibbs) (mover, error) {
		t, err := capability[LatentTarget](target, "rbm-gibbs")
		if err != nil {
			return nil, err
		}
		return &latentGibbs{target: t}, nil
	})
}

func (LatentGibbs) Describe() Description {
	return Description{
		Name: "rbm-gibbs", Title: "block Gibbs on latent units and slots",
		Paper: "Hinton, Training Products of Experts by Minimizing Contrastive Divergence, 2002",
		Exact: true, Target: onlyExp, Cost: "2 passes over the weights", noEnergies: true,
	}
}
