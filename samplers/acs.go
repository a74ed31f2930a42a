package samplers

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
)

// Cyclical is DMALA whose step size and balance follow a cycle: Pynadath,
// Bhattacharya, Hariharan and Zhang, "Gradient-based Discrete Sampling with
// Automatic Cyclical Scheduling" (NeurIPS 2024). Large steps with a greedy
// balance find modes, small ones explore them:
//
//	α_k = max(α_min, α_max/2 (1 + cos(π k/s))),  k = 0..s-1 within a cycle
//	β_k = (β_0 - ½)/2 cos(π k/s) + (β_0 + ½)/2
//
// Target: π exactly, since each step by itself leaves π invariant; the steps
// of a cycle differ, so look at whole cycles. The state knows its place in the
// cycle. Cost: one energy and gradient a step.
//
// Step size: α_max, in the convention of the package, which is twice that of
// the paper's binary formula. Not here: the paper's search for a cycle
// (algorithm 2).
type Cyclical struct {
	*DLP
	schedule []Setting
	scorers  []scorer // of the balances, made once
}

// Setting is the step size and balance of one step of a cycle.
type Setting struct {
	StepSize float64
	Balance  Balance
}

var (
	_ Kernel     = (*Cyclical)(nil)
	_ transition = (*Cyclical)(nil)
)

// NewCyclical makes the sampler. It uses Schedule (default: that of
// [CyclicalSchedule] with StepSize as the largest step), Preconditioner, Terms
// and TermStream of the options.
func NewCyclical(target Target, o Options) (*Cyclical, error) {
	schedule := o.Schedule
	if schedule == nil {
		var err error
		if schedule, err = CyclicalSchedule(CycleOptions{Max: o.StepSize}); err != nil {
			return nil, err
		}
	} else if o.StepSize != 0 {
		return nil, errors.New("acs: a schedule holds its own step sizes: give a step size or a schedule")
	}
	for i, s := range schedule {
		if err := checkStepSize(s.StepSize); err != nil {
			return nil, fmt.Errorf("acs: setting %d of the schedule: %w", i, err)
		}
	}
	if len(schedule) == 0 {
		return nil, errors.New("acs: the schedule is empty: give at least one setting")
	}
	o.StepSize, o.Balance = schedule[0].StepSize, schedule[0].Balance
	k, err := newDLP("acs", target, o, true, 0)
	if err != nil {
		return nil, err
	}
	cyclical := &Cyclical{DLP: k, schedule: slices.Clone(schedule)}
	for _, s := range schedule {
		cyclical.scorers = append(cyclical.scorers, balanced{s.Balance})
	}
	return cyclical, nil
}

// Step implements [Kernel].
func (k *Cyclical) Step(ctx context.Context, state *State, streams []*rand.Rand, info *Info) error {
	return k.step(ctx, k, state, streams, info)
}

func (k *Cyclical) transition(ctx context.Context, state *State, sources []source, info *Info) error {
	now := state.step % len(k.schedule)
	if k.scorer != k.scorers[now] {
		k.scorer = k.scorers[now]
		k.revision++
	}
	if err := k.SetStepSize(k.schedule[now].StepSize); err != nil {
		return err
	}
	if err := k.informed.transition(ctx, state, sources, info); err != nil {
		return err
	}
	state.step++
	return nil
}

// Schedule is the cycle.
func (k *Cyclical) Schedule() []Setting { return slices.Clone(k.schedule) }

// CycleOptions set a cycle. Zero fields take the defaults.
type CycleOptions struct {
	Length   int     // steps in a cycle, 20 by default
	Max, Min float64 // of the step size, 10 and 0.2 by default
	Exponent float64 // β at the largest step, 0.85 by default
}

func (o CycleOptions) withDefaults() (CycleOptions, error) {
	if o.Length == 0 {
		o.Length = 20
	}
	if o.Max == 0 {
		o.Max = 10
	}
	if o.Min == 0 {
		o.Min = math.Min(0.2, o.Max)
	}
	if o.Exponent == 0 {
		o.Exponent = 0.85
	}
	if o.Length < 1 {
		return o, fmt.Errorf("a cycle of %d steps: it needs at least one", o.Length)
	}
	if !(o.Min > 0 && o.Min <= o.Max && o.Max <= math.MaxFloat64) {
		return o, fmt.Errorf("step sizes from %v to %v in a cycle: both must be above 0 and finite, the first not the larger", o.Min, o.Max)
	}
	_, err := Power(o.Exponent)
	return o, err
}

// CyclicalSchedule is the untuned cycle of the paper.
func CyclicalSchedule(o CycleOptions) ([]Setting, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	schedule := make([]Setting, o.Length)
	for k := range schedule {
		beta := (o.Exponent-0.5)/2*cycle(k, o.Length) + (o.Exponent+0.5)/2
		balance, err := Power(math.Max(0.5, beta))
		if err != nil {
			return nil, err
		}
		schedule[k] = Setting{math.Max(o.Min, o.Max/2*(1+cycle(k, o.Length))), balance}
	}
	return schedule, nil
}

func cycle(k, length int) float64 { return math.Cos(math.Pi * float64(k) / float64(length)) }

func cyclicalEntry() entry {
	return entry{
		Description: Description{
			Name: "acs", Title: "DMALA with a cyclical step size and balance",
			Paper: "Pynadath et al., Gradient-based Discrete Sampling with Automatic Cyclical Scheduling, NeurIPS 2024",
			Exact: true, Target: onlyExp, Cost: oneForAll,
		},
		uses:   []option{stepSizeOption, preconditionerOption, termsOption, scheduleOption},
		nature: "its schedule holds a balance for each step",
		make:   func(t Target, o Options) (Kernel, error) { return NewCyclical(t, o) },
	}
}
