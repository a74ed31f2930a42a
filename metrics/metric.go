package metrics

import (
	"encoding/json"
	"math"
	"slices"
	"strings"
)

// metric is a score that can be computed again on samples of its sentences, which is all that intervals and tests need.
type metric struct {
	sentences int // the length of the weights of a sample
	// pooled: sentences are compared with each other, so that a sample is not only a weighting of the sentences but
	// changes what each is compared with. See the package comment on intervals.
	pooled bool
	// evaluator returns a function that scores the sample in which sentence i occurs weights[i] ≥ 0 times; NaN where
	// the score is not defined. The function owns scratch memory: one goroutine at a time, more goroutines ask for one
	// each.
	evaluator func() func(weights []int) float64
}

// value is the score of all sentences, NaN if it is not defined.
func (m metric) value() Value { return Value(m.evaluator()(ones(m.sentences))) }

// ratio is a metric whose statistics add up: a sum over sentences over another sum, times a scale. A mean has ones
// below.
func ratio(above, below []float64, scale float64) metric {
	return metric{sentences: len(above), evaluator: func() func(weights []int) float64 {
		return func(weights []int) float64 {
			a, b := 0.0, 0.0
			for i, w := range weights {
				a += float64(w) * above[i]
				b += float64(w) * below[i]
			}
			return quotient(scale*a, b)
		}
	}}
}

// quotient is NaN if the whole is 0.
func quotient(part, whole float64) float64 {
	if whole == 0 {
		return math.NaN()
	}
	return part / whole
}

// Value is a number that may be undefined: NaN in Go, null in JSON.
type Value float64

var undefined = Value(math.NaN())

// Defined reports whether there is a number.
func (v Value) Defined() bool { return !math.IsNaN(float64(v)) && !math.IsInf(float64(v), 0) }

// MarshalJSON writes null for what JSON has no number for.
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

func ones(n int) []int { return slices.Repeat([]int{1}, n) }

// joined is a key of a tokenised sentence; tokens hold no white space, so a blank between them is enough.
func joined(tokens []string) string { return strings.Join(tokens, " ") }
