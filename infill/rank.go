package infill

import (
	"context"
	"fmt"
	"math"
	"slices"
)

// rank makes a result of what the chains visited. Of several lengths it rates more
// fills than are asked for, since the order by score is another than that by
// likelihood.
func (r *run) rank(ctx context.Context, s *sampled) (*Result, error) {
	if err := s.evaluate(ctx, r.target); err != nil {
		return nil, err
	}
	o := r.options
	result := r.newResult()
	result.Seed, result.Stats = &o.Seed, r.stats(s)
	if u := result.Stats.MeanLogLikelihood; math.IsNaN(u) || math.IsInf(u, 0) {
		return nil, fmt.Errorf("model %s gives a drawn fill the log-likelihood %v: its weights may be unusable", result.Model.Name, u)
	}
	top := o.Top
	if r.places > 1 {
		top = max(4*top, 50)
	}
	order := s.finals(top)
	if o.Rank == RankDistinct {
		order = r.legible(s, top)
	}
	counts := s.counts()
	finalCounts := make([]int, len(counts))
	for _, fill := range s.final() {
		finalCounts[fill]++
	}
	frequencies := s.byChain(order)
	for i, at := range order {
		ids := r.tokens(s.state(at))
		filled := r.template.Fill(ids)
		fill := Fill{
			Rank: i + 1, Text: filled.Text, Together: r.togetherTexts(ids), Values: filled.Fills, Spans: filled.Spans, TokenIDs: ids,
			LogLikelihood: s.energy[at], Count: counts[at], FinalCount: finalCounts[at],
		}
		if o.Mode == ModeSample {
			fill.Frequency = float64(fill.Count) / float64(len(s.draws))
			_, fill.FrequencyStandardError = meanAndError(frequencies[i])
		}
		if r.places > 1 {
			score, err := r.score(ctx, ids)
			if err != nil {
				return nil, err
			}
			fill.Pieces, fill.Score = r.pieces(), &score
		}
		result.Fills = append(result.Fills, fill)
	}
	if o.Mode == ModeSample {
		s.diagnose(result, order)
		for i := range result.Fills {
			f := &result.Fills[i]
			f.Probability, f.ProbabilityError = &f.Frequency, f.FrequencyStandardError
		}
		result.Method, result.Stats.ListedProbability = o.Sampler, listedProbability(result.Fills)
	}
	result.Stats.Device = result.Model.Device
	result.Stats.ModelRows = r.target.Counts().Rows + r.rows // with what scoring took
	result.Signature = r.signature(result.Model)
	result.Warnings = r.warnings(result)
	return result, nil
}

// legible ranks the best fills that read differently: "un" "##seen" and "uns"
// "##een" give one text, of which the likelier stays.
func (r *run) legible(s *sampled, top int) []int {
	var kept []int
	seen := map[string]bool{}
	for _, fill := range s.distinct() {
		if len(kept) == top {
			break
		}
		if text := r.template.Fill(r.tokens(s.state(fill))).Text; !seen[text] {
			seen[text] = true
			kept = append(kept, fill)
		}
	}
	return kept
}

func (r *run) stats(s *sampled) Stats {
	o, counts := r.options, r.target.Counts()
	stats := Stats{
		Mode: o.Mode, Sampler: o.Sampler, Joint: o.Joint, Slots: len(r.variables), Chains: o.Chains, Steps: o.Steps,
		StepSize: finite(s.stepSize), WarmUp: WarmUp{Steps: o.WarmUp}, Ladder: o.Ladder, SwapRates: s.swaps,
		Draws: len(s.draws), DistinctFills: len(s.energy),
		EnergyEvaluations: counts.EnergyEvaluations, GradientEvaluations: counts.GradientEvaluations,
	}
	if o.Joint == JointChain {
		stats.Order = o.Order
	}
	switch o.Mode {
	case ModeDecode:
		stats.Sampler, stats.Steps = "mask-predict", r.rounds()
		fallthrough
	case ModeBest:
		stats.Law = NoLaw
	}
	chains := float64(o.Chains)
	if steps := float64(o.Steps - o.WarmUp); steps > 0 && o.Mode != ModeDecode {
		if adjusted(o.Sampler) {
			rates := slices.Clone(s.accepted)
			for c := range rates {
				rates[c] /= steps
			}
			rate, standardError := meanAndError(rates)
			stats.AcceptanceRate, stats.AcceptanceStandardError = &rate, standardError
		}
		stats.ChangedSlotsPerStep = float64(s.changed) / steps / chains
	}
	if steps := float64(o.WarmUp); steps > 0 {
		if adjusted(o.Sampler) {
			rate := float64(s.warmAccepted) / steps / chains
			stats.WarmUp.AcceptanceRate = &rate
		}
		stats.WarmUp.ChangedSlotsPerStep = float64(s.warmChanged) / steps / chains
	}
	stats.MeanLogLikelihood, stats.MeanLogLikelihoodStandardError = meanAndError(s.meanEnergies())
	return stats
}

// finite is a step size as a result holds it: nil for none, and for +Inf, which JSON
// has no word for: adaptation may find that no penalty at all is best.
func finite(size float64) *float64 {
	if size > 0 && !math.IsInf(size, 1) {
		return &size
	}
	return nil
}
