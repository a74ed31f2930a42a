// DLMC is the discrete Langevin Monte Carlo of Sun et al., "Discrete Langevin
// Samplers via Wasserstein Gradient Flow" (AISTATS 2023), with the
// Metropolis–Hastings test. Every slot follows a continuous-time chain for a
// time τ. This chain is locally balanced at ν_j = softmax(Δ_j), the gradient's
// estimate of the slot's conditional. With w_v = g(exp Δ_j(v)) for v ≠ θ_j,
//
//	interpolate:  q_j(v) ∝ ν_j(v) (1 - exp(-τ w_v / ν_j(v)))
//	euler:        q_j(v) ∝ τ w_v
//	staying:      q_j(θ_j) ∝ max(1 - Σ_{v≠θ_j} q_j(v), ν_j(θ_j))
//
// each normalised over the slot's categories, as in the DISCS benchmark. For
// large τ, interpolate draws from ν_j.
//
// dmala-adaptive is the adaptive discrete Langevin sampler of the DISCS
// benchmark (Goshvadi et al., NeurIPS 2023), as intended there. It is DMALA,
// but the weight of a change is τ instead of exp(-1/α):
//
//	q_j(v) ∝ τ w_v,  q_j(θ_j) ∝ 1
//
// Target: π exactly. While a warm-up sets τ by the number of jumps in a step,
// there is no stationary law. Step size of dlmc and dlmc-euler: the time τ, in
// units of jumps per unit weight, not the α of the package. Step size of
// dmala-adaptive: α with log τ = -1/α, infinite if the warm-up found τ ≥ 1.
// These samplers take no preconditioner, because all slots have the same
// weight. Cost: one energy and gradient a step.

package samplers

import (
	"fmt"
	"math"
	"math/rand/v2"

	"infill/internal/logmath"
)

type dlmc struct {
	*informed
	solver  dlmcSolver
	balance weighing
	logTau  float64
}

type dlmcSolver uint8

const (
	interpolate dlmcSolver = iota
	euler
	langevinJumps
)

var (
	_ mover     = (*dlmc)(nil)
	_ proposer  = (*dlmc)(nil)
	_ scorer    = (*dlmc)(nil)
	_ stepSizer = (*dlmc)(nil)
	_ jumper    = (*dlmc)(nil)
)

func newDLMC(name string, solver dlmcSolver, target Target, stepSize float64, balance Balance, terms int,
	shared *rand.Rand) (*dlmc, error) {
	engine, err := newInformed(name, target, terms, shared, true)
	if err != nil {
		return nil, err
	}
	k := &dlmc{informed: engine, solver: solver, balance: balance.must()}
	engine.proposer = k
	engine.scorer = k
	return k, k.SetStepSize(stepSize)
}

// StepSize returns τ, or α of dmala-adaptive.
func (k *dlmc) StepSize() float64 {
	switch {
	case k.solver != langevinJumps:
		return math.Exp(k.logTau)
	case k.logTau < 0:
		return -1 / k.logTau
	}
	return math.Inf(1)
}

// SetStepSize sets τ, or α of dmala-adaptive.
func (k *dlmc) SetStepSize(stepSize float64) error {
	if err := checkStepSize(stepSize); err != nil {
		return err
	}
	if k.solver == langevinJumps {
		return k.setLogTau(-1 / stepSize)
	}
	return k.setLogTau(math.Log(stepSize))
}

func (k *dlmc) logJump() float64 { return k.logTau }

func (k *dlmc) setLogTau(logTau float64) error {
	if !logmath.Finite(logTau) {
		return fmt.Errorf("log τ = %v: it must be finite", logTau)
	}
	k.logTau = logTau
	if k.solver == interpolate {
		k.revision++ // τ is part of the weights of interpolate
	}
	return nil
}

func (k *dlmc) jumpWeight(state *State) float64 {
	gradient := state.own.(*surroundings).gradient
	slots := len(k.categories)
	wide := width(k.categories)
	sum := 0.0
	for i, current := range state.Positions {
		row := gradient[i*wide : i*wide+k.categories[i%slots]]
		for v, g := range row {
			if v != current {
				sum += math.Exp(k.balance.logWeight(g - row[current]))
			}
		}
	}
	return sum / float64(state.Chains())
}

// auxiliary returns log ν(θ_j), the log-probability of the current category by
// the softmax; 0 for dmala-adaptive.
func (k *dlmc) auxiliary(_, current int, gradient []float64) float64 {
	if k.solver == langevinJumps {
		return 0
	}
	return gradient[current] - logmath.LogSumExp(gradient)
}

func (k *dlmc) logWeights(logStay float64, slot, current int, gradient []float64, first int, out []float64) {
	balanced{k.balance}.logWeights(0, slot, current, gradient, first, out)
	if k.solver != interpolate {
		return
	}
	for i := range out {
		out[i] += k.logTau
		logNu := gradient[first+i] - gradient[current] + logStay
		out[i] = logNu + logRelax(out[i]-logNu)
	}
}

// logRelax returns log(1 - exp(-e^x)): an exponential relaxation so far.
func logRelax(x float64) float64 {
	if x < -20 {
		// 1 - exp(-y) is y to 9 digits, and y itself may underflow.
		return x - math.Exp(x)/2
	}
	return math.Log(-math.Expm1(-math.Exp(x)))
}

