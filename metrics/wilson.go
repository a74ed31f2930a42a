package metrics

import (
	"math"

	"gonum.org/v1/gonum/stat/distuv"
)

// Wilson returns the score interval (Wilson, Journal of the American
// Statistical Association 1927) of a probability. p is the frequency in n
// independent, or effective, draws. The interval covers the probability in a
// share of about confidence of all cases, even if p is near 0 or 1.
func Wilson(p, n, confidence float64) (low, high float64) {
	z := distuv.UnitNormal.Quantile((1 + confidence) / 2)
	middle := (p + z*z/(2*n)) / (1 + z*z/n)
	half := z / (1 + z*z/n) * math.Sqrt(p*(1-p)/n+z*z/(4*n*n))
	return math.Max(0, middle-half), math.Min(1, middle+half)
}
