package metrics

import (
	"encoding/json"
	"errors"
	"math"
	"slices"
	"strings"
)

// Metric is a score that can be computed anew on samples of its sentences, which is all that intervals and tests need.
type Metric interface {
	// Sentences is the number of sentences, the length of the weights of a sample.
	Sentences() int
	// Evaluator returns a function that scores the sample in which sentence i occurs weights[i] ≥ 0 times; NaN where the score is
	// not defined. The function owns scratch memory: one goroutine at a time, more goroutines ask for one each.
	Evaluator() func(weights []int) float64
	// Pooled tells that sentences are compared with each other, so that a sample is not only a weighting of the sentences but
	// changes what each is compared with. See the package comment on intervals.
	Pooled() bool
}

// Ratio is a metric whose statistics add up: a sum over sentences over another sum, times a scale. A mean has ones below.
type Ratio struct {
	Above, Below []float64 // per sentence
	Scale        float64   // 100 for percent
}

var _ Metric = (*Ratio)(nil)

// Sentences is the number of sentences.
func (m *Ratio) Sentences() int { return len(m.Above) }

// Pooled is false.
func (m *Ratio) Pooled() bool { return false }

// Evaluator returns a function that scores samples; NaN where the sum below is 0.
func (m *Ratio) Evaluator() func(weights []int) float64 {
	return func(weights []int) float64 {
		above, below := 0.0, 0.0
		for i, w := range weights {
			above += float64(w) * m.Above[i]
			below += float64(w) * m.Below[i]
		}
		if below == 0 {
			return math.NaN()
		}
		return m.Scale * above / below
	}
}

// Of returns the metric's score of all sentences, NaN where it is not defined.
func Of(m Metric) Value { return Value(m.Evaluator()(ones(m.Sentences()))) }

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

var errNoHypothesis = errors.New("no hypotheses: give at least one sentence")

func ones(n int) []int { return slices.Repeat([]int{1}, n) }

// joined is a key of a tokenised sentence; tokens hold no white space, so a blank between them is enough.
func joined(tokens []string) string { return strings.Join(tokens, " ") }
