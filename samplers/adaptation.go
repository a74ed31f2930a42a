package samplers

import (
	"fmt"
	"math"

	"infill/internal/logmath"
)

// An adaptation tunes a kernel by its steps, in a warm-up alone: a chain whose
// parameters depend on its past has no stationary law.
type adaptation interface {
	// begin starts the adaptation before the first step, and may set the tuned parameter.
	begin(state *State) error
	// adapt sets the tuned parameter after a step. After the last step its value stays.
	adapt(state *State, info *Info, last bool) error
}

// A tuner makes the adaptation of a mover of the kind that it knows.
type tuner func(m mover) adaptation

// fixed is the adaptation of a kernel that a warm-up does not tune.
type fixed struct{}

var _ adaptation = fixed{}

func (fixed) begin(*State) error              { return nil }
func (fixed) adapt(*State, *Info, bool) error { return nil }

// untuned is the tuner of a kernel that has nothing to tune.
func untuned(mover) adaptation { return fixed{} }

// unlessSaid returns tune, or untuned if the user says what it would tune.
func unlessSaid(said bool, tune tuner) tuner {
	if said {
		return untuned
	}
	return tune
}

// A Tuned kernel has a step size that a warm-up of [Sample] adapts. A kernel of
// another module may implement it.
type Tuned interface {
	Kernel
	// StepSize returns the present step size.
	StepSize() float64
	// SetStepSize changes the step size between two steps.
	SetStepSize(stepSize float64) error
	// Bounds returns the smallest and the largest step size that a warm-up may set.
	Bounds() (lowest, highest float64)
}

// adaptationOf returns what tunes a kernel in a warm-up.
func adaptationOf(k Kernel) adaptation {
	switch k := k.(type) {
	case *kernel:
		return k.tune(k.mover)
	case Tuned:
		lowest, highest := k.Bounds()
		return newStepSizeAdaptation(k, lowest, highest)
	}
	return fixed{}
}

// tunedOf returns the kernel whose step size a warm-up adapts, if it does.
func tunedOf(k Kernel) (s stepSizer, ok bool) {
	if adaptationOf(k) == adaptation(fixed{}) {
		return nil, false
	}
	return stepSizerOf(k)
}

// stepSizerOf returns what has the step size of a kernel; ok is false if it has none.
func stepSizerOf(k Kernel) (s stepSizer, ok bool) {
	own, builtIn := k.(*kernel)
	if builtIn {
		s, ok = own.mover.(stepSizer)
		return s, ok
	}
	s, ok = k.(stepSizer)
	return s, ok
}

// aim is the mean acceptance rate that adaptations aim at: the asymptotic
// optimum of locally balanced proposals (Sun, Dai and Schuurmans, Optimal
// Scaling for Locally Balanced Proposals in Discrete Spaces, NeurIPS 2022).
const aim = 0.574

// A stepSizer is a mover or a kernel with a step size.
type stepSizer interface {
	StepSize() float64
	// SetStepSize changes the step size between two steps of the chains.
	SetStepSize(stepSize float64) error
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
	of              stepSizer
	lowest, highest float64 // bounds of log α
	centre          float64 // the value towards which log α is drawn
	shortage        float64 // running mean of aim - acceptance rate
	average         float64 // running mean of log α
	step            float64
}

var _ adaptation = (*stepSizeAdaptation)(nil)

// newStepSizeAdaptation returns an adaptation that starts at the present step
// size, kept between lowest and highest.
func newStepSizeAdaptation(of stepSizer, lowest, highest float64) *stepSizeAdaptation {
	start := math.Log(math.Min(math.Max(of.StepSize(), lowest), highest))
	// The paper's centre, log 10 ε₁, suits a search where large steps cost little.
	// Here errors in both directions are as likely.
	return &stepSizeAdaptation{of: of, lowest: math.Log(lowest), highest: math.Log(highest), centre: start,
		average: start}
}

// tuneStepSize tunes α between 0.01, below which nothing moves, and 100, above
// which the penalty no longer matters.
func tuneStepSize(m mover) adaptation {
	return newStepSizeAdaptation(m.(stepSizer), 0.01, 100)
}

// tuneContinuous tunes the step size of a continuous relaxation between 1e-6 and 10.
func tuneContinuous(m mover) adaptation {
	return newStepSizeAdaptation(m.(stepSizer), 1e-6, 10)
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

func (a *stepSizeAdaptation) begin(*State) error { return a.of.SetStepSize(math.Exp(a.centre)) }

// adapt sets the averaged step size after the last step of the warm-up.
func (a *stepSizeAdaptation) adapt(_ *State, info *Info, last bool) error {
	stepSize := a.update(info.meanAcceptance())
	if last {
		stepSize = math.Exp(a.average)
	}
	return a.of.SetStepSize(stepSize)
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
	of   jumper
	logZ float64
	step int
}

var _ adaptation = (*jumpAdaptation)(nil)

func tuneJumps(m mover) adaptation { return &jumpAdaptation{of: m.(jumper)} }

// jumps is n at the start, and the gain of the updates.
const jumps = 3

func (a *jumpAdaptation) begin(state *State) error {
	a.step = 0
	a.logZ = math.Log(a.of.jumpWeight(state))
	if !logmath.Finite(a.logZ) {
		return nil // no other state can be reached, or one weight is infinite
	}
	return a.of.setLogTau(math.Log(jumps) - a.logZ)
}

func (a *jumpAdaptation) adapt(state *State, info *Info, _ bool) error {
	const follow, refresh = 100, 20
	k := a.of
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
