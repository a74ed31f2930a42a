package infill

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func setLexicon(t *testing.T, f *Filler, words string) {
	t.Helper()
	list, err := f.readLexicon(strings.NewReader(words))
	if err != nil {
		t.Fatal(err)
	}
	f.name(list)
}

// covered is how likely the words of a template of one blank begin with a piece.
func covered(t *testing.T, f *Filler, template, piece string) float64 {
	t.Helper()
	text, err := f.Template(template)
	if err != nil {
		t.Fatal(err)
	}
	logp, err := f.loaded.MaskedLogProbabilities(t.Context(), text.IDs, text.Slots)
	id, ok := f.tokenizer.ID(piece)
	if err != nil || !ok {
		t.Fatal(err, ok)
	}
	return math.Exp(float64(logp[0][id]))
}

// TestLexicon: words that exist have what the list leaves them, others what the model gives their pieces, and a list
// that cannot be read is refused in one line.
func TestLexicon(t *testing.T) {
	f, model := newFake(t)
	model.bond = 1.5
	o := DefaultOptions()
	o.Top = 50
	find := func(r *Result, word string) *Fill {
		for i := range r.Fills {
			if r.Fills[i].Values[0] == word {
				return &r.Fills[i]
			}
		}
		t.Fatalf("%s is not among %d fills", word, len(r.Fills))
		return nil
	}
	const template = "the [MASK] sat ."
	without := fill(t, f, template, o)
	setLexicon(t, f, "seen\t8\nunseen\t2\nthe\nunwritten\n")
	with := fill(t, f, template, o)
	share := newPieceWeights(usualWords.Existing, 1).sum() // of all numbers of pieces
	// The only word of two pieces, as far as un begins the blank.
	unseen := usualWords.Existing[0] / share * covered(t, f, "the [MASK:2] sat .", "un")
	for word, want := range map[string]float64{
		"seen":   *find(without, "seen").Probability / share,
		"unseen": unseen,
		// What the model gives un and known, and not half of it.
		"unknown": *find(without, "unknown").Probability * usualWords.Invented[0] / usualWeights[0] / share,
	} {
		if got := *find(with, word).Probability; math.Abs(got/want-1) > 1e-6 {
			t.Errorf("%s has %v, want %v", word, got, want)
		}
	}
	// A list and a pattern give a word what it has without.
	listed := o
	listed.Words = map[int][]string{1: {"seen", "unseen", "unknown"}}
	for _, r := range []*Result{fill(t, f, template, listed), fill(t, f, "the [MASK~.*(seen|known)] sat .", o)} {
		for _, word := range listed.Words[1] {
			if got, want := find(r, word).LogLikelihood, find(with, word).LogLikelihood; math.Abs(got-want) > 1e-6 {
				t.Errorf("%s has the log-likelihood %v, want %v", word, got, want)
			}
		}
	}
	if !*with.Proven || !strings.Contains(with.Signature, "|lexicon:") ||
		strings.Contains(without.Signature, "|lexicon:") {
		t.Errorf("proven %v, %s", *with.Proven, with.Signature)
	}
	if pattern := fill(t, f, "the [MASK~un.*] sat .", o); pattern.Fills[0].Values[0] != "un" &&
		pattern.Fills[0].Values[0] != "unseen" {
		t.Errorf("un.* gives %q first", pattern.Fills[0].Values[0])
	}
	// Names may be of several pieces, all of them.
	setLexicon(t, f, "unseen\n")
	names := fill(t, f, template, o)
	for word, want := range map[string]float64{"seen": *find(without, "seen").Probability / share, "unseen": unseen} {
		if got := *find(names, word).Probability; math.Abs(got/want-1) > 1e-6 {
			t.Errorf("by a list of names %s has %v, want %v", word, got, want)
		}
	}
	for list, want := range map[string]string{
		"":               "none of its 0 lines",
		"zebra\n":        "none of its 1 lines",
		"seen\ntwo dogs": `line 2: "two dogs" is not a word`,
		"seen\tmany":     `line 1: "many" is not how often`,
		"seen\xff":       "is not a word",
	} {
		name := filepath.Join(t.TempDir(), "words.txt")
		if err := os.WriteFile(name, []byte(list), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := f.openLexicon(name); err == nil || !strings.Contains(err.Error(), want) ||
			strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: %v, want %q", list, err, want)
		}
	}
}

// TestTemperedPieces: the temperature changes how likely each number of pieces is as it changes each piece.
func TestTemperedPieces(t *testing.T) {
	f := openMini(t)
	o := DefaultOptions()
	o.Top = 100
	before := 0.0
	for _, temperature := range []float64{0.001, 0.1, 0.5, 1} {
		o.Temperature = temperature
		sum, several := 0.0, 0.0
		for _, fill := range fill(t, f, "It was quite [MASK] that he came.", o).Fills {
			sum += *fill.Probability
			if len(fill.TokenIDs) > 1 {
				several += *fill.Probability
			}
		}
		if sum > 1 || several < before || temperature < 0.5 && several > 1e-3 || temperature == 1 && several < 1e-3 {
			t.Errorf("temperature %v: all have %v, those of several pieces %v (%v before)", temperature, sum, several,
				before)
		}
		before = several
	}
}

