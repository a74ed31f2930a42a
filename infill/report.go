package infill

import (
	"cmp"
	"fmt"
	"slices"

	"infill/samplers"
)

// newResult is a result that has no fills yet.
func (r *problem) newResult() *Result {
	result := &Result{Format: resultFormat, Template: r.typed.Text, Together: r.options.Together,
		Model: r.filler.Model()}
	for _, b := range r.typed.Blanks {
		result.Blanks = append(result.Blanks, [2]int{b.Start, b.End})
	}
	return result
}

// resultFormat is Result.Format.
const resultFormat = 3

func listedProbability(fills []Fill) *float64 {
	sum := 0.0
	for _, f := range fills {
		if f.Probability == nil {
			return nil
		}
		sum += *f.Probability
	}
	sum = min(sum, 1) // estimates may add up to a little more
	return &sum
}

// warn adds warnings that are not there yet.
func (r *Result) warn(warnings []string) {
	for _, w := range warnings {
		if !slices.Contains(r.Warnings, w) {
			r.Warnings = append(r.Warnings, w)
		}
	}
}

// rank keeps and numbers the first fills.
func (r *Result) rank(top int) {
	r.Fills = r.Fills[:min(top, len(r.Fills))]
	for i := range r.Fills {
		r.Fills[i].Rank = i + 1
	}
}

// listMarginals are the first values by probability.
func listMarginals(values []Marginal, most int) []Marginal {
	slices.SortFunc(values, func(a, b Marginal) int {
		return cmp.Or(cmp.Compare(b.Probability, a.Probability), slices.Compare(a.TokenIDs, b.TokenIDs))
	})
	return values[:min(len(values), most)]
}

// spend adds what another run looked at and took.
func (s *Stats) spend(other *Stats) {
	s.DistinctFills += other.DistinctFills
	s.EnergyEvaluations += other.EnergyEvaluations
	s.GradientEvaluations += other.GradientEvaluations
	s.ModelRows += other.ModelRows
}

// warnings are what the numbers of a result ask the user to know.
func (r *problem) warnings(result *Result) []string {
	warnings := []string{}
	s := result.Stats
	unknown := 0
	for _, id := range r.template.IDs {
		if id == r.filler.tokenizer.UnknownID() {
			unknown++
		}
	}
	if unknown > 0 {
		warnings = append(warnings, fmt.Sprintf("the template has words outside the model's vocabulary (%d), which "+
			"it reads as [UNK]", unknown))
	}
	warnings = append(warnings, r.hints...)
	if a := s.AcceptanceRate; a != nil && *a < 0.05 {
		warnings = append(warnings, fmt.Sprintf("only %.1f %% of the proposals were accepted: the chains hardly "+
			"moved; leave the step size to auto, or take a smaller one", 100**a))
	} else if result.Method == s.Sampler && s.ChangedSlotsPerStep == 0 && s.Steps > s.WarmUp.Steps &&
		s.Mode != ModeDecode {
		warnings = append(warnings,
			"no slot changed after the warm-up: the fills are those that the chains had reached by then")
	}
	warnings = append(warnings, unconverged(result)...)
	if r.places == 1 {
		warnings = append(warnings, tooFew([]*Result{result}, len(result.Fills), r.options)...)
	}
	return warnings
}

// tooFew warns of fewer fills than wanted, unless no others exist or the number of draws was asked for.
func tooFew(results []*Result, found int, o Options) []string {
	if found >= o.Top || o.draws() ||
		!slices.ContainsFunc(results,
			func(r *Result) bool { return r.Method != MethodExact && (r.Proven == nil || !*r.Proven) }) {
		return nil
	}
	advice := "draw more (samples, steps, budget), or raise the temperature"
	if o.searches() {
		advice = "give more with --budget"
	}
	return []string{fmt.Sprintf("%d fills were asked for and %d found: %s", o.Top, found, advice)}
}

// adjusted reports whether a sampler accepts or rejects, so that a rate of
// acceptance says something.
func adjusted(sampler string) bool { return samplers.Describe(sampler).Exact }
