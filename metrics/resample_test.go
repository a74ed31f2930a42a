package metrics

import (
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"gonum.org/v1/gonum/stat"

	"infill/internal/logmath"
)

func newRandom(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 1)) }

// prompts makes units of the sentences with the same number.
func prompts(of []int) units { return units{of, slices.Max(of) + 1, "prompt"} }

// each makes every sentence a unit.
func each(sentences int) units {
	u := units{count: sentences, name: "sentence"}
	for i := range sentences {
		u.bySentence = append(u.bySentence, i)
	}
	return u
}

// The jackknife of a mean is the textbook's interval: its standard deviation
// over √n, by Student's t. Of many values, groups are left out.
func TestJackknifeOfMean(t *testing.T) {
	random := newRandom(4)
	for _, n := range []int{6, 60, 1000} {
		values := make([]float64, n)
		for i := range values {
			values[i] = random.ExpFloat64()
		}
		in, err := interval(t.Context(), mean(values), each(n), random, 0.95)
		if err != nil {
			t.Fatal(err)
		}
		average, want, near := stat.Mean(values, nil), stat.StdDev(values, nil)/math.Sqrt(float64(n)), 1e-9
		if n > mostGroups {
			near = 0.2 // four standard errors of the deviation of 200 groups
		}
		if got := float64(in.StandardError); math.Abs(got/want-1) > near || in.Units != n || in.Unit != "sentence" {
			t.Errorf("%d values: standard error %v, want %v", n, got, want)
		}
		if n == 6 {
			isNear(t, "low", float64(in.Low), average-2.570581835636314*want)
			isNear(t, "high", float64(in.High), average+2.570581835636314*want)
		}
	}
}

// Half of the pairs' correction makes the deviation of a mean product of pairs
// that of theory where pairs alone vary.
func TestJackknifeCountsPairs(t *testing.T) {
	const n, texts = 20, 600
	random := newRandom(14)
	// (Σ x)² − Σ x², over n(n−1), of x = ±1: its variance is 2/(n(n−1)).
	deviation, plain := 0.0, 0.0
	for range texts {
		x := make([]float64, n)
		for i := range x {
			x[i] = float64(1 - 2*random.IntN(2))
		}
		m := metric{sentences: n, score: quotient, sum: func(weights []int) []float64 {
			sum, squares, count := 0.0, 0.0, 0.0
			for i, w := range weights {
				sum, squares, count = sum+float64(w)*x[i], squares+float64(w), count+float64(w)
			}
			return []float64{sum*sum - squares, count * (count - 1)}
		}}
		for _, pooled := range []bool{true, false} {
			m.pooled = pooled
			in, err := interval(t.Context(), m, each(n), random, 0.95)
			if err != nil {
				t.Fatal(err)
			}
			if v := float64(in.StandardError * in.StandardError); pooled {
				deviation += v / texts
			} else {
				plain += v / texts
			}
		}
	}
	truth := 2.0 / (n * (n - 1))
	// Once where theory counts it, twice without the correction, with it one
	// and a half times; higher terms of 1/n come to it.
	if plain/truth < 1.8 || plain/truth > 2.5 || deviation/truth < 1.2 || deviation/truth > 1.8 {
		t.Errorf("variance %.3g times the truth, without pairs %.3g", deviation/truth, plain/truth)
	}
}

// promptTexts makes texts as samplers do: prompts × samples sentences, every
// fourth word filled from few or many words of its prompt. Single samples stay
// unfilled, or no two sentences would share a 4-gram.
func promptTexts(random *rand.Rand, prompts, samples int) (sentences [][]string, clusters []int) {
	for p := range prompts {
		var words []string
		state := 0
		for range 6 + random.IntN(14) {
			if random.IntN(2) == 0 {
				state = (state*7 + 3 + random.IntN(2)) % 50
				words = append(words, fmt.Sprint("p", state))
			} else {
				// 1/rank as in Zipf's law.
				words = append(words, fmt.Sprint("w", int(math.Exp(random.Float64()*math.Log(2000)))))
				state = random.IntN(50)
			}
		}
		variety := 1 + random.IntN(20)
		for range samples {
			filled := slices.Clone(words)
			for k := 1; samples > 1 && k < len(filled); k += 4 {
				share := random.Float64()
				filled[k] = fmt.Sprintf("f%d_%d_%d", p%7, k, int(share*share*float64(variety)))
			}
			sentences = append(sentences, filled)
			clusters = append(clusters, p)
		}
	}
	return sentences, clusters
}

// Values of one cluster share a common part of mean 0. The interval that
// leaves out clusters covers the mean as often as it says; one that leaves out
// values does not.
func TestClusteredIntervalCovers(t *testing.T) {
	const texts, clusters, size = 400, 40, 4
	for _, whole := range []bool{true, false} {
		random := newRandom(5)
		covered, _, _ := coverage(t, texts, texts, random, func() ([]metric, units) {
			values, numbers := make([]float64, clusters*size), make([]int, clusters*size)
			for c := range clusters {
				common := random.NormFloat64()
				for k := range size {
					values[c*size+k] = common + 0.5*random.NormFloat64()
					numbers[c*size+k] = c
				}
			}
			if whole {
				return []metric{mean(values)}, prompts(numbers)
			}
			return []metric{mean(values)}, each(len(values))
		})
		// Standard error of a coverage of 0.95 over 400 texts: 0.011.
		if share := covered[0]; whole && (share < 0.91 || share > 0.98) || !whole && share > 0.80 {
			t.Errorf("whole clusters %t: covered %.3f", whole, share)
		}
	}
}

