// Parallel tempering runs a kernel at several temperatures at once and lets neighbours swap their positions (replica
// exchange, Geyer 1991; over discrete Langevin samplers: Zheng et al., arXiv 2501.17323, and Liang et al., arXiv
// 2502.19240). Every chain has its own replicas. A step is one step of each rung, π_T ∝ exp(U/T), and then swaps of
// every second pair of neighbours, accepted with probability
//
//	min(1, exp((1/T_a - 1/T_b) (U(θ_b) - U(θ_a))))
//
// Target: the coldest rung's exp(U/T₁) exactly if the kernel is exact; together the rungs have the product of the π_T.
// The state is the coldest rung's. Step sizes are those of the rungs' kernels. Cost: one kernel step for each rung;
// swaps are free. Not here: kernels that know no energies, whose chains move together, or that take stochastic
// gradients. After an error the rungs may have moved.

package samplers

import (
	"context"
	"errors"
	"fmt"
	"math"
)

type ladder struct {
	rungs        []*kernel
	temperatures []float64
	infos        []Info // of the hotter rungs
	before       []int
	swaps        []swapCount
}

// swapCount counts swaps of two neighbouring rungs over all chains and steps.
type swapCount struct{ tried, taken int }

var _ mover = (*ladder)(nil)

// newLadder makes a kernel again at temperatures that ascend.
func newLadder(k *kernel, temperatures []float64) (*ladder, error) {
	l := &ladder{temperatures: temperatures, infos: make([]Info, len(temperatures)-1),
		swaps: make([]swapCount, len(temperatures)-1)}
	for i, temperature := range temperatures {
		if i > 0 && !(temperature > temperatures[i-1]) {
			return nil, fmt.Errorf("a ladder with temperature %v after %v: they must ascend", temperature,
				temperatures[i-1])
		}
		rung, _, err := k.at(temperature)
		if err != nil {
			return nil, err
		}
		l.rungs = append(l.rungs, rung)
	}
	if len(temperatures) > 1 {
		if find(k.spec.Name).Interacting {
			return nil, fmt.Errorf("a ladder over %s: its chains move together and cannot be swapped one by one",
				k.spec.Name)
		}
		if stochastic(k.mover) {
			return nil, errors.New("a ladder with a stochastic gradient: the rungs' gradients are of different terms " +
				"and cannot be swapped")
		}
	}
	return l, nil
}

// stochastic reports whether a mover takes gradients of random terms.
func stochastic(m mover) bool {
	e, ok := m.(interface{ engine() *informed })
	return ok && e.engine().terms != nil
}

func (k *informed) engine() *informed { return k }

// replicas are the states of the rungs; the first shares positions and energies with the ladder's.
type replicas []*State

var _ own = replicas(nil)

func (replicas) swap(own, int, int, float64, float64) { panic("ladders are not swapped") }
func (replicas) rescale(float64)                      { panic("ladders are not annealed") }

// start puts all replicas of a chain at its position.
func (l *ladder) start(ctx context.Context, state *State) error {
	rungs, again := state.own.(replicas)
	if !again {
		rungs = append(rungs, &State{Positions: state.Positions, Energy: state.Energy})
		for range l.rungs[1:] {
			rungs = append(rungs,
				&State{Positions: append([]int(nil), state.Positions...), Energy: make([]float64, state.Chains())})
		}
		state.own = rungs
	}
	for i, r := range l.rungs {
		if err := r.start(ctx, rungs[i]); err != nil {
			return err
		}
		if len(l.rungs) > 1 && math.IsNaN(rungs[i].Energy[0]) {
			return fmt.Errorf("a ladder swaps by energies, and %s knows none", r.spec.Name)
		}
	}
	return nil
}

func (l *ladder) transition(ctx context.Context, state *State, sources []source, info *Info) error {
	rungs := state.own.(replicas)
	l.before = append(l.before[:0], state.Positions...)
	if err := l.rungs[0].transition(ctx, rungs[0], sources, info); err != nil {
		return err
	}
	for i, r := range l.rungs[1:] {
		if err := r.transition(ctx, rungs[i+1], sources, &l.infos[i]); err != nil {
			return err
		}
		info.Cost = info.Cost.Plus(l.infos[i].Cost)
	}
	slots := state.Slots()
	for c, src := range sources {
		first := 0
		if len(rungs) > 2 {
			first = src.index(2)
		}
		for a := first; a+1 < len(rungs); a += 2 {
			l.trySwap(rungs, c, a, src)
		}
		info.Changed[c] = changes(l.before[c*slots:(c+1)*slots], state.Position(c))
	}
	return nil
}

// trySwap swaps one chain's replicas on rungs a and a+1, if accepted.
func (l *ladder) trySwap(rungs replicas, chain, a int, src source) {
	low, high := rungs[a], rungs[a+1]
	lowT, highT := l.temperatures[a], l.temperatures[a+1]
	lowU, highU := low.Energy[chain]*lowT, high.Energy[chain]*highT
	l.swaps[a].tried++
	if accept(src, (1/lowT-1/highT)*(highU-lowU)) {
		l.swaps[a].taken++
		low.swap(high, chain, lowT, highT)
	}
}

// follow gives the hotter rungs the step size of the coldest: where it suits the coldest, the hotter ones accept more.
func (l *ladder) follow() error {
	cold, ok := l.rungs[0].mover.(stepSizer)
	if !ok {
		return nil
	}
	for _, rung := range l.rungs[1:] {
		if err := rung.mover.(stepSizer).setStepSize(cold.stepSize()); err != nil {
			return err
		}
	}
	return nil
}

// rates are the fractions of swaps taken, coldest pair first.
func (l *ladder) rates() []float64 {
	var rates []float64
	for _, s := range l.swaps {
		rates = append(rates, float64(s.taken)/float64(max(1, s.tried)))
	}
	return rates
}
