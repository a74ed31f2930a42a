package samplers

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
)

// A Plan says how Sample runs the chains.
type Plan struct {
	Streams []*rand.Rand // one per chain
	// WarmUp steps come before the others. In them the kernel tunes the settings that its [Spec] leaves open,
	// for all chains together; afterwards a chain's path does not depend on the other chains.
	WarmUp, Steps int
	// Ladder holds the temperatures of parallel tempering, ascending; empty means 1. The first is sampled, π_T ∝
	// exp(U/T). A warm-up tunes the first, and the others take its step size.
	Ladder []float64
}

// A Step describes one step of Sample. What it points to is valid until the observer returns.
type Step struct {
	Number      int  // from 1 over the whole plan; 0 is the start
	WarmUp      bool // whether the step belongs to the warm-up, as the start does
	State       *State
	Info        *Info   // nil at the start
	StepSize    float64 // of this step; NaN for kernels without
	Temperature float64 // T of the state's energies, which are U/T
}

// A Run is the result of Sample.
type Run struct {
	State    *State    // where the chains ended
	StepSize float64   // after the warm-up; NaN for kernels without
	Tuned    bool      // whether the warm-up tuned the kernel
	Swaps    []float64 // shares that were taken, by pair of neighbours on the ladder, coldest first
}

// Sample runs the chains from starts [chains × slots]: first the warm-up with its adaptation, then the steps of the
// sample. observe, if not nil, is called with the start and with every step, in order; its error ends the run.
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

// adaptation is what tunes the kernel in a warm-up; nil when it has nothing to tune, or what it could tune is set.
func (k *kernel) adaptation() adaptation {
	e := find(k.spec.Name)
	if e.adaptation == nil || k.spec.has(e.Tunes) {
		return nil
	}
	return e.adaptation(k.mover)
}
