package metrics

import (
	"context"
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

// units are what is left out, drawn and exchanged: sentences, or the prompts that they belong to, whose samples are not
// independent.
type units struct {
	// bySentence numbers them, from 0 without gaps. Of two methods' sentences, those that are compared have the same
	// number.
	bySentence []int
	count      int
	name       string // "sentence" or "prompt"
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
func compare(ctx context.Context, m metric, u units, second []bool, random *rand.Rand, resamples int,
	confidence float64) (*PairedTest, error) {
	// scores are those of both methods. Sentences weigh what their units do, and those of swapped units count as the
	// other method's.
	scores := func(weights []int, swapped []bool) (before, after float64) {
		samples := [2][]int{make([]int, m.sentences), make([]int, m.sentences)}
		for i, unit := range u.bySentence {
			samples[indicator(second[i] != swapped[unit])][i] = weights[unit]
		}
		return m.evaluate(samples[0]), m.evaluate(samples[1])
	}
	once, unswapped := ones(u.count), make([]bool, u.count)
	difference := func(weights []int) float64 {
		before, after := scores(weights, unswapped)
		return after - before
	}
	before, after := scores(once, unswapped)
	seen := after - before
	test := &PairedTest{
		First: Value(before), Second: Value(after), Difference: Value(seen), BootstrapP: undefined,
		RandomisationP: undefined, Interval: u.noInterval(confidence),
	}
	if math.IsNaN(seen) {
		return test, nil
	}
	// Sums in another order may differ in the last digits; equal differences must count as equal.
	threshold := math.Abs(seen) - 1e-9*max(math.Abs(before), math.Abs(after))

	drawn, err := replicate(ctx, resamples, random, func(stream *rand.Rand) float64 {
		return difference(drawUnits(u.count, stream))
	})
	if err != nil {
		return nil, err
	}
	if drawn = slices.DeleteFunc(drawn, math.IsNaN); 10*len(drawn) >= 9*resamples {
		test.BootstrapP = tail(drawn, stat.Mean(drawn, nil), threshold)
	}
	interval, err := jackknife(ctx, u, m.pooled, random, confidence, difference)
	if err != nil {
		return nil, err
	}
	test.Interval = *interval

	exchanged, err := replicate(ctx, resamples, random, func(stream *rand.Rand) float64 {
		swapped := make([]bool, u.count)
		for unit := range swapped {
			swapped[unit] = stream.Uint64()&1 == 1
		}
		before, after := scores(once, swapped)
		return after - before
	})
	if err != nil {
		return nil, err
	}
	test.RandomisationP = tail(exchanged, 0, threshold)
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

// drawUnits draws as many units as there are, with replacement, and counts how often each came.
func drawUnits(count int, stream *rand.Rand) []int {
	draws := make([]int, count)
	for range draws {
		draws[stream.IntN(count)]++
	}
	return draws
}

// replicate computes count values on all processors, each from a stream of its own, seeded by random.
func replicate(ctx context.Context, count int, random *rand.Rand,
	value func(stream *rand.Rand) float64) ([]float64, error) {
	seeds := make([][2]uint64, count)
	for k := range seeds {
		seeds[k] = [2]uint64{random.Uint64(), random.Uint64()}
	}
	return evaluated(ctx, count, func(k int) float64 { return value(rand.New(rand.NewPCG(seeds[k][0], seeds[k][1]))) })
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
