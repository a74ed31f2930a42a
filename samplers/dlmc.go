package samplers

import "math"

// DLMC is the discrete Langevin Monte Carlo of Sun et al., "Discrete Langevin
// Samplers via Wasserstein Gradient Flow" (AISTATS 2023), with the
// Metropolis–Hastings test. Every slot follows for a time τ the continuous-time
// chain that is locally balanced at the conditional the gradient estimates,
// ν_j = softmax(Δ_j). With w_v = g(exp Δ_j(v)), for v ≠ θ_j,
//
//	interpolate:  q_j(v) ∝ ν_j(v) (1 - exp(-τ w_v / ν_j(v)))
//	euler:        q_j(v) ∝ τ w_v
//	staying:      q_j(θ_j) ∝ max(1 - Σ_{v≠θ_j} q_j(v), ν_j(θ_j))
//
// each normalised over the slot's categories, as in the DISCS benchmark. For a
// long time interpolate proposes from ν.
//
// Target: π exactly. The step size is the time τ, in units of jumps per unit
// weight, not the α of the package; [JumpAdaptation] sets it by the number of
// jumps. Cost: one energy and gradient a step.
type DLMC struct {
	*informed
	solver  dlmcSolver
	balance Balance
	logTau  float64
}

type dlmcSolver uint8

const (
	interpolate dlmcSolver = iota
	euler
)

var (
	_ Kernel    = (*DLMC)(nil)
	_ proposer  = (*DLMC)(nil)
	_ scorer    = (*DLMC)(nil)
	_ StepSizer = (*DLMC)(nil)
	_ JumpTuner = (*DLMC)(nil)
)

// NewDLMC makes the sampler that interpolates. It uses StepSize (τ, default
// 1), Balance, Terms and TermStream of the options.
func NewDLMC(target Target, o Options) (*DLMC, error) {
	return newDLMC("dlmc", target, o, interpolate)
}

// NewDLMCEuler makes the sampler with the forward Euler solver, with the
// options of [NewDLMC].
func NewDLMCEuler(target Target, o Options) (*DLMC, error) {
	return newDLMC("dlmc-euler", target, o, euler)
}

func newDLMC(name string, target Target, o Options, solver dlmcSolver) (*DLMC, error) {
	engine, err := newInformed(name, target, o, true)
	if err != nil {
		return nil, err
	}
	k := &DLMC{informed: engine, solver: solver, balance: o.Balance}
	engine.proposer, engine.scorer = k, k
	tau := 1.0
	if o.StepSize != 0 {
		tau = o.StepSize
	}
	return k, k.SetStepSize(tau)
}

// StepSize implements [StepSizer]: it is τ.
func (k *DLMC) StepSize() float64 { return math.Exp(k.logTau) }

// SetStepSize implements [StepSizer].
func (k *DLMC) SetStepSize(tau float64) error {
	if err := checkStepSize(tau); err != nil {
		return err
	}
	return k.SetLogTau(math.Log(tau))
}

// LogTau implements [JumpTuner].
func (k *DLMC) LogTau() float64 { return k.logTau }

// SetLogTau implements [JumpTuner].
func (k *DLMC) SetLogTau(logTau float64) error {
	if err := checkLogTau(logTau); err != nil {
		return err
	}
	k.logTau = logTau
	k.revision++
	return nil
}

// JumpWeight implements [JumpTuner].
func (k *DLMC) JumpWeight(state *State) float64 {
	return jumpWeight(state, k.categories, k.balance)
}

// auxiliary is log ν(θ_j), the normalising constant of the softmax.
func (k *DLMC) auxiliary(_, current int, gradient []float64) float64 {
	return gradient[current] - logSumExp(gradient)
}

func (k *DLMC) logWeights(logStay float64, slot, current int, gradient []float64, first int, out []float64) {
	balanced{k.balance}.logWeights(0, slot, current, gradient, first, out)
	for i := range out {
		out[i] += k.logTau
		if k.solver == interpolate {
			logNu := gradient[first+i] - gradient[current] + logStay
			out[i] = logNu + logRelax(out[i]-logNu)
		}
	}
}

// logRelax is log(1 - exp(-e^x)), the log of the way an exponential relaxation
// has come.
func logRelax(x float64) float64 {
	if x < -20 {
		// 1 - exp(-y) is y to 9 digits; y itself may have no room as a number.
		return x - math.Exp(x)/2
	}
	return math.Log(-math.Expm1(-math.Exp(x)))
}

// stay is the log weight of the current category, and log of the slot's whole
// weight.
func (k *DLMC) stay(at place, slot int) (logStay, logAll float64) {
	total := at.totals()[slot]
	logStay = at.weights.auxiliary[at.chain*len(k.categories)+slot]
	if rest := 1 - math.Exp(total); rest > 0 {
		logStay = math.Max(math.Log(rest), logStay)
	}
	return logStay, logStay + softplus(total-logStay)
}

func (k *DLMC) propose(at place, to []int, src source) float64 {
	logq := 0.0
	for j, total := range at.totals() {
		logStay, logAll := k.stay(at, j)
		if !src.chance(sigmoid(total - logStay)) {
			logq += logStay - logAll
			continue
		}
		to[j] = at.draw(j, src)
		logq += at.logWeight(j, to[j]) - logAll
	}
	return logq
}

func (k *DLMC) logReverse(at place, to []int) float64 {
	logq := 0.0
	for j, v := range to {
		logStay, logAll := k.stay(at, j)
		if v == at.position[j] {
			logq += logStay - logAll
		} else {
			logq += at.logWeight(j, v) - logAll
		}
	}
	return logq
}

func dlmcEntry() entry {
	e := entry{
		Description: Description{
			Name: "dlmc", Title: "discrete Langevin Monte Carlo, interpolating",
			Paper: "Sun et al., Discrete Langevin Samplers via Wasserstein Gradient Flow, AISTATS 2023",
			Exact: true, Target: onlyExp, Cost: oneForAll, Tunable: true,
		},
		uses:   []option{stepSizeOption, balanceOption, termsOption},
		nature: "it weighs the changes of all slots alike",
		make:   func(t Target, o Options) (Kernel, error) { return NewDLMC(t, o) },
		adapt:  func(Kernel) (Adaptation, error) { return NewJumpAdaptation(), nil },
	}
	return e
}

func dlmcEulerEntry() entry {
	e := dlmcEntry()
	e.Name, e.Title = "dlmc-euler", "discrete Langevin Monte Carlo, forward Euler"
	e.make = func(t Target, o Options) (Kernel, error) { return NewDLMCEuler(t, o) }
	return e
}
