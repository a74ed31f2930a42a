package metrics

import (
	"context"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"

	"golang.org/x/sync/errgroup"
	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
)

// resampling says how samples are drawn for intervals and tests.
type resampling struct {
	resamples  int
	confidence float64
}

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

// units are what is left out, drawn and exchanged: sentences, or the prompts that they belong to, whose samples are not
// independent.
type units struct {
	// per sentence, from 0 without gaps; of two methods' sentences, those that are compared have the same number
	of    []int
	count int
	name  string // "sentence" or "prompt"
}

func (o resampling) undefined(u units) Interval {
	return Interval{Low: undefined, High: undefined, Confidence: o.confidence, StandardError: undefined, Units: u.count,
		Unit: u.name}
}

const (
	mostGroups = 200 // of units that are left out together, where there are more units
	mostPairs  = 400 // of groups that are left out together
)

// interval is that of a metric.
func interval(ctx context.Context, m metric, u units, random *rand.Rand, o resampling) (*Interval, error) {
	return jackknife(ctx, u, m.pooled, random, o, func() func(kept []int) float64 {
		evaluate, weights := m.evaluator(), make([]int, m.sentences)
		return func(kept []int) float64 {
			for i := range weights {
				weights[i] = kept[u.of[i]]
			}
			return evaluate(weights)
		}
	})
}

