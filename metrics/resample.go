package metrics

import (
	"context"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"

	"golang.org/x/sync/errgroup"
	"gonum.org/v1/gonum/stat"
)

// resampling says how samples are drawn for intervals and tests.
type resampling struct {
	resamples  int
	confidence float64
}

// Interval is a bootstrap confidence interval. Low and High are undefined where the score is, or where fewer than nine resamples of
// ten have one.
type Interval struct {
	Low        Value   `json:"low"`
	High       Value   `json:"high"`
	Confidence float64 `json:"confidence"`
	// StandardError is the standard deviation of the resampled scores.
	StandardError Value `json:"standard_error"`
	// Bias is the mean of the resampled scores less the score. For pooled metrics it is what fewer different sentences do to the
	// score, and is already taken out of Low and High.
	Bias Value `json:"bias"`
	// Centred tells that Low and High were moved by −Bias.
	Centred   bool   `json:"centred"`
	Resamples int    `json:"resamples"` // those on which the score was defined
	Units     int    `json:"units"`     // what was drawn with replacement, and how many there are
	Unit      string `json:"unit"`      // "sentence" or "prompt"
}

// units are what is drawn: sentences, or the prompts that they belong to, whose samples are not independent.
type units struct {
	of    []int // per sentence, from 0 without gaps; of two methods' sentences, those that are compared have the same number
	count int
	name  string // "sentence" or "prompt"
}

func (o resampling) undefined(m metric, u units) Interval {
	return Interval{Low: undefined, High: undefined, Confidence: o.confidence, StandardError: undefined, Bias: undefined, Centred: m.pooled, Units: u.count, Unit: u.name}
}

// bootstrap returns the percentile interval of a metric (Efron & Tibshirani 1993, chapter 13; for BLEU, Koehn 2004). Units are drawn with
// replacement. The result depends on the state of random and on nothing else, not on the number of processors.
func bootstrap(ctx context.Context, m metric, u units, random *rand.Rand, o resampling) (*Interval, error) {
	interval, score := o.undefined(m, u), float64(m.value())
	if math.IsNaN(score) {
		return &interval, nil
	}
	scores, err := replicate(ctx, o.resamples, random, func() func(*rand.Rand) float64 {
		evaluate, draws, weights := m.evaluator(), make([]int, u.count), make([]int, m.sentences)
		return func(stream *rand.Rand) float64 {
			drawUnits(draws, stream)
			for i := range weights {
				weights[i] = draws[u.of[i]]
			}
			return evaluate(weights)
		}
	})
	if err != nil {
		return nil, err
	}
	interval.from(scores, score, o.resamples)
	return &interval, nil
}

// from fills the interval from resampled scores, sorting them.
func (interval *Interval) from(scores []float64, score float64, wanted int) {
	scores = slices.DeleteFunc(scores, math.IsNaN)
	interval.Resamples = len(scores)
	if len(scores) < 2 || 10*len(scores) < 9*wanted {
		return
	}
	slices.Sort(scores)
	mean, deviation := stat.MeanStdDev(scores, nil)
	interval.StandardError, interval.Bias = Value(deviation), Value(mean-score)
	shift := 0.0
	if interval.Centred {
		shift = score - mean
	}
	tail := (1 - interval.Confidence) / 2
	interval.Low = Value(quantile(scores, tail) + shift)
	interval.High = Value(quantile(scores, 1-tail) + shift)
}

// PairedTest is the comparison of two methods on one metric.
type PairedTest struct {
	First      Value `json:"first"`
	Second     Value `json:"second"`
	Difference Value `json:"difference"` // second − first
	// Interval is the paired bootstrap interval of the difference.
	Interval Interval `json:"interval"`
	// BootstrapP is two-sided: how often the resampled difference, moved to mean 0, is as large as the one seen (Koehn 2004).
	BootstrapP Value `json:"bootstrap_p"`
	// RandomisationP is two-sided: how often the difference is as large when for every unit a coin decides which method's sentences
	// count as whose (Noreen 1989; Riezler & Maxwell 2005).
	RandomisationP Value `json:"randomisation_p"`
}

