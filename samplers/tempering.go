package samplers

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
)

// ParallelTempering runs a kernel at several temperatures at once and lets
// neighbours swap their positions (replica exchange, Geyer 1991; over discrete
// Langevin samplers: Zheng et al., arXiv 2501.17323, and Liang et al., arXiv
// 2502.19240). Every chain has its own replicas. A step is one step of each
// rung, π_T ∝ exp(U/T), and then swaps of every second pair of neighbours,
// accepted with probability
//
//	min(1, exp((1/T_a - 1/T_b) (U(θ_b) - U(θ_a))))
//
// Target: the coldest rung's exp(U/T₁) exactly if the kernel is exact; together
// the rungs have the product of the π_T. The state is the coldest rung's.
// Step sizes are those of the rungs' kernels. Cost: one kernel step for each
// rung; swaps are free. After an error the rungs may have moved.
type ParallelTempering struct {
	frame
	rungs        []rung
	temperatures []float64
	infos        []Info // of the hotter rungs
	before       []int
	swaps        []SwapCount
}

// rung is a kernel of this package.
type rung interface {
	Kernel
	transition
}

// SwapCount counts swaps of two neighbouring rungs over all chains and steps.
type SwapCount struct{ Tried, Taken int }

var (
	_ Kernel     = (*ParallelTempering)(nil)
	_ transition = (*ParallelTempering)(nil)
)

// NewParallelTempering wraps the named kernel. o.Ladder holds the
// temperatures, ascending; the first is the one that is sampled. The other
// options go to the kernels of all rungs. Kernels that know no energies, and
// stochastic gradients, cannot be swapped and are refused.
func NewParallelTempering(name string, target Target, o Options) (*ParallelTempering, error) {
	ladder := o.Ladder
	o.Ladder = nil
	if len(ladder) < 2 {
		return nil, fmt.Errorf("parallel tempering over %d temperatures: give at least two", len(ladder))
	}
	if o.Temperature != 0 {
		return nil, errors.New("parallel tempering: the ladder's first temperature is the one sampled; give no other")
	}
	if o.Terms != 0 {
		return nil, errors.New("parallel tempering with a stochastic gradient: the rungs' gradients are of different terms and cannot be swapped")
	}
	k := &ParallelTempering{
		temperatures: slices.Clone(ladder),
		infos:        make([]Info, len(ladder)-1),
		swaps:        make([]SwapCount, len(ladder)-1),
	}
	for i, temperature := range ladder {
		if i > 0 && !(temperature > ladder[i-1]) {
			return nil, fmt.Errorf("parallel tempering: temperature %v after %v: they must ascend", temperature, ladder[i-1])
		}
		tempered, err := NewTempered(target, temperature)
		if err != nil {
			return nil, err
		}
		kernel, err := New(name, tempered, o)
		if err != nil {
			return nil, err
		}
		r, ok := kernel.(rung)
		if _, together := kernel.(interface{ interacting() }); !ok || together {
			return nil, fmt.Errorf("parallel tempering over %s: its chains move together and cannot be swapped one by one", name)
		}
		k.rungs = append(k.rungs, r)
	}
	return k, nil
}

// Rungs returns the kernels, coldest first, so that each can be tuned.
func (k *ParallelTempering) Rungs() []Kernel {
	kernels := make([]Kernel, len(k.rungs))
	for i, r := range k.rungs {
		kernels[i] = r
	}
	return kernels
}

// Swaps counts the swaps between each two neighbours since the kernel was
// made, coldest pair first.
func (k *ParallelTempering) Swaps() []SwapCount { return slices.Clone(k.swaps) }

// Init implements [Kernel]: all replicas of a chain start at its position.
func (k *ParallelTempering) Init(ctx context.Context, positions []int) (*State, error) {
	var cold *State
	for i, r := range k.rungs {
		s, err := r.Init(ctx, positions)
		if err != nil {
			return nil, err
		}
		if math.IsNaN(s.Energy[0]) {
			return nil, fmt.Errorf("parallel tempering swaps by energies, and %T knows none", r)
		}
		if i == 0 {
			cold = s
		} else {
			cold.replicas = append(cold.replicas, s)
		}
	}
	return cold, nil
}

// Step implements [Kernel].
func (k *ParallelTempering) Step(ctx context.Context, state *State, streams []*rand.Rand, info *Info) error {
	return k.step(ctx, k, state, streams, info)
}

func (k *ParallelTempering) transition(ctx context.Context, state *State, sources []source, info *Info) error {
	if len(state.replicas) != len(k.rungs)-1 {
		return fmt.Errorf("a state with %d replicas for %d temperatures: make it with this kernel's Init", len(state.replicas), len(k.rungs))
	}
	k.before = append(k.before[:0], state.Positions...)
	if err := k.rungs[0].transition(ctx, state, sources, info); err != nil {
		return err
	}
	for i, r := range k.rungs[1:] {
		if err := r.transition(ctx, state.replicas[i], sources, &k.infos[i]); err != nil {
			return err
		}
		info.Cost = info.Cost.Plus(k.infos[i].Cost)
	}
	slots := state.Slots()
	for c, src := range sources {
		first := 0
		if len(k.rungs) > 2 {
			first = src.index(2)
		}
		for a := first; a+1 < len(k.rungs); a += 2 {
			k.trySwap(state, c, a, src)
		}
		info.Changed[c] = changes(k.before[c*slots:(c+1)*slots], state.Position(c))
	}
	return nil
}

// trySwap swaps one chain's replicas on rungs a and a+1, if accepted.
func (k *ParallelTempering) trySwap(state *State, chain, a int, src source) {
	low, high := k.replica(state, a), k.replica(state, a+1)
	lowT, highT := k.temperatures[a], k.temperatures[a+1]
	lowU, highU := low.Energy[chain]*lowT, high.Energy[chain]*highT
	k.swaps[a].Tried++
	if !accept(src, (1/lowT-1/highT)*(highU-lowU)) {
		return
	}
	k.swaps[a].Taken++
	low.swap(high, chain, lowT, highT)
}

func (k *ParallelTempering) replica(state *State, i int) *State {
	if i == 0 {
		return state
	}
	return state.replicas[i-1]
}

// swap exchanges one chain of two states at temperatures t and u.
func (s *State) swap(other *State, chain int, t, u float64) {
	position, there := s.Position(chain), other.Position(chain)
	for j := range position {
		position[j], there[j] = there[j], position[j]
	}
	s.Energy[chain], other.Energy[chain] = other.Energy[chain]*u/t, s.Energy[chain]*t/u
	size := len(s.Gradient) / s.Chains()
	for i := chain * size; i < (chain+1)*size; i++ {
		s.Gradient[i], other.Gradient[i] = other.Gradient[i]*u/t, s.Gradient[i]*t/u
	}
	s.weightsOf, other.weightsOf = nil, nil
	slots := s.Slots()
	for i := chain * slots; i < (chain+1)*slots && s.z != nil; i++ {
		// The base of z is the same on every rung; the surrogate's part of
		// the score is tempered.
		s.z[i], other.z[i] = other.z[i], s.z[i]
		s.score[i], other.score[i] = (other.score[i]+s.z[i])*u/t-s.z[i], (s.score[i]+other.z[i])*t/u-other.z[i]
	}
}

// rescale multiplies what a state caches when the temperature changes.
func (s *State) rescale(factor float64) {
	for i := range s.Energy {
		s.Energy[i] *= factor
	}
	for i := range s.Gradient {
		s.Gradient[i] *= factor
	}
	for i, z := range s.z {
		s.score[i] = (s.score[i]+z)*factor - z
	}
	s.weightsOf = nil
}
