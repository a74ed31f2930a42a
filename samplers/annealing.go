package samplers

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
)

// AnnealOptions set a run of simulated annealing. Zero fields take the
// defaults.
type AnnealOptions struct {
	Steps      int     // 100 by default
	Start, End float64 // temperatures, 2 and 0.1 by default
}

// Best is the best state each chain of an annealing run has seen.
type Best struct {
	Positions []int     // [chains × slots]
	Energy    []float64 // U, at temperature 1, [chains], in nats
	Step      []int     // when it was seen, 0 for the start, [chains]
}

// Anneal looks for the state of highest energy by simulated annealing
// (Kirkpatrick, Gelatt and Vecchi, Science 1983) with any registered kernel:
// the temperature falls geometrically from Start to End, and the best state of
// each chain is kept. It is a search and not a sampler: the best states follow
// no known law. observe may be nil; it sees the state at the temperature of the
// step.
func Anneal(ctx context.Context, name string, target Target, o Options, positions []int, streams []*rand.Rand, a AnnealOptions, observe func(step int, state *State, info *Info) error) (*Best, error) {
	if a.Steps == 0 {
		a.Steps = 100
	}
	if a.Start == 0 {
		a.Start = 2
	}
	if a.End == 0 {
		a.End = math.Min(0.1, a.Start)
	}
	if !(a.End > 0 && a.End <= a.Start && a.Start <= math.MaxFloat64) {
		return nil, fmt.Errorf("annealing from temperature %v to %v: both must be above 0 and finite, the first not the smaller", a.Start, a.End)
	}
	if o.Temperature != 0 || o.Ladder != nil || o.Terms != 0 {
		return nil, errors.New("annealing sets the temperature itself and needs the whole gradient: give no temperature, ladder or stochastic gradient")
	}
	if err := checkTarget(target); err != nil {
		return nil, err
	}
	tempered, err := NewTempered(target, a.Start)
	if err != nil {
		return nil, err
	}
	kernel, err := New(name, tempered, o)
	if err != nil {
		return nil, err
	}
	state, err := kernel.Init(ctx, positions)
	if err != nil {
		return nil, err
	}
	if err := state.Evaluate(ctx, tempered); err != nil {
		return nil, err
	}
	best := &Best{slices.Clone(state.Positions), make([]float64, state.Chains()), make([]int, state.Chains())}
	for c, u := range state.Energy {
		best.Energy[c] = u * a.Start
	}
	err = Run(ctx, kernel, state, streams, a.Steps, func(step int, state *State, info *Info) error {
		if err := state.Evaluate(ctx, tempered); err != nil {
			return err
		}
		best.keep(step, state, tempered.temperature)
		if observe != nil {
			if err := observe(step, state, info); err != nil {
				return err
			}
		}
		next := a.Start * math.Pow(a.End/a.Start, float64(step)/float64(max(1, a.Steps-1)))
		state.rescale(tempered.temperature / next)
		tempered.temperature = next
		return nil
	})
	return best, err
}

// keep takes over the chains that are better than before.
func (b *Best) keep(step int, state *State, temperature float64) {
	slots := state.Slots()
	for c, u := range state.Energy {
		if u*temperature > b.Energy[c] {
			b.Energy[c], b.Step[c] = u*temperature, step
			copy(b.Positions[c*slots:(c+1)*slots], state.Position(c))
		}
	}
}
