package infill

import (
	"fmt"
	"slices"

	"infill/internal/logmath"
	"infill/metrics"
	"infill/samplers"
)

// CappedRHat replaces larger values of R-hat, and +Inf, which JSON lacks.
const CappedRHat = 1000

// Bounds for judging whether chains agree.
const (
	diagnosed = 100 // the number of fills that get their own diagnostics, which take time
	fewChains = 2   // with this many chains or fewer, no standard error between chains is given
)

// series returns the value of every draw, by chain, [chains][rounds].
func (p *visited) series(value func(fill int32) float64) [][]float64 {
	draws := make([][]float64, p.chains)
	for i, fill := range p.draws {
		draws[i%p.chains] = append(draws[i%p.chains], value(fill))
	}
	return draws
}

// convergence returns split R-hat, which is near 1 if the chains agree, and the
// effective number of draws. A value is nil if it is not defined.
func convergence(draws [][]float64) (splitRHat, effective *float64) {
	splitRHat = logmath.Known(min(samplers.SplitRHat(draws), CappedRHat))
	return splitRHat, logmath.Known(samplers.EffectiveSampleSize(draws))
}

// diagnose computes split R-hat and effective draws of U. Fills of order that only
// one or two chains met get no standard error.
func (p *visited) diagnose(a *answer, order []int) {
	a.chains.SplitRHat, a.chains.EffectiveDraws = convergence(
		p.series(func(fill int32) float64 { return p.energy[fill] }))
	for i, shares := range p.byChain(order) {
		met := slices.DeleteFunc(shares, func(share float64) bool { return share == 0 }) // by these chains
		if p.chains > fewChains && len(met) <= fewChains {
			a.fills[i].share.error = nil
		}
	}
}

// believe fills in R-hat, the effective draws and the interval of each fill's share.
func (p *visited) believe(a *answer, order []int) {
	for i, at := range order {
		s := a.fills[i].share
		effective := a.chains.EffectiveDraws
		if i < diagnosed {
			// A fill that each chain met once looks well mixed, so the effective
			// draws of U bound those of the fill.
			s.rHat, effective = convergence(p.series(func(other int32) float64 {
				return float64(logmath.Indicator(int(other) == at))
			}))
			u := a.chains.EffectiveDraws
			if effective == nil || u != nil && *u < *effective {
				effective = u
			}
		}
		// Where the effective draws are not known, each chain counts as one.
		n := float64(p.chains)
		if effective != nil {
			n = min(max(*effective, 1), float64(len(p.draws)))
		}
		low, high := metrics.Wilson(s.value, n, 0.95)
		s.effective = &n
		s.interval = &[2]float64{low, high}
	}
}

// unconverged returns a warning if some split R-hat of the result is above
// samplers.LargestRHat, else nil.
func unconverged(r *Result) []string {
	what := ""
	worst := samplers.LargestRHat
	if r := r.Stats.Chains.SplitRHat; r != nil && *r > worst {
		what = "their log-likelihood"
		worst = *r
	}
	for _, f := range r.Fills {
		r := f.SplitRHat
		if r != nil && *r > worst {
			what = fmt.Sprintf("fill %d", f.Rank)
			worst = *r
		}
	}
	if what == "" {
		return nil
	}
	return []string{fmt.Sprintf("the chains have not converged: split R-hat of %s is %.2f, and at most %g where "+
		"chains agree: take more steps; until then the shares of draws may be far off", what, worst,
		samplers.LargestRHat)}
}
