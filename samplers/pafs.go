package samplers

import (
	"fmt"
	"math"
)

// PathAuxiliary is the fast path auxiliary sampler of Sun et al., "Path
// Auxiliary Proposal for MCMC in Discrete Space" (ICLR 2022), in the form
// without replacement of the DISCS benchmark (PAFS). From the one gradient at
// θ, R slots are drawn one after another, each among those not yet drawn, and
// each gets a new category:
//
//	P(j) ∝ Σ_{v≠θ_j} g(exp Δ_j(v)),  p(v | j) ∝ g(exp Δ_j(v))
//	log q(path θ → θ') = Σ_r log P(j_r) - log(1 - Σ_{s<r} P(j_s)) + log p(θ'_{j_r} | j_r)
//
// The reverse path visits the same slots in the opposite order with the
// gradient at θ'. The path is an auxiliary variable: A = min(1, exp(U(θ') -
// U(θ)) q(reverse path) / q(path)).
//
// Target: π exactly. No step size: the radius R plays its part, and
// [RadiusAdaptation] tunes it. Cost: one energy and gradient a step.
type PathAuxiliary struct {
	*informed
	radius int
	path   []int     // the slots of each chain's path, -1 past its end, [chains × slots]
	left   []float64 // log totals of the slots not yet on the path, [chains × slots]
}

var (
	_ Kernel      = (*PathAuxiliary)(nil)
	_ proposer    = (*PathAuxiliary)(nil)
	_ RadiusTuner = (*PathAuxiliary)(nil)
)

// NewPathAuxiliary makes the sampler. It uses Radius (default 1), Balance,
// Terms and TermStream of the options.
func NewPathAuxiliary(target Target, o Options) (*PathAuxiliary, error) {
	engine, err := newInformed("pafs", target, o, true)
	if err != nil {
		return nil, err
	}
	k := &PathAuxiliary{informed: engine}
	if k.radius, err = o.count(radiusOption, o.Radius, 1, len(engine.categories)); err != nil {
		return nil, err
	}
	engine.proposer, engine.scorer = k, balanced{o.Balance}
	return k, nil
}

// grow implements the engine's hook for scratch memory.
func (k *PathAuxiliary) grow(chains int) {
	k.path = make([]int, chains*len(k.categories))
	k.left = make([]float64, chains*len(k.categories))
}

// pathOf is the chain's path, [radius].
func (k *PathAuxiliary) pathOf(chain int) []int {
	start := chain * len(k.categories)
	return k.path[start : start+k.radius]
}

// remaining is a copy of the slots' log totals, to be struck out one by one.
func (k *PathAuxiliary) remaining(at place) []float64 {
	slots := len(k.categories)
	left := k.left[at.chain*slots : (at.chain+1)*slots]
	copy(left, at.totals())
	return left
}

func (k *PathAuxiliary) propose(at place, to []int, src source) float64 {
	left := k.remaining(at)
	path := k.pathOf(at.chain)
	logq := 0.0
	for r := range path {
		total := logSumExp(left)
		if math.IsInf(total, -1) {
			// Nothing is left that can move.
			path[r] = -1
			continue
		}
		weight := at.weights.scratch(at.chain, len(left))
		for j, l := range left {
			weight[j] = math.Exp(l - total)
		}
		j := src.categorical(weight)
		path[r], left[j] = j, math.Inf(-1)
		to[j] = at.draw(j, src)
		logq += at.logWeight(j, to[j]) - total
	}
	return logq
}

func (k *PathAuxiliary) logReverse(at place, to []int) float64 {
	left := k.remaining(at)
	path := k.pathOf(at.chain)
	logq := 0.0
	dry := false
	for r := len(path) - 1; r >= 0; r-- {
		j := path[r]
		if j < 0 {
			dry = true
			continue
		}
		logq += at.logWeight(j, to[j]) - logSumExp(left)
		left[j] = math.Inf(-1)
	}
	if dry && !math.IsInf(logSumExp(left), -1) {
		// The path ended early for want of slots; the way back would not.
		return math.Inf(-1)
	}
	return logq
}

// Radius implements [RadiusTuner].
func (k *PathAuxiliary) Radius() int { return k.radius }

// SetRadius implements [RadiusTuner].
func (k *PathAuxiliary) SetRadius(radius int) error {
	if radius < 1 || radius > len(k.categories) {
		return fmt.Errorf("radius %d: choose from 1 to the number of slots, %d", radius, len(k.categories))
	}
	k.radius = radius
	return nil
}

// A RadiusTuner is a kernel that moves a number of slots a step.
type RadiusTuner interface {
	Kernel
	// Radius is R.
	Radius() int
	// SetRadius changes R between steps, from 1 to the number of slots.
	SetRadius(radius int) error
}

// RadiusAdaptation tunes a radius as the DISCS benchmark does:
//
//	r ← clip(r + acceptance - 0.574, 1, slots),  R = round(r)
type RadiusAdaptation struct {
	// Acceptance is the mean acceptance to steer to, 0.574 by default.
	Acceptance float64

	radius float64
}

var _ Adaptation = (*RadiusAdaptation)(nil)

// NewRadiusAdaptation returns one with the default.
func NewRadiusAdaptation() *RadiusAdaptation { return &RadiusAdaptation{Acceptance: 0.574} }

// Begin implements [Adaptation]; it starts at the kernel's radius.
func (a *RadiusAdaptation) Begin(kernel Kernel, _ *State) error {
	k, ok := kernel.(RadiusTuner)
	if !ok {
		return fmt.Errorf("%T has no radius to adapt", kernel)
	}
	a.radius = float64(k.Radius())
	return nil
}

// Adapt implements [Adaptation].
func (a *RadiusAdaptation) Adapt(kernel Kernel, state *State, info *Info) error {
	k, ok := kernel.(RadiusTuner)
	if !ok {
		return fmt.Errorf("%T has no radius to adapt", kernel)
	}
	a.radius += info.MeanAcceptance() - a.Acceptance
	a.radius = math.Min(math.Max(a.radius, 1), float64(state.Slots()))
	return k.SetRadius(int(math.Round(a.radius)))
}

// Freeze implements [Adaptation]: the last radius stays.
func (a *RadiusAdaptation) Freeze(Kernel) error { return nil }

func pathAuxiliaryEntry() entry {
	return entry{
		Description: Description{
			Name: "pafs", Title: "path auxiliary sampler, fast, without replacement",
			Paper: "Sun et al., Path Auxiliary Proposal for MCMC in Discrete Space, ICLR 2022",
			Exact: true, Target: onlyExp, Cost: oneForAll,
		},
		uses:   []option{radiusOption, balanceOption, termsOption},
		nature: "its radius says how many slots move",
		make:   func(t Target, o Options) (Kernel, error) { return NewPathAuxiliary(t, o) },
		adapt:  func(Kernel) (Adaptation, error) { return NewRadiusAdaptation(), nil },
	}
}
