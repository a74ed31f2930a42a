package metrics

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"

	"golang.org/x/sync/errgroup"
	"gonum.org/v1/gonum/stat"
)

// Defaults of [Resampling].
const (
	DefaultResamples  = 1000
	DefaultConfidence = 0.95
)

// Resampling says how samples are drawn for intervals and tests.
type Resampling struct {
	Resamples  int     // 0 = [DefaultResamples]
	Confidence float64 // between 0 and 1; 0 = [DefaultConfidence]
}

func (o Resampling) normal() (Resampling, error) {
	if o.Resamples == 0 {
		o.Resamples = DefaultResamples
	}
	if o.Confidence == 0 {
		o.Confidence = DefaultConfidence
	}
	if o.Resamples < 0 {
		return o, fmt.Errorf("resamples %d: give a number above 0", o.Resamples)
	}
	if !(o.Confidence > 0 && o.Confidence < 1) {
		return o, fmt.Errorf("confidence %v: give a number between 0 and 1, such as 0.95", o.Confidence)
	}
	return o, nil
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

const (
	unitSentence = "sentence"
	unitPrompt   = "prompt"
)

// Bootstrap returns the percentile interval of a metric (Efron & Tibshirani 1993, chapter 13; for BLEU, Koehn 2004). Units are drawn
// with replacement: sentences, or, where clusters gives the number of the cluster of every sentence, whole clusters of sentences that are
// not independent, such as the samples of one prompt. Numbers run from 0 without gaps. The result depends on the state of random and on
// nothing else, not on the number of processors.
func Bootstrap(ctx context.Context, m Metric, clusters []int, random *rand.Rand, o Resampling) (*Interval, error) {
	o, err := o.normal()
	if err != nil {
		return nil, err
	}
	units, err := countClusters(clusters, m.Sentences())
	if err != nil {
		return nil, err
	}
	score := float64(Of(m))
	interval := &Interval{
		Low: undefined, High: undefined, Confidence: o.Confidence, StandardError: undefined, Bias: undefined,
		Centred: m.Pooled(), Units: units, Unit: unitSentence,
	}
	if clusters != nil {
		interval.Unit = unitPrompt
	}
	if math.IsNaN(score) {
		return interval, nil
	}
	scores, err := replicate(ctx, o.Resamples, random, func() func(*rand.Rand) float64 {
		evaluate, draws, weights := m.Evaluator(), make([]int, units), make([]int, m.Sentences())
		return func(stream *rand.Rand) float64 {
			drawUnits(draws, stream)
			for i := range weights {
				weights[i] = draws[clusterOf(clusters, i)]
			}
			return evaluate(weights)
		}
	})
	if err != nil {
		return nil, err
	}
	interval.from(scores, score, o.Resamples)
	return interval, nil
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

// Pairing says which sentences of a metric belong to which of two methods and which are compared with each other: the sentences that
// both methods made for one prompt form a unit, or, without prompts, the i-th sentences of both.
type Pairing struct {
	Units  []int  // per sentence, from 0 without gaps; every unit has sentences of both methods
	Second []bool // per sentence, whether it is of the second method
	Unit   string // what a unit is, for the record: "sentence" or "prompt"
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

// Compare tests whether two methods differ on a metric over the sentences of both. Both p-values count the outcome seen as one of
// the outcomes, (c+1)/(n+1), so that neither is ever 0 (Phipson & Smyth 2010). Approximate randomisation keeps every sentence exactly once
// and so needs no care with copies; it is the one to trust for pooled metrics and for few units.
func Compare(ctx context.Context, m Metric, pairing Pairing, random *rand.Rand, o Resampling) (*PairedTest, error) {
	o, err := o.normal()
	if err != nil {
		return nil, err
	}
	units, err := pairing.check(m.Sentences())
	if err != nil {
		return nil, err
	}
	side := func(weights []int, weight func(unit int, second bool) int) {
		for i := range weights {
			weights[i] = weight(pairing.Units[i], pairing.Second[i])
		}
	}
	evaluate, weights := m.Evaluator(), make([]int, m.Sentences())
	score := func(of bool) float64 {
		side(weights, func(_ int, second bool) int { return indicator(second == of) })
		return evaluate(weights)
	}
	first, second := score(false), score(true)
	seen := second - first
	test := &PairedTest{
		First: Value(first), Second: Value(second), Difference: Value(seen), BootstrapP: undefined, RandomisationP: undefined,
		Interval: Interval{
			Low: undefined, High: undefined, Confidence: o.Confidence, StandardError: undefined, Bias: undefined,
			Centred: m.Pooled(), Units: units, Unit: pairing.Unit,
		},
	}
	if math.IsNaN(seen) {
		return test, nil
	}
	// Sums in another order may differ in the last digits; equal differences must count as equal.
	threshold := math.Abs(seen) - 1e-9*max(math.Abs(first), math.Abs(second))

	differences, err := replicate(ctx, o.Resamples, random, func() func(*rand.Rand) float64 {
		evaluate, draws, weights := m.Evaluator(), make([]int, units), make([]int, m.Sentences())
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
	test.Interval.from(differences, seen, o.Resamples)
	if test.Interval.Bias.Defined() {
		mean := seen + float64(test.Interval.Bias)
		test.BootstrapP = tail(differences, mean, threshold)
	}

	swapped, err := replicate(ctx, o.Resamples, random, func() func(*rand.Rand) float64 {
		evaluate, swap, weights := m.Evaluator(), make([]bool, units), make([]int, m.Sentences())
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

func (p Pairing) check(sentences int) (units int, err error) {
	if len(p.Second) != sentences {
		return 0, fmt.Errorf("pairing names the method of %d sentences, the metric has %d", len(p.Second), sentences)
	}
	if p.Units == nil {
		return 0, fmt.Errorf("pairing names no units")
	}
	units, err = countClusters(p.Units, sentences)
	if err != nil {
		return 0, err
	}
	has := make([][2]bool, units)
	for i, unit := range p.Units {
		has[unit][indicator(p.Second[i])] = true
	}
	for unit, sides := range has {
		if !sides[0] || !sides[1] {
			return 0, fmt.Errorf("unit %d has sentences of one method only: a paired test needs both", unit)
		}
	}
	return units, nil
}

func countClusters(clusters []int, sentences int) (int, error) {
	if sentences == 0 {
		return 0, errNoHypothesis
	}
	if clusters == nil {
		return sentences, nil
	}
	if len(clusters) != sentences {
		return 0, fmt.Errorf("clusters of %d sentences given, the metric has %d", len(clusters), sentences)
	}
	seen, units := make([]bool, sentences), 0
	for i, c := range clusters {
		if c < 0 || c >= sentences {
			return 0, fmt.Errorf("cluster %d of sentence %d: number clusters from 0 without gaps", c, i+1)
		}
		seen[c], units = true, max(units, c+1)
	}
	if gap := slices.Index(seen[:units], false); gap >= 0 {
		return 0, fmt.Errorf("cluster %d has no sentence: number clusters from 0 without gaps", gap)
	}
	return units, nil
}

func clusterOf(clusters []int, sentence int) int {
	if clusters == nil {
		return sentence
	}
	return clusters[sentence]
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
