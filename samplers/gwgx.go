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
	"flag"
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

// radiusSettings are the settings of samplers that move several slots a step,
// up to the number radius.
type radiusSettings struct {
	radius slotCount
	gwgSettings
	make func(engine *informed, radius int) proposer
}

func (s *radiusSettings) register(f *flag.FlagSet) {
	f.Var(&s.radius, "radius", "draws of slots a step")
	s.gwgSettings.register(f)
}

func (s *radiusSettings) mover(name string, target Target, shared *rand.Rand) (mover, error) {
	k, err := newInformed(name, target, s.terms, shared, true)
	if err != nil {
		return nil, err
	}
	radius, err := s.radius.of("radius", len(k.categories))
	if err != nil {
		return nil, err
	}
	k.proposer = s.make(k, radius)
	k.scorer = balanced{s.balance}
	return k.proposer.(mover), nil
}

// grow makes scratch memory for a number of chains. The engine informed calls it.
func (k *gwgX) grow(chains int) {
	k.drawn = make([]int, chains*k.draws)
	k.moved = make([]bool, chains*len(k.categories))
}

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

func gwgXEntry() entry {
	return entry{
		Description: Description{
			Name: "gwg-x", Title: "Gibbs with gradients, several slots a step",
			Paper: "Grathwohl et al., Oops I Took A Gradient, ICML 2021, appendix D.2",
			Exact: true, Target: onlyExp, Cost: oneForAll, OnText: &OnText{Gradient: "local"},
		},
		settings: func() settings {
			return &radiusSettings{radius: slotCount{byDefault: 3},
				make: func(k *informed, draws int) proposer { return &gwgX{informed: k, draws: draws} }}
		},
	}
}
