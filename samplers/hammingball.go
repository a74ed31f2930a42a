// HB is the Hamming ball sampler of Titsias and Yau (JASA 2017): HB-X-Y. In
// each step, a block of X slots is chosen uniformly. H(u) holds the states that
// differ from u in at most Y slots of the block and nowhere else:
//
//	u ~ Uniform(H(θ)),  θ' ∝ exp(U) on H(u)
//
// For a given block every ball H(u) has the same size. So the pair (θ, u) has a
// joint law with margin π, and both draws are Gibbs steps of this law.
//
// Target: π exactly, on any target: no gradient is needed. There is no step
// size and no rejection. Cost: the energies of a whole ball a step. States
// whose energy is NaN or infinite count as forbidden.

package samplers

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"

	"infill/internal/logmath"
)

type hammingBall struct {
	target     Target
	categories []int
	block      int
	radius     int // if radius equals block, the block is drawn from its exact conditional

	order  []int
	slots  []int
	states []int     // the balls of all chains, one after another
	from   []int     // where each chain's ball starts, [chains + 1]
	energy []float64 // of states
	base   []int
	weight []float64
}

var _ mover = (*hammingBall)(nil)

// maxListed is the largest number of states that a kernel lists for one chain in a step.
const maxListed = 1 << 20

// newBall makes a kernel. If whole is true, the radius is always that of the block.
func newBall(name string, target Target, block, radius int, whole bool) (*hammingBall, error) {
	k := &hammingBall{target: target, categories: target.Categories(), block: block, radius: block}
	if !whole {
		var err error
		k.radius, err = slotsOf("radius", radius, 1, block)
		if err != nil {
			return nil, err
		}
	}
	n := largestBall(k.categories, k.block, k.radius)
	if n > maxListed {
		return nil, fmt.Errorf("%s would evaluate up to %.3g states a step and chain: take smaller blocks or fewer "+
			"categories, up to %d", name, n, maxListed)
	}
	k.order = ascending(len(k.categories))
	k.slots = make([]int, k.block)
	k.base = make([]int, len(k.categories))
	return k, nil
}

// largestBall returns an upper bound of the number of states in a ball. It
// counts the widest slot for every slot.
func largestBall(categories []int, block, radius int) float64 {
	others := float64(width(categories) - 1)
	size := 1.0
	term := 1.0
	for r := 1; r <= radius; r++ {
		term *= others * float64(block-r+1) / float64(r)
		size += term
	}
	return size
}

func (k *hammingBall) start(ctx context.Context, state *State) error {
	return evaluate(ctx, k.target, state)
}

// transition draws one of the states of a ball by their energies. If it is
// smaller than its block, its centre is drawn around the chain first.
func (k *hammingBall) transition(ctx context.Context, state *State, sources []source, info *Info) error {
	slots := len(k.categories)
	info.reset(state.Chains(), slots)
	k.states = k.states[:0]
	k.from = k.from[:0]
	for c, src := range sources {
		k.from = append(k.from, len(k.states)/slots)
		chooseSlots(k.slots, k.order, src)
		copy(k.base, state.Position(c))
		if k.radius < k.block {
			k.recentre(src)
		}
		k.list(k.slots, k.radius)
	}
	listed := len(k.states) / slots
	k.from = append(k.from, listed)
	if err := k.evaluate(ctx, listed); err != nil {
		return err
	}
	info.Cost.Energies = listed
	for c, src := range sources {
		chosen := k.from[c] + k.choose(k.energy[k.from[c]:k.from[c+1]], src)
		copy(info.proposal(c), k.states[chosen*slots:(chosen+1)*slots])
		info.move(c, state, k.energy[chosen])
	}
	return nil
}

func (k *hammingBall) recentre(src source) {
	slots := len(k.categories)
	before := len(k.states)
	k.list(k.slots, k.radius)
	u := before + slots*src.index((len(k.states)-before)/slots)
	copy(k.base, k.states[u:u+slots])
	k.states = k.states[:before]
}

// list appends the states that differ from base in at most radius of slots.
func (k *hammingBall) list(slots []int, radius int) {
	if len(slots) == 0 || radius == 0 {
		k.states = append(k.states, k.base...)
		return
	}
	j := slots[0]
	rest := slots[1:]
	current := k.base[j]
	k.list(rest, radius)
	for v := range k.categories[j] {
		if v != current {
			k.base[j] = v
			k.list(rest, radius-1)
		}
	}
	k.base[j] = current
}

// evaluate computes the energies of the listed states, in batches.
func (k *hammingBall) evaluate(ctx context.Context, listed int) error {
	if cap(k.energy) < listed {
		k.energy = make([]float64, listed)
	}
	k.energy = k.energy[:listed]
	slots := len(k.categories)
	for first := 0; first < listed; first += evaluationBatch {
		last := min(first+evaluationBatch, listed)
		if err := k.target.Energy(ctx, k.states[first*slots:last*slots], k.energy[first:last]); err != nil {
			return err
		}
	}
	return nil
}

// choose draws an index of energy with probability proportional to exp(energy).
func (k *hammingBall) choose(energy []float64, src source) int {
	for i, u := range energy {
		if !logmath.Finite(u) {
			energy[i] = math.Inf(-1)
		}
	}
	if len(k.weight) < len(energy) {
		k.weight = make([]float64, len(energy))
	}
	return drawLog(src, energy, logmath.LogSumExp(energy), k.weight)
}

// HammingBall is the Hamming ball sampler.
type HammingBall struct {
	// Block is the number of slots that are drawn together; 0 for 10, or for all slots
	// if there are fewer.
	Block int `option:"block" minimum:"1"`
	// Radius is the number of slots of a block that may change a step; 0 for one.
	Radius int `option:"radius" minimum:"1"`
}

var _ Sampler = HammingBall{}

func (s HammingBall) Kernel(target Target, _ *rand.Rand) (Kernel, error) {
	return newKernel(s, target, untuned, func(s HammingBall) (mover, error) {
		block, err := slotsOf("block", s.Block, 10, len(target.Categories()))
		if err != nil {
			return nil, err
		}
		k, err := newBall("hamming-ball", target, block, s.Radius, false)
		if err != nil {
			return nil, err
		}
		return k, nil
	})
}

func (HammingBall) Describe() Description {
	return Description{
		Name: "hamming-ball", Title: "Hamming ball sampler",
		Paper: "Titsias and Yau, The Hamming Ball Sampler, JASA 2017",
		Exact: true, Target: onlyExp, Cost: "Σ_{r≤Y} C(X,r)(K-1)^r energies", OnText: &OnText{},
	}
}
