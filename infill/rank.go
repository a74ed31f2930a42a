package infill

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"infill/lm"
	"infill/samplers"
	"infill/tokenize"
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

// adjusted tells whether a sampler accepts or rejects, so that a rate of
// acceptance says something.
func adjusted(sampler string) bool { return samplers.Describe(sampler).Exact }

// warnings are what the numbers of a result ask the user to know.
func (r *run) warnings(result *Result) []string {
	warnings := []string{}
	s := result.Stats
	unknown := 0
	for _, id := range r.template.IDs {
		if id == r.filler.tokenizer.UnknownID() {
			unknown++
		}
	}
	if unknown > 0 {
		warnings = append(warnings, fmt.Sprintf("the template has words outside the model's vocabulary (%d), which it reads as [UNK]", unknown))
	}
	warnings = append(warnings, r.hints...)
	if a := s.AcceptanceRate; a != nil && *a < 0.05 {
		warnings = append(warnings, fmt.Sprintf("only %.1f %% of the proposals were accepted: the chains hardly moved; leave the step size to auto, or take a smaller one", 100**a))
	} else if result.Method == s.Sampler && s.ChangedSlotsPerStep == 0 && s.Steps > s.WarmUp.Steps && s.Mode != ModeDecode {
		warnings = append(warnings, "no slot changed after the warm-up: the fills are those that the chains had reached by then")
	}
	warnings = append(warnings, unconverged(result)...)
	if r.places == 1 {
		warnings = append(warnings, tooFew([]*Result{result}, len(result.Fills), r.options.Top)...)
	}
	return warnings
}

// tooFew warns of fewer fills than wanted, unless no others exist.
func tooFew(results []*Result, found, wanted int) []string {
	if found >= wanted || !slices.ContainsFunc(results, func(r *Result) bool { return r.Method != MethodExact && (r.Proven == nil || !*r.Proven) }) {
		return nil
	}
	return []string{fmt.Sprintf("%d fills were asked for and %d found: draw more (samples, steps, budget), or raise the temperature", wanted, found)}
}

// score rates the fills of a template of several lengths, see Fill.Score; of several texts
// it is their mean.
func (r *run) score(ctx context.Context, tokens []int) (float64, error) {
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

func (r *run) scoreIn(ctx context.Context, t *tokenize.Template, tokens []int) (float64, error) {
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
			for next := position + 1; next < end && r.options.LengthScore == BlankLeftToRight || r.filler.tokenizer.Continues(ids[next]); next++ {
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
		merged.Fills = append(merged.Fills, r.Fills...)
		for _, w := range r.Warnings {
			if i > 0 && !slices.Contains(merged.Warnings, w) {
				merged.Warnings = append(merged.Warnings, w)
			}
		}
	}
	merged.Marginals = nil
	merged.Stats.LogNormaliser, merged.Stats.NormaliserError, merged.Stats.CandidatesProbability, merged.Stats.Candidates = nil, nil, nil, nil
	// Stable, so that of equal scores the shorter fill comes first.
	slices.SortStableFunc(merged.Fills, func(a, b Fill) int { return cmp.Compare(*b.Score, *a.Score) })
	if o.Rank == RankDistinct {
		seen := map[string]bool{}
		merged.Fills = slices.DeleteFunc(merged.Fills, func(f Fill) bool {
			again := seen[f.Text]
			seen[f.Text] = true
			return again
		})
	}
	merged.Fills = merged.Fills[:min(o.Top, len(merged.Fills))]
	for i := range merged.Fills {
		merged.Fills[i].Rank = i + 1
	}
	if o.answers() {
		merged.Stats.ListedProbability = listedProbability(merged.Fills)
	}
	merged.Warnings = append(merged.Warnings, tooFew(results, len(merged.Fills), o.Top)...)
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
	s.Slots, s.Steps, s.Draws, s.DistinctFills, s.EnergyEvaluations, s.GradientEvaluations, s.ModelRows = 0, 0, 0, 0, 0, 0, 0
	for _, r := range results {
		one := r.Stats
		s.Slots, s.Steps = max(s.Slots, one.Slots), max(s.Steps, one.Steps)
		s.Draws += one.Draws
		s.DistinctFills += one.DistinctFills
		s.EnergyEvaluations += one.EnergyEvaluations
		s.GradientEvaluations += one.GradientEvaluations
		s.ModelRows += one.ModelRows
		s.Lengths = append(s.Lengths, LengthStats{
			Pieces: r.Fills[0].Pieces, StepSize: one.StepSize, AcceptanceRate: one.AcceptanceRate, ChangedSlotsPerStep: one.ChangedSlotsPerStep,
			SwapRates: one.SwapRates, Draws: one.Draws, DistinctFills: one.DistinctFills,
			MeanLogLikelihood: one.MeanLogLikelihood, MeanLogLikelihoodStandardError: one.MeanLogLikelihoodStandardError,
		})
	}
	// over adds up a number of all lengths, and is nil where one has none.
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
	s.MeanLogLikelihoodStandardError = over(func(s *Stats) *float64 { return s.MeanLogLikelihoodStandardError }, math.Hypot)
	return s
}
