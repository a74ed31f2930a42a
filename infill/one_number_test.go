package infill

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"infill/internal/check"
	"infill/internal/lmtest"
	"infill/lm"
	"infill/tokenize"
)

// bothModels are the built-in model and the fake one, with words of their
// vocabularies: whole ones, and ones of several tokens.
func bothModels(t *testing.T) map[*Filler][]string {
	fake, _ := newFake(t)
	return map[*Filler][]string{
		openBuiltIn(t): strings.Fields(`the old man had never seen a mother-in-law , and he did n't know don't
			forty-two ex-wife ひらがな カタカナ 日 bob@x.org p.m. croissant "yes" ( she's unbelievable . crois` + "\u00ad" + `sant mid` + "\u200b" + `night`),
		fake: strings.Fields("the cat dog sat on unseen unknown un-seen mat . rug"),
	}
}

// TestOneNumber: a word of a text has one probability, whoever is asked: the score of
// the text, a fill of a blank of as many tokens, a list, and the key of a gap.
func TestOneNumber(t *testing.T) {
	for f, list := range bothModels(t) {
		rapid.Check(t, func(t *rapid.T) {
			text := strings.Join(rapid.SliceOfN(rapid.SampledFrom(list), 2, 6).Draw(t, "words"), " ")
			score, err := f.Score(t.Context(), ScoreRequest{Text: text})
			if err != nil {
				t.Fatal(err)
			}
			at := rapid.IntRange(0, len(score.Words)-1).Draw(t, "at")
			compareNumbers(t, f, score, at)
		})
	}
}

// compareNumbers asks for word number at of a scored text by each way.
func compareNumbers(t rapid.TB, f *Filler, score *Score, at int) {
	w := score.Words[at]
	runes := []rune(score.Text)
	left, right := string(runes[:w.Start]), string(runes[w.End:])
	first := 0
	for _, before := range score.Words[:at] {
		first += before.Tokens
	}
	var ids []int
	for _, token := range score.Tokens[first : first+w.Tokens] {
		ids = append(ids, token.ID)
	}
	written, err := f.tokenizer.Candidate(w.Word)
	if err != nil || !slices.Equal(written, ids) || w.Tokens > tokenize.MaxPieces || len(score.Words) == 1 {
		return // no list writes the word so
	}
	numbers := map[string]float64{}
	for name, template := range map[string]string{
		"blank": fmt.Sprintf("%s[MASK:%d]%s", left, w.Tokens, right), "list": left + "[MASK]" + right} {
		fit := Fit{Fill: FillAny, Slots: Lists{1: {w.Word}}}
		r, err := f.Fill(context.Background(), Request{Template: template, Fit: fit}, nil)
		if err != nil {
			t.Fatalf("%s: %v", template, err)
		}
		numbers[name] = r.Fills[0].LogLikelihood
	}
	e, err := f.Gaps(context.Background(), GapsRequest{Text: left + "[" + w.Word + "]" + right})
	if err != nil {
		t.Fatalf("the gap %s in %s: %v", w.Word, score.Text, err)
	}
	numbers["gap"] = math.Log(e.Gaps[0].Probability)
	for name, got := range numbers {
		if !check.SameNats(got, w.LogLikelihood, w.Tokens) {
			t.Errorf("%q in %q has %v in the text, and %v in the %s", w.Word, score.Text, w.LogLikelihood, got, name)
		}
	}
}

