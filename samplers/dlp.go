package samplers

import (
	"fmt"
	"math"
	"slices"
)

// DLP is the discrete Langevin proposal of Zhang, Liu and Liu, "A
// Langevin-like Sampler for Discrete Distributions" (ICML 2022), for
// categorical slots (equation 2 and appendix B). All slots move at once:
//
//	q_j(v | θ) ∝ exp(log g(exp Δ_j(v)) - [v ≠ θ_j] / (α g_j))
//	Δ_j(v) = ∂U/∂θ_j[v] - ∂U/∂θ_j[θ_j]
//
// where g is the balancing function (the papers': square root, so ½Δ) and g_j
// the slot's preconditioner as in section 6 of the paper; appendix H writes
// g_j².
//
// DULA (unadjusted) takes every proposal; it has its own stationary law, which
// tends to π as α → 0 when U is quadratic (theorem 5.1). DMALA accepts by
// Metropolis–Hastings (equation 3) and targets π exactly.
//
// Step size: α > 0, or +Inf for no penalty; staying has logit 0, so 1/α nats
// are the price of changing a slot. With a stochastic gradient
// ([Options.Terms]) DMALA takes the gradient of one random subset of terms at
// both ends of a step and so stays exact, at two evaluations a step.
//
// Cost: one energy and gradient a step. Not here: the binary and ordinal forms
// over one derivative per slot.
type DLP struct {
	*informed
	stepSize       float64
	preconditioner []float64
	penalty        []float64 // 1/(α g_j), [slots]
}

var (
	_ Kernel     = (*DLP)(nil)
	_ transition = (*DLP)(nil)
	_ proposer   = (*DLP)(nil)
	_ StepSizer  = (*DLP)(nil)
)

// NewDULA makes the unadjusted sampler. It uses StepSize (default 0.1),
// Balance, Preconditioner, Terms and TermStream of the options.
func NewDULA(target Target, o Options) (*DLP, error) {
	return newDLP("dula", target, o, false, 0.1)
}

// NewDMALA makes the Metropolis-adjusted sampler. It uses StepSize (default
// 0.2), Balance, Preconditioner, Terms and TermStream of the options.
func NewDMALA(target Target, o Options) (*DLP, error) {
	return newDLP("dmala", target, o, true, 0.2)
}

func newDLP(name string, target Target, o Options, adjusted bool, stepSize float64) (*DLP, error) {
	engine, err := newInformed(name, target, o, adjusted)
	if err != nil {
		return nil, err
	}
	preconditioner, err := o.preconditioner(len(engine.categories))
	if err != nil {
		return nil, err
	}
	k := &DLP{informed: engine, preconditioner: preconditioner, penalty: make([]float64, len(preconditioner))}
	if o.StepSize != 0 {
		stepSize = o.StepSize
	}
	if err := k.SetStepSize(stepSize); err != nil {
		return nil, err
	}
	engine.proposer, engine.scorer = k, balanced{o.Balance}
	return k, nil
}

// StepSize implements [StepSizer].
func (k *DLP) StepSize() float64 { return k.stepSize }

// SetStepSize implements [StepSizer]. It keeps the state's cached weights: the
// penalty is no part of them.
func (k *DLP) SetStepSize(stepSize float64) error {
	if err := checkStepSize(stepSize); err != nil {
		return err
	}
	k.stepSize = stepSize
	for j, g := range k.preconditioner {
		k.penalty[j] = 1 / (stepSize * g)
	}
	return nil
}

func (k *DLP) propose(at place, to []int, src source) float64 {
	logq := 0.0
	for j, total := range at.totals() {
		leave := total - k.penalty[j]
		logq -= softplus(leave)
		if !src.chance(sigmoid(leave)) {
			continue
		}
		to[j] = at.draw(j, src)
		logq += at.logWeight(j, to[j]) - k.penalty[j]
	}
	return logq
}

func (k *DLP) logReverse(at place, to []int) float64 {
	logq := 0.0
	for j, total := range at.totals() {
		logq -= softplus(total - k.penalty[j])
		if to[j] != at.position[j] {
			logq += at.logWeight(j, to[j]) - k.penalty[j]
		}
	}
	return logq
}

// A StepSizer is a kernel whose step size can be tuned, as warm-up does.
type StepSizer interface {
	Kernel
	// StepSize is α.
	StepSize() float64
	// SetStepSize changes α between steps.
	SetStepSize(stepSize float64) error
}

func checkStepSize(stepSize float64) error {
	if !(stepSize > 0) {
		return fmt.Errorf("step size %v: it must be above 0 (infinity is allowed)", stepSize)
	}
	return nil
}

// preconditioner returns the g_j, ones when none are given.
func (o Options) preconditioner(slots int) ([]float64, error) {
	if o.Preconditioner == nil {
		return slices.Repeat([]float64{1}, slots), nil
	}
	if len(o.Preconditioner) != slots {
		return nil, fmt.Errorf("%d preconditioner values for %d slots: give one per slot", len(o.Preconditioner), slots)
	}
	for j, g := range o.Preconditioner {
		if !(g > 0) || math.IsInf(g, 1) {
			return nil, fmt.Errorf("preconditioner %v of slot %d: it must be above 0 and finite", g, j)
		}
	}
	return slices.Clone(o.Preconditioner), nil
}

const (
	langevinPaper  = "Zhang, Liu and Liu, A Langevin-like Sampler for Discrete Distributions, ICML 2022"
	langevinNature = "it moves all slots at once, each by its own proposal"
)

func langevinOptions() []option {
	return []option{stepSizeOption, balanceOption, preconditionerOption, termsOption}
}

func tuneStepSize(kernel Kernel) (Adaptation, error) {
	return NewStepSizeAdaptation(kernel.(StepSizer).StepSize(), AdaptationOptions{})
}

func dulaEntry() entry {
	return entry{
		Description: Description{
			Name: "dula", Title: "discrete unadjusted Langevin", Paper: langevinPaper,
			Exact: false, Target: "its own law, near exp(U) for a small step size", Cost: oneForAll, Tunable: true,
		},
		uses: langevinOptions(), nature: langevinNature,
		make: func(t Target, o Options) (Kernel, error) { return NewDULA(t, o) },
	}
}

func dmalaEntry() entry {
	return entry{
		Description: Description{
			Name: "dmala", Title: "discrete Metropolis-adjusted Langevin", Paper: langevinPaper,
			Exact: true, Target: onlyExp, Cost: oneForAll, Tunable: true,
		},
		uses: langevinOptions(), nature: langevinNature,
		make:  func(t Target, o Options) (Kernel, error) { return NewDMALA(t, o) },
		adapt: tuneStepSize,
	}
}
