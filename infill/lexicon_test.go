package infill

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

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
	var err error
	if f.lexicon, err = f.readLexicon(strings.NewReader("seen\t8\nunseen\t2\nthe\nunwritten\n")); err != nil {
		t.Fatal(err)
	}
	with := fill(t, f, template, o)
	for word, want := range map[string]float64{
		"seen":   *find(without, "seen").Probability,
		"unseen": usualWords.Existing[0], // the only one of two pieces
		// What the model gives un and known, and not half of it.
		"unknown": *find(without, "unknown").Probability * usualWords.Invented[0] / usualWeights[0],
	} {
		if got := *find(with, word).Probability; math.Abs(got/want-1) > 1e-6 {
			t.Errorf("%s has %v, want %v", word, got, want)
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
		if ids := cut(word); len(ids) > wordPieces || list.has(ids) != exists {
			t.Errorf("%s in %d pieces: exists %v", word, len(ids), !exists)
		}
	}
}
