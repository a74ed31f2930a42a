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
	"flag"
	"fmt"
	"math"
	"math/rand/v2"

	"infill/internal/logmath"
)

type dlmc struct {
	*informed
	solver  dlmcSolver
	balance Balance
	logTau  float64
}

type dlmcSolver uint8

const (
	interpolate dlmcSolver = iota
	euler
	langevin
)

var (
	_ mover     = (*dlmc)(nil)
	_ proposer  = (*dlmc)(nil)
	_ scorer    = (*dlmc)(nil)
	_ stepSizer = (*dlmc)(nil)
	_ jumper    = (*dlmc)(nil)
)

type dlmcSettings struct {
	solver   dlmcSolver
	stepSize positive
	balance  Balance
	terms    count
}

func (s *dlmcSettings) register(f *flag.FlagSet) {
	help := "τ: the time that a step takes, in jumps per unit weight"
	if s.solver == langevin {
		help = alphaHelp
	}
	f.Var(&s.stepSize, "step-size", help)
	f.Var(&s.balance, "balance", balanceHelp())
	f.Var(&s.terms, "terms", termsHelp)
}

func (s *dlmcSettings) mover(name string, target Target, shared *rand.Rand) (mover, error) {
	engine, err := newInformed(name, target, s.terms, shared, true)
	if err != nil {
		return nil, err
	}
	k := &dlmc{informed: engine, solver: s.solver, balance: s.balance}
	engine.proposer = k
	engine.scorer = k
	return k, k.setStepSize(float64(s.stepSize))
}

func (k *dlmc) stepSize() float64 {
	switch {
	case k.solver != langevin:
		return math.Exp(k.logTau)
	case k.logTau < 0:
		return -1 / k.logTau
	}
	return math.Inf(1)
}

func (k *dlmc) setStepSize(stepSize float64) error {
	if err := checkStepSize(stepSize); err != nil {
		return err
	}
	if k.solver == langevin {
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

// jumpWeight implements [jumper].
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
	if k.solver == langevin {
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

// logRelax returns log(1 - exp(-e^x)), the log of the completed part of an
// exponential relaxation.
func logRelax(x float64) float64 {
	if x < -20 {
		// 1 - exp(-y) is y to 9 digits, and y itself may underflow.
		return x - math.Exp(x)/2
	}
	return math.Log(-math.Expm1(-math.Exp(x)))
}

// outside returns the log of the factor τ of a move, or 0 if the weights of the
// solver already contain τ.
func (k *dlmc) outside() float64 {
	if k.solver == interpolate {
		return 0
	}
	return k.logTau
}

// stay returns the log weights of the current category and of all categories,
// given leave, that of all others.
func (k *dlmc) stay(at place, slot int, leave float64) (logStay, logAll float64) {
	if k.solver != langevin {
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

func dlmcEntry() entry {
	return entry{
		Description: Description{
			Name: "dlmc", Title: "discrete Langevin Monte Carlo, interpolating",
			Paper: "Sun et al., Discrete Langevin Samplers via Wasserstein Gradient Flow, AISTATS 2023",
			Exact: true, Target: onlyExp, Cost: oneForAll, Tunes: "step-size", OnText: &OnText{Gradient: "local"},
		},
		settings:   func() settings { return &dlmcSettings{stepSize: 1} },
		adaptation: tuneJumps,
	}
}

func dlmcEulerEntry() entry {
	e := dlmcEntry()
	e.Name = "dlmc-euler"
	e.Title = "discrete Langevin Monte Carlo, forward Euler"
	e.settings = func() settings { return &dlmcSettings{solver: euler, stepSize: 1} }
	return e
}

func adaptiveDMALAEntry() entry {
	e := dlmcEntry()
	e.Name = "dmala-adaptive"
	e.Title = "DMALA with an adapted number of jumps"
	e.Paper = "Goshvadi et al., DISCS: A Benchmark for Discrete Sampling, NeurIPS 2023"
	e.settings = func() settings { return &dlmcSettings{solver: langevin, stepSize: 0.2} }
	return e
}
