package serve_test

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"pgregory.net/rapid"

	"infill/infill"
	"infill/internal/check"
	"infill/internal/lmtest"
	"infill/internal/serve"
	"infill/tokenize"
)

func init() { check.SameDraws() }

// scriptTexts are words of several scripts, some of which need no space around them.
var scriptTexts = strings.Fields(`the he wrote mother-in-law it's naïve cafés . , ( 3:30 $5 p.m. bob@x.org και мир שלום سلام हिन्दी
	ひらがな ひら がな カタカナ カナ ภาษาไทย ไทย 日本語 日本 東京 私は あ が な 中文。 한국어 தமிழ் က န် 👍 a/b`)

// family returns a tokenizer of package tokenize's fixtures. Unigram gets pieces of
// scripts without spaces, too.
func family(t *testing.T, name string, pieces ...string) *tokenize.Tokenizer {
	file, err := os.ReadFile("../../tokenize/testdata/families/" + name + ".tokenizer.json")
	if err != nil {
		t.Fatal(err)
	}
	var more strings.Builder
	for _, piece := range pieces {
		fmt.Fprintf(&more, `,["%s",-6]`, piece)
	}
	const last = `["<mask>",0.0]`
	file = []byte(strings.Replace(strings.ReplaceAll(string(file), `["<mask>", 0.0]`, last), last, last+more.String(), 1))
	return check.Must(tokenize.Load(fstest.MapFS{"tokenizer.json": {Data: file}}))(t)
}

// TestOneNumberInScripts: in every script and with each kind of tokenizer, a row of
// the table has one number, whoever is asked: the score, a blank of as many tokens, a
// list, the key of a gap and, of one token, the pipeline.
func TestOneNumberInScripts(t *testing.T) {
	kana := strings.Fields("が な ひら がな カタ カナ ภาษา ไทย 日本 語 東 京 私は 中文 한국 어 ▁ひら ▁日本 ▁ไทย")
	pieces := strings.Fields("[PAD] [UNK] [CLS] [SEP] [MASK] the he wrote . , ( 3 : 30 $ 5 p m ca ##fe ##s ひ ##ら ##か " +
		"##な ##が カ ##タ ##カ ##ナ あ か な ภ ##า ##ษ ไ ##ท ##ย 日 本 語 東 京 私 は ##は 中 文 。 한 ##국 ##어 का mother - in law " +
		"it ' s a / b x @ org bob")
	for name, tokenizer := range map[string]*tokenize.Tokenizer{
		"WordPiece": check.Must(lmtest.Tokenizer(pieces))(t), "bytes": family(t, "roberta"), "BPE": family(t, "gemma"),
		"Unigram": family(t, "xlm-roberta", kana...)} {
		t.Run(name, func(outer *testing.T) {
			m := lmtest.New(tokenizer.VocabularySize(), 400)
			m.Bonds = func(token int) bool { return token != tokenizer.MaskID() }
			f := infill.New(m, tokenizer)
			url := started(outer, serve.Options{Models: map[string]*infill.Filler{name: f}, Default: name,
				Limits: serve.DefaultLimits()})
			all, compared := 0, 0
			rapid.Check(outer, func(t *rapid.T) {
				text := ""
				for range rapid.IntRange(2, 6).Draw(t, "words") {
					text += rapid.SampledFrom(scriptTexts).Draw(t, "word")
					text += rapid.SampledFrom([]string{" ", " ", " ", ""}).Draw(t, "space")
				}
				score, err := f.Score(t.Context(), infill.ScoreRequest{Text: text})
				if err != nil {
					t.Fatal(err)
				}
				first := 0
				for _, w := range score.Words {
					all++
					tokens := score.Tokens[first : first+w.Tokens]
					first += w.Tokens
					if name == "WordPiece" && strings.HasPrefix(tokens[0].Token, "##") {
						t.Errorf("%q: the row %q begins with %s", text, w.Word, tokens[0].Token)
					}
					if asked(outer, t, f, url, score, w, tokens) {
						compared++
					}
				}
			})
			if compared <= all/40 { // a fifth is compared, give or take 4 of 100 where texts are few
				outer.Errorf("%d of %d rows compared", compared, all)
			}
		})
	}
}

// asked compares the row of a word with what the other doors say. It returns false for a
// word that no list writes in these tokens.
func asked(outer testing.TB, t *rapid.T, f *infill.Filler, url string, score *infill.Score, w infill.ScoredWord,
	tokens []infill.TokenScore) bool {
	var ids []int
	for _, token := range tokens {
		ids = append(ids, token.ID)
	}
	written, err := f.Tokenizer().Candidate(w.Word)
	if err != nil || !slices.Equal(written, ids) || w.Tokens > tokenize.MaxPieces || len(score.Words) == 1 {
		return false
	}
	runes := []rune(score.Text)
	left, right := string(runes[:w.Start]), string(runes[w.End:])
	template, err := f.Tokenizer().Template(fmt.Sprintf("%s[MASK:%d]%s", left, w.Tokens, right))
	if err != nil {
		t.Fatal(err)
	}
	for slot, at := range template.Slots {
		template.IDs[at] = ids[slot]
	}
	encoding, err := f.Plain(score.Text)
	if err != nil || !slices.Equal(template.IDs, encoding.IDs) || template.Blanks[0].TouchesLeft {
		return false // SentencePiece puts a space behind a mask, and "the日" has no room for another 日
	}
	numbers := map[string]float64{}
	fit := infill.Fit{Fill: infill.FillAny, Slots: infill.Lists{1: {w.Word}}}
	for name, blank := range map[string]string{"blank": fmt.Sprintf("[MASK:%d]", w.Tokens), "list": "[MASK]"} {
		r, err := f.Fill(t.Context(), infill.Request{Template: left + blank + right, Fit: fit}, nil)
		if err != nil && strings.HasSuffix(err.Error(), "fills no blank") {
			return false // a byte of a character, or a space by itself
		}
		if err != nil {
			t.Fatalf("%s: %q in %q: %v", name, w.Word, score.Text, err)
		}
		numbers[name] = r.Fills[0].LogLikelihood
	}
	e, err := f.Gaps(t.Context(), infill.GapsRequest{Text: left + "[" + w.Word + "]" + right})
	if err != nil {
		t.Fatalf("the gap %q in %q: %v", w.Word, score.Text, err)
	}
	numbers["gap"] = math.Log(e.Gaps[0].Probability)
	if w.Tokens == 1 {
		body, _ := json.Marshal(map[string]any{"inputs": left + "[MASK]" + right,
			"parameters": map[string]any{"targets": []string{tokens[0].Token}}})
		_, answer := post(outer, url, string(body), "Content-Type", "application/json")
		var candidates []struct{ Score float64 }
		err := json.Unmarshal([]byte(answer), &candidates)
		if err != nil {
			t.Fatalf("%s: %s", body, answer)
		}
		numbers["POST /"] = math.Log(candidates[0].Score)
	}
	for name, got := range numbers {
		if !check.SameNats(got, w.LogLikelihood, w.Tokens) {
			t.Errorf("%q in %q has %v in the table, and %v in the %s", w.Word, score.Text, w.LogLikelihood, got, name)
		}
	}
	return true
}