// coverage is how often intervals of 95 % cover the mean score of fresh texts,
// their mean standard error and the true one, by metric. make draws a text.
func coverage(t *testing.T, texts, fresh int, random *rand.Rand,
	make func() ([]metric, units)) (covered, deviations, truths map[int]float64) {
	scores := map[int][]float64{}
	for range fresh {
		metrics, _ := make()
		for k, m := range metrics {
			scores[k] = append(scores[k], m.value())
		}
	}
	covered, deviations, truths = map[int]float64{}, map[int]float64{}, map[int]float64{}
	for range texts {
		metrics, u := make()
		for k, m := range metrics {
			in, err := interval(t.Context(), m, u, random, 0.95)
			if err != nil {
				t.Fatal(err)
			}
			if in.Unit != u.name || in.Units != u.count {
				t.Fatalf("%+v", in)
			}
			expected := Value(stat.Mean(scores[k], nil))
			covered[k] += float64(logmath.Indicator(in.Low <= expected && expected <= in.High)) / float64(texts)
			deviations[k] += float64(in.StandardError) / float64(texts)
			truths[k] = stat.StdDev(scores[k], nil)
		}
	}
	return covered, deviations, truths
}

// Over fresh texts of the same kind, the jackknife's standard error is the
// true one and the intervals cover the expected score.
func TestPooledIntervalsCover(t *testing.T) {
	o := bleuOptions{order: 4}
	for _, c := range []struct{ prompts, samples int }{{20, 5}, {40, 5}, {150, 1}} {
		random := newRandom(6)
		covered, deviations, truths := coverage(t, 80, 160, random, func() ([]metric, units) {
			sentences, clusters := promptTexts(random, c.prompts, c.samples)
			p := newPool(newIndex(sentences, 4))
			return []metric{p.selfBLEU(o), p.selfUnique(2), p.distinct(2, nil)}, prompts(clusters)
		})
		for k, name := range []string{"self-BLEU", "self-unique", "distinct"} {
			t.Logf("%v, %s: covered %.2f, standard error %.2f, true %.2f", c, name, covered[k], deviations[k],
				truths[k])
			// 0.025 is one standard error of the coverage, 0.06 one of the true
			// standard error, as a share.
			if covered[k] < 0.87 {
				t.Errorf("%v, %s: covered %.3f", c, name, covered[k])
			}
			if ratio := deviations[k] / truths[k]; ratio < 0.85 || ratio > 1.3 {
				t.Errorf("%v, %s: standard error is %.2f of the true one", c, name, ratio)
			}
		}
	}
}

func TestResamplingDoesNotDependOnProcessors(t *testing.T) {
	m := newSelfBLEU(benchmarkSentences(3, 40), bleuOptions{order: 4})
	run := func(processors int, seed uint64) Interval {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(processors))
		in, err := interval(t.Context(), m, each(m.sentences), newRandom(seed), 0.95)
		if err != nil {
			t.Fatal(err)
		}
		return *in
	}
	one, four := run(1, 1), run(4, 1)
	if one != four {
		t.Errorf("%+v on one processor, %+v on four", one, four)
	}
	if other := run(1, 2); other == one {
		t.Error("another seed gave the same interval")
	}
}

// What intervals of 95 % really cover where the truth is known: sentences of
// random words, scored against a fixed reference. The documentation
// (docs/reference/evaluation.md) quotes what -v prints.
func TestIntervalsCoverKnownCorpora(t *testing.T) {
	trials, fresh := 60, 300
	if *whole {
		trials, fresh = 200, 3000
	}
	random := newRandom(12)
	sentence := func() []string {
		s := make([]string, 14+random.IntN(9))
		for i := range s {
			s[i] = fmt.Sprint("w", int(18*random.Float64()*random.Float64()))
		}
		return s
	}
	corpus := func(n int) (s [][]string) {
		for range n {
			s = append(s, sentence())
		}
		return s
	}
	o := bleuOptions{order: 4}
	reference := corpus(300)
	for _, n := range []int{20, 200} {
		if n == 200 && !*whole {
			continue // the long one
		}
		covered, _, _ := coverage(t, trials, fresh, random, func() ([]metric, units) {
			x := newIndex(corpus(n), 4)
			set, p := x.collect("", reference, nil, 0), newPool(x)
			return []metric{x.bleu(set, o), p.selfBLEU(o), p.selfUnique(2), p.distinct(2, set),
				p.distinct(3, set)}, each(n)
		})
		for k, name := range []string{"BLEU", "self-BLEU", "self-unique 2", "unique 2", "unique 3"} {
			share := covered[k]
			t.Logf("%d sentences, %s: covered in %.3f of %d trials (standard error %.3f)", n, name, share, trials,
				math.Sqrt(share*(1-share)/float64(trials)))
			if share < 0.75 {
				t.Errorf("%d sentences, %s: covered in %.3f of %d trials", n, name, share, trials)
			}
		}
	}
}

// whole makes the simulations whole: 200 trials each, minutes.
var whole = flag.Bool("coverage", false, "simulate coverage with 200 trials, for docs/reference/evaluation.md")
