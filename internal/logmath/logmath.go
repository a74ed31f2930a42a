// Package logmath has functions of log-odds and log-probabilities that
// samplers, targets and the laboratory share.
package logmath

import "math"

// LogSumExp returns log Σ exp(x). It is NaN if an x is NaN, and +Inf if an x is +Inf.
func LogSumExp(x []float64) float64 {
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

// Normalise turns the energies in row into log-probabilities, in place.
func Normalise(row []float64) {
	total := LogSumExp(row)
	for v := range row {
		row[v] -= total
	}
}

// Softplus returns log(1 + e^x) without overflow.
func Softplus(x float64) float64 {
	if x > 0 {
		return x + math.Log1p(math.Exp(-x))
	}
	return math.Log1p(math.Exp(x))
}

// Sigmoid returns 1/(1 + e^-x) without overflow.
func Sigmoid(x float64) float64 {
	if x < 0 {
		e := math.Exp(x)
		return e / (1 + e)
	}
	return 1 / (1 + math.Exp(-x))
}

// Finite reports whether a number is neither NaN nor infinite.
func Finite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }

// Known returns x for a number that may be missing: nil if x is NaN.
func Known(x float64) *float64 {
	if math.IsNaN(x) {
		return nil
	}
	return &x
}

// Indicator returns 1 if b is true, else 0.
func Indicator(b bool) int {
	if b {
		return 1
	}
	return 0
}
