package infill

import (
	"math"
	"testing"

	"infill/internal/check"
)

// TestBitsOfGaps: the bits of a gap's key are the surprisal of the word in the text.
func TestBitsOfGaps(t *testing.T) {
	f, _ := newFake(t)
	e, err := f.Gaps(t.Context(), GapsRequest{Text: "the [cat] sat on the [dog]"})
	if err != nil {
		t.Fatal(err)
	}
	s, err := f.Score(t.Context(), ScoreRequest{Text: e.Text})
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, gap := range e.Gaps {
		for _, word := range s.Words {
			if word.Start != gap.Span[0] {
				continue
			}
			found++
			if want := -word.LogLikelihood / math.Ln2; !check.SameNats(gap.Bits, want, word.Tokens) {
				t.Errorf("%s: %v bits as a gap, %v as a word", gap.Key, gap.Bits, want)
			}
		}
	}
	if found != 2 {
		t.Errorf("%d words are gaps, want 2", found)
	}
	all, err := f.Gaps(t.Context(), GapsRequest{Text: "the cat sat on the dog", Every: 1})
	if err != nil {
		t.Fatal(err)
	}
	bits := Bits{all.Gaps[1].Bits - 1e-9, all.Gaps[1].Bits + 1e-9}
	few, err := f.Gaps(t.Context(), GapsRequest{Text: "the cat sat on the dog", Every: 1, Bits: bits})
	if err != nil || few.Gaps[0].Key != all.Gaps[1].Key {
		t.Errorf("%v, error %v", few, err)
	}
	var read Bits
	for text, want := range map[string]Bits{"1-6": {1, 6}, "0-0.5": {0, 0.5}} {
		err := read.UnmarshalText([]byte(text))
		again, _ := read.MarshalText()
		if err != nil || read != want || string(again) != text {
			t.Errorf("%s: %v, %s, error %v", text, read, again, err)
		}
	}
	for _, text := range []string{"", "6", "6-1", "a-b", "-1-3", "1-NaN", "1-Inf"} {
		if read.UnmarshalText([]byte(text)) == nil {
			t.Errorf("%q is %v", text, read)
		}
	}
	if (Bits{6, 1}).Check() == nil || (Bits{}).Check() != nil {
		t.Error("bounds are not checked")
	}
}
