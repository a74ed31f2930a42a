// MLM-MH is Metropolis–Hastings with the conditionals of a masked language
// model as proposals: Goyal, Dyer and Berg-Kirkpatrick, "Exposing the Implicit
// Energy Networks behind Masked Language Models via Metropolis–Hastings" (ICLR
// 2022). A block B of slots (by default one) is chosen uniformly, opened, and
// drawn again, each slot by itself:
//
//	q(θ'_B | θ) = Π_{j∈B} p(θ'_j | θ_{-B})
//	A = min(1, exp(U(θ') - U(θ)) q(θ_B | θ) / q(θ'_B | θ))
//
// Target: exp(U) exactly, whatever the conditionals are, if they do not depend
// on the open slots and give every category a positive probability. There is no
// step size and no gradient. Cost: one conditional (of the whole block at once)
// and one energy a step. A chain stays where it is if a conditional is NaN.

package samplers

import (
	"context"
	"math"
	"math/rand/v2"

	"infill/internal/logmath"
)

type mlmMetropolis struct {
	target      Target
	conditional ConditionalTarget       // used if block is 1
	masked      MaskedConditionalTarget // used for larger blocks
	categories  []int
	block       int

	order  []int  // scratch of chooseSlots, [slots]
	slots  []int  // slots of the chains' blocks, [chains × block]
	open   []bool // whether a slot is in its chain's block, [chains × slots]
	logp   []float64
	weight []float64
	energy []float64
	ratio  []float64
}

var _ mover = (*mlmMetropolis)(nil)

func (k *mlmMetropolis) start(ctx context.Context, state *State) error {
	return evaluate(ctx, k.target, state)
}

// transition proposes tokens for a block of slots of each chain from the
// model's conditionals, and accepts them by the energy.
func (k *mlmMetropolis) transition(ctx context.Context, state *State, sources []source, info *Info) error {
	chains := state.Chains()
	slots := len(k.categories)
	info.reset(chains, slots)
	k.room(chains)
	for c, src := range sources {
		chooseSlots(k.slots[c*k.block:(c+1)*k.block], k.order, src)
	}
	if err := k.conditionals(ctx, state); err != nil {
		return err
	}
	copy(info.Proposal, state.Positions)
	for c, src := range sources {
		k.ratio[c] = k.propose(c, state.Position(c), info.proposal(c), src)
	}
	if err := k.target.Energy(ctx, info.Proposal, k.energy); err != nil {
		return err
	}
	info.Cost = Cost{Energies: chains, Conditionals: chains}
	for c, src := range sources {
		ratio := math.Inf(-1)
		if logmath.Finite(k.energy[c]) {
			ratio = k.energy[c] - state.Energy[c] + k.ratio[c]
		}
		info.settle(c, state, k.energy[c], ratio, src)
	}
	return nil
}

// propose draws a chain's block again. It returns the log of q(θ_B | θ) / q(θ'_B | θ).
func (k *mlmMetropolis) propose(chain int, position, to []int, src source) float64 {
	logRatio := 0.0
	for _, j := range k.slots[chain*k.block : (chain+1)*k.block] {
		logp := k.row(chain, j)
		total := logmath.LogSumExp(logp)
		if !logmath.Finite(total) {
			copy(to, position)
			return math.Inf(-1)
		}
		to[j] = drawLog(src, logp, total, k.weight)
		logRatio += logp[position[j]] - logp[to[j]]
	}
	return logRatio
}

func (k *mlmMetropolis) conditionals(ctx context.Context, state *State) error {
	if k.block == 1 {
		return k.conditional.LogConditionals(ctx, state.Positions, k.slots, k.logp)
	}
	clear(k.open)
	for i, j := range k.slots {
		k.open[i/k.block*len(k.categories)+j] = true
	}
	return k.masked.LogMaskedConditionals(ctx, state.Positions, k.open, k.logp)
}

func (k *mlmMetropolis) row(chain, slot int) []float64 {
	row := chain
	if k.block > 1 {
		row = chain*len(k.categories) + slot
	}
	wide := width(k.categories)
	return k.logp[row*wide : row*wide+k.categories[slot]]
}

func (k *mlmMetropolis) room(chains int) {
	if len(k.energy) == chains {
		return
	}
	slots := len(k.categories)
	rows := chains
	if k.block > 1 {
		rows = chains * slots
	}
	k.slots = make([]int, chains*k.block)
	k.open = make([]bool, chains*slots)
	k.logp = make([]float64, rows*width(k.categories))
	k.energy = make([]float64, chains)
	k.ratio = make([]float64, chains)
}

// MLMMetropolis is Metropolis–Hastings with the target's conditionals as proposals.
type MLMMetropolis struct {
	// Block is the number of slots that are drawn together; 0 for one.
	Block int `option:"block" minimum:"1"`
}

var _ Sampler = MLMMetropolis{}

func (s MLMMetropolis) Kernel(target Target, _ *rand.Rand) (Kernel, error) {
	return newKernel(s, target, untuned, func(s MLMMetropolis) (mover, error) {
		k := &mlmMetropolis{target: target, categories: target.Categories()}
		var err error
		k.block, err = slotsOf("block", s.Block, 1, len(k.categories))
		if err != nil {
			return nil, err
		}
		if k.block == 1 {
			k.conditional, err = capability[ConditionalTarget](target, "mlm-mh")
		} else {
			k.masked, err = capability[MaskedConditionalTarget](target, "mlm-mh with blocks")
		}
		if err != nil {
			return nil, err
		}
		k.order = ascending(len(k.categories))
		k.weight = make([]float64, width(k.categories))
		return k, nil
	})
}

func (MLMMetropolis) Describe() Description {
	return Description{
		Name: "mlm-mh", Title: "Metropolis–Hastings with the target's conditionals as proposals",
		Paper: "Goyal, Dyer and Berg-Kirkpatrick, Exposing the Implicit Energy Networks behind Masked Language " +
			"Models via Metropolis–Hastings, ICLR 2022",
		Exact: true, Target: onlyExp, Cost: "1 conditional and 1 energy", Conditionals: true, OnText: &OnText{},
	}
}
