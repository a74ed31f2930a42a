// GWG is Gibbs with gradients of Grathwohl et al., "Oops I Took A Gradient"
// (ICML 2021), algorithm 1 in its categorical form. One slot moves. A pair
// (slot, category) is drawn from all pairs that change the state,
//
//	q(j, v | θ) ∝ g(exp Δ_j(v)),  v ≠ θ_j,  Δ_j(v) = ∂U/∂θ_j[v] - ∂U/∂θ_j[θ_j]
//
// with g the balancing function (in the paper the square root), and accepted by
// Metropolis–Hastings. The current category cannot be drawn; the authors' code
// only lowers its logit by 1.
//
// Target: π exactly. There is no step size. Cost: one energy and gradient a
// step. gwgx.go moves several slots a step.

package samplers

import (
	"math"
	"math/rand/v2"

	"infill/internal/logmath"
)

type gwg struct{}

var _ proposer = gwg{}

func (gwg) propose(at place, to []int, src source) float64 {
	totals := at.totals()
	total := logmath.LogSumExp(totals)
	if math.IsInf(total, -1) {
		return 0 // no other category is possible
	}
	j := at.drawSlot(totals, total, src)
	to[j] = at.draw(j, src)
	return at.logWeight(j, to[j]) - total
}

func (gwg) logReverse(at place, to []int) float64 {
	for j, v := range to {
		if v != at.position[j] {
			return at.logWeight(j, v) - logmath.LogSumExp(at.totals())
		}
	}
	return 0
}

// GWG is Gibbs with gradients: one slot a step, drawn by the gradient.
type GWG struct {
	Balance Balance `option:"balance" default:"sqrt"`
	Terms   int     `option:"terms" minimum:"1"`
}

var _ Sampler = GWG{}

func (s GWG) Kernel(target Target, shared *rand.Rand) (Kernel, error) {
	return newKernel(s, target, untuned, func(s GWG) (mover, error) {
		k, err := newInformed("gwg", target, s.Terms, shared, true)
		if err != nil {
			return nil, err
		}
		k.proposer = gwg{}
		k.scorer = balanced{s.Balance.must()}
		return k, nil
	})
}

func (GWG) Describe() Description {
	return Description{
		Name: "gwg", Title: "Gibbs with gradients",
		Paper: "Grathwohl et al., Oops I Took A Gradient, ICML 2021",
		Exact: true, Target: onlyExp, Cost: oneForAll, OnText: &OnText{Gradient: "local"},
	}
}
