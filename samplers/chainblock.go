// Chain-block draws a block of slots again by the chain rule (chainrule.go), and accepts or rejects by Metropolis and
// Hastings: mlm-mh (Goyal, Dyer and Berg-Kirkpatrick, ICLR 2022) with a proposal in which the slots of a block know of
// each other. A block B is chosen uniformly, of a size that is set, or of every size from 1 to all slots with equal
// probability:
//
//	q(y_B | x_-B) = Π_t f(y_σ(t) | x_-B, y_σ(1), ..., y_σ(t-1), the rest open)
//	A = min(1, e^{U(y)-U(x)} q(x_B | x_-B) / q(y_B | x_-B))
//
// An order that depends on the state is replayed for x. A block of one slot is a step of mlm-mh. A block of all slots
// is the independence sampler (Tierney, Annals of Statistics 1994), here independence: with w = e^U/q,
//
//	A = min(1, w(y)/w(x))
//
// Sizes that vary do both: large blocks leave a mode, small ones move within.
//
// Target: exp(U) exactly, whatever the conditionals are, as long as they reach every category of positive probability.
// No step size and no gradient, and nothing is tuned. Cost: two conditionals a slot of the block (those of x are known
// where a target remembers) and one energy a step. A chain whose conditional is not a number stays.

package samplers

import (
	"context"
	"flag"
	"math"
	"math/rand/v2"

	"infill/internal/logmath"
)

type chainBlock struct {
	target     Target
	rule       *ChainRule
	categories []int
	size       int // 0: any

	choose  choice
	sources []source
	order   []int
	slots   []int
	states  []int  // proposals, then positions, [2·chains × slots]
	open    []bool // the blocks of both
	logq    []float64
	energy  []float64
}

var _ mover = (*chainBlock)(nil)

type chainBlockSettings struct {
	block count
	order slotOrder
	whole bool // the block is all slots
}

func (s *chainBlockSettings) register(f *flag.FlagSet) {
	if !s.whole {
		f.Var(&s.block, "block", "slots that are drawn together; any number of them when not given")
	}
	f.Var(&s.order, "order", orderHelp)
}

func (s *chainBlockSettings) mover(name string, target Target, _ *rand.Rand) (mover, error) {
	k := &chainBlock{target: target, categories: target.Categories()}
	slots := len(k.categories)
	var err error
	switch block := (slotCount{count: s.block}); {
	case s.whole:
		k.size = slots
	case s.block > 0:
		if k.size, err = block.of("block", slots); err != nil {
			return nil, err
		}
	}
	if k.rule, err = s.order.rule(name, target); err != nil {
		return nil, err
	}
	k.order, k.slots = ascending(slots), make([]int, slots)
	k.choose = func(row, slot int, logp []float64, total float64) int {
		if row < len(k.sources) {
			return drawLog(k.sources[row], logp, total, k.rule.weight)
		}
		return k.states[row*slots+slot]
	}
	return k, nil
}

func (k *chainBlock) start(ctx context.Context, state *State) error {
	return evaluate(ctx, k.target, state)
}

func (k *chainBlock) transition(ctx context.Context, state *State, sources []source, info *Info) error {
	chains, slots := state.Chains(), len(k.categories)
	info.reset(chains, slots)
	k.states, k.open = resized(k.states, 2*chains*slots), resized(k.open, 2*chains*slots)
	k.logq, k.energy = resized(k.logq, 2*chains), resized(k.energy, chains)
	clear(k.open)
	for c, src := range sources {
		size := k.size
		if size == 0 {
			size = 1 + src.index(slots)
		}
		chooseSlots(k.slots[:size], k.order, src)
		for _, j := range k.slots[:size] {
			k.open[c*slots+j], k.open[(chains+c)*slots+j] = true, true
		}
	}
	copy(k.states, state.Positions)
	copy(k.states[chains*slots:], state.Positions)
	k.sources = sources
	conditionals, err := k.rule.walk(ctx, k.states, k.open, k.logq, k.choose)
	if err != nil {
		return err
	}
	for c := range chains {
		if math.IsNaN(k.logq[c]) {
			copy(k.states[c*slots:(c+1)*slots], state.Position(c))
		}
	}
	copy(info.Proposal, k.states)
	if err := k.target.Energy(ctx, info.Proposal, k.energy); err != nil {
		return err
	}
	info.Cost = Cost{Energies: chains, Conditionals: conditionals}
	for c, src := range sources {
		ratio := math.Inf(-1)
		if logmath.Finite(k.energy[c]) {
			ratio = k.energy[c] - state.Energy[c] + k.logq[chains+c] - k.logq[c]
		}
		info.settle(c, state, k.energy[c], ratio, src)
	}
	return nil
}

func chainBlockEntry() entry {
	return entry{
		Description: Description{
			Name: "chain-block", Title: "Metropolis–Hastings with blocks by the chain rule",
			Paper: "after Goyal, Dyer and Berg-Kirkpatrick, Exposing the Implicit Energy Networks behind Masked " +
				"Language Models via Metropolis–Hastings, ICLR 2022",
			Exact: true, Target: onlyExp, Cost: "2 conditionals a slot of the block and 1 energy", Conditionals: true,
			OnText: &OnText{},
		},
		nature:   "it proposes from the conditionals as they are",
		settings: func() settings { return &chainBlockSettings{} },
	}
}

func independenceEntry() entry {
	return entry{
		Description: Description{
			Name: "independence", Title: "Independence sampler by the chain rule",
			Paper: "Tierney, Markov Chains for Exploring Posterior Distributions, Annals of Statistics 1994",
			Exact: true, Target: onlyExp, Cost: "2 conditionals a slot and 1 energy", Conditionals: true,
			OnText: &OnText{},
		},
		nature:   "it proposes from the conditionals as they are",
		settings: func() settings { return &chainBlockSettings{whole: true} },
	}
}
