package metrics

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"infill/internal/check"
)

func init() { check.SameDraws() }

// reference is testdata/reference.json, made by testdata/generate_reference.py from NLTK.
type reference struct {
	Tokens []map[string]json.RawMessage `json:"tokens"`
	Texts  []struct {
		Tokenisation   string                          `json:"tokenisation"`
		SelfBLEU       map[string][]float64            `json:"self_bleu"`
		CorpusBLEU     map[string]map[string][]float64 `json:"corpus_bleu"`
		UniqueNGrams   map[string][]Value              `json:"unique_ngrams"`
		DistinctNGrams []Value                         `json:"distinct_ngrams"`
		Repeated       float64                         `json:"repeated_sentences"`
		FirstFive      struct {
			BLEU   float64 `json:"bleu"`
			Unique []Value `json:"unique"`
		} `json:"first_five"`
		WithoutSource float64 `json:"without_source"`
	} `json:"texts"`
	CorpusBLEU []struct {
		Name       string               `json:"name"`
		Hypotheses [][]string           `json:"hypotheses"`
		References [][][]string         `json:"references"`
		BLEU       map[string][]float64 `json:"bleu"`
	} `json:"corpus_bleu"`
	SelfBLEU []struct {
		Name         string               `json:"name"`
		Sentences    [][]string           `json:"sentences"`
		BLEU         map[string][]float64 `json:"bleu"`
		SelfUnique   []Value              `json:"self_unique"`
		Distinct     []Value              `json:"distinct"`
		Weights      [][]int              `json:"weights"`
		WeightedBLEU []Value              `json:"weighted_bleu"`
	} `json:"self_bleu"`
}

func readReference(t *testing.T) *reference {
	t.Helper()
	text, err := os.ReadFile("testdata/reference.json")
	if err != nil {
		t.Fatal(err)
	}
	r := new(reference)
	if err := json.Unmarshal(text, r); err != nil {
		t.Fatal(err)
	}
	if len(r.Tokens) == 0 || len(r.Texts) == 0 || len(r.CorpusBLEU) == 0 || len(r.SelfBLEU) == 0 {
		t.Fatal("reference.json lacks a section")
	}
	return r
}

// readLines keeps empty lines: NLTK's definitions cover them.
func readLines(t testing.TB, name string) []string {
	t.Helper()
	text, err := os.ReadFile("testdata/" + name + ".txt")
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
}

// same compares to 1e-9, relative, so that NLTK's 1e-76 for a missing 4-gram is
// compared too; NaN equals NaN only.
func same(got, want float64) bool {
	if math.IsNaN(got) || math.IsNaN(want) {
		return math.IsNaN(got) && math.IsNaN(want)
	}
	return math.Abs(got-want) <= 1e-9*max(math.Abs(got), math.Abs(want))
}