// outside returns log τ of a move, or 0 if the weights already contain τ.
func (k *dlmc) outside() float64 {
	if k.solver == interpolate {
		return 0
	}
	return k.logTau
}

// stay returns the log weights of the current category and of all categories,
// given leave, that of all others.
func (k *dlmc) stay(at place, slot int, leave float64) (logStay, logAll float64) {
	if k.solver != langevinJumps {
		logStay = at.weights.auxiliary[at.chain*len(k.categories)+slot]
		rest := 1 - math.Exp(leave)
		if rest > 0 {
			logStay = math.Max(math.Log(rest), logStay)
		}
	}
	return logStay, logStay + logmath.Softplus(leave-logStay)
}

func (k *dlmc) propose(at place, to []int, src source) float64 {
	logq := 0.0
	outside := k.outside()
	for j, total := range at.totals() {
		leave := total + outside
		logStay, logAll := k.stay(at, j, leave)
		if !src.chance(logmath.Sigmoid(leave - logStay)) {
			logq += logStay - logAll
			continue
		}
		to[j] = at.draw(j, src)
		logq += at.logWeight(j, to[j]) + outside - logAll
	}
	return logq
}

func (k *dlmc) logReverse(at place, to []int) float64 {
	logq := 0.0
	outside := k.outside()
	for j, total := range at.totals() {
		logStay, logAll := k.stay(at, j, total+outside)
		if to[j] == at.position[j] {
			logq += logStay - logAll
		} else {
			logq += at.logWeight(j, to[j]) + outside - logAll
		}
	}
	return logq
}

const (
	gradientFlowPaper = "Sun et al., Discrete Langevin Samplers via Wasserstein Gradient Flow, AISTATS 2023"
	discsPaper        = "Goshvadi et al., DISCS: A Benchmark for Discrete Sampling, NeurIPS 2023"
)

// DLMC is discrete Langevin Monte Carlo, interpolating. A warm-up adapts the step size
// if it is zero.
type DLMC struct {
	// StepSize is τ: the time that a step takes, in jumps per unit weight.
	StepSize float64 `option:"step-size" default:"1" exclusiveMinimum:"0"`
	Balance  Balance `option:"balance" default:"sqrt"`
	Terms    int     `option:"terms" minimum:"1"`
}

var _ Sampler = DLMC{}

func (s DLMC) Kernel(target Target, shared *rand.Rand) (Kernel, error) {
	return newKernel(s, target, unlessSaid(s.StepSize != 0, tuneJumps), func(s DLMC) (*dlmc, error) {
		return newDLMC("dlmc", interpolate, target, s.StepSize, s.Balance, s.Terms, shared)
	})
}

func (DLMC) Describe() Description {
	return Description{
		Name: "dlmc", Title: "discrete Langevin Monte Carlo, interpolating", Paper: gradientFlowPaper,
		Exact: true, Target: onlyExp, Cost: oneForAll, OnText: &OnText{Gradient: "local"},
	}
}

// EulerDLMC is discrete Langevin Monte Carlo by forward Euler, with the settings of [DLMC].
type EulerDLMC DLMC

var _ Sampler = EulerDLMC{}

func (s EulerDLMC) Kernel(target Target, shared *rand.Rand) (Kernel, error) {
	return newKernel(s, target, unlessSaid(s.StepSize != 0, tuneJumps), func(s EulerDLMC) (*dlmc, error) {
		return newDLMC("dlmc-euler", euler, target, s.StepSize, s.Balance, s.Terms, shared)
	})
}

func (EulerDLMC) Describe() Description {
	return Description{
		Name: "dlmc-euler", Title: "discrete Langevin Monte Carlo, forward Euler", Paper: gradientFlowPaper,
		Exact: true, Target: onlyExp, Cost: oneForAll, OnText: &OnText{Gradient: "local"},
	}
}

// AdaptiveDMALA is DMALA with an adapted number of jumps: a warm-up adapts the step size
// if it is zero.
type AdaptiveDMALA struct {
	// StepSize is α: changing a slot costs 1/α nats. +Inf is no cost.
	StepSize float64 `option:"step-size" default:"0.2" exclusiveMinimum:"0" infinite:"true"`
	Balance  Balance `option:"balance" default:"sqrt"`
	Terms    int     `option:"terms" minimum:"1"`
}

var _ Sampler = AdaptiveDMALA{}

func (s AdaptiveDMALA) Kernel(target Target, shared *rand.Rand) (Kernel, error) {
	return newKernel(s, target, unlessSaid(s.StepSize != 0, tuneJumps), func(s AdaptiveDMALA) (*dlmc, error) {
		return newDLMC("dmala-adaptive", langevinJumps, target, s.StepSize, s.Balance, s.Terms, shared)
	})
}

func (AdaptiveDMALA) Describe() Description {
	return Description{
		Name: "dmala-adaptive", Title: "DMALA with an adapted number of jumps", Paper: discsPaper,
		Exact: true, Target: onlyExp, Cost: oneForAll, OnText: &OnText{Gradient: "local"},
	}
}
