package eval

import (
	"errors"
	"math"
	"strings"
	"testing"

	"infill/infill"
	"infill/internal/ask"
	"infill/internal/eval/corpus"
	"infill/internal/lmtest"
	"infill/tokenize"
)

// The model of these tests is real but for its distribution: slots are
// independent, and each token has a weight. Everything above it, tokenizer,
// chains, ranking, is the program's own.

// words are the vocabulary beside punctuation.
func words() []string {
	return strings.Fields("the a cat dog bird fish sat ran flew swam on under over by mat rug tree pond old young " +
		"grey small slept sang quickly slowly tonight today again script alert")
}

func newTokenizer(t testing.TB) *tokenize.Tokenizer {
	t.Helper()
	vocabulary := append(strings.Fields("[PAD] [UNK] [CLS] [SEP] [MASK] . , ! < > ( ) ' \" / & 1"), words()...)
	tokenizer, err := lmtest.Tokenizer(vocabulary)
	if err != nil {
		t.Fatal(err)
	}
	return tokenizer
}

// weight is that of a token; there are no bonds.
func weight(token int) float64 { return 1.5 * math.Sin(3*float64(token)) }

// failsToClose is a model that cannot be closed.
type failsToClose struct{ infill.LanguageModel }

func (failsToClose) Close() error { return errors.New("closing fails") }

// gardens is a corpus of the tests' own; one sentence is markup, one has a
// single word, one is longer than the model.
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
	c, err := corpus.Read(name, name+".txt", strings.NewReader(text), "")
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// small is a run of 6 sentences and 3 methods, 4 chains of 6 steps.
func small(t testing.TB) (Options, *lmtest.Model) {
	t.Helper()
	tokenizer := newTokenizer(t)
	model := lmtest.New(tokenizer.VocabularySize(), 32)
	model.Weight, model.Bond = weight, 0
	c, base, _, err := Preset("dlp")
	if err != nil {
		t.Fatal(err)
	}
	base = append(base, ask.MustGive("steps", "6"))
	c.Sentences, c.Chains, c.Top = 6, 4, 2
	if c.Samplers, err = ParseVariants("gibbs,dmala,gwg:steps=3,name=short", base); err != nil {
		t.Fatal(err)
	}
	return Options{
		Dir: t.TempDir(), Config: c,
		Models:  []*infill.Filler{infill.New(model, tokenizer)},
		Corpora: []*corpus.Corpus{newCorpus(t, "gardens", gardens), newCorpus(t, "ponds", ponds)},
		Observe: func(Progress) {}, Note: func(string) {},
	}, model
}
