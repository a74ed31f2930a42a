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
	// kernel tunes the setting that its [Sampler] leaves open, for all
	// chains together. After the warm-up, a chain's path does not depend
	// on other chains.
	WarmUp, Steps int
}

// A Step describes a step of Sample, until the observer returns.
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
	state, err := k.Init(ctx, starts)
	if err != nil {
		return nil, err
	}
	err = checkState(state, len(plan.Streams))
	if err != nil {
		return nil, err
	}
	run.State = state
	step.State = state
	step.StepSize = stepSizeOf(k)
	step.WarmUp = true
	if observe != nil {
		if err := observe(step); err != nil {
			return nil, err
		}
	}
	tuning := adaptation(fixed{})
	if plan.WarmUp > 0 {
		tuning = adaptationOf(k)
	}
	run.Tuned = tuning != adaptation(fixed{})
	if err := tuning.begin(state); err != nil {
		return nil, fmt.Errorf("warm-up: %w", err)
	}
	var info Info
	step.Info = &info
	for step.Number = 1; step.Number <= plan.WarmUp+plan.Steps; step.Number++ {
		step.WarmUp = step.Number <= plan.WarmUp
		step.StepSize = stepSizeOf(k)
		if err := k.Step(ctx, state, plan.Streams, &info); err != nil {
			return nil, fmt.Errorf("step %d: %w", step.Number, err)
		}
		if err := info.check(state); err != nil {
			return nil, fmt.Errorf("step %d: %w", step.Number, err)
		}
		if observe != nil {
			if err := observe(step); err != nil {
				return nil, err
			}
		}
		if !step.WarmUp {
			continue
		}
		if err := tuning.adapt(state, &info, step.Number == plan.WarmUp); err != nil {
			return nil, fmt.Errorf("warm-up, step %d: %w", step.Number, err)
		}
	}
	run.StepSize = stepSizeOf(k)
	return run, nil
}

func stepSizeOf(k Kernel) float64 {
	s, ok := stepSizerOf(k)
	if ok {
		return s.StepSize()
	}
	return math.NaN()
}

// checkState returns an error if a kernel's state is not of so many chains.
func checkState(s *State, chains int) error {
	if s == nil || len(s.Energy) == 0 || len(s.Positions)%len(s.Energy) != 0 || len(s.Energy) != chains {
		return fmt.Errorf("the kernel's state is not of %d chains, with an energy and equal slots for each", chains)
	}
	return nil
}

// check refuses fields for other chains or slots than those of the state.
func (i *Info) check(s *State) error {
	chains, slots := s.Chains(), s.Slots()
	for _, field := range []struct {
		name      string
		got, want int
	}{
		{"LogAcceptance", len(i.LogAcceptance), chains}, {"Accepted", len(i.Accepted), chains},
		{"Proposal", len(i.Proposal), chains * slots}, {"Changed", len(i.Changed), chains},
	} {
		if field.got != field.want {
			return fmt.Errorf("the kernel gives %d values of Info.%s, and %d are wanted", field.got, field.name,
				field.want)
		}
	}
	return nil
}
