// DLP is the discrete Langevin proposal of Zhang, Liu and Liu, "A Langevin-like
// Sampler for Discrete Distributions" (ICML 2022), for categorical slots
// (equation 2 and appendix B). All slots move at once:
//
//	q_j(v | θ) ∝ exp(log g(exp Δ_j(v)) - [v ≠ θ_j] / (α g_j))
//	Δ_j(v) = ∂U/∂θ_j[v] - ∂U/∂θ_j[θ_j]
//
// where g is the balancing function (in the papers the square root, so
// ½Δ). g_j is the slot's preconditioner as in section 6 of the paper;
// appendix H writes g_j².
//
// DULA (unadjusted) takes every proposal. It has its own stationary law, which
// tends to π as α → 0 when U is quadratic (theorem 5.1). DMALA accepts by
// Metropolis–Hastings (equation 3) and targets π exactly.
//
// Step size: α > 0, or +Inf for no penalty. Staying has logit 0, so changing a
// slot costs 1/α nats. With a stochastic gradient (the setting terms), DMALA
// takes the gradient of one random subset of terms at both ends of a step. So
// it stays exact, at two evaluations a step.
//
// Cost: one energy and gradient a step. This file leaves out the binary and
// ordinal forms over one derivative per slot.

package samplers

import (
	"math/rand/v2"

	"infill/internal/logmath"
)

type dlp struct {
	*informed
	alpha          float64
	preconditioner []float64
	penalty        []float64 // 1/(α g_j), [slots]
}

var (
	_ mover     = (*dlp)(nil)
	_ proposer  = (*dlp)(nil)
	_ stepSizer = (*dlp)(nil)
)

// langevin holds the settings of dula, dmala and the samplers built on them.
type langevin struct {
	stepSize       float64
	balance        weighing
	preconditioner []float64
	terms          int
	adjusted       bool
}

func newDLP(name string, target Target, s langevin, shared *rand.Rand) (*dlp, error) {
	engine, err := newInformed(name, target, s.terms, shared, s.adjusted)
	if err != nil {
		return nil, err
	}
	preconditioner, err := factorsOf(s.preconditioner, len(engine.categories))
	if err != nil {
		return nil, err
	}
	k := &dlp{informed: engine, preconditioner: preconditioner, penalty: make([]float64, len(preconditioner))}
	engine.proposer = k
	engine.scorer = balanced{s.balance}
	return k, k.SetStepSize(s.stepSize)
}

// StepSize returns α.
func (k *dlp) StepSize() float64 { return k.alpha }

// SetStepSize changes only the penalty. The weights known so far stay valid,
// because they do not contain the penalty.
func (k *dlp) SetStepSize(stepSize float64) error {
	if err := checkStepSize(stepSize); err != nil {
		return err
	}
	k.alpha = stepSize
	for j, g := range k.preconditioner {
		k.penalty[j] = 1 / (stepSize * g)
	}
	return nil
}

func (k *dlp) propose(at place, to []int, src source) float64 {
	logq := 0.0
	for j, total := range at.totals() {
		leave := total - k.penalty[j]
		logq -= logmath.Softplus(leave)
		if !src.chance(logmath.Sigmoid(leave)) {
			continue
		}
		to[j] = at.draw(j, src)
		logq += at.logWeight(j, to[j]) - k.penalty[j]
	}
	return logq
}

func (k *dlp) logReverse(at place, to []int) float64 {
	logq := 0.0
	for j, total := range at.totals() {
		logq -= logmath.Softplus(total - k.penalty[j])
		if to[j] != at.position[j] {
			logq += at.logWeight(j, to[j]) - k.penalty[j]
		}
	}
	return logq
}

const (
	langevinPaper = "Zhang, Liu and Liu, A Langevin-like Sampler for Discrete Distributions, ICML 2022"
	nearExp       = "its own law, near exp(U) for a small step size"
)

// DULA is the discrete unadjusted Langevin algorithm. It does not accept or reject.
type DULA struct {
	// StepSize is α: changing a slot costs 1/α nats. +Inf is no cost.
	StepSize       float64   `option:"step-size" default:"0.1" exclusiveMinimum:"0" infinite:"true"`
	Balance        Balance   `option:"balance" default:"sqrt"`
	Preconditioner []float64 `option:"preconditioner" between:"/" exclusiveMinimum:"0"`
	Terms          int       `option:"terms" minimum:"1"`
}

// DMALA is the discrete Metropolis-adjusted Langevin algorithm. A warm-up adapts
// the step size if it is zero.
type DMALA struct {
	// StepSize is α: changing a slot costs 1/α nats. +Inf is no cost.
	StepSize       float64   `option:"step-size" default:"0.2" exclusiveMinimum:"0" infinite:"true"`
	Balance        Balance   `option:"balance" default:"sqrt"`
	Preconditioner []float64 `option:"preconditioner" between:"/" exclusiveMinimum:"0"`
	Terms          int       `option:"terms" minimum:"1"`
}

var _, _ Sampler = DULA{}, DMALA{}

func (s DULA) Kernel(target Target, shared *rand.Rand) (Kernel, error) {
	return newKernel(s, target, untuned, func(s DULA) (*dlp, error) {
		return newDLP("dula", target, langevin{s.StepSize, s.Balance.must(), s.Preconditioner, s.Terms, false}, shared)
	})
}

func (s DMALA) Kernel(target Target, shared *rand.Rand) (Kernel, error) {
	return newKernel(s, target, unlessSaid(s.StepSize != 0, tuneStepSize), func(s DMALA) (*dlp, error) {
		return newDLP("dmala", target, langevin{s.StepSize, s.Balance.must(), s.Preconditioner, s.Terms, true}, shared)
	})
}

// These suit text: over 30,000 categories, chains hardly move with a root.
const textStepSize = 5

var textBalance = PowerBalance(1)

func (DULA) Describe() Description {
	return Description{
		Name: "dula", Title: "discrete unadjusted Langevin", Paper: langevinPaper,
		Target: nearExp, Cost: oneForAll,
		OnText: &OnText{Sampler: DULA{StepSize: textStepSize, Balance: textBalance}, Gradient: "local"},
	}
}

func (DMALA) Describe() Description {
	return Description{
		Name: "dmala", Title: "discrete Metropolis-adjusted Langevin", Paper: langevinPaper,
		Exact: true, Target: onlyExp, Cost: oneForAll,
		OnText: &OnText{Sampler: DMALA{Balance: textBalance}, Start: textStepSize, Gradient: "local"},
	}
}
