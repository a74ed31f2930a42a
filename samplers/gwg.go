package samplers

import "math"

// GWG is Gibbs with gradients of Grathwohl et al., "Oops I Took A Gradient"
// (ICML 2021), algorithm 1 in its categorical form. One slot moves: a pair
// (slot, category) is drawn from all pairs that are a change,
//
//	q(j, v | θ) ∝ g(exp Δ_j(v)),  v ≠ θ_j,  Δ_j(v) = ∂U/∂θ_j[v] - ∂U/∂θ_j[θ_j]
//
// with g the balancing function (the paper's: square root), and accepted by
// Metropolis–Hastings. The current category is left out, where the authors'
// code only lowers its logit by 1.
//
// Target: π exactly. No step size. Cost: one energy and gradient a step. Not
// here: several slots a step.
type GWG struct{ *informed }

var (
	_ Kernel     = (*GWG)(nil)
	_ transition = (*GWG)(nil)
	_ proposer   = (*GWG)(nil)
)

// NewGWG makes the sampler. It uses Balance, Terms and TermStream of the
// options.
func NewGWG(target Target, o Options) (*GWG, error) {
	engine, err := newInformed("gwg", target, o, true)
	if err != nil {
		return nil, err
	}
	k := &GWG{engine}
	engine.proposer, engine.scorer = k, balanced{o.Balance}
	return k, nil
}

func (k *GWG) propose(at place, to []int, src source) float64 {
	totals := at.totals()
	total := logSumExp(totals)
	if math.IsInf(total, -1) {
		return 0 // nowhere to go
	}
	j := drawSlot(at, total, src)
	to[j] = at.draw(j, src)
	return at.logWeight(j, to[j]) - total
}

func (k *GWG) logReverse(at place, to []int) float64 {
	for j, v := range to {
		if v != at.position[j] {
			return at.logWeight(j, v) - logSumExp(at.totals())
		}
	}
	return 0
}

// drawSlot draws a slot with probability proportional to its total weight.
func drawSlot(at place, total float64, src source) int {
	totals := at.totals()
	weight := at.weights.scratch(at.chain, len(totals))
	for j, l := range totals {
		weight[j] = math.Exp(l - total)
	}
	return src.categorical(weight)
}

func gwgEntry() entry {
	return entry{
		Description: Description{
			Name: "gwg", Title: "Gibbs with gradients",
			Paper: "Grathwohl et al., Oops I Took A Gradient, ICML 2021",
			Exact: true, Target: onlyExp, Cost: oneForAll,
		},
		uses:   []option{balanceOption, termsOption},
		nature: "it moves exactly one slot a step",
		make:   func(t Target, o Options) (Kernel, error) { return NewGWG(t, o) },
	}
}