// TestSurprisals: words with hyphens and apostrophes do not see themselves. The
// values are -log P of each word in a blank, by version 0.2 of the search.
func TestSurprisals(t *testing.T) {
	f := openBuiltIn(t)
	for text, want := range map[string]struct {
		word string
		nats float64
	}{
		"The nurse took his mother-in-law home .": {"mother-in-law", 18.28226},
		"She is forty-two now .":                  {"forty-two", 10.98605},
		"He met his ex-wife there .":              {"ex-wife", 9.54988},
		"I don't know him .":                      {"don't", 0.33042},
		"The croissant was warm .":                {"croissant", 23.96869},
		"The crois\u00adsant was warm .":          {"crois\u00adsant", 23.96869},
		"The crois\u200bsant was warm .":          {"crois\u200bsant", 23.96869},
	} {
		score, err := f.Score(t.Context(), ScoreRequest{Text: text})
		if err != nil {
			t.Fatal(err)
		}
		at := slices.IndexFunc(score.Words, func(w ScoredWord) bool { return w.Word == want.word })
		if at < 0 {
			t.Errorf("%s: %+v, want %q", text, score.Words, want.word)
			continue
		}
		check.Nats(t, want.word, -score.Words[at].LogLikelihood, want.nats, score.Words[at].Tokens)
		compareNumbers(t, f, score, at)
	}
}

// TestOneWindow: in a text that is too long, scores, gaps and fills ask the same rows
// of a word.
func TestOneWindow(t *testing.T) {
	m := &listener{Model: newModel(16, 1)}
	f := New(m, newTokenizer(t))
	text := strings.Repeat("the dog ran . ", 6) + "the unseenknown cat sat on the mat . " +
		strings.Repeat("the unseen dog ran . ", 6)
	score, err := f.Score(t.Context(), ScoreRequest{Text: text})
	if err != nil {
		t.Fatal(err)
	}
	if score.Seen != 16 {
		t.Errorf("%d tokens seen at most", score.Seen)
	}
	asked := map[string]bool{} // the rows of the score
	for _, row := range m.rows {
		asked[fmt.Sprint(row.IDs, row.Positions)] = true
	}
	runes := []rune(text)
	for _, w := range score.Words {
		m.rows = nil
		left, right := string(runes[:w.Start]), string(runes[w.End:])
		r := Request{Template: fmt.Sprintf("%s[MASK:%d]%s", left, w.Tokens, right),
			Fit: Fit{Fill: FillAny, Slots: Lists{1: {w.Word}}}}
		_, err := f.Fill(t.Context(), r, nil)
		if err != nil {
			t.Fatal(err)
		}
		_, err = f.Gaps(t.Context(), GapsRequest{Text: left + "[" + w.Word + "]" + right})
		if err != nil {
			t.Fatal(err)
		}
		masks := func(row lm.Row) int { return count(row.IDs, lmtest.Mask) }
		for _, row := range m.rows {
			row.Positions = row.Positions[:1] // a fill asks for all slots at once
			if masks(row) == 1 && w.Tokens > 1 && row.Targets == nil && row.IDs[row.Positions[0]-1] != 14 {
				continue // rivals of a gap are of one token
			}
			if !asked[fmt.Sprint(row.IDs, row.Positions)] {
				t.Errorf("%s at %d: the score does not ask %v at %v", w.Word, w.Start, row.IDs, row.Positions)
			}
		}
	}
}

// TestOneAlone: a token that a result lists for a blank by itself has the
// probability that the doors of pipelines give it.
func TestOneAlone(t *testing.T) {
	for f, list := range bothModels(t) {
		rapid.Check(t, func(t *rapid.T) {
			words := rapid.SliceOfN(rapid.SampledFrom(append(list, "[MASK]", "[MASK]")), 1, 8).Draw(t, "words")
			template := strings.Join(append(words, "[MASK]", "the"), " ")
			plan, err := f.Plan(t.Context(), Request{Template: template, Fit: Fit{Fill: FillAny},
				Method: Draws{Samples: 1}})
			if err != nil {
				t.Skip(err) // blanks that are too far apart for the fake
			}
			r, err := plan.Fill(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			alone, err := plan.Alone(t.Context(), 100, nil)
			if err != nil {
				t.Fatal(err)
			}
			for blank, values := range r.Alone {
				for _, v := range values {
					same := func(o Value) bool { return o.TokenID == v.TokenID && o.Probability == v.Probability }
					if !slices.ContainsFunc(alone[blank], same) {
						t.Errorf("%s, blank %d: %+v is not what Alone lists", template, blank+1, v)
					}
				}
			}
		})
	}
}