// compare tests whether two methods differ on a metric over the sentences of both; second tells which method's each sentence is. Both
// p-values count the outcome seen as one of the outcomes, (c+1)/(n+1), so that neither is ever 0 (Phipson & Smyth 2010). Approximate
// randomisation keeps every sentence exactly once and so needs no care with copies; it is the one to trust for pooled metrics and for few
// units.
func compare(ctx context.Context, m metric, u units, second []bool, random *rand.Rand, o resampling) (*PairedTest, error) {
	side := func(weights []int, weight func(unit int, second bool) int) {
		for i := range weights {
			weights[i] = weight(u.of[i], second[i])
		}
	}
	evaluate, weights := m.evaluator(), make([]int, m.sentences)
	score := func(of bool) float64 {
		side(weights, func(_ int, second bool) int { return indicator(second == of) })
		return evaluate(weights)
	}
	before, after := score(false), score(true)
	seen := after - before
	test := &PairedTest{
		First: Value(before), Second: Value(after), Difference: Value(seen), BootstrapP: undefined, RandomisationP: undefined,
		Interval: o.undefined(m, u),
	}
	if math.IsNaN(seen) {
		return test, nil
	}
	// Sums in another order may differ in the last digits; equal differences must count as equal.
	threshold := math.Abs(seen) - 1e-9*max(math.Abs(before), math.Abs(after))

	differences, err := replicate(ctx, o.resamples, random, func() func(*rand.Rand) float64 {
		evaluate, draws, weights := m.evaluator(), make([]int, u.count), make([]int, m.sentences)
		return func(stream *rand.Rand) float64 {
			drawUnits(draws, stream)
			side(weights, func(unit int, second bool) int { return draws[unit] * indicator(!second) })
			first := evaluate(weights)
			side(weights, func(unit int, second bool) int { return draws[unit] * indicator(second) })
			return evaluate(weights) - first
		}
	})
	if err != nil {
		return nil, err
	}
	test.Interval.from(differences, seen, o.resamples)
	if test.Interval.Bias.Defined() {
		mean := seen + float64(test.Interval.Bias)
		test.BootstrapP = tail(differences, mean, threshold)
	}

	swapped, err := replicate(ctx, o.resamples, random, func() func(*rand.Rand) float64 {
		evaluate, swap, weights := m.evaluator(), make([]bool, u.count), make([]int, m.sentences)
		return func(stream *rand.Rand) float64 {
			for unit := range swap {
				swap[unit] = stream.Uint64()&1 == 1
			}
			side(weights, func(unit int, second bool) int { return indicator(second == swap[unit]) })
			first := evaluate(weights)
			side(weights, func(unit int, second bool) int { return indicator(second != swap[unit]) })
			return evaluate(weights) - first
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
func replicate(ctx context.Context, count int, random *rand.Rand, worker func() func(*rand.Rand) float64) ([]float64, error) {
	seeds := make([][2]uint64, count)
	for k := range seeds {
		seeds[k] = [2]uint64{random.Uint64(), random.Uint64()}
	}
	values := make([]float64, count)
	group, ctx := errgroup.WithContext(ctx)
	workers := min(runtime.GOMAXPROCS(0), count)
	for w := range workers {
		group.Go(func() error {
			value := worker()
			source := rand.NewPCG(0, 0)
			stream := rand.New(source)
			for k := w; k < count; k += workers {
				if err := ctx.Err(); err != nil {
					return err
				}
				source.Seed(seeds[k][0], seeds[k][1])
				values[k] = value(stream)
			}
			return nil
		})
	}
	return values, group.Wait()
}

// quantile interpolates linearly between order statistics (Hyndman & Fan 1996, type 7, NumPy's default; gonum's LinInterp is type 4).
// sorted is not empty.
func quantile(sorted []float64, p float64) float64 {
	position := p * float64(len(sorted)-1)
	k := min(int(position), len(sorted)-1)
	if k == len(sorted)-1 {
		return sorted[k]
	}
	return sorted[k] + (position-float64(k))*(sorted[k+1]-sorted[k])
}

func indicator(b bool) int {
	if b {
		return 1
	}
	return 0
}
