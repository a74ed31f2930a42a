package samplers

import (
	"fmt"
	"math"

	"infill/internal/logmath"
)

// An adaptation tunes a kernel by the results of its steps. It acts only
// in a warm-up, because a chain whose parameters depend on its past has
// no stationary law. m must be a mover of the kind for which the
// adaptation was made.
type adaptation interface {
	// begin starts the adaptation before the first step, and may set the tuned parameter.
	begin(m mover, state *State) error
	// adapt sets the tuned parameter after a step. After the last step its value stays.
	adapt(m mover, state *State, info *Info, last bool) error
}

// aim is the mean acceptance rate that adaptations aim at: the asymptotic
// optimum of locally balanced proposals (Sun, Dai and Schuurmans, Optimal
// Scaling for Locally Balanced Proposals in Discrete Spaces, NeurIPS 2022).
const aim = 0.574

// A stepSizer is a mover with a step size.
type stepSizer interface {
	stepSize() float64
	// setStepSize changes the step size between two steps of the chains.
	setStepSize(stepSize float64) error
}

func checkStepSize(stepSize float64) error {
	if !(stepSize > 0) {
		return fmt.Errorf("step size %v: it must be above 0 (infinity is allowed)", stepSize)
	}
	return nil
}

// stepSizeAdaptation tunes a step size α by dual averaging of log α: Hoffman
// and Gelman, "The No-U-Turn Sampler" (JMLR 2014), section 3.2, equation 6,
// with their constants γ = 0.05, t₀ = 10, κ = 0.75. If the acceptance rate
// stays above aim for every α, α ends at its upper bound.
type stepSizeAdaptation struct {
	lowest, highest float64 // bounds of log α
	centre          float64 // the value towards which log α is drawn
	shortage        float64 // running mean of aim - acceptance rate
	average         float64 // running mean of log α
	step            float64
}

var _ adaptation = (*stepSizeAdaptation)(nil)

// newStepSizeAdaptation returns an adaptation that starts at stepSize, kept
// between lowest and highest.
func newStepSizeAdaptation(stepSize, lowest, highest float64) *stepSizeAdaptation {
	start := math.Log(math.Min(math.Max(stepSize, lowest), highest))
	// The paper's centre, log 10 ε₁, suits a search where too large steps
	// cost little. Here the start is a guess, and errors in both
	// directions are as likely.
	return &stepSizeAdaptation{lowest: math.Log(lowest), highest: math.Log(highest), centre: start, average: start}
}

// tuneStepSize tunes α between 0.01, below which nothing moves, and 100, above
// which the penalty no longer matters.
func tuneStepSize(m mover) adaptation {
	return newStepSizeAdaptation(m.(stepSizer).stepSize(), 0.01, 100)
}

// tuneContinuous tunes the step size of a continuous relaxation between 1e-6 and 10.
func tuneContinuous(m mover) adaptation {
	return newStepSizeAdaptation(m.(stepSizer).stepSize(), 1e-6, 10)
}

// update takes the mean acceptance probability of one step over the chains, and
// returns the step size of the next step.
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

// adapt sets the averaged step size after the last step of the warm-up.
func (a *stepSizeAdaptation) adapt(m mover, _ *State, info *Info, last bool) error {
	stepSize := a.update(info.meanAcceptance())
	if last {
		stepSize = math.Exp(a.average)
	}
	return m.(stepSizer).setStepSize(stepSize)
}

// A jumper is a mover whose proposal multiplies the weight of every change of a
// slot by a factor τ. The discrete Langevin proposal is such a proposal, with
// log τ = -1/α (τ above 1 corresponds to no α).
type jumper interface {
	// logJump returns log τ in nats.
	logJump() float64
	// setLogTau changes log τ between two steps.
	setLogTau(logTau float64) error
	// jumpWeight returns Z, the mean over the chains of Σ_j Σ_{v≠θ_j}
	// g(exp Δ_j(v)). A step makes about τZ jumps while jumps are rare.
	jumpWeight(state *State) float64
}

// jumpAdaptation tunes τ by the expected number n of jumps in a step, as in Sun
// et al., "Discrete Langevin Samplers via Wasserstein Gradient Flow" (AISTATS
// 2023). It follows the code of the DISCS benchmark as intended there:
//
//	τ = n/Z at first, n = 3; after each step
//	n ← τZ + 3 (acceptance - 0.574),  log τ ← max(log n, 0) - log Z
//
// The benchmark's code never stores the first τ, so that its samplers run at
// τ ≈ 1. This code stores the first τ, and raises n to at least one jump before
// the logarithm. In the first 100 steps Z is computed at every step, and then
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
		return nil // no other state can be reached, or one weight is infinite
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
