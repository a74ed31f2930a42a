package ask

import (
	"fmt"

	"infill/infill"
	"infill/internal/phrase"
)

// This file says for people what a result holds: every door prints the same sentences.

// SharePercent writes a fill's share of the draws, or "" if it has none. If withError is
// true, it adds the standard error or, if that is unknown, the interval.
func SharePercent(f *infill.Fill, withError bool) string {
	switch i := f.ShareInterval; {
	case f.Share == nil:
		return ""
	case withError && f.ShareError != nil && *f.ShareError > 0:
		return phrase.PercentError(*f.Share, *f.ShareError)
	case withError && f.ShareError == nil && i != nil:
		return fmt.Sprintf("%.1f (%.1f to %.1f) %%", 100**f.Share, 100*i[0], 100*i[1])
	}
	return phrase.Percent(*f.Share)
}

// Found says how the fills were found, and what that says about all others.
func Found(r *infill.Result) string {
	s := r.Stats
	switch c := s.Chains; {
	case c != nil:
		how := fmt.Sprintf("%s: %s of %s", c.Sampler, phrase.Counted(c.Chains, "chain"),
			phrase.Counted(c.Steps, "step"))
		if c.WarmUp.Steps > 0 {
			how += fmt.Sprintf(", the first %d left out", c.WarmUp.Steps)
		}
		return how
	case r.Drawn():
		draws := phrase.Counted(s.Draws, "independent draw")
		if s.DrawsWanted > 0 {
			draws = fmt.Sprintf("%d of %d independent draws, all that the budget covers,", s.Draws, s.DrawsWanted)
		}
		return fmt.Sprintf("%s from the model, %s", draws, phrase.Counted(s.DistinctFills, "different fill"))
	}
	n := "the likeliest"
	if len(r.Fills) > 1 {
		n = fmt.Sprintf("the %d likeliest", len(r.Fills))
	}
	switch {
	case r.Proven == nil || r.LeftOutAtMost == nil: // of a method that is yet to answer
		return r.Method
	case *r.Proven && *r.LeftOutAtMost == 0:
		return "all that the blanks may take"
	case *r.Proven:
		return n + ", proven: nothing that the blanks may take is more probable"
	}
	most := phrase.AtMost(*r.LeftOutAtMost)
	switch proven := r.ProvenFills(); {
	case proven == 1:
		return fmt.Sprintf("the first of %d is proven; any other fill has at most %s", len(r.Fills), most)
	case proven > 1:
		return fmt.Sprintf("the first %d of %d are proven; any other fill has at most %s", proven, len(r.Fills), most)
	}
	return fmt.Sprintf("%s found, not proven: nothing left out has more than %s", n, most)
}

// Divided says by what probabilities of several lengths are divided; else "".
func Divided(r *infill.Result) string {
	if r.Stats.Lengths == 0 {
		return ""
	}
	return fmt.Sprintf("each probability is divided by %d, the number of lengths that the blanks may have",
		r.Stats.Lengths)
}

// Doing says what a run does and how far it is.
func Doing(p infill.Progress) string {
	switch {
	case p.Method == infill.MethodSearch:
		return fmt.Sprintf("searching, %d %% of the budget", p.Step)
	case p.Method == infill.MethodDraws:
		return fmt.Sprintf("drawing, %d of %d", p.Step, p.Steps)
	case p.WarmUp:
		return fmt.Sprintf("warm-up, step %d of %d", p.Step, p.Steps)
	}
	return fmt.Sprintf("sampling, step %d of %d", p.Step, p.Steps)
}