// jackknife leaves out one unit, or group of units, in turn (Quenouille; Tukey 1958), and for pooled metrics two of
// them. worker returns a function that scores the units kept, which are 1 in a list of all, the others 0. The result
// depends on the state of random and on nothing else, not on the number of processors.
//
// The jackknife counts what k units do together k times (Efron and Stein 1981). Their correction by pairs of units,
// half of it, makes that k − k(k−1)/4: never less than once up to k = 4.
func jackknife(ctx context.Context, u units, pooled bool, random *rand.Rand, o resampling,
	worker func() func(kept []int) float64) (*Interval, error) {
	in := o.undefined(u)
	score := worker()(ones(u.count))
	n := min(u.count, mostGroups)
	if math.IsNaN(score) || n < 2 {
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
	values, err := evaluated(ctx, len(out), func() func(k int) float64 {
		evaluate, kept := worker(), make([]int, u.count)
		return func(k int) float64 {
			for i, g := range group {
				kept[i] = indicator(g != out[k][0] && g != out[k][1])
			}
			return evaluate(kept)
		}
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
		if q := size*score - (size-1)*(values[out[k][0]]+values[out[k][1]]) + (size-2)*values[k]; !math.IsNaN(q) {
			together = append(together, q)
		}
	}
	if len(together) > 1 {
		variance = max(variance-stat.Variance(together, nil)/4, variance/4)
	}
	deviation := math.Sqrt(variance)
	if in.StandardError = Value(deviation); deviation <= 1e-12*math.Abs(score) {
		return &in, nil // all or none: such scores differ less than they may
	}
	reach := distuv.StudentsT{Sigma: 1, Nu: size - 1}.Quantile((1+o.confidence)/2) * deviation
	in.Low, in.High = Value(score-reach), Value(score+reach)
	return &in, nil
}

// PairedTest is the comparison of two methods on one metric.
type PairedTest struct {
	First      Value `json:"first"`
	Second     Value `json:"second"`
	Difference Value `json:"difference"` // second − first
	// Interval is that of the difference, units left out of both methods together.
	Interval Interval `json:"interval"`
	// BootstrapP is two-sided: how often the resampled difference, moved to mean 0, is as large as the one seen (Koehn
	// 2004).
	BootstrapP Value `json:"bootstrap_p"`
	// RandomisationP is two-sided: how often the difference is as large when for every unit a coin decides which
	// method's sentences count as whose (Noreen 1989; Riezler & Maxwell 2005).
	RandomisationP Value `json:"randomisation_p"`
}

// compare tests whether two methods differ on a metric over the sentences of both; second tells which method's each
// sentence is. Both p-values count the outcome seen as one of the outcomes, (c+1)/(n+1), so that neither is ever 0
// (Phipson & Smyth 2010). Approximate randomisation keeps every sentence exactly once and so needs no care with copies;
// it is the one to trust for pooled metrics and for few units.
func compare(ctx context.Context, m metric, u units, second []bool, random *rand.Rand,
	o resampling) (*PairedTest, error) {
	// scorer scores the sentences that weight gives a weight, by their unit and method.
	scorer := func() func(weight func(unit int, second bool) int) float64 {
		evaluate, weights := m.evaluator(), make([]int, m.sentences)
		return func(weight func(unit int, second bool) int) float64 {
			for i := range weights {
				weights[i] = weight(u.of[i], second[i])
			}
			return evaluate(weights)
		}
	}
	// differ is the difference of the methods where their units have weights.
	differ := func() func(units []int) float64 {
		score := scorer()
		return func(units []int) float64 {
			first := score(func(unit int, second bool) int { return units[unit] * indicator(!second) })
			return score(func(unit int, second bool) int { return units[unit] * indicator(second) }) - first
		}
	}
	score := scorer()
	before := score(func(_ int, second bool) int { return indicator(!second) })
	after := score(func(_ int, second bool) int { return indicator(second) })
	seen := after - before
	test := &PairedTest{
		First: Value(before), Second: Value(after), Difference: Value(seen), BootstrapP: undefined,
		RandomisationP: undefined,
		Interval:       o.undefined(u),
	}
	if math.IsNaN(seen) {
		return test, nil
	}
	// Sums in another order may differ in the last digits; equal differences must count as equal.
	threshold := math.Abs(seen) - 1e-9*max(math.Abs(before), math.Abs(after))

	differences, err := replicate(ctx, o.resamples, random, func() func(*rand.Rand) float64 {
		difference, draws := differ(), make([]int, u.count)
		return func(stream *rand.Rand) float64 {
			drawUnits(draws, stream)
			return difference(draws)
		}
	})
	if err != nil {
		return nil, err
	}
	if differences = slices.DeleteFunc(differences, math.IsNaN); 10*len(differences) >= 9*o.resamples {
		test.BootstrapP = tail(differences, stat.Mean(differences, nil), threshold)
	}
	left, err := jackknife(ctx, u, m.pooled, random, o, differ)
	if err != nil {
		return nil, err
	}
	test.Interval = *left

	swapped, err := replicate(ctx, o.resamples, random, func() func(*rand.Rand) float64 {
		score, swap := scorer(), make([]bool, u.count)
		return func(stream *rand.Rand) float64 {
			for unit := range swap {
				swap[unit] = stream.Uint64()&1 == 1
			}
			first := score(func(unit int, second bool) int { return indicator(second == swap[unit]) })
			return score(func(unit int, second bool) int { return indicator(second != swap[unit]) }) - first
		}
	})
	if err != nil {
		return nil, err
	}
	test.RandomisationP = tail(swapped, 0, threshold)
	return test, nil
}

// tail is the share of values at least threshold away from centre, with the value seen counted in.
func tail(values []float64, centre, threshold float64) Value {
	count, of := 1, 1
	for _, v := range values {
		if math.IsNaN(v) {
			continue
		}
		of++
		if math.Abs(v-centre) >= threshold {
			count++
		}
	}
	return Value(float64(count) / float64(of))
}

// drawUnits draws len(draws) units with replacement and counts how often each came.
func drawUnits(draws []int, stream *rand.Rand) {
	clear(draws)
	for range draws {
		draws[stream.IntN(len(draws))]++
	}
}

// replicate computes count values, each from its own stream seeded by random, on all processors.
func replicate(ctx context.Context, count int, random *rand.Rand,
	worker func() func(*rand.Rand) float64) ([]float64, error) {
	seeds := make([][2]uint64, count)
	for k := range seeds {
		seeds[k] = [2]uint64{random.Uint64(), random.Uint64()}
	}
	return evaluated(ctx, count, func() func(int) float64 {
		value, source := worker(), rand.NewPCG(0, 0)
		stream := rand.New(source)
		return func(k int) float64 {
			source.Seed(seeds[k][0], seeds[k][1])
			return value(stream)
		}
	})
}

// evaluated computes the values 0 to count−1 on all processors.
func evaluated(ctx context.Context, count int, worker func() func(k int) float64) ([]float64, error) {
	values := make([]float64, count)
	group, ctx := errgroup.WithContext(ctx)
	workers := min(runtime.GOMAXPROCS(0), count)
	for w := range workers {
		group.Go(func() error {
			value := worker()
			for k := w; k < count; k += workers {
				if err := ctx.Err(); err != nil {
					return err
				}
				values[k] = value(k)
			}
			return nil
		})
	}
	return values, group.Wait()
}

func indicator(b bool) int {
	if b {
		return 1
	}
	return 0
}
