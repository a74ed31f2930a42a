package infill

import (
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
	return []string{fmt.Sprintf("%d fills were asked for and %d found: draw more (samples, steps, budget), or raise "+
		"the temperature", o.Top, found)}
}

// adjusted reports whether a sampler accepts or rejects, so that a rate of
// acceptance says something.
func adjusted(sampler string) bool { return samplers.Describe(sampler).Exact }
