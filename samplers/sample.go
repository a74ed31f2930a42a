package samplers

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
)

// A Plan says how Sample runs the chains.
type Plan struct {
	Streams []*rand.Rand // one for each chain
	// WarmUp is the number of steps before the sample. In these steps the
	// kernel tunes the setting that its [Spec] leaves open, for all
	// chains together. After the warm-up, a chain's path does not depend
	// on other chains.
	WarmUp, Steps int
}

// A Step describes one step of Sample. State and Info are valid until the
// observer returns.
type Step struct {
	Number   int  // from 1 over WarmUp and Steps; 0 for the start
	WarmUp   bool // whether the step belongs to the warm-up; true for the start
	State    *State
	Info     *Info   // nil for the start
	StepSize float64 // of the kernel, the largest of a cycle; NaN if it has none
}

// A Run is the result of Sample.
type Run struct {
	State    *State  // the state after the last step
	StepSize float64 // after the warm-up; NaN if the kernel has no step size
	Tuned    bool    // whether the warm-up tuned the kernel
}

// Sample runs the chains from starts, [chains × slots]: first the warm-up with
// its adaptation, then plan.Steps steps. observe, if not nil, is called with
// the start and with every step, in order. An error of observe ends the run.
func Sample(ctx context.Context, k Kernel, starts []int, plan Plan, observe func(Step) error) (*Run, error) {
	run := &Run{}
	var step Step
	tuned, _ := k.(*kernel)
	state, err := k.Init(ctx, starts)
	if err != nil {
		return nil, err
	}
	run.State = state
	step.State = state
	step.StepSize = tuned.size()
	step.WarmUp = true
	if observe != nil {
		if err := observe(step); err != nil {
			return nil, err
		}
	}
	var tuning adaptation
	if plan.WarmUp > 0 && tuned != nil {
		tuning = tuned.adaptation()
		if tuning != nil {
			run.Tuned = true
			if err := tuning.begin(tuned.mover, state); err != nil {
				return nil, fmt.Errorf("warm-up: %w", err)
			}
		}
	}
	var info Info
	step.Info = &info
	for step.Number = 1; step.Number <= plan.WarmUp+plan.Steps; step.Number++ {
		step.WarmUp = step.Number <= plan.WarmUp
		step.StepSize = tuned.size()
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
		if err := tuning.adapt(tuned.mover, state, &info, step.Number == plan.WarmUp); err != nil {
			return nil, fmt.Errorf("warm-up, step %d: %w", step.Number, err)
		}
	}
	run.StepSize = tuned.size()
	return run, nil
}

// size returns the kernel's step size, or NaN if the kernel has none.
func (k *kernel) size() float64 {
	if k != nil {
		s, ok := k.mover.(stepSizer)
		if ok {
			return s.stepSize()
		}
	}
	return math.NaN()
}

// adaptation returns what tunes the kernel in a warm-up: nil if no setting can
// be tuned, or if the spec sets it.
func (k *kernel) adaptation() adaptation {
	e := find(k.spec.Name)
	if e.adaptation == nil || k.spec.has(e.Tunes) {
		return nil
	}
	return e.adaptation(k.mover)
}
