package infill

import (
	"cmp"
	"errors"
	"slices"
	"strings"
	"testing"
)

// TestWindows: blanks of a text that is longer than the model takes are filled in parts of
// it, and the whole comes back, byte for byte outside the blanks.
func TestWindows(t *testing.T) {
	filler := strings.Repeat("The cat  sat. ", 6)
	for _, test := range []struct {
		name, template string
		windows        [][2]int // blanks of each
	}{
		{"one at the end", filler + "the dog [MASK] on the mat.", [][2]int{{1, 1}}},
		{"one at the start", "\tthe [MASK] ran. " + filler, [][2]int{{1, 1}}},
		{"together", filler + "the [MASK] sat on the [MASK]. " + filler, [][2]int{{1, 2}}},
		{"apart", "the [MASK] ran. " + filler + "the [MASK] sat on the [MASK]. " + filler + "The [MASK]",
			[][2]int{{1, 1}, {2, 3}, {4, 4}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			f, _ := newFake(t)
			o := DefaultOptions()
			o.Chains, o.Steps = 10, 20
			if err := check(f, test.template, o); err != nil {
				t.Fatal(err)
			}
			result := fill(t, f, test.template, o)
			var windows [][2]int
			for _, w := range result.Windows {
				windows = append(windows, w.Blanks)
				if w.Tokens > 16 {
					t.Errorf("a window of %d tokens", w.Tokens)
				}
			}
			if !slices.Equal(test.windows, windows) {
				t.Errorf("windows of blanks %v, want %v", windows, test.windows)
			}
			if len(result.Blanks) != strings.Count(test.template, "[MASK]") || result.Template != test.template ||
				!strings.Contains(result.Warnings[0], "tokens the model sees") {
				t.Errorf("%d blanks in %q, %q", len(result.Blanks), result.Template, result.Warnings)
			}
			for i, s := range result.Fills {
				text := test.template
				for k, value := range s.Values {
					text = strings.Replace(text, "[MASK]", value, 1)
					if got := s.Text[s.Spans[k][0]:s.Spans[k][1]]; got != value {
						t.Errorf("span %d holds %q, want %q", k+1, got, value)
					}
				}
				if s.Text != text || s.Rank != i+1 || len(s.TokenIDs) != len(s.Values) {
					t.Errorf("got %q, want %q", s.Text, text)
				}
			}
			if len(result.Fills) != o.Top ||
				!slices.IsSortedFunc(result.Fills,
					func(a, b Fill) int { return cmp.Compare(b.LogLikelihood, a.LogLikelihood) }) {
				t.Errorf("%d fills, or out of order", len(result.Fills))
			}
		})
	}
}

// TestWindowSentences: a window begins and ends with whole sentences where there is room.
func TestWindowSentences(t *testing.T) {
	f, _ := newFake(t)
	text := "The cat sat on the mat. The dog ran. The cat [MASK] on. The rug ran. The dog sat on the mat on the rug."
	typed, err := f.tokenizer.Shortest(text)
	if err != nil {
		t.Fatal(err)
	}
	span := around(typed, 1, [][2]int{{1, 1}}, 16)
	if got, want := text[span[0]:span[1]], "The dog ran. The cat [MASK] on. The rug ran."; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestWindowOptions(t *testing.T) {
	f, _ := newFake(t)
	filler := strings.Repeat("the cat sat . ", 6)
	o := DefaultOptions()
	o.Chains, o.Steps, o.Top = 4, 8, 1
	o.Words = map[int][]string{2: {"dog"}}
	if got := fill(t, f, filler+"[MASK] . "+filler+"the [MASK]", o).Fills[0].Values[1]; got != "dog" {
		t.Errorf("the list of blank 2 gave %q", got)
	}
	o = DefaultOptions()
	if _, err := f.Fill(t.Context(), filler+"[MASK=a] . "+filler+"the [MASK=a]", o, nil); err == nil ||
		!strings.Contains(err.Error(), "too far apart") {
		t.Errorf("one name in two windows: %v", err)
	}
	o.Pins = []int{Free, Free}
	if _, err := f.Fill(t.Context(), filler+"[MASK] . "+filler+"the [MASK]", o, nil); err == nil ||
		!strings.Contains(err.Error(), "too far apart") {
		t.Errorf("pins in two windows: %v", err)
	}
}

// TestScoreWindows: every token of a long text is rated once, with text on both sides.
func TestScoreWindows(t *testing.T) {
	f, _ := newFake(t)
	text := strings.TrimSpace(strings.Repeat("the cat unseen ", 12))
	encoding, err := f.Plain(text)
	if err != nil {
		t.Fatal(err)
	}
	score, err := f.Score(t.Context(), text, WordScore)
	if err != nil {
		t.Fatal(err)
	}
	if len(score.Tokens) != len(encoding.IDs)-2 || score.Windows < 3 ||
		!strings.Contains(score.Signature, "|windows:16/7|") {
		t.Errorf("%d of %d tokens in %d windows, %s", len(score.Tokens), len(encoding.IDs)-2, score.Windows,
			score.Signature)
	}
	for i, token := range score.Tokens {
		want := -float64(encoding.IDs[i+1]) - 1./8
		if token.Token == "un" {
			want -= 1. / 8
		}
		if token.LogProb != want {
			t.Errorf("token %d, %s: %v, want %v", i, token.Token, token.LogProb, want)
		}
	}
	stride, last := 7, len(encoding.IDs)-2-14
	for position := 1; position <= len(encoding.IDs)-2; position++ {
		start := windowOf(position, stride, last)
		if at := position - start; at < 1 || at > 14 || start > 0 && at < 4 || start < last && at > 11 {
			t.Errorf("position %d is number %d of the window from %d", position, at, start)
		}
	}
}

// Blanks that leave no room for a word in the window are reported so, and not that there is none.
func TestWindowOfBlanks(t *testing.T) {
	f, _ := newFake(t)
	o := DefaultOptions()
	_, err := f.Fill(t.Context(), strings.Repeat("[MASK] ", 40)+"the mat", o, nil)
	var option *OptionError
	if !errors.As(err, &option) || option.Option != "window" || !strings.Contains(err.Error(), "no room for a word") {
		t.Errorf("got %v", err)
	}
}
