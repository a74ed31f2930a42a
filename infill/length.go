package infill

import (
	"cmp"
	"context"
	"math"
	"slices"

	"infill/lm"
)

// score rates the fills of a template, see Fill.Score.
func (r *run) score(ctx context.Context, tokens []int) (float64, error) {
	ids := slices.Clone(r.template.IDs)
	for slot, position := range r.template.Slots {
		ids[position] = tokens[slot]
	}
	var queries []lm.Query
	words := 0
	for i, position := range r.template.Slots {
		masked := []int{position}
		for next := position + 1; next < r.blankEnd(i) && r.options.LengthScore == BlankLeftToRight || r.filler.tokenizer.Continues(ids[next]); next++ {
			masked = append(masked, next)
		}
		queries = append(queries, lm.Query{Position: position, Masked: masked})
		follows := i > 0 && r.template.Slots[i-1] == position-1
		if !follows || !r.filler.tokenizer.Continues(ids[position]) {
			words++
		}
	}
	terms, err := r.model.Score(ctx, ids, queries)
	if err != nil {
		return 0, err
	}
	r.extraRows += int64(len(queries))
	sum := 0.0
	for _, term := range terms {
		sum += term
	}
	return sum / float64(words), nil
}

// blankEnd is the position behind the blank of a slot.
func (r *run) blankEnd(slot int) int {
	for _, b := range r.template.Blanks {
		if slot < b.First+b.Slots {
			return r.template.Slots[b.First+b.Slots-1] + 1
		}
	}
	return 0
}

// merge makes one result of those of several lengths: the fills of highest score.
func merge(plans []*plan, results []*Result, o Options) *Result {
	merged := *results[0]
	merged.Fills = nil
	merged.Stats = sumUp(plans, results)
	for i, r := range results {
		merged.Fills = append(merged.Fills, r.Fills...)
		for _, w := range r.Warnings {
			if i > 0 && !slices.Contains(merged.Warnings, w) {
				merged.Warnings = append(merged.Warnings, w)
			}
		}
	}
	// Stable, so that of equal scores the shorter fill comes first.
	slices.SortStableFunc(merged.Fills, func(a, b Fill) int { return cmp.Compare(*b.Score, *a.Score) })
	if o.Rank == RankDistinct {
		seen := map[string]bool{}
		merged.Fills = slices.DeleteFunc(merged.Fills, func(s Fill) bool {
			again := seen[s.Text]
			seen[s.Text] = true
			return again
		})
	}
	merged.Fills = merged.Fills[:min(o.Top, len(merged.Fills))]
	for i := range merged.Fills {
		merged.Fills[i].Rank = i + 1
	}
	if w := tooFew(len(merged.Fills), o.Top); w != "" {
		merged.Warnings = append(merged.Warnings, w)
	}
	return &merged
}

// sumUp is the statistics of all lengths, see Stats.Lengths.
func sumUp(plans []*plan, results []*Result) Stats {
	s := results[0].Stats
	s.StepSize, s.SwapRates = nil, nil
	s.Slots, s.Steps, s.Draws, s.DistinctFills, s.EnergyEvaluations, s.GradientEvaluations, s.ModelRows = 0, 0, 0, 0, 0, 0, 0
	for i, r := range results {
		one := r.Stats
		s.Slots, s.Steps = max(s.Slots, one.Slots), max(s.Steps, one.Steps)
		s.Draws += one.Draws
		s.DistinctFills += one.DistinctFills
		s.EnergyEvaluations += one.EnergyEvaluations
		s.GradientEvaluations += one.GradientEvaluations
		s.ModelRows += one.ModelRows
		s.Lengths = append(s.Lengths, LengthStats{
			Pieces: plans[i].pieces(), StepSize: one.StepSize, AcceptanceRate: one.AcceptanceRate, ChangedSlotsPerStep: one.ChangedSlotsPerStep,
			SwapRates: one.SwapRates, Draws: one.Draws, DistinctFills: one.DistinctFills,
			MeanLogLikelihood: one.MeanLogLikelihood, MeanLogLikelihoodStandardError: one.MeanLogLikelihoodStandardError,
		})
	}
	over := func(number func(s *Stats) *float64) *float64 {
		sum := 0.0
		for _, r := range results {
			x := number(&r.Stats)
			if x == nil {
				return nil
			}
			sum += *x / float64(len(results))
		}
		return &sum
	}
	// The lengths' chains are independent, so the variances of their means add up.
	deviation := func(number func(s *Stats) *float64) *float64 {
		sum := 0.0
		for _, r := range results {
			x := number(&r.Stats)
			if x == nil {
				return nil
			}
			sum = math.Hypot(sum, *x/float64(len(results)))
		}
		return &sum
	}
	s.AcceptanceRate = over(func(s *Stats) *float64 { return s.AcceptanceRate })
	s.AcceptanceStandardError = deviation(func(s *Stats) *float64 { return s.AcceptanceStandardError })
	s.ChangedSlotsPerStep = *over(func(s *Stats) *float64 { return &s.ChangedSlotsPerStep })
	s.WarmUp.AcceptanceRate = over(func(s *Stats) *float64 { return s.WarmUp.AcceptanceRate })
	s.WarmUp.ChangedSlotsPerStep = *over(func(s *Stats) *float64 { return &s.WarmUp.ChangedSlotsPerStep })
	s.MeanLogLikelihood = *over(func(s *Stats) *float64 { return &s.MeanLogLikelihood })
	s.MeanLogLikelihoodStandardError = deviation(func(s *Stats) *float64 { return s.MeanLogLikelihoodStandardError })
	return s
}
