package samplers

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"time"
)

// AdaptationOptions set how a step size is tuned. Zero fields take the
// defaults.
type AdaptationOptions struct {
	// Acceptance is the mean acceptance to steer to. Default 0.574, the
	// asymptotic optimum of locally balanced proposals (Sun, Dai and
	// Schuurmans, Optimal Scaling for Locally Balanced Proposals in Discrete
	// Spaces, NeurIPS 2022).
	Acceptance float64
	// Min and Max bound α. Defaults 0.01 and 100: below, nothing moves;
	// above, the penalty no longer matters. Where the acceptance stays above
	// the aim for every α, α ends at Max.
	Min, Max float64
}

// StepSizeAdaptation tunes a step size by dual averaging of log α: Hoffman and
// Gelman, "The No-U-Turn Sampler" (JMLR 2014), section 3.2, equation 6, with
// their constants γ = 0.05, t₀ = 10, κ = 0.75. It stands outside the kernels: it
// only hears acceptances and says step sizes. After the warm-up it must be
// frozen, since a chain whose α depends on its past has no stationary law.
type StepSizeAdaptation struct {
	options  AdaptationOptions
	centre   float64 // the point log α is drawn to
	shortage float64 // running mean of aim - acceptance
	average  float64 // of log α
	step     float64
}

var _ Adaptation = (*StepSizeAdaptation)(nil)

// NewStepSizeAdaptation starts at a step size inside the bounds.
func NewStepSizeAdaptation(stepSize float64, o AdaptationOptions) (*StepSizeAdaptation, error) {
	if o.Acceptance == 0 {
		o.Acceptance = 0.574
	}
	if o.Min == 0 {
		o.Min = 0.01
	}
	if o.Max == 0 {
		o.Max = 100
	}
	if !(o.Acceptance > 0 && o.Acceptance < 1) {
		return nil, fmt.Errorf("acceptance %v to adapt to: it must be between 0 and 1", o.Acceptance)
	}
	if !(o.Min > 0 && o.Min < o.Max && o.Max <= math.MaxFloat64) {
		return nil, fmt.Errorf("step size bounds %v to %v: both must be above 0 and finite, the first the smaller", o.Min, o.Max)
	}
	if err := checkStepSize(stepSize); err != nil {
		return nil, err
	}
	start := math.Log(math.Min(math.Max(stepSize, o.Min), o.Max))
	// The paper's μ = log 10 ε₁ is for a search that overshoots upwards at
	// little cost; here a start is a guess, and both ways are as likely.
	return &StepSizeAdaptation{options: o, centre: start, average: start}, nil
}

// Update hears one step's mean acceptance probability over the chains and
// returns the step size of the next step.
func (a *StepSizeAdaptation) Update(acceptance float64) float64 {
	const gamma, offset, kappa = 0.05, 10, 0.75
	if math.IsNaN(acceptance) {
		acceptance = 0
	}
	a.step++
	eta := 1 / (a.step + offset)
	a.shortage += eta * (a.options.Acceptance - acceptance - a.shortage)
	log := a.clamp(a.centre - math.Sqrt(a.step)/gamma*a.shortage)
	weight := math.Pow(a.step, -kappa)
	a.average += weight * (log - a.average)
	return math.Exp(log)
}

// StepSize is the averaged step size, to keep after the warm-up.
func (a *StepSizeAdaptation) StepSize() float64 { return math.Exp(a.average) }

func (a *StepSizeAdaptation) clamp(log float64) float64 {
	return math.Min(math.Max(log, math.Log(a.options.Min)), math.Log(a.options.Max))
}

// MeanAcceptance is the mean over the chains of min(1, ratio) of a step: less
// noisy than the fraction accepted. NaN for no chains.
func (i *Info) MeanAcceptance() float64 {
	sum := 0.0
	for _, l := range i.LogAcceptance {
		sum += math.Exp(math.Min(0, l))
	}
	return sum / float64(len(i.LogAcceptance))
}

// WarmUpReport tells what the warm-up did, apart from the sampling after it.
type WarmUpReport struct {
	Steps          int
	StepSize       float64 // frozen for the sampling; NaN for a kernel without
	AcceptanceRate float64 // mean over the warm-up; NaN for 0 steps
	Cost           Cost
	Duration       time.Duration
}

// An Adaptation tunes a kernel from what its steps show. It stands outside
// the kernels and acts in a warm-up only: a chain whose parameters depend on
// its past has no stationary law.
type Adaptation interface {
	// Begin sets the kernel before the first step.
	Begin(kernel Kernel, state *State) error
	// Adapt sets it after a step.
	Adapt(kernel Kernel, state *State, info *Info) error
	// Freeze sets it for good.
	Freeze(kernel Kernel) error
}

// WarmUp makes steps that tune the kernel, and leaves it frozen. While it
// lasts the chains share the tuned parameters, so a chain's path depends on
// those beside it; afterwards it does not.
func WarmUp(ctx context.Context, kernel Kernel, state *State, streams []*rand.Rand, steps int, adaptation Adaptation) (*WarmUpReport, error) {
	if adaptation == nil {
		return nil, errors.New("no adaptation to warm up with: make one, or see AdaptationFor")
	}
	start := time.Now()
	report := &WarmUpReport{Steps: steps, StepSize: math.NaN()}
	if err := adaptation.Begin(kernel, state); err != nil {
		return nil, fmt.Errorf("warm-up: %w", err)
	}
	sum := 0.0
	err := Run(ctx, kernel, state, streams, steps, func(_ int, state *State, info *Info) error {
		sum += info.MeanAcceptance()
		report.Cost = report.Cost.Plus(info.Cost)
		return adaptation.Adapt(kernel, state, info)
	})
	if err != nil {
		return nil, fmt.Errorf("warm-up: %w", err)
	}
	if err := adaptation.Freeze(kernel); err != nil {
		return nil, fmt.Errorf("warm-up: %w", err)
	}
	if k, ok := kernel.(StepSizer); ok {
		report.StepSize = k.StepSize()
	}
	report.AcceptanceRate = sum / float64(steps)
	report.Duration = time.Since(start)
	return report, nil
}

// Begin implements [Adaptation].
func (a *StepSizeAdaptation) Begin(kernel Kernel, _ *State) error {
	return a.set(kernel, math.Exp(a.centre))
}

// Adapt implements [Adaptation].
func (a *StepSizeAdaptation) Adapt(kernel Kernel, _ *State, info *Info) error {
	return a.set(kernel, a.Update(info.MeanAcceptance()))
}

// Freeze implements [Adaptation].
func (a *StepSizeAdaptation) Freeze(kernel Kernel) error { return a.set(kernel, a.StepSize()) }

func (a *StepSizeAdaptation) set(kernel Kernel, stepSize float64) error {
	k, ok := kernel.(StepSizer)
	if !ok {
		return fmt.Errorf("%T has no step size to adapt", kernel)
	}
	return k.SetStepSize(stepSize)
}