func isNear(t *testing.T, what string, got, want float64) {
	t.Helper()
	if !same(got, want) {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

func options(t *testing.T, smoothing string, order int) bleuOptions {
	t.Helper()
	s, err := Smoothing(smoothing).parse()
	if err != nil {
		t.Fatal(err)
	}
	return bleuOptions{order: order, smoothing: s}
}

func newSelfBLEU(sentences [][]string, o bleuOptions) metric {
	return newPool(newIndex(sentences, o.order)).selfBLEU(o)
}

// sharedBLEU compares every hypothesis with all the references.
func sharedBLEU(hypotheses, references [][]string, o bleuOptions) metric {
	x := newIndex(hypotheses, o.order)
	return x.bleu(x.collect("", references, nil, 0), o)
}

// eachBLEU gives every hypothesis its own references, as NLTK's corpus_bleu.
func eachBLEU(hypotheses [][]string, references [][][]string, o bleuOptions) metric {
	var rows []float64
	for i := range hypotheses {
		rows = append(rows, sharedBLEU(hypotheses[i:i+1], references[i], o).sum(ones(1))...)
	}
	return additive(rows, o.width(), o.score)
}

func TestCorpusBLEUEqualsNLTK(t *testing.T) {
	for _, c := range readReference(t).CorpusBLEU {
		t.Run(c.Name, func(t *testing.T) {
			for smoothing, scores := range c.BLEU {
				for k, want := range scores {
					b := eachBLEU(c.Hypotheses, c.References, options(t, smoothing, k+1))
					isNear(t, smoothing, b.value(), want)
				}
			}
		})
	}
}

func TestSelfBLEUEqualsNLTK(t *testing.T) {
	for _, c := range readReference(t).SelfBLEU {
		t.Run(c.Name, func(t *testing.T) {
			for smoothing, scores := range c.BLEU {
				for k, want := range scores {
					m := newSelfBLEU(c.Sentences, options(t, smoothing, k+1))
					isNear(t, smoothing, m.value(), want)
				}
			}
			m := newSelfBLEU(c.Sentences, bleuOptions{order: 4})
			for k, weights := range c.Weights {
				isNear(t, "weighted", m.evaluate(weights), float64(c.WeightedBLEU[k]))
			}
			p := newPool(newIndex(c.Sentences, 4))
			for k := range 4 {
				isNear(t, "self-unique", p.selfUnique(k+1).value(), float64(c.SelfUnique[k]))
				isNear(t, "distinct", p.distinct(k+1, nil).value(), float64(c.Distinct[k]))
			}
		})
	}
}

// The whole of Evaluate on the text files, for every tokenisation, smoothing and order.
func TestEvaluateEqualsNLTK(t *testing.T) {
	hypotheses := Hypotheses{Sentences: readLines(t, "hypotheses")}
	references := []Reference{{"harbour", readLines(t, "harbour")}, {"garden", readLines(t, "garden")}}
	for _, c := range readReference(t).Texts {
		for smoothing := range c.SelfBLEU {
			for k := range c.SelfBLEU[smoothing] {
				r, err := Evaluate(t.Context(), hypotheses, references, Options{
					Tokenisation: Tokenisation(c.Tokenisation), Order: k + 1,
					Smoothing: Smoothing(smoothing), NoIntervals: true,
				})
				if err != nil {
					t.Fatal(err)
				}
				what := c.Tokenisation + " " + smoothing
				isNear(t, what, float64(r.Value("self_bleu")), c.SelfBLEU[smoothing][k])
				for name, scores := range c.CorpusBLEU {
					isNear(t, what+" "+name, float64(r.Value("corpus_bleu/"+name)), scores[smoothing][k])
				}
				want := 2 + len(c.CorpusBLEU) + 4*len(c.UniqueNGrams) + len(c.DistinctNGrams)
				if len(r.Scores) != want {
					t.Errorf("%d scores, want %d", len(r.Scores), want)
				}
				for name, values := range c.UniqueNGrams {
					for n, want := range values {
						got := r.Value(fmt.Sprintf("unique_ngrams/%s/%d", name, n+1))
						isNear(t, what+" unique "+name, float64(got), float64(want))
					}
				}
				for n, want := range c.DistinctNGrams {
					isNear(t, what+" distinct", float64(r.Value(fmt.Sprint("distinct_ngrams/", n+1))), float64(want))
				}
				isNear(t, what+" repeated", float64(r.Value("repeated_sentences")), c.Repeated)
			}
		}
		first, err := Evaluate(t.Context(), hypotheses, references,
			Options{Tokenisation: Tokenisation(c.Tokenisation), UnionFirst: 5, NoIntervals: true})
		if err != nil {
			t.Fatal(err)
		}
		isNear(t, "first five", float64(first.Value("corpus_bleu/all")), c.FirstFive.BLEU)
		for n, want := range c.FirstFive.Unique {
			isNear(t, "first five unique", float64(first.Value(fmt.Sprint("unique_ngrams/all/", n+1))), float64(want))
		}
		without, err := Evaluate(t.Context(), hypotheses, references,
			Options{Tokenisation: Tokenisation(c.Tokenisation), Sources: hypotheses.Sentences[:1], NoIntervals: true})
		if err != nil {
			t.Fatal(err)
		}
		isNear(t, c.Tokenisation+" without source", float64(without.Value("corpus_bleu/harbour")), c.WithoutSource)
	}
}

func TestTokenisations(t *testing.T) {
	for _, c := range readReference(t).Tokens {
		var text string
		if err := json.Unmarshal(c["text"], &text); err != nil {
			t.Fatal(err)
		}
		for _, tokenisation := range WhiteSpace.Values() {
			var want struct{ Hypothesis, Reference []string }
			if err := json.Unmarshal(c[string(tokenisation)], &want); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want.Hypothesis, tokenisation.hypothesis(text)); diff != "" {
				t.Errorf("%s hypothesis %q (-want +got):\n%s", tokenisation, text, diff)
			}
			if diff := cmp.Diff(want.Reference, tokenisation.Reference(text)); diff != "" {
				t.Errorf("%s reference %q (-want +got):\n%s", tokenisation, text, diff)
			}
		}
	}
}

var sentencesGenerator = rapid.SliceOfN(rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "c", "d"}), 0, 9), 1, 9)

