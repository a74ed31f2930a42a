package metrics

import (
	"context"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"

	"infill/internal/logmath"
	"infill/internal/parallel"
	"infill/internal/phrase"
)

// Interval is a jackknife confidence interval: see the package documentation.
// Low and High are undefined if the score is undefined, if fewer than nine of
// ten samples have a score, or if all samples have the same score.
type Interval struct {
	Low        Value   `json:"low"`
	High       Value   `json:"high"`
	Confidence float64 `json:"confidence"`
	// StandardError is the jackknife's. Low and High are a number of such
	// errors, by Student's t, from the score.
	StandardError Value  `json:"standard_error"`
	Samples       int    `json:"samples"` // number of samples that the jackknife took
	Units         int    `json:"units"`   // number of units, which are left out in turn
	Unit          string `json:"unit"`    // "sentence" or "prompt"
}

// units are what samples leave out: sentences or, because sentences of one
// prompt are dependent, whole prompts.
type units struct {
	bySentence []int // number of each sentence's unit, from 0 without gaps
	count      int
	name       string // "sentence" or "prompt"
}

// String returns the number and name of the units, such as "1 prompt" or "4 sentences".
func (u units) String() string { return phrase.Counted(u.count, u.name) }

const (
	mostGroups = 200 // largest number of groups; more units share groups
	mostPairs  = 400 // largest number of pairs of groups to leave out
)

// spread returns, for each sentence, the weight of its unit.
func (u units) spread(weights []int) []int {
	spread := make([]int, len(u.bySentence))
	for i, unit := range u.bySentence {
		spread[i] = weights[unit]
	}
	return spread
}

// interval returns the interval of a metric by the jackknife: it leaves out one unit, or
// group of units, in turn (Quenouille; Tukey 1958), and for pooled metrics also pairs of
// units. The result depends on the state of random, but not on the number of processors.
//
// The jackknife counts a joint effect of k units k times (Efron and Stein
// 1981). With half of their correction by pairs of units, it counts the effect
// k − k(k−1)/4 times: never less than once up to k = 4.
func interval(ctx context.Context, m metric, u units, random *rand.Rand, confidence float64) (*Interval, error) {
	// score returns the score of the kept units, which have 1 in kept, others 0.
	score := func(kept []int) float64 { return m.evaluate(u.spread(kept)) }
	in := Interval{Low: undefined, High: undefined, Confidence: confidence, StandardError: undefined, Units: u.count,
		Unit: u.name}
	whole := score(ones(u.count))
	n := min(u.count, mostGroups)
	if math.IsNaN(whole) || n < 2 {
		return &in, nil
	}
	group := make([]int, u.count)
	for i := range group {
		group[i] = i % n
	}
	if u.count > n {
		random.Shuffle(u.count, func(i, j int) { group[i], group[j] = group[j], group[i] })
	}
	var out [][2]int // groups that each sample leaves out; equal if it leaves out one group
	for i := range n {
		out = append(out, [2]int{i, i})
	}
	pairs := n * (n - 1) / 2
	switch {
	case m.pooled && pairs <= mostPairs:
		for i := range n {
			for j := range i {
				out = append(out, [2]int{i, j})
			}
		}
	case m.pooled:
		for range mostPairs {
			i := random.IntN(n)
			out = append(out, [2]int{i, (i + 1 + random.IntN(n-1)) % n})
		}
	}
	values := make([]float64, len(out))
	err := parallel.All(ctx, runtime.GOMAXPROCS(0), len(out), func(ctx context.Context, k int) error {
		kept := make([]int, u.count)
		for i, g := range group {
			kept[i] = logmath.Indicator(g != out[k][0] && g != out[k][1])
		}
		values[k] = score(kept)
		return ctx.Err()
	})
	if err != nil {
		return nil, err
	}
	size := float64(n)
	single := slices.DeleteFunc(slices.Clone(values[:n]), math.IsNaN)
	in.Samples = len(out)
	if len(single) < 2 || 10*len(single) < 9*n {
		return &in, nil
	}
	variance := stat.Variance(single, nil) * (size - 1) * (size - 1) / size
	var together []float64
	for k := n; k < len(out); k++ {
		q := size*whole - (size-1)*(values[out[k][0]]+values[out[k][1]]) + (size-2)*values[k]
		if !math.IsNaN(q) {
			together = append(together, q)
		}
	}
	if len(together) > 1 {
		variance = max(variance-stat.Variance(together, nil)/4, variance/4)
	}
	deviation := math.Sqrt(variance)
	in.StandardError = Value(deviation)
	if deviation <= 1e-12*math.Abs(whole) {
		return &in, nil // an interval of width 0 would be misleading
	}
	reach := distuv.StudentsT{Sigma: 1, Nu: size - 1}.Quantile((1+confidence)/2) * deviation
	in.Low = Value(whole - reach)
	in.High = Value(whole + reach)
	return &in, nil
}
