// GWG-X is Gibbs with gradients with several slots a step: GWG-X of Grathwohl
// et al., "Oops I Took A Gradient" (ICML 2021), appendix D.2. From one gradient
// at θ, X slots are drawn independently, so that a slot may be drawn twice.
// Every drawn slot gets one new category:
//
//	P(j) ∝ Σ_{v≠θ_j} g(exp Δ_j(v)),  p(v | j) ∝ g(exp Δ_j(v))
//	q(draws, θ' | θ) = Π_r P(j_r) · Π_{j drawn} p(θ'_j | j)
//
// The drawn slots j_r are an auxiliary variable, the same for the way back.
// Metropolis–Hastings accepts or rejects the slots and θ' together. On binary
// slots this is the authors' sampler. For more categories it is the natural
// extension; the authors do not give theirs.
//
// Target: π exactly. There is no step size. Cost: one energy and gradient a step.

package samplers

import (
	"math"
	"math/rand/v2"

	"infill/internal/logmath"
)

type gwgX struct {
	*informed
	draws int
	drawn []int  // [chains × draws]
	moved []bool // [chains × slots]
}

var (
	_ mover    = (*gwgX)(nil)
	_ proposer = (*gwgX)(nil)
)

// grow makes scratch memory for a number of chains. The engine informed calls it.
func (k *gwgX) grow(chains int) {
	k.drawn = make([]int, chains*k.draws)
	k.moved = make([]bool, chains*len(k.categories))
}

// propose draws slots by the weight of all their changes, the same slot perhaps
// twice, and then a change of each drawn slot. It returns log q of the slots
// and changes.
func (k *gwgX) propose(at place, to []int, src source) float64 {
	drawn := k.drawn[at.chain*k.draws : (at.chain+1)*k.draws]
	moved := k.moved[at.chain*len(to) : (at.chain+1)*len(to)]
	clear(moved)
	totals := at.totals()
	total := logmath.LogSumExp(totals)
	if math.IsInf(total, -1) {
		return 0 // no other category is possible
	}
	logq := 0.0
	for r := range drawn {
		j := at.drawSlot(totals, total, src)
		drawn[r] = j
		moved[j] = true
		logq += totals[j] - total
	}
	for j, m := range moved {
		if m {
			to[j] = at.draw(j, src)
			logq += at.logWeight(j, to[j]) - totals[j]
		}
	}
	return logq
}

// logReverse returns log q of the same slots at the proposal, changed back.
func (k *gwgX) logReverse(at place, to []int) float64 {
	drawn := k.drawn[at.chain*k.draws : (at.chain+1)*k.draws]
	moved := k.moved[at.chain*len(to) : (at.chain+1)*len(to)]
	totals := at.totals()
	total := logmath.LogSumExp(totals)
	logq := 0.0
	anywhere := false
	for j, m := range moved {
		if m {
			anywhere = true
			logq += at.logWeight(j, to[j]) - totals[j]
		}
	}
	if !anywhere {
		return 0
	}
	for _, j := range drawn {
		logq += totals[j] - total
	}
	return logq
}

// GWGX is Gibbs with gradients, several slots a step.
type GWGX struct {
	// Radius is the number of draws of slots a step; 0 for 3, or for all slots if
	// there are fewer.
	Radius  int     `option:"radius" minimum:"1"`
	Balance Balance `option:"balance" default:"sqrt"`
	Terms   int     `option:"terms" minimum:"1"`
}

var _ Sampler = GWGX{}

func (s GWGX) Kernel(target Target, shared *rand.Rand) (Kernel, error) {
	return newKernel(s, target, untuned, func(s GWGX) (mover, error) {
		engine, err := newInformed("gwg-x", target, s.Terms, shared, true)
		if err != nil {
			return nil, err
		}
		draws, err := slotsOf("radius", s.Radius, 3, len(engine.categories))
		if err != nil {
			return nil, err
		}
		k := &gwgX{informed: engine, draws: draws}
		engine.proposer = k
		engine.scorer = balanced{s.Balance.must()}
		return k, nil
	})
}

func (GWGX) Describe() Description {
	return Description{
		Name: "gwg-x", Title: "Gibbs with gradients, several slots a step",
		Paper: "Grathwohl et al., Oops I Took A Gradient, ICML 2021, appendix D.2",
		Exact: true, Target: onlyExp, Cost: oneForAll, OnText: &OnText{Gradient: "local"},
	}
}
