// Package phrase writes numbers for people: percentages, bounds and counts.
package phrase

import (
	"fmt"
	"math"
	"strconv"
)

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
