package samplers

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
)

// A LatentTarget is the margin of a bipartite model over binary slots and
// binary latent units, such as a restricted Boltzmann machine: each side is
// independent given the other.
type LatentTarget interface {
	Target
	// Latents is the number of latent units.
	Latents() int
	// LatentLogits writes the log-odds of each latent unit given the slots,
	// [chains × latents].
	LatentLogits(states []int, logits []float64)
	// SlotLogits writes the log-odds of each slot being 1 given the latent
	// units, [chains × slots].
	SlotLogits(latents []bool, logits []float64)
}

// LatentGibbs is block Gibbs on a bipartite model: all latent units given all
// slots, then all slots given all latent units (the ground truth of the
// discrete Langevin and GWG papers on restricted Boltzmann machines):
//
//	h ~ Bernoulli(sigmoid(W v + a)),  v ~ Bernoulli(sigmoid(Wᵀ h + b))
//
// Target: π exactly. No step size, no rejection, no temperature. Cost: two
// passes over the weights, counted as one conditional; no energy: State.Energy
// of a moved chain is NaN until [State.Evaluate].
type LatentGibbs struct {
	frame
	target  LatentTarget
	latents []bool
	logits  []float64
}

var (
	_ Kernel     = (*LatentGibbs)(nil)
	_ transition = (*LatentGibbs)(nil)
)

// NewLatentGibbs makes the sampler. It uses none of the options; the target
// must be a [LatentTarget].
func NewLatentGibbs(target Target, _ Options) (*LatentGibbs, error) {
	if err := checkTarget(target); err != nil {
		return nil, err
	}
	t, err := capability[LatentTarget](target, "rbm-gibbs", "latent units (and a temperature has none)")
	if err != nil {
		return nil, err
	}
	return &LatentGibbs{target: t}, nil
}

// Init implements [Kernel]. It evaluates nothing.
func (k *LatentGibbs) Init(_ context.Context, positions []int) (*State, error) {
	chains, err := checkPositions(k.target.Categories(), positions)
	if err != nil {
		return nil, err
	}
	return &State{Positions: slices.Clone(positions), Energy: slices.Repeat([]float64{math.NaN()}, chains)}, nil
}

// Step implements [Kernel].
func (k *LatentGibbs) Step(ctx context.Context, state *State, streams []*rand.Rand, info *Info) error {
	return k.step(ctx, k, state, streams, info)
}

func (k *LatentGibbs) transition(_ context.Context, state *State, sources []source, info *Info) error {
	chains, slots, latents := state.Chains(), state.Slots(), k.target.Latents()
	info.reset(chains, slots)
	if len(k.latents) != chains*latents {
		k.latents = make([]bool, chains*latents)
		k.logits = make([]float64, chains*max(latents, slots))
	}
	logits := k.logits[:len(k.latents)]
	k.target.LatentLogits(state.Positions, logits)
	for i, l := range logits {
		k.latents[i] = sources[i/latents].chance(sigmoid(l))
	}
	logits = k.logits[:len(state.Positions)]
	k.target.SlotLogits(k.latents, logits)
	for i, l := range logits {
		info.Proposal[i] = 0
		if sources[i/slots].chance(sigmoid(l)) {
			info.Proposal[i] = 1
		}
	}
	info.Cost.Conditionals = chains
	for c := range chains {
		info.Accepted[c] = true
		if info.Changed[c] = changes(state.Position(c), info.proposal(c)); info.Changed[c] > 0 {
			state.Energy[c] = math.NaN()
		}
	}
	copy(state.Positions, info.Proposal)
	return nil
}

func latentGibbsEntry() entry {
	return entry{
		Description: Description{
			Name: "rbm-gibbs", Title: "block Gibbs on latent units and slots",
			Paper: "Hinton, Training Products of Experts by Minimizing Contrastive Divergence, 2002",
			Exact: true, Target: onlyExp, Cost: "2 passes over the weights",
		},
		nature: "it draws both sides from their conditionals",
		make:   func(t Target, o Options) (Kernel, error) { return NewLatentGibbs(t, o) },
	}
}
