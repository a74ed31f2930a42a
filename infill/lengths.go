package infill

import (
	"cmp"
	"context"
	"math"
	"slices"

	"infill/lm"
	"infill/tokenize"
)

// wanted is how many fills are listed; of several lengths more than are asked for, since the
// order by score is another than that by likelihood.
func (r *problem) wanted() int {
	if r.places > 1 {
		return max(4*r.options.Top, 50)
	}
	return r.options.Top
}

// rate gives the fills of a template of several lengths their scores.
func (r *problem) rate(ctx context.Context, result *Result) error {
	if r.places == 1 {
		return nil
	}
	for i := range result.Fills {
		score, err := r.score(ctx, result.Fills[i].TokenIDs)
		if err != nil {
			return err
		}
		result.Fills[i].Pieces, result.Fills[i].Score = r.pieces(), &score
	}
	return nil
}

// score rates the fills of a template of several lengths, see Fill.Score; of several texts
// it is their mean.
func (r *problem) score(ctx context.Context, tokens []int) (float64, error) {
	sum, err := r.scoreIn(ctx, r.template, tokens)
	for _, other := range r.others {
		one, err := r.scoreIn(ctx, other.template, r.otherTokens(other, tokens))
		if err != nil {
			return 0, err
		}
		sum += one
	}
	return sum / float64(1+len(r.others)), err
}

func (r *problem) scoreIn(ctx context.Context, t *tokenize.Template, tokens []int) (float64, error) {
	ids := slices.Clone(t.IDs)
	for slot, position := range t.Slots {
		ids[position] = tokens[slot]
	}
	var queries []lm.Query
	words := 0
	for _, b := range t.Blanks {
		slots := t.Slots[b.First : b.First+b.Slots]
		end := slots[len(slots)-1] + 1
		for _, position := range slots {
			masked := []int{position}
			for next := position + 1; next < end && r.options.LengthScore == blankLeftToRight ||
				r.filler.tokenizer.Continues(ids[next]); next++ {
				masked = append(masked, next)
			}
			queries = append(queries, lm.Query{Position: position, Masked: masked})
			follows := len(queries) > 1 && queries[len(queries)-2].Position == position-1
			if !follows || !r.filler.tokenizer.Continues(ids[position]) {
				words++
			}
		}
	}
	terms, err := r.model.Score(ctx, ids, queries)
	if err != nil {
		return 0, err
	}
	r.rows += int64(len(queries))
	sum := 0.0
	for _, term := range terms {
		sum += term
	}
	return sum / float64(words), nil
}

// merge makes one result of those of several lengths: the fills of highest score.
func merge(results []*Result, o Options) *Result {
	merged := *results[0]
	merged.Fills = nil
	merged.Stats = sumUp(results)
	for i, r := range results {
		if merged.Fills = append(merged.Fills, r.Fills...); i > 0 {
			merged.warn(r.Warnings)
		}
	}
	merged.Marginals = nil
	merged.Stats.LogNormaliser, merged.Stats.NormaliserError, merged.Stats.CandidatesProbability,
		merged.Stats.Candidates = nil, nil, nil, nil
	// Stable, so that of equal scores the shorter fill comes first.
	slices.SortStableFunc(merged.Fills, func(a, b Fill) int { return cmp.Compare(*b.Score, *a.Score) })
	if o.Rank == rankDistinct {
		seen := map[string]bool{}
		merged.Fills = slices.DeleteFunc(merged.Fills, func(f Fill) bool {
			again := seen[f.Text]
			seen[f.Text] = true
			return again
		})
	}
	merged.rank(o.Top)
	if o.answers() {
		merged.Stats.ListedProbability = listedProbability(merged.Fills)
	}
	merged.Warnings = append(merged.Warnings, tooFew(results, len(merged.Fills), o)...)
	return &merged
}

// worse is the worse of two numbers that may be missing.
func worse(a, b *float64, worst func(a, b float64) float64) *float64 {
	if a == nil || b == nil {
		return cmp.Or(a, b)
	}
	w := worst(*a, *b)
	return &w
}

// sumUp is the statistics of all lengths, see Stats.Lengths.
func sumUp(results []*Result) Stats {
	s := results[0].Stats
	s.StepSize, s.SwapRates, s.ParetoK = nil, nil, nil
	for i, r := range results {
		one := r.Stats
		if i > 0 {
			s.Slots, s.Steps, s.Draws = max(s.Slots, one.Slots), max(s.Steps, one.Steps), s.Draws+one.Draws
			s.spend(&one)
		}
		s.Lengths = append(s.Lengths, LengthStats{
			Pieces: r.Fills[0].Pieces, StepSize: one.StepSize, AcceptanceRate: one.AcceptanceRate,
			ChangedSlotsPerStep: one.ChangedSlotsPerStep,
			SwapRates:           one.SwapRates, Draws: one.Draws, DistinctFills: one.DistinctFills,
			MeanLogLikelihood:              one.MeanLogLikelihood,
			MeanLogLikelihoodStandardError: one.MeanLogLikelihoodStandardError,
		})
	}
	// over adds up a number of all lengths, and is nil if one has none.
	over := func(number func(s *Stats) *float64, add func(sum, x float64) float64) *float64 {
		sum := 0.0
		for _, r := range results {
			x := number(&r.Stats)
			if x == nil {
				return nil
			}
			sum = add(sum, *x/float64(len(results)))
		}
		return &sum
	}
	plus := func(a, b float64) float64 { return a + b }
	for _, r := range results[1:] {
		s.SplitRHat = worse(s.SplitRHat, r.Stats.SplitRHat, math.Max)
		s.EffectiveDraws = worse(s.EffectiveDraws, r.Stats.EffectiveDraws, math.Min)
	}
	s.AcceptanceRate = over(func(s *Stats) *float64 { return s.AcceptanceRate }, plus)
	s.ChangedSlotsPerStep = *over(func(s *Stats) *float64 { return &s.ChangedSlotsPerStep }, plus)
	s.WarmUp.AcceptanceRate = over(func(s *Stats) *float64 { return s.WarmUp.AcceptanceRate }, plus)
	s.WarmUp.ChangedSlotsPerStep = *over(func(s *Stats) *float64 { return &s.WarmUp.ChangedSlotsPerStep }, plus)
	s.MeanLogLikelihood = *over(func(s *Stats) *float64 { return &s.MeanLogLikelihood }, plus)
	// The lengths' chains are independent, so the variances of their means add up.
	s.AcceptanceStandardError = over(func(s *Stats) *float64 { return s.AcceptanceStandardError }, math.Hypot)
	s.MeanLogLikelihoodStandardError = over(func(s *Stats) *float64 { return s.MeanLogLikelihoodStandardError },
		math.Hypot)
	return s
}
