package tui

import (
	"math"
	"time"

	"infill/infill"
	"infill/tokenize"
)

// mostLengths is how many fills of several lengths are listed.
const mostLengths = 200

// lengths follows a run over fills of several lengths, as of [MASK:1-3] or of a
// list of words of several pieces. Its chains are those of one length after the
// other, so there is no one path of a chain to show, and no share of draws; the
// fills come from the pipeline at the end, compared by their score.
type lengths struct {
	request
	last  infill.Progress
	start time.Time
	now   func() time.Time
}

// fitting tells whether fills have the lengths that the template names.
func fitting(t *tokenize.Template, pieces []int) bool {
	if len(pieces) != len(t.Blanks) {
		return false
	}
	for i, b := range t.Blanks {
		if b.Slots != pieces[i] {
			return false
		}
	}
	return true
}

// snapshot says how far the run is.
func (l *lengths) snapshot() *Snapshot {
	return &Snapshot{
		Template: &tokenize.Template{Text: l.request.template}, Options: l.options, Several: true,
		Step: l.last.Step, Steps: l.last.Steps, Chains: l.options.Chains, RHat: math.NaN(), ESS: math.NaN(), Elapsed: l.now().Sub(l.start),
	}
}

// take lists what the pipeline found, nil for a run that was stopped. The order is
// that of the scores.
func (s *Snapshot) take(result *infill.Result) {
	s.Result = result
	if result == nil {
		return
	}
	seen := map[int]map[string]bool{}
	for _, sample := range result.Fills {
		f := Fill{Fill: sample}
		f.Frequency, f.FrequencyStandardError = math.NaN(), nil
		for blank, fill := range f.Values {
			if seen[blank] == nil {
				seen[blank] = map[string]bool{}
			}
			if !seen[blank][fill] {
				seen[blank][fill] = true
				f.NewWords++
			}
		}
		s.Fills = append(s.Fills, f)
	}
	s.Distinct = len(s.Fills)
}

// rating is what fills are compared by: the score of those that have one, because
// log-likelihoods of several lengths do not compare.
func (f *Fill) rating() float64 {
	if f.Score != nil {
		return *f.Score
	}
	return f.LogLikelihood
}
