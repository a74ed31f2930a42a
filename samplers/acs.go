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
// the paper's binary formula. Not here: the warm-up by unadjusted steps as
// part of sampling; [TuneCyclical] does it.
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
	cyclical := &Cyclical{DLP: k}
	cyclical.follow(slices.Clone(schedule))
	return cyclical, nil
}

// follow takes a schedule.
func (k *Cyclical) follow(schedule []Setting) {
	k.schedule, k.scorers = schedule, nil
	for _, s := range schedule {
		k.scorers = append(k.scorers, balanced{s.Balance})
	}
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

// CycleReport tells what the tuning of a cycle did.
type CycleReport struct {
	Max, Min float64 // the step sizes found
	Steps    int     // steps taken, unadjusted ones included
	Cost     Cost
}

// TuneCyclical finds a cycle by the paper's procedure (algorithm 2), as in the
// authors' code. It moves chains that start at positions, within a budget of
// steps (500 by default); o gives where the search starts. Acceptances are
// means over the chains in ten steps; the aim is ½.
//
//	α_min: of 4 values between α and α(1 + ½|a - ½|), the one with the
//	       acceptance a nearest to the aim at β = ½, again and again
//	α_max: α or α(1 - ½|a - ½|), whichever is accepted more at β_0, until the
//	       aim is reached
//	β_k:   from small steps to large, of 3 values between the last β and 0.25
//	       above it (at most β_0), the one that is accepted most; once β is 0.9
//	       the rest rises linearly to β_0
//
// Positions of the cycle with α_k < α_min take (α_min, ½).
func TuneCyclical(ctx context.Context, target Target, positions []int, streams []*rand.Rand, budget int, o CycleOptions) ([]Setting, *CycleReport, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, nil, err
	}
	if budget == 0 {
		budget = 500
	}
	t := &cycleTuner{ctx: ctx, target: target, streams: streams, budget: budget}
	greedy, err := Power(o.Exponent)
	if err != nil {
		return nil, nil, err
	}
	if err := t.start(positions, Setting{o.Max, greedy}); err != nil {
		return nil, nil, err
	}
	low, err := t.smallest(o.Min, budget/3)
	if err != nil {
		return nil, nil, err
	}
	high, err := t.largest(o.Max, low, greedy, budget/3)
	if err != nil {
		return nil, nil, err
	}
	schedule, err := t.balances(low, high, o)
	if err != nil {
		return nil, nil, err
	}
	t.report.Max, t.report.Min = high, low
	return schedule, &t.report, nil
}

// cycleTuner measures acceptances along a run of its own.
type cycleTuner struct {
	ctx     context.Context
	target  Target
	streams []*rand.Rand
	kernel  *Cyclical
	state   *State
	budget  int
	report  CycleReport
}

const (
	tuningAim      = 0.5
	tuningRate     = 0.5
	tuningSteps    = 10 // of one measurement
	tuningUnfixed  = 50 // unadjusted steps at the start
	tuningNearHigh = 0.9
)

// start moves the chains by unadjusted steps and makes the kernel to measure
// with.
func (t *cycleTuner) start(positions []int, s Setting) error {
	unadjusted, err := NewDULA(t.target, Options{StepSize: s.StepSize, Balance: s.Balance})
	if err != nil {
		return err
	}
	state, err := unadjusted.Init(t.ctx, positions)
	if err != nil {
		return err
	}
	steps := min(tuningUnfixed, t.budget/4)
	if err := Run(t.ctx, unadjusted, state, t.streams, steps, t.count); err != nil {
		return err
	}
	if t.kernel, err = NewCyclical(t.target, Options{Schedule: []Setting{s}}); err != nil {
		return err
	}
	t.state, err = t.kernel.Init(t.ctx, state.Positions)
	return err
}

func (t *cycleTuner) count(_ int, _ *State, info *Info) error {
	t.report.Steps++
	t.report.Cost = t.report.Cost.Plus(info.Cost)
	return nil
}

// acceptance measures one setting.
func (t *cycleTuner) acceptance(s Setting) (float64, error) {
	t.kernel.follow([]Setting{s})
	sum := 0.0
	err := Run(t.ctx, t.kernel, t.state, t.streams, tuningSteps, func(step int, state *State, info *Info) error {
		sum += info.MeanAcceptance()
		return t.count(step, state, info)
	})
	return sum / tuningSteps, err
}

func (t *cycleTuner) smallest(alpha float64, budget int) (float64, error) {
	const tries = 4
	reached := 1.0
	for used := 0; used+tries*tuningSteps <= budget; used += tries * tuningSteps {
		from, gap := alpha, math.Inf(1)
		to := alpha * (1 + tuningRate*math.Abs(reached-tuningAim))
		for i := range tries {
			try := from + (to-from)*float64(i)/(tries-1)
			a, err := t.acceptance(Setting{StepSize: try})
			if err != nil {
				return 0, err
			}
			// Where nothing moves all acceptances are alike: take the largest.
			if g := math.Abs(a - tuningAim); g <= gap {
				alpha, reached, gap = try, a, g
			}
		}
	}
	return alpha, nil
}

func (t *cycleTuner) largest(alpha, floor float64, balance Balance, budget int) (float64, error) {
	reached := 0.0
	for used := 0; used+2*tuningSteps <= budget && reached <= tuningAim-0.01; used += 2 * tuningSteps {
		here, err := t.acceptance(Setting{alpha, balance})
		if err != nil {
			return 0, err
		}
		try := math.Max(floor, alpha*(1-tuningRate*math.Abs(here-tuningAim)))
		there, err := t.acceptance(Setting{try, balance})
		if err != nil {
			return 0, err
		}
		if reached = here; there > here {
			alpha, reached = try, there
		}
	}
	return alpha, nil
}

func (t *cycleTuner) balances(low, high float64, o CycleOptions) ([]Setting, error) {
	schedule := make([]Setting, o.Length)
	beta := 0.5
	for k := o.Length - 1; k >= 0; k-- {
		schedule[k] = Setting{high / 2 * (1 + cycle(k, o.Length)), Sqrt()}
		if schedule[k].StepSize < low {
			schedule[k].StepSize = low
			continue
		}
		if beta >= tuningNearHigh {
			beta += (o.Exponent - beta) / float64(k+1)
		} else {
			from, best := beta, math.Inf(-1)
			to := math.Min(o.Exponent, from+0.25)
			for _, try := range []float64{from, (from + to) / 2, math.Max(from, to)} {
				balance, err := Power(try)
				if err != nil {
					return nil, err
				}
				a, err := t.acceptance(Setting{schedule[k].StepSize, balance})
				if err != nil {
					return nil, err
				}
				if a > best {
					beta, best = try, a
				}
			}
		}
		var err error
		if schedule[k].Balance, err = Power(beta); err != nil {
			return nil, err
		}
	}
	return schedule, nil
}

func cyclicalEntry() entry {
	return entry{
		Description: Description{
			Name: "acs", Title: "DMALA with a cyclical step size and balance",
			Paper: "Pynadath et al., Gradient-based Discrete Sampling with Automatic Cyclical Scheduling, NeurIPS 2024",
			Exact: true, Target: onlyExp, Cost: oneForAll,
		},
		restless: true,
		uses:     []option{stepSizeOption, preconditionerOption, termsOption, scheduleOption},
		nature:   "its schedule holds a balance for each step",
		make:     func(t Target, o Options) (Kernel, error) { return NewCyclical(t, o) },
	}
}
