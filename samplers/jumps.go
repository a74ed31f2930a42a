package samplers

import (
	"fmt"
	"math"
)

// A JumpTuner is a kernel whose proposal weighs every change of a slot by a
// factor τ before the balancing function's weight. The discrete Langevin
// proposal is one, with log τ = -1/α (and τ above 1 where no α reaches).
type JumpTuner interface {
	Kernel
	// LogTau is log τ, in nats.
	LogTau() float64
	// SetLogTau changes it between steps.
	SetLogTau(logTau float64) error
	// JumpWeight is Z, the mean over the chains of Σ_j Σ_{v≠θ_j} g(exp
	// Δ_j(v)): τZ jumps are expected of a step while they are rare.
	JumpWeight(state *State) float64
}

// JumpAdaptation tunes τ by the number of jumps expected of a step: the
// adaptive samplers of Sun et al., "Discrete Langevin Samplers via Wasserstein
// Gradient Flow" (AISTATS 2023), as implemented in the DISCS benchmark and as
// intended there:
//
//	τ = n/Z at first, n = 3; after each step
//	n ← τZ + 3 (acceptance - 0.574),  log τ ← max(log n, 0) - log Z
//
// The benchmark's code never stores the first τ, so that its samplers run at τ
// ≈ 1; here it is stored, and n is kept from falling below one jump before its
// logarithm is taken. Z follows the chains in the first steps and is then
// refreshed every so often, as there.
type JumpAdaptation struct {
	// Acceptance is the mean acceptance to steer to, 0.574 by default.
	Acceptance float64
	// Jumps is n at the start, and the gain of the updates; 3 by default.
	Jumps float64
	// Follow is the number of steps in which Z is measured anew each step,
	// Refresh the number of steps between measurements afterwards; 100 and
	// 20 by default.
	Follow, Refresh int

	logZ float64
	step int
}

var _ Adaptation = (*JumpAdaptation)(nil)

// NewJumpAdaptation returns one with the defaults.
func NewJumpAdaptation() *JumpAdaptation {
	return &JumpAdaptation{Acceptance: 0.574, Jumps: 3, Follow: 100, Refresh: 20}
}

// Begin implements [Adaptation].
func (a *JumpAdaptation) Begin(kernel Kernel, state *State) error {
	k, ok := kernel.(JumpTuner)
	if !ok {
		return fmt.Errorf("%T has no jumps to adapt", kernel)
	}
	a.step = 0
	a.logZ = math.Log(k.JumpWeight(state))
	if !finite(a.logZ) {
		return nil // there is nowhere to jump to, or one place far above all others
	}
	return k.SetLogTau(math.Log(a.Jumps) - a.logZ)
}

// Adapt implements [Adaptation].
func (a *JumpAdaptation) Adapt(kernel Kernel, state *State, info *Info) error {
	k, ok := kernel.(JumpTuner)
	if !ok {
		return fmt.Errorf("%T has no jumps to adapt", kernel)
	}
	a.step++
	if a.step < a.Follow || a.step%a.Refresh == 0 {
		a.logZ = math.Log(k.JumpWeight(state))
	}
	if !finite(a.logZ) {
		return nil
	}
	n := math.Exp(k.LogTau()+a.logZ) + a.Jumps*(info.MeanAcceptance()-a.Acceptance)
	return k.SetLogTau(math.Log(math.Max(n, 1)) - a.logZ)
}

// Freeze implements [Adaptation]: the last τ stays.
func (a *JumpAdaptation) Freeze(Kernel) error { return nil }

// jumpWeight is Z over a batch, under a balancing function.
func jumpWeight(state *State, categories []int, balance Balance) float64 {
	chains, slots, wide := state.Chains(), len(categories), width(categories)
	sum := 0.0
	for i, current := range state.Positions {
		row := state.Gradient[i*wide : i*wide+categories[i%slots]]
		for v, g := range row {
			if v != current {
				sum += math.Exp(balance.LogWeight(g - row[current]))
			}
		}
	}
	return sum / float64(chains)
}

// checkLogTau refuses what leaves no proposal.
func checkLogTau(logTau float64) error {
	if !finite(logTau) {
		return fmt.Errorf("log τ = %v: it must be finite", logTau)
	}
	return nil
}
