package samplers

import "math"

// logSumExp returns log Σ exp(x), NaN when an x is NaN, and +Inf when an x is
// +Inf.
func logSumExp(x []float64) float64 {
	largest := math.Inf(-1)
	for _, v := range x {
		if v > largest {
			largest = v
		}
	}
	if math.IsInf(largest, 0) {
		for _, v := range x {
			if math.IsNaN(v) {
				return v
			}
		}
		return largest
	}
	sum := 0.0
	for _, v := range x {
		sum += math.Exp(v - largest)
	}
	return largest + math.Log(sum)
}

// softplus returns log(1 + e^x) without overflow.
func softplus(x float64) float64 {
	if x > 0 {
		return x + math.Log1p(math.Exp(-x))
	}
	return math.Log1p(math.Exp(x))
}

// sigmoid returns 1/(1 + e^-x) without overflow.
func sigmoid(x float64) float64 {
	if x < 0 {
		e := math.Exp(x)
		return e / (1 + e)
	}
	return 1 / (1 + math.Exp(-x))
}

// finite is false for NaN and both infinities.
func finite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }
