package metrics

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func evaluate(t *testing.T, h Hypotheses, references []Reference, o Options) *Report {
	t.Helper()
	r, err := Evaluate(t.Context(), h, references, o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func warnings(list []Warning) string {
	var text strings.Builder
	for _, w := range list {
		fmt.Fprintf(&text, "%s: %s\n", w.Score, w.Message)
	}
	return text.String()
}

// The names that scripts depend on, with null for what is not defined and never NaN.
func TestReportJSON(t *testing.T) {
	r := evaluate(t, Hypotheses{Sentences: []string{"a b"}}, []Reference{{"one", []string{"a b c", "d"}}},
		Options{UniqueOrders: []int{2, 3}, Version: "1.2.3", NoIntervals: true})
	text, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	again := new(Report)
	if err := json.Unmarshal(text, again); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(r, again,
		cmp.Comparer(func(a, b Value) bool { return a == b || !a.Defined() && !b.Defined() })); diff != "" {
		t.Errorf("read back (-written +read):\n%s", diff)
	}
	// These have tests of their own.
	for _, key := range []string{"scores", "warnings", "signature"} {
		if _, ok := got[key]; !ok {
			t.Errorf("no key %q", key)
		}
		delete(got, key)
	}
	want := map[string]any{
		"sentences": 1.0, "tokens": 2.0,
		"references": []any{
			map[string]any{"name": "one", "sentences": 2.0, "tokens": 4.0, "excluded": 0.0, "sha256": sumReference},
			map[string]any{"name": "all", "sentences": 2.0, "tokens": 4.0, "excluded": 0.0, "sha256": sumUnion},
		},
		"hypotheses_sha256": sumHypothesis,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	// Both n-gram lengths that the hypothesis has match in full, the other two
	// count 2^-1022 of 1. Of the lengths 3 and 1 the shorter is taken, so there
	// is no brevity penalty.
	isNear(t, "corpus BLEU", float64(r.Value("corpus_bleu/one")), 100*math.Pow(0x1p-1022, 0.5))
	isNear(t, "corpus BLEU, union", float64(r.Value("corpus_bleu/all")), 100*math.Pow(0x1p-1022, 0.5))
	for _, part := range []string{"self_bleu: not defined for one sentence",
		"unique_ngrams/self/3: not defined: no sentence has 3 tokens", "corpus_bleu/one: no matching 4-gram: "} {
		if !strings.Contains(warnings(r.Warnings), part) {
			t.Errorf("no warning %q in\n%s", part, warnings(r.Warnings))
		}
	}
}

// What sha256sum says of "a b c\nd\n", of that sum in hex without a
// newline, and of "a b\n".
const (
	sumReference  = "4c64c7c800bae532a28ef7c00e77c9d88e237dcc02006637bdd25f78b430abc2"
	sumUnion      = "fd018567e825409aa71f2035daa0bef7b1c9c23f6e0c66f6d45904891e2becab"
	sumHypothesis = "01186fcf04b4b447f393e552964c08c7b419c1ad7a25c342a0b631b1967d3a27"
)

func TestSignatures(t *testing.T) {
	o := Options{Version: "1.2.3", Seed: 9, Sources: []string{"q"}, UnionFirst: 1, Tokenisation: BertGen,
		Order: 3, Smoothing: "add-k", UniqueOrders: []int{3, 2, 3}}
	h := Hypotheses{Sentences: []string{"a b c", "a b d", "e f", "g h", "a"}}
	r := evaluate(t, h, []Reference{{"one", []string{"a b c", "d"}}, {"two", []string{"Q", "x y"}}}, o)
	tail := "|intervals:jackknife|unit:sentence|confidence:0.95|seed:9|version:1.2.3"
	one, two := "one[2@"+r.References[0].SHA256[:12]+"]", "two[1@"+r.References[1].SHA256[:12]+"]"
	all := "all[2@" + r.References[2].SHA256[:12] + "]"
	for name, want := range map[string]string{
		"self_bleu": "metric:self-bleu|tokenisation:bert-gen|bleu-n:3|smoothing:add-k[1]|length:closest" +
			tail,
		"corpus_bleu/one": "metric:corpus-bleu|tokenisation:bert-gen|bleu-n:3|smoothing:add-k[1]|length:closest|" +
			"references:" + one + tail,
		"corpus_bleu/two": "metric:corpus-bleu|tokenisation:bert-gen|bleu-n:3|smoothing:add-k[1]|length:closest|" +
			"references:" + two + "|excluded:1" + tail,
		"unique_ngrams/all/2": "metric:unique-ngrams|tokenisation:bert-gen|n:2|references:" + all +
			"|excluded:1|union-first:1" + tail,
		"distinct_ngrams/3": "metric:distinct-ngrams|tokenisation:bert-gen|n:3" + tail,
	} {
		s, ok := r.Score(name)
		if !ok || s.Signature != want {
			t.Errorf("%s: %v\n got %s\nwant %s", name, ok, s.Signature, want)
		}
	}
	whole := "metrics:bleu+self-bleu+unique-n-grams|tokenisation:bert-gen|bleu-n:3|smoothing:add-k[1]|length:closest|" +
		"n:2,3|references:" + one + "+" + two + "+" + all + "|excluded:1|union-first:1" + tail
	if got := r.Signature; got != whole {
		t.Errorf(" got %s\nwant %s", got, whole)
	}
	// Whatever changes a number changes its signature.
	for what, change := range map[string]func(o *Options, h *Hypotheses){
		"tokenisation": func(o *Options, _ *Hypotheses) { o.Tokenisation = DISCS },
		"order":        func(o *Options, _ *Hypotheses) { o.Order = 2 },
		"smoothing":    func(o *Options, _ *Hypotheses) { o.Smoothing = "add-k=2" },
		"unique":       func(o *Options, _ *Hypotheses) { o.UniqueOrders = []int{1} },
		"sources":      func(o *Options, _ *Hypotheses) { o.Sources = nil },
		"union":        func(o *Options, _ *Hypotheses) { o.UnionFirst = 0 },
		"intervals":    func(o *Options, _ *Hypotheses) { o.NoIntervals = true },
		"confidence":   func(o *Options, _ *Hypotheses) { o.Confidence = 0.9 },
		"seed":         func(o *Options, _ *Hypotheses) { o.Seed = 10 },
		"version":      func(o *Options, _ *Hypotheses) { o.Version = "1.2.4" },
		"unit":         func(_ *Options, h *Hypotheses) { h.Prompts = []string{"a", "b", "c", "d", "e"} },
	} {
		changed, sentences := o, h
		change(&changed, &sentences)
		if got := evaluate(t, sentences, []Reference{{"one", []string{"a b c", "d"}}, {"two", []string{"Q", "x y"}}},
			changed); got.Signature == whole {
			t.Errorf("%s changed, the signature did not", what)
		}
	}
}

// Three prompts, worked out by hand.
func TestPerPrompt(t *testing.T) {
	h := Hypotheses{
		Sentences:      []string{"a b", "c", "a b", "a b", "c d", "e f", "g"},
		Prompts:        []string{"x", "y", "x", "x", "x", "z", "z"},
		LogLikelihoods: []float64{-1, -7, -2, -4, -3, -6, -5},
	}
	r := evaluate(t, h, nil, Options{Top: 3, NoIntervals: true, Order: 1})
	if r.Prompts != 3 {
		t.Errorf("%d prompts, want 3", r.Prompts)
	}
	// Prompt x: three sentences of two tokens match in full, one not at all: 6
	// of 8 unigrams. Prompt z: 0.
	isNear(t, "self-BLEU per prompt", float64(r.Value("self_bleu_per_prompt")), (75.0+0)/2)
	isNear(t, "repeated within prompts", float64(r.Value("repeated_within_prompt")), 100*2.0/7)
	// Likeliest three of x: a b, a b, c d; of y: c; of z: both.
	isNear(t, "repeated top", float64(r.Value("repeated_top")), 100*1.0/6)
	isNear(t, "repeated", float64(r.Value("repeated_sentences")), 100*2.0/7)
	isNear(t, "mean U", float64(r.Value("log_likelihood_mean")), -4)
	isNear(t, "best U", float64(r.Value("log_likelihood_best")), (-1.0-7-5)/3)
	if len(r.References) != 0 || r.Value("corpus_bleu/all").Defined() || r.Value("unique_ngrams/all/1").Defined() {
		t.Errorf("no reference was given: %+v", r)
	}
	plain := evaluate(t, Hypotheses{Sentences: h.Sentences, LogLikelihoods: h.LogLikelihoods}, nil,
		Options{NoIntervals: true})
	if !plain.Value("log_likelihood_mean").Defined() || plain.Value("log_likelihood_best").Defined() {
		t.Errorf("without prompts: %+v", plain.Scores)
	}
}

// Every score that Evaluate gives an interval has the one that the jackknife
// gives, by prompt, inside 0..100.
func TestEvaluateIntervals(t *testing.T) {
	sentences, clusters := promptTexts(newRandom(1), 12, 3)
	h := Hypotheses{Sentences: lines(sentences)}
	for i, c := range clusters {
		h.Prompts = append(h.Prompts, fmt.Sprint("prompt ", c))
		h.LogLikelihoods = append(h.LogLikelihoods, -float64(i*i%17))
	}
	o := Options{Seed: 3, Top: 2, Confidence: 0.9}
	references := []Reference{{"other", lines(benchmarkSentences(2, 50))}}
	r := evaluate(t, h, references, o)
	if len(r.Scores) < 20 {
		t.Fatalf("%d scores", len(r.Scores))
	}
	for _, s := range r.Scores {
		i := s.Interval
		if i == nil || i.Low.Defined() != (i.StandardError > 0) || i.Low > i.High || i.Confidence != 0.9 ||
			i.Units != 12 || i.Unit != "prompt" {
			t.Fatalf("%s: %+v", s.Name(), i)
		}
		if s.Unit == percent && (i.Low < 0 || i.High > 100) {
			t.Errorf("%s: %+v", s.Name(), i)
		}
	}
	m := newSelfBLEU(sentences, bleuOptions{order: 4})
	want, err := interval(t.Context(), m, prompts(clusters), rand.New(rand.NewPCG(3, 0)), 0.9)
	if err != nil {
		t.Fatal(err)
	}
	if got, _ := r.Score("self_bleu"); *got.Interval != *want {
		t.Errorf("got %+v, want %+v", *got.Interval, *want)
	}
	if !strings.Contains(warnings(r.Warnings), "intervals from 12 prompts are rough") {
		t.Errorf("warnings:\n%s", warnings(r.Warnings))
	}
	if diff := cmp.Diff(r, evaluate(t, h, references, o),
		cmp.Comparer(func(a, b Value) bool { return a == b || !a.Defined() && !b.Defined() })); diff != "" {
		t.Errorf("the same again differs:\n%s", diff)
	}
	few := evaluate(t, Hypotheses{Sentences: h.Sentences[:12], Prompts: h.Prompts[:12]}, nil, Options{})
	if few.Scores[0].Interval != nil || !strings.Contains(warnings(few.Warnings), "no intervals: 4 prompts") {
		t.Errorf("4 prompts: %+v\n%s", few.Scores[0].Interval, warnings(few.Warnings))
	}
}

func TestSourcesAreExcluded(t *testing.T) {
	h := Hypotheses{Sentences: []string{"the tide turns at nine", "the tide turns at noon"}}
	references := []Reference{{"sea", []string{"The tide turns at noon", "boats come home", "the  tide turns at noon"}}}
	o := Options{NoIntervals: true, Tokenisation: BertGen, Sources: []string{"the tide turns at NOON"}}
	with, without := evaluate(t, h, references, Options{NoIntervals: true, Tokenisation: BertGen}),
		evaluate(t, h, references, o)
	if s := without.References[0]; s.Excluded != 2 || s.Sentences != 1 {
		t.Errorf("%+v", s)
	}
	if s := without.References[1]; s.Excluded != 2 || s.Sentences != 1 {
		t.Errorf("union: %+v", s)
	}
	if a, b := with.Value("corpus_bleu/sea"), without.Value("corpus_bleu/sea"); a < 10 || b != 0 {
		t.Errorf("with source %v, without %v", a, b)
	}
	_, err := Evaluate(t.Context(), h, []Reference{{"sea", references[0].Sentences[:1]}}, o)
	if err == nil || !strings.Contains(err.Error(), `reference "sea" has no sentence left: all 1`) {
		t.Errorf("nothing left: %v", err)
	}
}

func TestEvaluateRefusesBadInput(t *testing.T) {
	two := Hypotheses{Sentences: []string{"a", "b"}}
	good := []Reference{{"one", []string{"a"}}}
	for want, c := range map[string]struct {
		h          Hypotheses
		references []Reference
		o          Options
	}{
		"no hypotheses":             {h: Hypotheses{}},
		"hypotheses hold no tokens": {h: Hypotheses{Sentences: []string{"", " \t"}}},
		"2 sentences but 1 prompts": {h: Hypotheses{Sentences: two.Sentences, Prompts: []string{"x"}}},
		"2 sentences but 3 log-likelihoods": {h: Hypotheses{Sentences: two.Sentences,
			LogLikelihoods: []float64{1, 2, 3}}},
		"log-likelihood of sentence 2 is NaN": {h: Hypotheses{Sentences: two.Sentences,
			LogLikelihoods: []float64{1, math.NaN()}}},
		`reference "one" has no sentence`:     {h: two, references: []Reference{{"one", nil}}},
		`reference "one" holds no tokens`:     {h: two, references: []Reference{{"one", []string{"", ""}}}},
		"reference: it has no name":           {h: two, references: []Reference{{"", []string{"a"}}}},
		`reference: the name "all" is taken`:  {h: two, references: []Reference{{"all", []string{"a"}}}},
		`reference: the name "self" is taken`: {h: two, references: []Reference{{"self", []string{"a"}}}},
		`reference: the name "a|b"`:           {h: two, references: []Reference{{"a|b", []string{"a"}}}},
		`reference: the name "a b"`:           {h: two, references: []Reference{{"a b", []string{"a"}}}},
		"two references are named":            {h: two, references: append(good[:1:1], good...)},
		`"moses" is not one of whitespace`:    {h: two, o: Options{Tokenisation: "moses"}},
		"order: -1 is not":                    {h: two, o: Options{Order: -1}},
		"order: 17 is not":                    {h: two, o: Options{Order: 17}},
		"ngrams: 0 is not":                    {h: two, o: Options{UniqueOrders: []int{0}}},
		"ngrams: 17 is not":                   {h: two, o: Options{UniqueOrders: []int{2, 17}}},
		"confidence: 95 is not":               {h: two, o: Options{Confidence: 95}},
		"union-first: -1 is not":              {h: two, o: Options{UnionFirst: -1}},
		"top: -1 is not":                      {h: two, o: Options{Top: -1}},
		"repetition among the top":            {h: two, o: Options{Top: 5}},
		"version":                             {h: two, o: Options{Version: "a|b"}},
	} {
		_, err := Evaluate(t.Context(), c.h, c.references, c.o)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("error %v, want one line with %q", err, want)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Evaluate(ctx, Hypotheses{Sentences: strings.Split("a b,c,d e,f g,a", ",")}, good,
		Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

func TestEmptySentencesAreCountedAndSaid(t *testing.T) {
	r := evaluate(t, Hypotheses{Sentences: []string{"a b", "", "a"}}, []Reference{{"one", []string{"a", ""}}},
		Options{NoIntervals: true})
	if r.Sentences != 3 || !strings.Contains(warnings(r.Warnings), "1 of 3 sentences hold no token") ||
		!strings.Contains(warnings(r.Warnings), `reference "one" has empty sentences`) {
		t.Errorf("%d sentences\n%s", r.Sentences, warnings(r.Warnings))
	}
}

// Most sentences have one equal: self-BLEU is near 100, and the interval
// would reach above it.
func TestIntervalsStayInRange(t *testing.T) {
	var sentences [][]string
	for i := range 30 {
		sentences = append(sentences, strings.Fields(strings.Repeat(fmt.Sprintf("w%d ", i/2+i/28*i), 6)))
	}
	m := newSelfBLEU(sentences, bleuOptions{order: 4})
	free, err := interval(t.Context(), m, each(len(sentences)), newRandom(1), 0.95)
	if err != nil {
		t.Fatal(err)
	}
	if free.High <= 100 {
		t.Errorf("a metric by itself knows no range, and this case does not show it: %+v", free)
	}
	// Of two sentences, what is left of one has no self-BLEU, so there is no interval.
	two := newSelfBLEU([][]string{{"a", "b"}, {"a", "c"}}, bleuOptions{order: 4})
	if in, err := interval(t.Context(), two, each(2), newRandom(1), 0.95); err != nil || in.Low.Defined() ||
		in.High.Defined() || in.StandardError.Defined() {
		t.Errorf("%+v, %v", in, err)
	}
	s, _ := evaluate(t, Hypotheses{Sentences: lines(sentences)}, nil, Options{}).Score("self_bleu")
	if s.Interval.High != 100 || s.Interval.Low > 100 || s.Value >= 100 {
		t.Errorf("%+v", s.Interval)
	}
}

// Whatever the texts hold, there is a report that JSON can hold, or a one-line error.
func FuzzEvaluate(f *testing.F) {
	f.Add("a b c\na b c\n", "a b\n", "bert-gen")
	f.Add("a", "", "")
	f.Add("\xff", "@@UNKNOWN@@ ''", "discs")
	f.Add(strings.Repeat("x ", 1000), "x\n\n\nx x", "whitespace")
	f.Fuzz(func(t *testing.T, hypotheses, references, tokenisation string) {
		r, err := Evaluate(t.Context(), Hypotheses{Sentences: strings.Split(hypotheses, "\n")},
			[]Reference{{"one", strings.Split(references, "\n")}},
			Options{Tokenisation: Tokenisation(tokenisation)})
		if err != nil {
			if strings.Contains(err.Error(), "\n") {
				t.Fatalf("error of several lines: %q", err)
			}
			return
		}
		if _, err := json.Marshal(r); err != nil {
			t.Fatal(err)
		}
	})
}
