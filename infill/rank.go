package infill

import (
	"context"
	"fmt"
	"infill/samplers"
	"math"
	"slices"
)

// rank makes a result of what the chains visited.
func (c *chains) rank(ctx context.Context) (*Result, error) {
	if err := c.evaluate(ctx, c.target); err != nil {
		return nil, err
	}
	result, order := c.result(c.pool, c.books[1], c.wanted())
	if u := result.Stats.MeanLogLikelihood; math.IsNaN(u) || math.IsInf(u, 0) {
		return nil, fmt.Errorf("model %s gives a drawn fill the log-likelihood %v: its weights may be unusable",
			result.Model.Name, u)
	}
	if err := c.rate(ctx, result); err != nil {
		return nil, err
	}
	if c.options.Mode == ModeSample {
		c.believe(result, order)
	}
	result.Stats.ModelRows = c.target.Counts().Rows + c.rows // with what scoring took
	result.Signature = c.signature(result)
	result.Warnings = c.warnings(result)
	return result, nil
}

// mostKnown is how many fills a result on the way lists, more than anyone reads.
const mostKnown = 2000

// known is a result of what the chains have visited so far, for an observer: of the warm-up
// while that lasts. Values of blanks and the draws are in it, and nothing that the model would
// have to be asked for: where the sampler moves without knowing U, it is NaN.
func (c *chains) known() *Result {
	p, b := c.pool, c.books[1]
	if c.preview != nil {
		p = c.preview
		if c.warming {
			b = c.books[0]
		}
	}
	result, _ := c.result(p, b, mostKnown)
	result.Draws = p.series(func(fill int32) float64 { return p.energy[fill] })
	result.Marginals = c.shares(p)
	return result
}

// result lists the best fills of a pool, which stand in order, and the numbers of its steps.
func (c *chains) result(p *pool, b book, top int) (result *Result, order []int) {
	o := c.options
	result = c.newResult()
	result.Seed, result.Stats = &o.Seed, c.stats(p, b)
	order = p.finals(top)
	if o.Rank == rankDistinct || c.preview != nil {
		order = c.legible(p, top)
	}
	counts := p.counts()
	finalCounts := make([]int, len(counts))
	for _, fill := range p.final() {
		finalCounts[fill]++
	}
	frequencies := p.byChain(order)
	for i, at := range order {
		fill := c.filled(c.tokens(p.state(at)), p.energy[at])
		fill.Rank, fill.Count, fill.FinalCount = i+1, counts[at], finalCounts[at]
		if o.Mode == ModeSample {
			fill.Frequency = float64(fill.Count) / float64(len(p.draws))
			_, fill.FrequencyStandardError = samplers.MeanAndError(frequencies[i])
		}
		result.Fills = append(result.Fills, fill)
	}
	if o.Mode == ModeSample {
		p.diagnose(result, order)
		for i := range result.Fills {
			f := &result.Fills[i]
			f.Probability, f.ProbabilityError = &f.Frequency, f.FrequencyStandardError
		}
		result.Method, result.Stats.ListedProbability = o.Sampler, listedProbability(result.Fills)
	}
	result.Stats.Device = result.Model.Device
	return result, order
}

// shares are the values of each blank with their shares of the draws, the most frequent first.
func (c *chains) shares(p *pool) [][]Marginal {
	list := make([][]Marginal, len(c.template.Blanks))
	var key []byte
	for blank, b := range c.template.Blanks {
		index := map[string]int{}
		of := make([]int, len(p.energy)) // the value of each fill
		for fill := range of {
			tokens := c.tokens(p.state(fill))
			key = appendKey(key[:0], tokens[b.First:b.First+b.Slots])
			at, seen := index[string(key)]
			if !seen {
				at = len(list[blank])
				index[string(key)] = at
				list[blank] = append(list[blank],
					Marginal{Text: c.template.Fill(tokens).Fills[blank], TokenIDs: tokens[b.First : b.First+b.Slots]})
			}
			of[fill] = at
		}
		counts := make([]int, len(list[blank]))
		byChain := make([][]float64, len(list[blank]))
		for at := range byChain {
			byChain[at] = make([]float64, p.chains)
		}
		for i, fill := range p.draws {
			counts[of[fill]]++
			byChain[of[fill]][i%p.chains] += float64(p.chains) / float64(len(p.draws))
		}
		for at := range list[blank] {
			m := &list[blank][at]
			m.Probability = float64(counts[at]) / float64(len(p.draws))
			if _, e := samplers.MeanAndError(byChain[at]); e != nil {
				m.StandardError = *e
			}
		}
		list[blank] = listMarginals(list[blank], mostKnown)
	}
	return list
}

// legible ranks the best fills that read differently: "un" "##seen" and "uns"
// "##een" give one text, of which the likelier stays.
func (c *chains) legible(p *pool, top int) []int {
	var kept []int
	seen := map[string]bool{}
	for _, fill := range p.distinct() {
		if len(kept) == top {
			break
		}
		if text := c.template.Fill(c.tokens(p.state(fill))).Text; !seen[text] {
			seen[text] = true
			kept = append(kept, fill)
		}
	}
	return kept
}

func (c *chains) stats(p *pool, b book) Stats {
	o, counts := c.options, c.target.Counts()
	stats := Stats{
		Mode: o.Mode, Sampler: o.Sampler, Joint: o.Joint, Slots: len(c.variables), Chains: o.Chains, Steps: o.Steps,
		StepSize: finite(c.stepSize), WarmUp: WarmUp{Steps: o.WarmUp}, Ladder: o.Ladder, SwapRates: c.swaps,
		Draws: len(p.draws), DistinctFills: len(p.energy),
		EnergyEvaluations: counts.EnergyEvaluations, GradientEvaluations: counts.GradientEvaluations,
	}
	if o.Joint == JointChain {
		stats.Order = o.Order
	}
	switch o.Mode {
	case ModeDecode:
		stats.Sampler, stats.Steps = "mask-predict", c.rounds()
		fallthrough
	case ModeBest:
		stats.Law = noLaw
	}
	stats.AcceptanceRate, stats.AcceptanceStandardError, stats.ChangedSlotsPerStep = b.rates(o.Sampler)
	stats.WarmUp.AcceptanceRate, _, stats.WarmUp.ChangedSlotsPerStep = c.books[0].rates(o.Sampler)
	stats.MeanLogLikelihood, stats.MeanLogLikelihoodStandardError = samplers.MeanAndError(p.meanEnergies())
	return stats
}

// rates are those of a sampler's steps; no acceptance where it accepts always, and where no
// step was made.
func (b *book) rates(sampler string) (acceptance, standardError *float64, changed float64) {
	steps, chains := float64(b.steps), float64(len(b.accepted))
	if b.steps == 0 {
		return nil, nil, 0
	}
	if adjusted(sampler) {
		rates := slices.Clone(b.accepted)
		for c := range rates {
			rates[c] /= steps
		}
		rate, e := samplers.MeanAndError(rates)
		acceptance, standardError = &rate, e
	}
	return acceptance, standardError, float64(b.changed) / steps / chains
}

// finite is a step size as a result holds it: nil for none, and for +Inf, which JSON
// has no word for: adaptation may find that no penalty at all is best.
func finite(size float64) *float64 {
	if size > 0 && !math.IsInf(size, 1) {
		return &size
	}
	return nil
}