func drawWeights(t *rapid.T, n int) []int {
	return rapid.SliceOfN(rapid.IntRange(0, 3), n, n).Draw(t, "weights")
}

func TestFastEqualsNaive(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sentences := sentencesGenerator.Draw(t, "sentences")
		references := sentencesGenerator.Draw(t, "references")
		order := rapid.IntRange(1, 5).Draw(t, "order")
		b := sharedBLEU(sentences, references, bleuOptions{order: order})
		if got, want := b.value(), naiveCorpusBLEU(sentences, references, order); !same(got, want) {
			t.Fatalf("corpus BLEU %v, naive %v", got, want)
		}
		weights := drawWeights(t, len(sentences))
		self := newSelfBLEU(sentences, bleuOptions{order: order})
		if got, want := self.evaluate(weights), naiveSelfBLEU(sentences, weights, order); !same(got, want) {
			t.Fatalf("self-BLEU %v, naive %v", got, want)
		}
		x := newIndex(sentences, 5)
		p, set := newPool(x), x.collect("", references, nil, 0)
		present := drawWeights(t, len(sentences))
		for i := range present {
			present[i] = min(present[i], 1)
		}
		picked := pickWeighted(sentences, present)
		if got, want := p.selfUnique(order).evaluate(present), naiveSelfUnique(picked, order); !same(got, want) {
			t.Fatalf("self-unique %v, naive %v", got, want)
		}
		if got, want := p.distinct(order, nil).evaluate(present), naiveUnique(picked, nil, order); !same(got, want) {
			t.Fatalf("distinct %v, naive %v", got, want)
		}
		if got, want := p.distinct(order, set).evaluate(present), naiveUnique(picked, references, order); !same(got,
			want) {
			t.Fatalf("unique %v, naive %v", got, want)
		}
	})
}

// Samples stay in range, copies of all change nothing, and nor does the order
// of sentences and references. That values are right is
// [TestFastEqualsNaive]'s.
func TestSamples(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sentences := sentencesGenerator.Draw(t, "sentences")
		references := sentencesGenerator.Draw(t, "references")
		metrics := func(sentences, references [][]string) []metric {
			x := newIndex(sentences, 4)
			p, set, o := newPool(x), x.collect("", references, nil, 0), bleuOptions{order: 4}
			return []metric{x.bleu(set, o), p.selfBLEU(o), p.selfUnique(2), p.distinct(2, set), p.distinct(2, nil),
				p.selfUnique(3), p.distinct(3, set), repeated(sentences)}
		}
		permuted := metrics(rapid.Permutation(sentences).Draw(t, "permuted sentences"),
			rapid.Permutation(references).Draw(t, "permuted references"))
		weights, once := drawWeights(t, len(sentences)), ones(len(sentences))
		thrice := slices.Repeat([]int{3}, len(sentences))
		for k, m := range metrics(sentences, references) {
			// 1e-9 for the sum of shares 1/k.
			if v := m.evaluate(weights); v < 0 || v > 100+1e-9 {
				t.Fatalf("metric %d: %v", k, v)
			}
			if a, b, c := m.evaluate(once), m.evaluate(thrice), permuted[k].evaluate(once); !same(a, b) || !same(a, c) {
				t.Fatalf("metric %d: %v once, %v three times, %v in another order", k, a, b, c)
			}
		}
	})
}

func TestSmoothing(t *testing.T) {
	for text, want := range map[string]string{"": "none", "none": "none", "epsilon": "epsilon[0.1]",
		"epsilon=0.03": "epsilon[0.03]", "add-k": "add-k[1]", "add-k=2": "add-k[2]", "exp": "exp"} {
		s, err := Smoothing(text).parse()
		if err != nil || s.String() != want {
			t.Errorf("%q: %q, %v; want %q", text, s, err, want)
		}
	}
	for text, want := range map[string]string{"floor": "is not one of none, epsilon[=E], add-k[=K], exp",
		"epsilon=x": "must be a number", "add-k=0": "above 0", "add-k=-1": "above 0", "add-k=Inf": "above 0",
		"exp=2": "takes no constant"} {
		if _, err := Smoothing(text).parse(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want %q", text, err, want)
		}
	}
}
