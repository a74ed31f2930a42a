package infill

import (
	"math"
	"os"
	"slices"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"infill/internal/lmtest"
	"infill/tokenize"
)

// TestWords: each token counts in one word or sign, whose places are counted in
// characters, and the words add up to the text.
func TestWords(t *testing.T) {
	f, _ := newFake(t)
	for text, want := range map[string][]ScoredWord{
		"The cat was unseen.": {{Word: "The", Start: 0, End: 3, Tokens: 1}, {Word: "cat", Start: 4, End: 7, Tokens: 1},
			{Word: "was", Start: 8, End: 11, Tokens: 1}, {Word: "unseen", Start: 12, End: 18, Tokens: 2},
			{Word: ".", Start: 18, End: 19, Tokens: 1}},
		"unseen cat": {{Word: "unseen", Start: 0, End: 6, Tokens: 2}, {Word: "cat", Start: 7, End: 10, Tokens: 1}},
		"the café's dog": {{Word: "the", Start: 0, End: 3, Tokens: 1}, {Word: "café's", Start: 4, End: 10, Tokens: 3},
			{Word: "dog", Start: 11, End: 14, Tokens: 1}},
		"the cafe\u0301 (dog)": {{Word: "the", Start: 0, End: 3, Tokens: 1},
			{Word: "cafe\u0301", Start: 4, End: 9, Tokens: 1}, {Word: "(", Start: 10, End: 11, Tokens: 1},
			{Word: "dog", Start: 11, End: 14, Tokens: 1},
			{Word: ")", Start: 14, End: 15, Tokens: 1}},
	} {
		score, err := f.Score(t.Context(), ScoreRequest{Text: text})
		if err != nil {
			t.Fatal(err)
		}
		words := score.Words
		if diff := cmp.Diff(want, words, cmpopts.IgnoreFields(ScoredWord{}, "LogLikelihood")); diff != "" {
			t.Errorf("%s: %s", text, diff)
		}
		sum := 0.0
		for _, w := range words {
			sum += w.LogLikelihood
		}
		if math.Abs(sum-score.LogLikelihood) > 1e-12 {
			t.Errorf("%s: the words have %v, the text %v", text, sum, score.LogLikelihood)
		}
	}
}

// TestScoreContext: the context stands in front of a text, and of each of its
// windows. TestSurprisal of cmd/infill compares the numbers.
func TestScoreContext(t *testing.T) {
	long := "the dog ran on the rug . the cat sat on the mat . the dog ran . the "
	m := &listener{Model: newModel(20, 1)}
	f := New(m, newTokenizer(t))
	score, err := f.Score(t.Context(), ScoreRequest{Text: long + long, Context: "the dog ran ."})
	if err != nil {
		t.Fatal(err)
	}
	if score.Seen != 20 || m.rows[0].Positions[0] != 6 || len(m.rows) != len(score.Tokens) {
		t.Errorf("%d tokens seen, %d rows, the first of %+v", score.Seen, len(m.rows), m.rows[0])
	}
	for _, row := range m.rows {
		if at := row.Positions[0]; !slices.Equal(row.IDs[:6], []int{2, 6, 8, 10, 17, 3}) || at < 6 || at > 18 {
			t.Errorf("a row at %d of %v", at, row.IDs)
		}
	}
	_, err = f.Score(t.Context(), ScoreRequest{Text: "the cat", Context: long})
	if err == nil || err.Error() != "context: 20 tokens, at most half of the 20 that the model sees may be context: "+
		"shorten it" {
		t.Errorf("a long context: %v", err)
	}
}

// TestEntropy: the entropy of a blank is that of all tokens there.
func TestEntropy(t *testing.T) {
	f, _ := newFake(t)
	template := "the [MASK] sat on [MASK:2]"
	o := asked{Fill: FillAny}
	plan, err := f.Plan(t.Context(), o.request(template))
	if err != nil {
		t.Fatal(err)
	}
	alone, err := plan.Alone(t.Context(), len(fakeWords()), nil)
	if err != nil {
		t.Fatal(err)
	}
	want := 0.0
	for _, v := range alone[0] {
		want -= v.Probability * math.Log2(v.Probability)
	}
	for _, kind := range []FillKind{FillAny, FillWords} { // a rule changes no number
		got := fill(t, f, template, asked{Fill: kind}).Entropy
		if len(got) != 2 || got[0] == nil || math.Abs(*got[0]-want) > 1e-6 || got[1] != nil {
			t.Errorf("%s: %v, want %v and none", kind, got, want)
		}
	}
}

// TestWordsBeforeSpace: a token of the space behind a text counts in its last
// word.
func TestWordsBeforeSpace(t *testing.T) {
	file, err := os.ReadFile("../tokenize/testdata/families/roberta.tokenizer.json")
	if err != nil {
		t.Fatal(err)
	}
	tokenizer, err := tokenize.Load(fstest.MapFS{"tokenizer.json": {Data: file}})
	if err != nil {
		t.Fatal(err)
	}
	f := New(lmtest.New(tokenizer.VocabularySize(), 32), tokenizer)
	score, err := f.Score(t.Context(), ScoreRequest{Text: "the the   "})
	if err != nil {
		t.Fatal(err)
	}
	tokens := 0
	for _, word := range score.Words {
		tokens += word.Tokens
	}
	if last := score.Tokens[len(score.Tokens)-1]; last.Span[0] < len("the the") || tokens != len(score.Tokens) ||
		len(score.Words) == 0 || score.Words[0].Word != "the" {
		t.Errorf("words %+v of the tokens %+v", score.Words, score.Tokens)
	}
}

// TestPlaces: every place in a text is counted in characters.
func TestPlaces(t *testing.T) {
	f := openBuiltIn(t)
	const left, right = "Élan 👍 猫, the café ", " on the naïve mat."
	whole := []rune(left + "sat" + right)
	score, err := f.Score(t.Context(), ScoreRequest{Text: string(whole)})
	if err != nil {
		t.Fatal(err)
	}
	e, err := f.Gaps(t.Context(), GapsRequest{Text: left + "[sat]" + right})
	if err != nil {
		t.Fatal(err)
	}
	r := fill(t, f, left+"[MASK]"+right, asked{Slots: Lists{1: {"sat"}}})
	at := slices.IndexFunc(score.Words, func(w ScoredWord) bool { return w.Word == "sat" })
	token := slices.IndexFunc(score.Tokens, func(t TokenScore) bool { return t.Token == "sat" })
	start := len([]rune(left))
	want := [2]int{start, start + 3}
	got := [][2]int{{score.Words[at].Start, score.Words[at].End}, score.Tokens[token].Span, e.Gaps[0].Span,
		r.Fills[0].Spans[0], {r.Blanks[0][0], r.Blanks[0][1] - 3}}
	if !slices.Equal(got, slices.Repeat([][2]int{want}, 5)) {
		t.Errorf("%v, want %v", got, want)
	}
}
