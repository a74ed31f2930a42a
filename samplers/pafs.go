// PAFS is the fast path auxiliary sampler of Sun et al., "Path Auxiliary
// Proposal for MCMC in Discrete Space" (ICLR 2022), without replacement
// as in the DISCS benchmark. From one gradient at θ, R slots are drawn
// one after another, each from the slots not yet drawn. Each drawn slot
// gets a new category:
//
//	P(j) ∝ Σ_{v≠θ_j} g(exp Δ_j(v)),  p(v | j) ∝ g(exp Δ_j(v))
//	log q(path θ → θ') = Σ_r log P(j_r) - log(1 - Σ_{s<r} P(j_s)) + log p(θ'_{j_r} | j_r)
//
// The reverse path visits the same slots in the opposite order, with the
// gradient at θ'. The path is an auxiliary variable: A =
// min(1, exp(U(θ') - U(θ)) q(reverse path) / q(path)).
//
// A path of fixed length R always keeps, or always turns, the parity of binary
// slots. If the target has two or more binary slots, the length is therefore R
// or R - 1 with equal chance. Then every state can be reached.
//
// Target: π exactly. There is no step size. The radius R takes its place, and a
// warm-up tunes it. Cost: one energy and gradient a step.

package samplers

import (
	"math"
	"math/rand/v2"

	"infill/internal/logmath"
)

type pathAuxiliary struct {
	*informed
	radius int
	varies bool      // whether half of the paths are one slot shorter
	length []int     // lengths of the chains' paths, [chains]
	path   []int     // slots of the chains' paths, -1 after an early end, [chains × slots]
	left   []float64 // log totals of the slots not yet on the path, else -Inf, [chains × slots]
}

var (
	_ mover    = (*pathAuxiliary)(nil)
	_ proposer = (*pathAuxiliary)(nil)
)

// grow makes scratch memory for a number of chains. The engine informed calls it.
func (k *pathAuxiliary) grow(chains int) {
	k.length = make([]int, chains)
	k.path = make([]int, chains*len(k.categories))
	k.left = make([]float64, chains*len(k.categories))
}

func (k *pathAuxiliary) pathOf(chain int) []int {
	start := chain * len(k.categories)
	return k.path[start : start+k.length[chain]]
}

// remaining returns a copy of the slots' log totals, to remove slots from.
func (k *pathAuxiliary) remaining(at place) []float64 {
	slots := len(k.categories)
	left := k.left[at.chain*slots : (at.chain+1)*slots]
	copy(left, at.totals())
	return left
}

// propose walks a path: it draws a slot that is not on the path yet by the
// weight of its changes, and changes it. It returns log q of the path.
func (k *pathAuxiliary) propose(at place, to []int, src source) float64 {
	left := k.remaining(at)
	k.length[at.chain] = k.radius
	if k.varies && k.radius > 1 {
		k.length[at.chain] -= src.index(2)
	}
	path := k.pathOf(at.chain)
	logq := 0.0
	for r := range path {
		total := logmath.LogSumExp(left)
		if math.IsInf(total, -1) {
			// No slot is left that can move.
			path[r] = -1
			continue
		}
		j := at.drawSlot(left, total, src)
		path[r] = j
		left[j] = math.Inf(-1)
		to[j] = at.draw(j, src)
		logq += at.logWeight(j, to[j]) - total
	}
	return logq
}

// logReverse returns log q of walking the path backwards from its end.
func (k *pathAuxiliary) logReverse(at place, to []int) float64 {
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
		logq += at.logWeight(j, to[j]) - logmath.LogSumExp(left)
		left[j] = math.Inf(-1)
	}
	if dry && !math.IsInf(logmath.LogSumExp(left), -1) {
		// No slot could move at the path's end, where the reverse would go on.
		return math.Inf(-1)
	}
	return logq
}

// radiusAdaptation tunes the number R of slots that move, as the DISCS benchmark does:
//
//	r ← clip(r + acceptance - 0.574, 1, slots),  R = round(r)
type radiusAdaptation struct {
	of     *pathAuxiliary
	radius float64
}

var _ adaptation = (*radiusAdaptation)(nil)

func tuneRadius(m mover) adaptation { return &radiusAdaptation{of: m.(*pathAuxiliary)} }

func (a *radiusAdaptation) begin(*State) error {
	a.radius = float64(a.of.radius)
	return nil
}

func (a *radiusAdaptation) adapt(state *State, info *Info, _ bool) error {
	a.radius += info.meanAcceptance() - aim
	a.radius = math.Min(math.Max(a.radius, 1), float64(state.Slots()))
	a.of.radius = int(math.Round(a.radius))
	return nil
}

// PathAuxiliary is the fast path auxiliary sampler, without replacement.
type PathAuxiliary struct {
	// Radius is the number of draws of slots a step; 0 for one, from which a warm-up
	// adapts it.
	Radius  int     `option:"radius" minimum:"1"`
	Balance Balance `option:"balance" default:"sqrt"`
	Terms   int     `option:"terms" minimum:"1"`
}

var _ Sampler = PathAuxiliary{}

func (s PathAuxiliary) Kernel(target Target, shared *rand.Rand) (Kernel, error) {
	return newKernel(s, target, unlessSaid(s.Radius != 0, tuneRadius), func(s PathAuxiliary) (mover, error) {
		engine, err := newInformed("pafs", target, s.Terms, shared, true)
		if err != nil {
			return nil, err
		}
		radius, err := slotsOf("radius", s.Radius, 1, len(engine.categories))
		if err != nil {
			return nil, err
		}
		binary := 0
		for _, n := range engine.categories {
			if n == 2 {
				binary++
			}
		}
		k := &pathAuxiliary{informed: engine, radius: radius, varies: binary > 1}
		engine.proposer = k
		engine.scorer = balanced{s.Balance.must()}
		return k, nil
	})
}

func (PathAuxiliary) Describe() Description {
	return Description{
		Name: "pafs", Title: "path auxiliary sampler, fast, without replacement",
		Paper: "Sun et al., Path Auxiliary Proposal for MCMC in Discrete Space, ICLR 2022",
		Exact: true, Target: onlyExp, Cost: oneForAll, OnText: &OnText{Gradient: "local"},
	}
}
