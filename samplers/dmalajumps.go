package samplers

import "math"

// AdaptiveDMALA is DMALA with the weight of a change given as τ instead of
// exp(-1/α), so that [JumpAdaptation] can set how many jumps a step makes:
//
//	q_j(v | θ) ∝ τ g(exp Δ_j(v)) for v ≠ θ_j,  1 for v = θ_j
//
// It is the adaptive discrete Langevin sampler of the DISCS benchmark (Goshvadi
// et al., NeurIPS 2023), as intended: see [JumpAdaptation]. Once the
// adaptation is frozen it targets π exactly; before, it has no stationary law.
//
// Step size: α with log τ = -1/α; infinite when the adaptation went to τ ≥ 1.
// Preconditioners are refused: the adaptation weighs all slots alike. Cost:
// one energy and gradient a step.
type AdaptiveDMALA struct {
	*DLP
	logTau  float64
	balance Balance
}

var (
	_ Kernel    = (*AdaptiveDMALA)(nil)
	_ JumpTuner = (*AdaptiveDMALA)(nil)
)

// NewAdaptiveDMALA makes the sampler. It uses StepSize (default 0.2, until the
// warm-up begins), Balance, Terms and TermStream of the options.
func NewAdaptiveDMALA(target Target, o Options) (*AdaptiveDMALA, error) {
	o.Preconditioner = nil
	k, err := newDLP("dmala-adaptive", target, o, true, 0.2)
	if err != nil {
		return nil, err
	}
	return &AdaptiveDMALA{k, -1 / k.stepSize, o.Balance}, nil
}

// LogTau implements [JumpTuner].
func (k *AdaptiveDMALA) LogTau() float64 { return k.logTau }

// SetLogTau implements [JumpTuner].
func (k *AdaptiveDMALA) SetLogTau(logTau float64) error {
	if err := checkLogTau(logTau); err != nil {
		return err
	}
	k.logTau, k.stepSize = logTau, math.Inf(1)
	if logTau < 0 {
		k.stepSize = -1 / logTau
	}
	for j := range k.penalty {
		k.penalty[j] = -logTau
	}
	return nil
}

// SetStepSize implements [StepSizer].
func (k *AdaptiveDMALA) SetStepSize(stepSize float64) error {
	if err := k.DLP.SetStepSize(stepSize); err != nil {
		return err
	}
	k.logTau = -1 / stepSize
	return nil
}

// JumpWeight implements [JumpTuner].
func (k *AdaptiveDMALA) JumpWeight(state *State) float64 {
	return jumpWeight(state, k.categories, k.balance)
}

func adaptiveDMALAEntry() entry {
	return entry{
		Description: Description{
			Name: "dmala-adaptive", Title: "DMALA with an adapted number of jumps",
			Paper: "Goshvadi et al., DISCS: A Benchmark for Discrete Sampling, NeurIPS 2023",
			Exact: true, Target: onlyExp, Cost: oneForAll, Tunable: true,
		},
		uses:   []option{stepSizeOption, balanceOption, termsOption},
		nature: "it weighs the changes of all slots alike",
		make:   func(t Target, o Options) (Kernel, error) { return NewAdaptiveDMALA(t, o) },
		adapt:  func(Kernel) (Adaptation, error) { return NewJumpAdaptation(), nil },
	}
}
