package infill

import (
	"fmt"
	"math"

	"infill/metrics"
	"infill/samplers"
)

// Bounds for judging whether chains agree.
const (
	convergedRHat = 1.3  // above it a result carries a warning
	largestRHat   = 1000 // stands for more, and for chains that do not move at all: JSON has no infinity
	diagnosed     = 100  // fills with diagnostics of their own, which take time
	fewChains     = 2    // too few chains for a standard error between chains
)

// series are the draws of each chain, [chains][rounds], as numbers.
func (p *pool) series(value func(fill int32) float64) [][]float64 {
	draws := make([][]float64, p.chains)
	for i, fill := range p.draws {
		draws[i%p.chains] = append(draws[i%p.chains], value(fill))
	}
	return draws
}

// convergence returns split R-hat, by which chains agree on a number, and the effective number of its draws; nil where
// one is not defined.
func convergence(draws [][]float64) (splitRHat, effective *float64) {
	if r := samplers.SplitRHat(draws); !math.IsNaN(r) {
		r = min(r, largestRHat)
		splitRHat = &r
	}
	if n := samplers.EffectiveSampleSize(draws); !math.IsNaN(n) {
		effective = &n
	}
	return splitRHat, effective
}

// diagnose reports whether the chains agree. It removes the standard error of every fill that only one or two chains
// met. order lists the fills of the answer.
func (p *pool) diagnose(a *answer, order []int) {
	a.chains.SplitRHat, a.chains.EffectiveDraws = convergence(
		p.series(func(fill int32) float64 { return p.energy[fill] }))
	met := make([]int, len(p.energy)) // chains that met a fill
	last := make([]int, len(p.energy))
	for chain := range p.chains {
		for i := chain; i < len(p.draws); i += p.chains {
			if fill := p.draws[i]; last[fill] != chain+1 {
				last[fill] = chain + 1
				met[fill]++
			}
		}
	}
	for i, at := range order {
		if p.chains > fewChains && met[at] <= fewChains {
			a.fills[i].share.error = nil
		}
	}
}

// believe fills in R-hat, the effective draws and the interval of each fill's share.
func (p *pool) believe(a *answer, order []int) {
	for i, at := range order {
		s, effective := a.fills[i].share, a.chains.EffectiveDraws
		if i < diagnosed {
			// The chains that met a fill once look like chains that mix well. So the effective draws of U bound those
			// of the fill.
			s.rHat, effective = convergence(p.series(func(other int32) float64 {
				if int(other) == at {
					return 1
				}
				return 0
			}))
			if u := a.chains.EffectiveDraws; effective == nil || u != nil && *u < *effective {
				effective = u
			}
		}
		// Where the effective number of draws is not known, each chain counts as one draw.
		n := float64(p.chains)
		if effective != nil {
			n = min(max(*effective, 1), float64(len(p.draws)))
		}
		low, high := metrics.Wilson(s.value, n, 0.95)
		s.effective, s.interval = &n, &[2]float64{low, high}
	}
}

// unconverged returns a warning if the chains do not agree.
func unconverged(r *Result) []string {
	what, worst := "", convergedRHat
	if r := r.Stats.Chains.SplitRHat; r != nil && *r > worst {
		what, worst = "their log-likelihood", *r
	}
	for _, f := range r.Fills {
		if r := f.SplitRHat; r != nil && *r > worst {
			what, worst = fmt.Sprintf("fill %d", f.Rank), *r
		}
	}
	if what == "" {
		return nil
	}
	return []string{fmt.Sprintf("the chains have not converged: split R-hat of %s is %.2f, and near 1 where chains "+
		"agree: take more steps; until then the shares of draws may be far off", what, worst)}
}
