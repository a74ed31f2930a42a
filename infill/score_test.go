package infill

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"infill/lm"
	"infill/lm/lmtest"
	"infill/tokenize"
)

// "the cat was unseen." is [CLS] the cat [UNK] un ##seen . [SEP]
func TestScore(t *testing.T) {
	const text = "The cat was unseen."
	tests := []struct {
		method ScoreMethod
		want   []lm.Query
	}{
		{"original", []lm.Query{{Position: 1, Masked: []int{1}}, {Position: 2, Masked: []int{2}},
			{Position: 3, Masked: []int{3}}, {Position: 4, Masked: []int{4}}, {Position: 5, Masked: []int{5}},
			{Position: 6, Masked: []int{6}}}},
		{"l2r", []lm.Query{{Position: 1, Masked: []int{1}}, {Position: 2, Masked: []int{2}},
			{Position: 3, Masked: []int{3}}, {Position: 4, Masked: []int{4, 5}}, {Position: 5, Masked: []int{5}},
			{Position: 6, Masked: []int{6}}}},
	}
	for _, test := range tests {
		t.Run(string(test.method), func(t *testing.T) {
			f, model := newFake(t)
			score, err := f.Score(t.Context(), ScoreRequest{Text: text, Method: test.method})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, *model.Scored.Load()); diff != "" {
				t.Errorf("queries: %s", diff)
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
			want := "method:" + string(test.method) + "|model:fake@0123456789ab|tokenizer:" +
				f.tokenizer.SHA256()[:12] + "|onnxruntime:1.2.3|device:cpu|version:" + Version()
			if score.Signature != want {
				t.Errorf("signature %q, want %q", score.Signature, want)
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

// scorer notes every query of a model.
type scorer struct {
	*lmtest.Model
	queries []lm.Query
}

func (m *scorer) Score(ctx context.Context, ids []int, queries []lm.Query) ([]float64, error) {
	m.queries = append(m.queries, queries...)
	return m.Model.Score(ctx, ids, queries)
}

// TestWindowEdge: a word is masked with all of its pieces that its window has,
// up to the last token of the window, and not beyond.
func TestWindowEdge(t *testing.T) {
	for _, pieces := range []int{4, 5, 6} {
		m := &scorer{Model: newModel(16, 1)} // windows of 14 tokens
		text := strings.Repeat("cat ", 9) + "un" + strings.Repeat("seen", pieces-1) + strings.Repeat(" dog", 12)
		score, err := New(m, newTokenizer(t)).Score(t.Context(), ScoreRequest{Text: text})
		if err != nil {
			t.Fatal(err)
		}
		want := []int{10, 11, 12, 13, 14}[:min(pieces, 5)]
		first := m.queries[9] // of the word's first piece, at position 10 of the first window
		if score.Windows < 2 || len(m.queries) != 21+pieces || first.Position != 10 ||
			!slices.Equal(first.Masked, want) {
			t.Errorf("%d pieces in %d windows: %d queries, masked are %v, want %v", pieces, score.Windows,
				len(m.queries), first.Masked, want)
		}
	}
}

// TestScoreValues: each token has the model's number for it, with the rest of
// its word masked, in a text that fits, in windows, and behind a context.
func TestScoreValues(t *testing.T) {
	const short = "the cat sat on the rug . unseen dog ran"
	for _, r := range []ScoreRequest{{Text: short}, {Text: short + " " + short + " " + short},
		{Text: short + " " + short, Context: "the dog"}, {Text: short, Method: PieceScore}} {
		f, _ := newFake(t)
		score, err := f.Score(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		if windows := score.Windows > 0; windows != (len(r.Text) > len(short)) {
			t.Errorf("%+v: %d windows", r, score.Windows)
		}
		for _, token := range score.Tokens {
			masked := 1.0
			if token.Token == "un" && r.Method != PieceScore {
				masked = 2
			}
			if want := -float64(token.ID) - masked/8; token.LogProb != want { // see lmtest.Model.Score
				t.Errorf("%+v: %s has %v, want %v", r, token.Token, token.LogProb, want)
			}
		}
	}
}
