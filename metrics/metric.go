package metrics

import (
	"encoding/json"
	"math"
	"slices"
)

// metric is a score that can be computed again for samples of its sentences, as
// intervals and tests need it. sum computes sums over a sample, and score
// computes the score from the sums.
type metric struct {
	sentences int // number of sentences, the length of weights
	// pooled reports whether the score compares sentences with each other. Then
	// a sample also changes the sentences with which each sentence is compared.
	// See the package comment on intervals.
	pooled bool
	// sum returns the sums over the sample in which sentence i occurs
	// weights[i] ≥ 0 times; nil if there is no score.
	sum   func(weights []int) []float64
	score func(sums []float64) float64
}

// evaluate returns the score of a sample, or NaN if the score is not defined.
func (m metric) evaluate(weights []int) float64 {
	sums := m.sum(weights)
	if sums != nil {
		return m.score(sums)
	}
	return math.NaN()
}

// ones returns the weights of a sample with each of n sentences, or units, once.
func ones(n int) []int { return slices.Repeat([]int{1}, n) }

func (m metric) value() float64 { return m.evaluate(ones(m.sentences)) }

// additive returns a metric whose sums are the weighted sums of rows,
// [sentences × width], row-major.
func additive(rows []float64, width int, score func(sums []float64) float64) metric {
	return metric{sentences: len(rows) / width, score: score, sum: func(weights []int) []float64 {
		var sums []float64
		for i, w := range weights {
			if w == 0 {
				continue
			}
			if sums == nil {
				sums = make([]float64, width)
			}
			for k, v := range rows[i*width : (i+1)*width] {
				sums[k] += float64(w) * v
			}
		}
		return sums
	}}
}

// mean returns the metric of the mean of values, one value for each sentence.
func mean(values []float64) metric {
	var rows []float64
	for _, v := range values {
		rows = append(rows, v, 1)
	}
	return additive(rows, 2, quotient)
}

// quotient returns sums[0] / sums[1], which is NaN if both are 0.
func quotient(sums []float64) float64 { return sums[0] / sums[1] }

func percentage(sums []float64) float64 { return 100 * sums[0] / sums[1] }

// Value is a number that may be undefined: NaN in Go, null in JSON.
type Value float64

var undefined = Value(math.NaN())

// Defined reports whether the value is a finite number.
func (v Value) Defined() bool { return !math.IsNaN(float64(v)) && !math.IsInf(float64(v), 0) }

// MarshalJSON writes null for NaN and infinite values.
func (v Value) MarshalJSON() ([]byte, error) {
	if !v.Defined() {
		return []byte("null"), nil
	}
	return json.Marshal(float64(v))
}

// UnmarshalJSON reads null as NaN.
func (v *Value) UnmarshalJSON(text []byte) error {
	if string(text) == "null" {
		*v = undefined
		return nil
	}
	return json.Unmarshal(text, (*float64)(v))
}
