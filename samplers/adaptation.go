package samplers

import (
	"fmt"
	"math"

	"infill/internal/logmath"
)

// An adaptation tunes a kernel by the results of its steps. Kernels do not know it. It acts only in a warm-up: a chain
// whose parameters depend on its past has no stationary law. Its methods need movers of the kind that it was made for.
type adaptation interface {
	// begin sets the kernel before the first step.
	begin(m mover, state *State) error
	// adapt sets it after a step, and for good after the last one.
	adapt(m mover, state *State, info *Info, last bool) error
}

// aim is the target of the mean acceptance: the asymptotic optimum of locally balanced proposals (Sun, Dai and
// Schuurmans, Optimal Scaling for Locally Balanced Proposals in Discrete Spaces, NeurIPS 2022).
const aim = 0.574

// A stepSizer is a mover with a step size.
type stepSizer interface {
	stepSize() float64
	// setStepSize changes it between steps.
	setStepSize(stepSize float64) error
}

func checkStepSize(stepSize float64) error {
	if !(stepSize > 0) {
		return fmt.Errorf("step size %v: it must be above 0 (infinity is allowed)", stepSize)
	}
	return nil
}

// stepSizeAdaptation tunes a step size by dual averaging of log α: Hoffman and Gelman, "The No-U-Turn Sampler" (JMLR
// 2014), section 3.2, equation 6, with their constants γ = 0.05, t₀ = 10, κ = 0.75. If the acceptance stays above the
// aim for every α, α ends at its upper bound.
type stepSizeAdaptation struct {
	lowest, highest float64 // bounds of log α
	centre          float64 // the point to which log α shrinks
	shortage        float64 // running mean of aim - acceptance
	average         float64 // running mean of log α
	step            float64
}

var _ adaptation = (*stepSizeAdaptation)(nil)

// newStepSizeAdaptation starts at a step size, or at the nearest bound.
func newStepSizeAdaptation(stepSize, lowest, highest float64) *stepSizeAdaptation {
	start := math.Log(math.Min(math.Max(stepSize, lowest), highest))
	// The paper's μ = log 10 ε₁ is for a search that overshoots upwards at
	// little cost; here a start is a guess, and both ways are as likely.
	return &stepSizeAdaptation{lowest: math.Log(lowest), highest: math.Log(highest), centre: start, average: start}
}

// tuneStepSize tunes α: below 0.01 nothing moves, above 100 the penalty no longer matters.
func tuneStepSize(m mover) adaptation {
	return newStepSizeAdaptation(m.(stepSizer).stepSize(), 0.01, 100)
}

// tuneContinuous tunes a continuous step, whose bounds are far smaller.
func tuneContinuous(m mover) adaptation {
	return newStepSizeAdaptation(m.(stepSizer).stepSize(), 1e-6, 10)
}

// update takes one step's mean acceptance probability over the chains and returns the step size of the next step.
func (a *stepSizeAdaptation) update(acceptance float64) float64 {
	const gamma, offset, kappa = 0.05, 10, 0.75
	if math.IsNaN(acceptance) {
		acceptance = 0
	}
	a.step++
	eta := 1 / (a.step + offset)
	a.shortage += eta * (aim - acceptance - a.shortage)
	log := math.Min(math.Max(a.centre-math.Sqrt(a.step)/gamma*a.shortage, a.lowest), a.highest)
	a.average += math.Pow(a.step, -kappa) * (log - a.average)
	return math.Exp(log)
}

func (a *stepSizeAdaptation) begin(m mover, _ *State) error {
	return m.(stepSizer).setStepSize(math.Exp(a.centre))
}

// adapt ends at the averaged step size.
func (a *stepSizeAdaptation) adapt(m mover, _ *State, info *Info, last bool) error {
	stepSize := a.update(info.meanAcceptance())
	if last {
		stepSize = math.Exp(a.average)
	}
	return m.(stepSizer).setStepSize(stepSize)
}

// A jumper is a mover whose proposal weighs every change of a slot by a factor τ before the balancing function's
// weight. The discrete Langevin proposal is one, with log τ = -1/α (and τ above 1 where no α reaches).
type jumper interface {
	// logJump is log τ, in nats.
	logJump() float64
	// setLogTau changes it between steps.
	setLogTau(logTau float64) error
	// jumpWeight is Z, the mean over the chains of Σ_j Σ_{v≠θ_j} g(exp
	// Δ_j(v)): τZ jumps are expected of a step while they are rare.
	jumpWeight(state *State) float64
}

// jumpAdaptation tunes τ by the number of jumps expected of a step: the adaptive samplers of Sun et al., "Discrete
// Langevin Samplers via Wasserstein Gradient Flow" (AISTATS 2023), as implemented in the DISCS benchmark and as
// intended there:
//
//	τ = n/Z at first, n = 3; after each step
//	n ← τZ + 3 (acceptance - 0.574),  log τ ← max(log n, 0) - log Z
//
// The benchmark's code never stores the first τ, so that its samplers run at τ ≈ 1. This code stores it, and counts n
// as one jump at least before it takes the logarithm. Z follows the chains in the first 100 steps, and then changes
// every 20 steps, as in the benchmark.
type jumpAdaptation struct {
	logZ float64
	step int
}

var _ adaptation = (*jumpAdaptation)(nil)

func tuneJumps(mover) adaptation { return &jumpAdaptation{} }

// jumps is n at the start, and the gain of the updates.
const jumps = 3

func (a *jumpAdaptation) begin(m mover, state *State) error {
	k := m.(jumper)
	a.step = 0
	a.logZ = math.Log(k.jumpWeight(state))
	if !logmath.Finite(a.logZ) {
		return nil // there is nowhere to jump to, or one place far above all others
	}
	return k.setLogTau(math.Log(jumps) - a.logZ)
}

func (a *jumpAdaptation) adapt(m mover, state *State, info *Info, _ bool) error {
	const follow, refresh = 100, 20
	k := m.(jumper)
	a.step++
	if a.step < follow || a.step%refresh == 0 {
		a.logZ = math.Log(k.jumpWeight(state))
	}
	if !logmath.Finite(a.logZ) {
		return nil
	}
	n := math.Exp(k.logJump()+a.logZ) + jumps*(info.meanAcceptance()-aim)
	return k.setLogTau(math.Log(math.Max(n, 1)) - a.logZ)
}
