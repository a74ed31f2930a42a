package infill

import (
	"fmt"
	"math"

	"infill/metrics"
	"infill/samplers"
)

// The bounds of what chains are believed.
const (
	convergedRHat = 1.3  // above it a result carries a warning
	largestRHat   = 1000 // stands for more, and for chains that do not move at all: JSON has no infinity
	diagnosed     = 100  // fills that are looked at each by itself, which takes time
	fewChains     = 2    // so many chains tell no standard error between chains
)

// series are the draws of each chain, [chains][rounds], as numbers.
func (p *pool) series(value func(fill int32) float64) [][]float64 {
	draws := make([][]float64, p.chains)
	for i, fill := range p.draws {
		draws[i%p.chains] = append(draws[i%p.chains], value(fill))
	}
	return draws
}

// convergence reports whether chains agree on a number, and what its draws are worth;
// nil if that is not defined.
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

// diagnose reports whether the chains agree, and takes the errors of fills that one or two
// chains alone have met.
func (p *pool) diagnose(result *Result, order []int) {
	stats := &result.Stats
	stats.SplitRHat, stats.EffectiveDraws = convergence(p.series(func(fill int32) float64 { return p.energy[fill] }))
	if p.chains <= fewChains {
		return
	}
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
		if met[at] <= fewChains {
			result.Fills[i].FrequencyStandardError = nil
		}
	}
}

// believe fills in how far the shares of draws are to be believed.
func (p *pool) believe(result *Result, order []int) {
	for i, at := range order {
		fill, effective := &result.Fills[i], result.Stats.EffectiveDraws
		if i < diagnosed {
			// The chains that met a fill once look like chains that mix well: what the draws
			// are worth for U bounds what they are worth for the fill.
			fill.SplitRHat, effective = convergence(p.series(func(other int32) float64 {
				if int(other) == at {
					return 1
				}
				return 0
			}))
			effective = worse(effective, result.Stats.EffectiveDraws, math.Min)
		}
		// Where it is not known what the draws are worth, the chains are independent.
		n := float64(p.chains)
		if effective != nil {
			n = min(max(*effective, 1), float64(len(p.draws)))
		}
		low, high := metrics.Wilson(fill.Frequency, n, 0.95)
		fill.EffectiveDraws, fill.FrequencyInterval = &n, &[2]float64{low, high}
	}
}

// unconverged is the warning of chains that do not agree.
func unconverged(result *Result) []string {
	what, worst := "", convergedRHat
	if r := result.Stats.SplitRHat; r != nil && *r > worst {
		what, worst = "their log-likelihood", *r
	}
	for _, f := range result.Fills {
		if r := f.SplitRHat; r != nil && *r > worst {
			what, worst = fmt.Sprintf("fill %d", f.Rank), *r
		}
	}
	if what == "" {
		return nil
	}
	return []string{fmt.Sprintf("the chains have not converged: split R-hat of %s is %.2f, and near 1 where chains "+
		"agree: take more steps, or a ladder of temperatures; until then the shares of draws may be far off", what,
		worst)}
}
