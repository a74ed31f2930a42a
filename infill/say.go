package infill

import (
	"fmt"
	"math"
	"strconv"
)

// This file says for people what a result holds: the command and the screen
// print the same sentences.

// Percent writes a probability in percent for people, a small one with more
// decimals. NaN becomes "–".
func Percent(p float64) string {
	digits := 1
	switch {
	case math.IsNaN(p):
		return "–"
	case p > 0 && p < 1e-5: // too small to show: the log-likelihood is shown as well
		return "< 0.001 %"
	case p > 0 && p < 0.001:
		digits = 1 - int(math.Floor(math.Log10(100*p)))
	}
	return fmt.Sprintf("%.*f %%", digits, 100*p)
}

// PercentError writes a share and its standard error (above 0) to the error's
// first digit, at most four decimals.
func PercentError(share, standardError float64) string {
	digits := min(max(1, -int(math.Floor(math.Log10(100*standardError)))), 4)
	return fmt.Sprintf("%.*f ± %.*f %%", digits, 100*share, digits, 100*standardError)
}

// AtMost writes an upper bound of a probability in percent, rounded up to two digits.
func AtMost(p float64) string {
	unit := math.Pow(10, math.Floor(math.Log10(100*p))-1)
	return strconv.FormatFloat(math.Ceil(100*p/unit)*unit, 'g', 3, 64) + " %" // 3, for 100
}

// Counted returns a number and its noun, with an s unless n is 1, as in "2 texts".
func Counted[N int | int64](n N, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return fmt.Sprintf("%d %s", n, noun)
}

// SharePercent writes the fill's share of the draws, or "" if it has none. If withError is
// true, it adds the standard error or, if that is unknown, the interval.
func (f *Fill) SharePercent(withError bool) string {
	switch i := f.ShareInterval; {
	case f.Share == nil:
		return ""
	case withError && f.ShareError != nil && *f.ShareError > 0:
		return PercentError(*f.Share, *f.ShareError)
	case withError && f.ShareError == nil && i != nil:
		return fmt.Sprintf("%.1f (%.1f to %.1f) %%", 100**f.Share, 100*i[0], 100*i[1])
	}
	return Percent(*f.Share)
}

// Found says how the fills were found, and what that says about all others.
func (r *Result) Found() string {
	s := r.Stats
	switch c := s.Chains; {
	case c != nil:
		how := fmt.Sprintf("%s: %s of %s", c.Sampler, Counted(c.Chains, "chain"), Counted(c.Steps, "step"))
		if c.WarmUp.Steps > 0 {
			how += fmt.Sprintf(", the first %d left out", c.WarmUp.Steps)
		}
		return how
	case r.Drawn():
		draws := Counted(s.Draws, "independent draw")
		if s.DrawsWanted > 0 {
			draws = fmt.Sprintf("%d of %d independent draws, all that the budget covers,", s.Draws, s.DrawsWanted)
		}
		return fmt.Sprintf("%s from the model, %s", draws, Counted(s.DistinctFills, "different fill"))
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
	most := AtMost(*r.LeftOutAtMost)
	switch proven := r.ProvenFills(); {
	case proven == 1:
		return fmt.Sprintf("the first of %d is proven; any other fill has at most %s", len(r.Fills), most)
	case proven > 1:
		return fmt.Sprintf("the first %d of %d are proven; any other fill has at most %s", proven, len(r.Fills), most)
	}
	return fmt.Sprintf("%s found, not proven: nothing left out has more than %s", n, most)
}

// Divided says by what each probability is divided, where blanks may have several
// lengths; else "".
func (r *Result) Divided() string {
	if r.Stats.Lengths == 0 {
		return ""
	}
	return fmt.Sprintf("each probability is divided by %d, the number of lengths that the blanks may have",
		r.Stats.Lengths)
}

// ProvenFills returns how many fills of a search, from the first, are proven to be the
// likeliest: those that are at least as likely as any other fill can be.
func (r *Result) ProvenFills() (n int) {
	for _, f := range r.Fills {
		if r.LeftOutAtMost == nil || f.Probability == nil || *f.Probability < *r.LeftOutAtMost {
			break
		}
		n++
	}
	return n
}
