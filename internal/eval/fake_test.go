package eval

import (
	"context"
	"math"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"infill/infill"
	"infill/internal/eval/corpus"
	"infill/internal/logmath"
	"infill/lm"
	"infill/samplers"
	"infill/tokenize"
)

// The model of these tests is real but for its distribution: slots are independent, and each token has a weight.
// Everything above it, tokenizer, chains, ranking, is the program's own.

// words are the vocabulary beside punctuation.
func words() []string {
	return strings.Fields("the a cat dog bird fish sat ran flew swam on under over by mat rug tree pond old young " +
		"grey small slept sang quickly slowly tonight today again script alert")
}

func newTokenizer(t testing.TB) *tokenize.Tokenizer {
	t.Helper()
	vocabulary := append(strings.Fields("[PAD] [UNK] [CLS] [SEP] [MASK] . , ! < > ( ) ' \" / & 1"), words()...)
	tokenizer, err := tokenize.New(vocabulary, tokenize.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return tokenizer
}

// fakeModel counts the fills it begins.
type fakeModel struct {
	vocabulary, positions int
	device, sha256        string
	closing               error
	begun                 atomic.Int64
}

func weight(token int) float64 { return 1.5 * math.Sin(3*float64(token)) }

func (m *fakeModel) Description() lm.Description {
	return lm.Description{Name: "fake", SHA256: m.sha256, Runtime: "1.2.3", Device: m.device}
}

func (m *fakeModel) Close() error { return m.closing }

func (m *fakeModel) Positions() int { return m.positions }

func (m *fakeModel) MaskedLogProbabilities(ctx context.Context, ids, slots []int) ([][]float32, error) {
	m.begun.Add(1)
	return slices.Repeat([][]float32{m.distribution()}, len(slots)), ctx.Err()
}

func (m *fakeModel) LogProbabilities(ctx context.Context, rows []lm.Row) ([][]float32, error) {
	return slices.Repeat([][]float32{m.distribution()}, len(rows)), ctx.Err()
}

// distribution is that of every position, whatever the others hold.
func (m *fakeModel) distribution() []float32 {
	weights := make([]float64, m.vocabulary)
	for token := range weights {
		weights[token] = weight(token)
	}
	logmath.Normalise(weights)
	logp := make([]float32, m.vocabulary)
	for token := range logp {
		logp[token] = float32(weights[token])
	}
	return logp
}

func (m *fakeModel) Score(ctx context.Context, ids []int, queries []lm.Query) ([]float64, error) {
	return make([]float64, len(queries)), nil
}

func (m *fakeModel) NewTarget(ids, slots []int, o lm.TargetOptions) (lm.Target, error) {
	t := &fakeTarget{support: o.Support}
	for _, s := range o.Support {
		t.categories = append(t.categories, len(s))
		t.width = max(t.width, len(s))
	}
	return t, nil
}

type fakeTarget struct {
	support    [][]int
	categories []int
	width      int
	rows       int64
}

var (
	_ infill.LanguageModel       = (*fakeModel)(nil)
	_ lm.Target                  = (*fakeTarget)(nil)
	_ samplers.GradientTarget    = (*fakeTarget)(nil)
	_ samplers.ConditionalTarget = (*fakeTarget)(nil)
)

func (t *fakeTarget) Categories() []int { return t.categories }
func (t *fakeTarget) Counts() lm.Counts {
	return lm.Counts{EnergyEvaluations: t.rows, Rows: t.rows}
}

func (t *fakeTarget) Energy(ctx context.Context, states []int, energy []float64) error {
	t.rows += int64(len(energy))
	slots := len(t.support)
	for c := range energy {
		energy[c] = 0
		for slot, category := range states[c*slots : (c+1)*slots] {
			energy[c] += weight(t.support[slot][category])
		}
	}
	return ctx.Err()
}

func (t *fakeTarget) EnergyGradient(ctx context.Context, states []int, energy, gradient []float64) error {
	slots := len(t.support)
	for c := range energy {
		for slot, tokens := range t.support {
			for category, token := range tokens {
				gradient[(c*slots+slot)*t.width+category] = weight(token)
			}
		}
	}
	return t.Energy(ctx, states, energy)
}

func (t *fakeTarget) LogConditionals(ctx context.Context, _ []int, slots []int, logp []float64) error {
	for c, slot := range slots {
		row := logp[c*t.width : c*t.width+len(t.support[slot])]
		for category, token := range t.support[slot] {
			row[category] = weight(token)
		}
		logmath.Normalise(row)
	}
	return ctx.Err()
}

// gardens is a corpus of the tests' own; one sentence is markup, one has a single word, one is longer than the model.
const gardens = `the old cat sat on the mat .
a young dog ran under the tree today .
the grey bird flew over the pond again .
slept
a small fish swam slowly by the old rug .
<script> alert ( 1 ) </script> the cat & the dog !
the cat the cat the cat the cat the cat the cat the cat the cat the cat the cat the cat the cat the cat the cat the cat .
the dog sang quickly , the bird sang slowly .
a fish swam in the pond tonight .
the young cat slept under the old tree .
`

const ponds = `the fish swam over the grey pond .
a bird sat by the small tree and sang .
the dog slept on the old mat tonight .
a cat ran quickly under the young tree .
the small bird flew by again .
today the old fish slept slowly .
`

func newCorpus(t testing.TB, name, text string) *corpus.Corpus {
	t.Helper()
	c, err := corpus.Read(name, name+".txt", strings.NewReader(text), "", "")
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// small is a run of 6 sentences and 3 methods, 4 chains of 6 steps.
func small(t testing.TB) (Options, *fakeModel) {
	t.Helper()
	tokenizer := newTokenizer(t)
	model := &fakeModel{vocabulary: tokenizer.VocabularySize(), positions: 32, device: "cpu",
		sha256: strings.Repeat("ab", 32)}
	c, base, _, err := Preset("dlp")
	if err != nil {
		t.Fatal(err)
	}
	base.Chains.Steps = 6
	c.Sentences, c.Chains, c.Top, c.Metrics.Resamples = 6, 4, 2, 20
	if c.Samplers, err = ParseVariants("gibbs,dmala,gwg:steps=3,name=short", base); err != nil {
		t.Fatal(err)
	}
	return Options{
		Dir: t.TempDir(), Config: c, Threads: 1,
		Models:  []*infill.Filler{infill.New(model, tokenizer)},
		Corpora: []*corpus.Corpus{newCorpus(t, "gardens", gardens), newCorpus(t, "ponds", ponds)},
		Observe: func(Progress) {}, Note: func(string) {},
	}, model
}