// TestListedPieces: a pattern takes words of four pieces and more that a lexicon has, with the law of those words, and
// none that it does not have.
func TestListedPieces(t *testing.T) {
	f := New(&fakeModel{positions: 64, bond: 1.5}, newTokenizer(t))
	words := []string{"unseenseenknown", "unseenknownseen", "unknownseenseen", "unseenknownseenseenknown"}
	setLexicon(t, f, strings.Join(words, "\n")+"\nthe\nunseenseenseenseenseenseenseenseenseen\n")
	o := DefaultOptions()
	o.Top = 50
	// All words of so many pieces hold the weight of their number of pieces.
	held := map[int]float64{}
	r := fill(t, f, "the [MASK~un.{10,}] sat .", o)
	for _, fill := range r.Fills {
		n := len(fill.TokenIDs)
		if n >= 4 && !slices.Contains(words, fill.Values[0]) {
			t.Errorf("%s is invented", fill.Values[0])
		}
		held[n] += *fill.Probability
	}
	share := newPieceWeights(usualWords.Existing, 1).sum()
	for n, existing := range map[int]float64{4: 0.011 * 0.011 / 0.026, 6: math.Pow(0.011, 4) / math.Pow(0.026, 3)} {
		existing *= covered(t, f, fmt.Sprintf("the [MASK:%d] sat .", n), "un") / share
		if math.Abs(held[n]/existing-1) > 1e-6 {
			t.Errorf("words of %d pieces hold %v, want %v", n, held[n], existing)
		}
	}
	if !*r.Proven || held[5] != 0 {
		t.Errorf("proven %v, words of five pieces hold %v", *r.Proven, held[5])
	}
	o.Top = 500
	for template, blanks := range map[string]int{"the [MASK~un.{10,}] sat on the [MASK~un.{10,}] .": 2,
		"the [MASK=a~un.{10,}] sat on [MASK=a] .": 1} {
		seen := map[string]bool{}
		for _, fill := range fill(t, f, template, o).Fills {
			seen[strings.Join(fill.Values[:blanks], " ")] = true
		}
		for _, first := range words {
			for _, second := range words {
				if want := strings.Join([]string{first, second}[:blanks], " "); !seen[want] {
					t.Errorf("%s: no %s", template, want)
				}
			}
		}
	}
	o = chainOptions()
	o.Chains, o.Steps, o.Top, o.Seed = 20, 20, 100, 1
	met := 0
	for _, fill := range fill(t, f, "the [MASK~un.{10,}] sat .", o).Fills {
		if slices.Contains(words, fill.Values[0]) {
			met++
		}
	}
	if met < 2 {
		t.Errorf("chains met %d of the words", met)
	}
	f.model.Lexicon = noWords
	for template, option := range map[string]string{"the [MASK~unseenseenkno.*] .": "pattern"} {
		if err := check(f, template, DefaultOptions()); err == nil || !strings.HasPrefix(err.Error(), option) {
			t.Errorf("%s without a lexicon: %v", template, err)
		}
	}
}

// TestLexiconTogether: of several texts a word has the product of its probabilities in each, by a lexicon as without.
func TestLexiconTogether(t *testing.T) {
	f := New(&fakeModel{positions: 64, bond: 1.5}, newTokenizer(t))
	texts := []string{"the [MASK~.*seen.*] sat .", "on the rug the [MASK~.*seen.*] ran ."}
	for _, list := range []string{"", "seen\nunseen\ncatseen\nunseenknown\nunseenseenknown\n"} {
		if list != "" {
			setLexicon(t, f, list)
		}
		o := DefaultOptions()
		o.Top = 300
		product := map[string]float64{}
		for i, text := range texts {
			for _, fill := range fill(t, f, text, o).Fills {
				if word := fill.Values[0]; i == 0 {
					product[word] = *fill.Probability
				} else {
					product[word] *= *fill.Probability
				}
			}
		}
		o.Together = texts[1:]
		r := fill(t, f, texts[0], o)
		if !*r.Proven || len(r.Fills) != len(product) {
			t.Fatalf("proven %v, %d fills of %d", *r.Proven, len(r.Fills), len(product))
		}
		for _, fill := range r.Fills {
			if want := product[fill.Values[0]]; math.Abs(*fill.Probability/want-1) > 1e-5 {
				t.Errorf("%q: %s has %v, want %v", list, fill.Values[0], *fill.Probability, want)
			}
		}
	}
}

// TestEnglish: the list of the program is cut as the tokenizer cuts it, and has words that exist and no others.
func TestEnglish(t *testing.T) {
	f := openMini(t)
	cut := f.cutter()
	for _, word := range strings.Fields(
		"restorative unhappily harbour disagreeable the antidisestablishmentarianism naïve xyzzy") {
		want, err := f.tokenizer.Candidate(word)
		if got := cut(word); err != nil || len(got) != len(want) || got[len(got)-1] != want[len(want)-1] {
			t.Errorf("%s: %v, want %v, %v", word, got, want, err)
		}
	}
	list := f.english()
	for word, exists := range map[string]bool{"restorative": true, "disagreeable": true, "strad": false, "stowd": false,
		"retrative": false} {
		if ids := cut(word); len(ids) > listedPieces || list.has(ids) != exists {
			t.Errorf("%s in %d pieces: exists %v", word, len(ids), !exists)
		}
	}
}

// BenchmarkLexicon cuts the English words into pieces of the model's vocabulary.
func BenchmarkLexicon(b *testing.B) {
	f, err := Open(OpenOptions{Lexicon: noWords})
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	for b.Loop() {
		f.englishLexicon()
	}
}
