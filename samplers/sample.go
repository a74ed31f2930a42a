package samplers

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
)

// A Plan says what [Sample] does with the chains.
type Plan struct {
	// Streams holds one random stream per chain.
	Streams []*rand.Rand
	// WarmUp steps go before. In them the kernel tunes what its [Spec] leaves
	// to it, where it can. While they last the chains share what is tuned, so a
	// chain's path depends on those beside it; afterwards it does not.
	WarmUp int
	// Steps follow the warm-up.
	Steps int
	// Ladder are the temperatures of parallel tempering, ascending. The first
	// is the one that is sampled, π_T ∝ exp(U/T): a ladder of one temperature
	// samples at that temperature. None is the same as 1. A warm-up tunes the
	// coldest rung, and the others take its step size.
	Ladder []float64
}

// A Step is what Sample tells of one. What it points to is valid until the
// observer returns.
type Step struct {
	// Number counts from 1 over the whole plan; 0 is the start.
	Number int
	// WarmUp tells that the step does not belong to the sample yet: the start
	// never does.
	WarmUp bool
	State  *State
	Info   *Info // nil at the start
	// StepSize is the one the step was made with; NaN for kernels without.
	StepSize float64
	// Temperature T of the state's energies, which are U/T.
	Temperature float64
}

// A Run is what Sample did.
type Run struct {
	State *State // where the chains ended
	// StepSize after the warm-up; NaN for kernels without.
	StepSize float64
	// Tuned tells whether the warm-up tuned the kernel.
	Tuned bool
	// Swaps are the fractions of swaps taken between each two neighbours of
	// the ladder, coldest pair first.
	Swaps []float64
}

// Sample runs the chains from starts [chains × slots]: first the warm-up with
// its adaptation, then the steps of the sample. observe, which may be nil, hears
// of the start and of every step, in order; its error ends the run.
//
// A Ladder needs a kernel that was made by [New] or [Spec.New], energies, and no
// stochastic gradient where it has several temperatures.
func Sample(ctx context.Context, k Kernel, starts []int, plan Plan, observe func(Step) error) (*Run, error) {
	run, rungs, tuned := &Run{}, (*ladder)(nil), (*kernel)(nil)
	if own, ok := k.(*kernel); ok {
		tuned = own
	}
	step := Step{Temperature: 1}
	if plan.Ladder != nil && !slices.Equal(plan.Ladder, []float64{1}) {
		if tuned == nil || len(plan.Ladder) == 0 {
			return nil, errors.New("a ladder needs a temperature, and a kernel that New made")
		}
		var err error
		if rungs, err = newLadder(tuned, plan.Ladder); err != nil {
			return nil, err
		}
		k = &kernel{mover: rungs, spec: tuned.spec, target: tuned.target}
		step.Temperature, tuned = plan.Ladder[0], rungs.rungs[0]
	}
	state, err := k.Init(ctx, starts)
	if err != nil {
		return nil, err
	}
	// The adaptation sees the coldest rung.
	run.State, step.State, step.StepSize = state, state, tuned.size()
	coldest := state
	if rungs != nil {
		coldest = state.own.(replicas)[0]
	}
	step.WarmUp = true
	if observe != nil {
		if err := observe(step); err != nil {
			return nil, err
		}
	}
	var tuning adaptation
	if plan.WarmUp > 0 && tuned != nil {
		if tuning = tuned.adaptation(); tuning != nil {
			run.Tuned = true
			if err := tuning.begin(tuned.mover, coldest); err != nil {
				return nil, fmt.Errorf("warm-up: %w", err)
			}
		}
	}
	var info Info
	step.Info = &info
	for step.Number = 1; step.Number <= plan.WarmUp+plan.Steps; step.Number++ {
		step.WarmUp, step.StepSize = step.Number <= plan.WarmUp, tuned.size()
		if err := k.Step(ctx, state, plan.Streams, &info); err != nil {
			return nil, fmt.Errorf("step %d: %w", step.Number, err)
		}
		if observe != nil {
			if err := observe(step); err != nil {
				return nil, err
			}
		}
		if tuning == nil || !step.WarmUp {
			continue
		}
		if err := tuning.adapt(tuned.mover, coldest, &info); err != nil {
			return nil, fmt.Errorf("warm-up, step %d: %w", step.Number, err)
		}
		if step.Number == plan.WarmUp {
			if err := tuning.freeze(tuned.mover); err != nil {
				return nil, fmt.Errorf("warm-up: %w", err)
			}
		}
		if rungs != nil {
			if err := rungs.follow(); err != nil {
				return nil, fmt.Errorf("warm-up: %w", err)
			}
		}
	}
	run.StepSize = tuned.size()
	if rungs != nil {
		run.Swaps = rungs.rates()
	}
	return run, nil
}

// size is the kernel's step size, NaN without.
func (k *kernel) size() float64 {
	if k != nil {
		if s, ok := k.mover.(stepSizer); ok {
			return s.stepSize()
		}
	}
	return math.NaN()
}

// adaptation is what tunes the kernel in a warm-up; nil when it has nothing to
// tune, or what it could tune is set.
func (k *kernel) adaptation() adaptation {
	e := find(k.spec.Name)
	if e.adaptation == nil || k.spec.has(e.Tunes) {
		return nil
	}
	return e.adaptation(k.mover)
}
