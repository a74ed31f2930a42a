package samplers

import "math"

// GWGX is Gibbs with gradients with several slots a step: GWG-X of Grathwohl
// et al., "Oops I Took A Gradient" (ICML 2021), appendix D.2. X slots are
// drawn independently, so that one may be drawn twice, from the one gradient
// at θ; every slot that was drawn gets one new category:
//
//	P(j) ∝ Σ_{v≠θ_j} g(exp Δ_j(v)),  p(v | j) ∝ g(exp Δ_j(v))
//	q(draws, θ' | θ) = Π_r P(j_r) · Π_{j drawn} p(θ'_j | j)
//
// The draws are an auxiliary variable, the same for the way back, and the pair
// is accepted by Metropolis–Hastings. On binary slots this is the authors'
// sampler; the form for more categories is the natural extension, as theirs is
// not written down.
//
// Target: π exactly. No step size. Cost: one energy and gradient a step.
type GWGX struct {
	*informed
	draws int
	drawn []int  // [chains × draws]
	moved []bool // [chains × slots]
}

var (
	_ Kernel   = (*GWGX)(nil)
	_ proposer = (*GWGX)(nil)
)

// NewGWGX makes the sampler. It uses Radius (X, default 3 or the number of
// slots), Balance, Terms and TermStream of the options.
func NewGWGX(target Target, o Options) (*GWGX, error) {
	engine, err := newInformed("gwg-x", target, o, true)
	if err != nil {
		return nil, err
	}
	k := &GWGX{informed: engine}
	if k.draws, err = o.count(radiusOption, o.Radius, 3, len(engine.categories)); err != nil {
		return nil, err
	}
	engine.proposer, engine.scorer = k, balanced{o.Balance}
	return k, nil
}

// grow implements the engine's hook for scratch memory.
func (k *GWGX) grow(chains int) {
	k.drawn = make([]int, chains*k.draws)
	k.moved = make([]bool, chains*len(k.categories))
}

func (k *GWGX) propose(at place, to []int, src source) float64 {
	drawn := k.drawn[at.chain*k.draws : (at.chain+1)*k.draws]
	moved := k.moved[at.chain*len(to) : (at.chain+1)*len(to)]
	clear(moved)
	totals := at.totals()
	total := logSumExp(totals)
	if math.IsInf(total, -1) {
		return 0 // nowhere to go
	}
	logq := 0.0
	for r := range drawn {
		j := drawSlot(at, total, src)
		drawn[r], moved[j] = j, true
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

func (k *GWGX) logReverse(at place, to []int) float64 {
	drawn := k.drawn[at.chain*k.draws : (at.chain+1)*k.draws]
	moved := k.moved[at.chain*len(to) : (at.chain+1)*len(to)]
	totals := at.totals()
	total := logSumExp(totals)
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
			Exact: true, Target: onlyExp, Cost: oneForAll,
		},
		uses:   []option{radiusOption, balanceOption, termsOption},
		nature: "its radius says how many slots are drawn",
		make:   func(t Target, o Options) (Kernel, error) { return NewGWGX(t, o) },
	}
}
