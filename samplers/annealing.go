// Simulated annealing of Kirkpatrick, Gelatt and Vecchi (Science 1983), with any kernel: the temperature falls
// geometrically, and the best state of each chain is kept. It is a search and not a sampler.

package samplers

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
)

// AnnealOptions set a run of simulated annealing. Zero fields take the defaults.
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

// Anneal looks for the state of highest energy by simulated annealing, with a kernel that [New] made and that is not
// tuned. The best states follow no known law. observe, if not nil, is called with the start and with every step,
// with their energies.
func Anneal(ctx context.Context, k Kernel, starts []int, streams []*rand.Rand, a AnnealOptions,
	observe func(Step) error) (*Best, error) {
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
		return nil, fmt.Errorf("annealing from temperature %v to %v: both must be above 0 and finite, the first not "+
			"the smaller", a.Start, a.End)
	}
	own, ok := k.(*kernel)
	if !ok || stochastic(own.mover) {
		return nil, errors.New("annealing needs a kernel that New made, with the whole gradient")
	}
	made, target, err := own.at(a.Start)
	if err != nil {
		return nil, err
	}
	state, err := made.Init(ctx, starts)
	if err != nil {
		return nil, err
	}
	best := &Best{slices.Clone(state.Positions), slices.Repeat([]float64{math.Inf(-1)}, state.Chains()),
		make([]int, state.Chains())}
	var info Info
	for step := (Step{State: state, StepSize: made.size()}); ; step.Number++ {
		if step.Number > 0 {
			step.Info = &info
			if err := made.Step(ctx, state, streams, &info); err != nil {
				return nil, fmt.Errorf("step %d: %w", step.Number, err)
			}
		}
		if err := state.Evaluate(ctx, target); err != nil {
			return nil, err
		}
		step.Temperature = target.temperature
		best.keep(step)
		if observe != nil {
			if err := observe(step); err != nil {
				return nil, err
			}
		}
		if step.Number == a.Steps {
			return best, nil
		}
		if step.Number > 0 {
			target.temperature = a.Start * math.Pow(a.End/a.Start, float64(step.Number)/float64(max(1, a.Steps-1)))
			state.rescale(step.Temperature / target.temperature)
		}
	}
}

// keep takes over the chains that are better than before.
func (b *Best) keep(step Step) {
	slots := step.State.Slots()
	for c, u := range step.State.Energy {
		if u*step.Temperature > b.Energy[c] {
			b.Energy[c], b.Step[c] = u*step.Temperature, step.Number
			copy(b.Positions[c*slots:(c+1)*slots], step.State.Position(c))
		}
	}
}
