package infill

import (
	"testing"

	"infill/lm/lmtest"
	"infill/tokenize"
)

// fakeWords is the vocabulary of the fake model: 5 special tokens, one unused, words and pieces.
func fakeWords() []string {
	return []string{"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "[unused0]",
		"the", "cat", "dog", "sat", "ran", "on", "mat", "rug", "un", "##seen", "##known", ".", "seen"}
}

func newTokenizer(t testing.TB) *tokenize.Tokenizer {
	t.Helper()
	tokenizer, err := tokenize.New(fakeWords(), tokenize.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return tokenizer
}

// newModel makes the fake model, whose bonds have a strength, and which reads so many tokens.
func newModel(positions int, bond float64) *lmtest.Model {
	m := lmtest.New(len(fakeWords()), positions)
	m.Bond = bond
	return m
}

var _ LanguageModel = (*lmtest.Model)(nil)

// followed is how many chains a test of a law follows. The race detector's run, with
// -short, follows half: enough for the same limits.
func followed(chains int) int {
	if testing.Short() {
		return chains / 2
	}
	return chains
}

// chainOptions are the defaults of chains over all that the fake's slots may take.
func chainOptions() Options {
	o := DefaultOptions()
	c := DefaultChains(Samplers()[0])
	o.Chains = &c
	return o
}
