package metrics

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"

	"infill/internal/parallel"
)

// Interval is a jackknife confidence interval: see the package documentation. Low and High are undefined if the
// score is undefined, if fewer than nine of ten samples have a score, or if all samples have the same.
type Interval struct {
	Low        Value   `json:"low"`
	High       Value   `json:"high"`
	Confidence float64 `json:"confidence"`
	// StandardError is the jackknife's; Low and High lie as many of them from the score as Student's t says.
	StandardError Value  `json:"standard_error"`
	Samples       int    `json:"samples"` // that the score was computed for
	Units         int    `json:"units"`   // what is left out in turn, and how many there are
	Unit          string `json:"unit"`    // "sentence" or "prompt"
}

// units are what is left out: sentences, or the prompts that they belong to, whose samples are not independent.
type units struct {
	bySentence []int // their numbers, from 0 without gaps
	count      int
	name       string // "sentence" or "prompt"
}

// String is "1 prompt" or "4 sentences".
func (u units) String() string {
	if u.count == 1 {
		return "1 " + u.name
	}
	return fmt.Sprintf("%d %ss", u.count, u.name)
}

func (u units) noInterval(confidence float64) Interval {
	return Interval{Low: undefined, High: undefined, Confidence: confidence, StandardError: undefined, Units: u.count,
		Unit: u.name}
}

const (
	mostGroups = 200 // of units that are left out together, where there are more units
	mostPairs  = 400 // of groups that are left out together
)

// spread gives each sentence what its unit has.
func (u units) spread(weights []int) []int {
	spread := make([]int, len(u.bySentence))
	for i, unit := range u.bySentence {
		spread[i] = weights[unit]
	}
	return spread
}

// interval is that of a metric.
func interval(ctx context.Context, m metric, u units, random *rand.Rand, confidence float64) (*Interval, error) {
	return jackknife(ctx, u, m.pooled, random, confidence,
		func(kept []int) float64 { return m.evaluate(u.spread(kept)) })
}

// jackknife leaves out one unit, or group of units, in turn (Quenouille; Tukey 1958), and for pooled metrics two of
// them. score is that of the units kept, which are 1 in a list of all, the others 0. The result depends on the state of
// random and on nothing else, not on the number of processors.
//
// The jackknife counts what k units do together k times (Efron and Stein 1981). Their correction by pairs of units,
// half of it, makes that k − k(k−1)/4: never less than once up to k = 4.
func jackknife(ctx context.Context, u units, pooled bool, random *rand.Rand, confidence float64,
	score func(kept []int) float64) (*Interval, error) {
	in := u.noInterval(confidence)
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
	var out [][2]int // what each sample leaves out
	for i := range n {
		out = append(out, [2]int{i, i})
	}
	switch pairs := n * (n - 1) / 2; {
	case pooled && pairs <= mostPairs:
		for i := range n {
			for j := range i {
				out = append(out, [2]int{i, j})
			}
		}
	case pooled:
		for range mostPairs {
			i := random.IntN(n)
			out = append(out, [2]int{i, (i + 1 + random.IntN(n-1)) % n})
		}
	}
	values, err := evaluated(ctx, len(out), func(k int) float64 {
		kept := make([]int, u.count)
		for i, g := range group {
			kept[i] = indicator(g != out[k][0] && g != out[k][1])
		}
		return score(kept)
	})
	if err != nil {
		return nil, err
	}
	size := float64(n)
	single := slices.DeleteFunc(slices.Clone(values[:n]), math.IsNaN)
	if in.Samples = len(out); len(single) < 2 || 10*len(single) < 9*n {
		return &in, nil
	}
	variance := stat.Variance(single, nil) * (size - 1) * (size - 1) / size
	var together []float64
	for k := n; k < len(out); k++ {
		if q := size*whole - (size-1)*(values[out[k][0]]+values[out[k][1]]) + (size-2)*values[k]; !math.IsNaN(q) {
			together = append(together, q)
		}
	}
	if len(together) > 1 {
		variance = max(variance-stat.Variance(together, nil)/4, variance/4)
	}
	deviation := math.Sqrt(variance)
	if in.StandardError = Value(deviation); deviation <= 1e-12*math.Abs(whole) {
		return &in, nil // all or none: such scores differ less than they may
	}
	reach := distuv.StudentsT{Sigma: 1, Nu: size - 1}.Quantile((1+confidence)/2) * deviation
	in.Low, in.High = Value(whole-reach), Value(whole+reach)
	return &in, nil
}

// evaluated computes the values 0 to count−1 on all processors.
func evaluated(ctx context.Context, count int, value func(k int) float64) ([]float64, error) {
	values := make([]float64, count)
	return values, parallel.All(ctx, runtime.GOMAXPROCS(0), count, func(ctx context.Context, k int) error {
		values[k] = value(k)
		return ctx.Err()
	})
}

func indicator(b bool) int {
	if b {
		return 1
	}
	return 0
}
