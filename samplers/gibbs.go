// Gibbs draws one slot, chosen uniformly, from the target's conditional:
//
//	j ~ Uniform,  θ_j ~ p(· | θ_{-j})
//
// With a masked language model this is the sampler of Wang and Cho, "BERT has
// a Mouth, and It Must Speak" (2019). A masked language model's conditionals
// are not those of any joint distribution (the authors' correction). The
// chain then has no exact joint target: its stationary law depends on the
// order of the slots and is not exp(U). With the conditionals of π, the chain
// targets π exactly.
//
// There is no step size and no rejection. Cost: one conditional a step and no
// energy. State.Energy of a moved chain is NaN until [State.Evaluate]. If a
// conditional is NaN or forbids every category, the chain stays where it is.

package samplers

import (
	"context"
	"math"
	"math/rand/v2"

	"infill/internal/logmath"
)

type gibbs struct {
	target     ConditionalTarget
	categories []int
	slots      []int
	logp       []float64
	weight     []float64
}

var _ mover = (*gibbs)(nil)

func (k *gibbs) start(_ context.Context, state *State) error {
	leaveOpen(state)
	return nil
}

// transition draws one slot of each chain, chosen at random, from its
// conditional. The energy of a chain that changed is not known: NaN.
func (k *gibbs) transition(ctx context.Context, state *State, sources []source, info *Info) error {
	chains := state.Chains()
	wide := width(k.categories)
	info.reset(chains, len(k.categories))
	if len(k.slots) != chains {
		k.slots = make([]int, chains)
		k.logp = make([]float64, chains*wide)
		k.weight = make([]float64, wide)
	}
	for c, src := range sources {
		k.slots[c] = src.index(len(k.categories))
	}
	if err := k.target.LogConditionals(ctx, state.Positions, k.slots, k.logp); err != nil {
		return err
	}
	info.Cost.Conditionals += chains
	copy(info.Proposal, state.Positions)
	for c, src := range sources {
		j := k.slots[c]
		position := state.Position(c)
		logp := k.logp[c*wide : c*wide+k.categories[j]]
		total := logmath.LogSumExp(logp)
		if !logmath.Finite(total) {
			info.LogAcceptance[c] = math.Inf(-1)
			continue
		}
		before := position[j]
		info.proposal(c)[j] = drawLog(src, logp, total, k.weight)
		info.move(c, state, state.Energy[c])
		if position[j] != before {
			state.Energy[c] = math.NaN()
		}
	}
	return nil
}

// Gibbs draws one slot at a time from the target's conditional.
type Gibbs struct{}

var _ Sampler = Gibbs{}

func (s Gibbs) Kernel(target Target, _ *rand.Rand) (Kernel, error) {
	return newKernel(s, target, untuned, func(_ Gibbs) (mover, error) {
		t, err := capability[ConditionalTarget](target, "gibbs")
		if err != nil {
			return nil, err
		}
		return &gibbs{target: t, categories: target.Categories()}, nil
	})
}

func (Gibbs) Describe() Description {
	return Description{
		Name: "gibbs", Title: "Gibbs on the target's conditionals, random scan",
		Paper:  "Wang and Cho, BERT has a Mouth, and It Must Speak, 2019",
		Target: "exp(U) if the conditionals are its own; no exact joint target for a masked language model",
		Cost:   "1 conditional", Conditionals: true, noEnergies: true, OnText: &OnText{},
	}
}
