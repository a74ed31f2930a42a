package infill

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"infill/internal/lmtest"
	"infill/lm"
	"infill/tokenize"
)

// "the cat was unseen." is [CLS] the cat [UNK] un ##seen . [SEP]
func TestScore(t *testing.T) {
	const text = "The cat was unseen."
	ids := []int{2, 6, 7, 1, 14, 15, 17, 3}
	tests := []struct {
		method ScoreMethod
		masked [][]int // positions, of each row; the first is asked for
	}{
		{"original", [][]int{{1}, {2}, {3}, {4}, {5}, {6}}},
		{"l2r", [][]int{{1}, {2}, {3}, {4, 5}, {5}, {6}}},
		{"within_word_l2r", [][]int{{1}, {2}, {3}, {4, 5}, {5}, {6}}},
	}
	for _, test := range tests {
		t.Run(string(test.method), func(t *testing.T) {
			model := &listener{Model: newModel(32, 1)}
			f := New(model, newTokenizer(t))
			score, err := f.Score(t.Context(), ScoreRequest{Text: text, Method: test.method})
			if err != nil {
				t.Fatal(err)
			}
			var want []lm.Row
			for _, masked := range test.masked {
				row := lm.Row{IDs: slices.Clone(ids), Positions: masked[:1], Targets: []int{ids[masked[0]]}}
				for _, at := range masked {
					row.IDs[at] = lmtest.Mask
				}
				want = append(want, row)
			}
			if diff := cmp.Diff(want, model.rows); diff != "" {
				t.Errorf("rows: %s", diff)
			}
			sum := 0.0
			var tokens []string
			for _, token := range score.Tokens {
				sum += token.LogProb
				tokens = append(tokens, token.Token+"="+text[token.Span[0]:token.Span[1]])
			}
			if diff := cmp.Diff([]string{"the=The", "cat=cat", "[UNK]=was", "un=un", "##seen=seen", ".=."},
				tokens); diff != "" {
				t.Errorf("tokens: %s", diff)
			}
			if math.Abs(sum-score.LogLikelihood) > 1e-12 || math.Abs(math.Log(score.PseudoPerplexity)+sum/6) > 1e-12 {
				t.Errorf("log-likelihood %v, pseudo-perplexity %v, sum %v", score.LogLikelihood, score.PseudoPerplexity,
					sum)
			}
			signed := "method:" + string(test.method) + "|model:fake@0123456789ab|tokenizer:" +
				f.tokenizer.SHA256()[:12] + "|onnxruntime:1.2.3|device:cpu|version:" + Version()
			if score.Signature != signed {
				t.Errorf("signature %q, want %q", score.Signature, signed)
			}
		})
	}
}

func TestScoreErrors(t *testing.T) {
	f, _ := newFake(t)
	var option *OptionError
	_, err := f.Score(t.Context(), ScoreRequest{Text: "the cat", Method: "r2l"})
	if !errors.As(err, &option) || option.Option != "method" {
		t.Errorf("method: got %v", err)
	}
	tests := []struct {
		text string
		want error
	}{
		{"the [MASK]", tokenize.ErrUnwantedBlank},
		{" ", tokenize.ErrEmpty},
		{strings.Repeat("the ", tokenize.MaxText/4+1), tokenize.ErrTooLong},
	}
	for _, test := range tests {
		if _, err := f.Score(t.Context(), ScoreRequest{Text: test.text}); !errors.Is(err, test.want) {
			t.Errorf("%q: got %v, want %v", test.text, err, test.want)
		}
	}
}

// TestScoreWindows: of a text that is too long the model reads a window around each
// word, in which a word of several pieces is whole. A word without room in a window is
// read in parts.
func TestScoreWindows(t *testing.T) {
	for _, pieces := range []int{1, 5, 14, 15, 24} {
		m := &listener{Model: newModel(16, 1)} // windows of 14 tokens
		text := strings.Repeat("cat ", 9) + "un" + strings.Repeat("seen", pieces-1) + strings.Repeat(" dog", 12)
		score, err := New(m, newTokenizer(t)).Score(t.Context(), ScoreRequest{Text: text})
		if err != nil {
			t.Fatal(err)
		}
		if score.Seen != 16 || len(m.rows) != 21+pieces || !strings.Contains(score.Signature, "|seen:16|") ||
			!strings.Contains(strings.Join(score.Warnings, "\n"), fmt.Sprintf(
				"of the text's %d tokens the model sees the 16 around each word", 23+pieces)) {
			t.Errorf("%d pieces: %d seen, %d rows, %q, warnings %q", pieces, score.Seen, len(m.rows), score.Signature,
				score.Warnings)
		}
		for i, row := range m.rows {
			masks := 1
			if piece := i - 9; piece >= 0 && piece < pieces {
				masks = min(pieces-piece, 14-piece%14)
			}
			if got := count(row.IDs, lmtest.Mask); got != masks || len(row.IDs) > 16 {
				t.Errorf("%d pieces: row %d has %d masks, want %d: %v", pieces, i, got, masks, row.IDs)
			}
		}
	}
}

func count(ids []int, id int) (n int) {
	for _, other := range ids {
		if other == id {
			n++
		}
	}
	return n
}

// TestScoreValues: each token has the model's number for it, with the rest of
// its word masked, in a text that fits, in windows, and behind a context.
func TestScoreValues(t *testing.T) {
	const short = "the cat sat on the rug . unseen dog ran"
	for _, r := range []ScoreRequest{{Text: short}, {Text: short + " " + short + " " + short + " " + short},
		{Text: short + " " + short, Context: "the dog"}, {Text: short, Method: PieceScore}} {
		f, model := newFake(t)
		score, err := f.Score(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		ids := []int{3} // before the first token: [CLS] has another bond
		if r.Context == "" {
			ids[0] = 2
		}
		for _, token := range score.Tokens {
			ids = append(ids, token.ID)
		}
		ids = append(ids, 3)
		for i, token := range score.Tokens {
			masked := []int{i + 1}
			if token.Token == "un" && r.Method != PieceScore {
				masked = append(masked, i+2)
			}
			if want := float64(expected(t, model, ids, masked...)[0][token.ID]); token.LogProb != want {
				t.Errorf("%+v: %s has %v, want %v", r, token.Token, token.LogProb, want)
			}
		}
	}
}

// A blank that is no [MASK] is scored as it stands, with a warning of the first.
func TestScoreOfABlank(t *testing.T) {
	f, _ := newFake(t)
	for text, want := range map[string]bool{"the ___ sat": true, "the cat sat": false, "___ the <mask>": true} {
		score, err := f.Score(t.Context(), ScoreRequest{Text: text})
		if err != nil {
			t.Fatal(err)
		}
		warned := strings.Contains(strings.Join(score.Warnings, "\n"), `"___" is scored as it stands: `)
		if warned != want {
			t.Errorf("%s: warnings %q", text, score.Warnings)
		}
	}
}

// The signature of a score tells its context, by which two scores differ.
func TestSignatureOfAContext(t *testing.T) {
	f, _ := newFake(t)
	signatures := map[string]bool{}
	for _, before := range []string{"", "the cat ran.", "the dog ran."} {
		score, err := f.Score(t.Context(), ScoreRequest{Text: "the dog sat", Context: before})
		if err != nil {
			t.Fatal(err)
		}
		signatures[score.Signature] = true
	}
	if len(signatures) != 3 {
		t.Errorf("three contexts have the signatures %v", signatures)
	}
}
