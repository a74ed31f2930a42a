package tokenize_test

import (
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/clipperhouse/uax29/v2/words"
	"pgregory.net/rapid"

	"infill/tokenize"
)

// TestUnicodeWords: within a script, words end where they do by Unicode (UAX 29).
func TestUnicodeWords(t *testing.T) {
	scripts := []string{"aéßŒʼ", "αώΣ", "жйЁ", "שלםװ", "سلاﷺ", "हिन्दी", "தமிழ்", "ქარ", "ԱՐև", "한글", "カタガー",
		"ひらが", "日本語", "ᠮᠣ", "ⲁⲃ", "0१9٣"}
	between := []string{" ", " ", "\n", ", ", "! ", "“", "(", "—", "。", "🇩🇪", "👩‍👧"}
	rapid.Check(t, func(t *rapid.T) {
		var b strings.Builder
		for range rapid.IntRange(1, 6).Draw(t, "words") {
			letters := []rune(rapid.SampledFrom(scripts).Draw(t, "script"))
			letters = slices.DeleteFunc(letters, unicode.IsMark)
			for i := range rapid.IntRange(1, 4).Draw(t, "letters") {
				if i > 0 && unicode.Is(unicode.Latin, letters[0]) {
					b.WriteString(rapid.SampledFrom([]string{"", "", "'", "’", "\u00ad", "\u200d"}).Draw(t, "tie"))
				}
				b.WriteRune(rapid.SampledFrom(letters).Draw(t, "letter"))
				b.WriteString(rapid.SampledFrom([]string{"", "", "\u0301", "\u093f"}).Draw(t, "mark"))
			}
			b.WriteString(rapid.SampledFrom(between).Draw(t, "between"))
		}
		text := b.String()
		var want, got []string
		for segments := words.FromString(text); segments.Next(); {
			word := segments.Value()
			if strings.ContainsFunc(word, func(r rune) bool { return unicode.In(r, unicode.L, unicode.N) }) {
				want = append(want, word)
			}
		}
		for _, p := range tokenize.Parts(text) {
			if p.Word {
				got = append(got, text[p.Start:p.End])
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%+q has the words %+q, by Unicode %+q", text, got, want)
		}
	})
}

// TestKept: what is better left as it is stays whole, and its neighbours are words.
// «» stand around it.
func TestKept(t *testing.T) {
	for _, want := range []string{
		"Mail «bob@example.com» or «first.last+tag@mail.ex-ample.co.uk», not @.",
		"see «https://example.com/a/b?c=d», («www.go.dev») or «https://en.wikipedia.org/wiki/Go_(game)».",
		"RT «@bob_smith»: «#ThrowbackThursday» and «@anna@mastodon.social», «$AAPL» «:smile:»",
		"is «&amp;» great «<br>» yes «<a href=\"x y\">»link«</a>» a < b > c «&#39;»",
		"The «U.K.» met at «3» «p.m.» in «C:\\Users\\bob» and «/usr/local/bin», «~/a.txt», «src/main.go»",
		"«Dr.» Lee («Ph.D.», «M.Sc.») met «J.» «R.» «R.» Tolkien, «I.» «M.» Pei and «Mrs.» Hall, «e.g.» at «St.» Ives",
		"and I. Then No. He said: see «Fig.» «3», «No.» «5» and «pp.» «12», «etc.»",
		"«U.S.-led» «U.S.A.» «U.S», «a.m./p.m.» «AT&T's» «C++» «snake_case» «and/or» «f*ck»",
		"«$5.99» «-5» «12°C» «5%» «3:30» «+44» «20» «1,000.50» «€5» «5€» «US$5» «1/2» «192.168.0.1:8080/x»",
		"well--and so... and _really_ *so* mother-in-law's don't rock'n'roll col·lega צה\"ל",
		"«AT&amp;T» «caf&eacute;» «C:\\» «w/» cheese «J.-P.» Sartre «:D»",
		"Brown «v.» Board, at «n°» «12», and so v. the end",
		":Dog «$HOME/.config» 'n' roll «b.» «1970» «p<0.05»",
		"«example.com» «Node.js» «10.1000/xyz» «mailto:bob@example.com» «key=value» «std::map»",
	} {
		text := strings.NewReplacer("«", "", "»", "").Replace(want)
		var got strings.Builder
		at := 0
		for _, p := range tokenize.Parts(text) {
			got.WriteString(text[at:p.Start])
			word := text[p.Start:p.End]
			if p.Kept {
				word = "«" + word + "»"
			}
			got.WriteString(word)
			at = p.End
		}
		if got.String() != want {
			t.Errorf("%s\n%s", got.String(), want)
		}
	}
}

// TestFind: texts stand alone, in any capitals, and patterns wherever they match.
func TestFind(t *testing.T) {
	const text = "Café Rome, café-bar Romes cafe\u0301 QX12"
	for other, want := range map[string][]string{"CAFÉ": {"Café", "café", "cafe\u0301"}, "rome": {"Rome"},
		"~[A-Z]+[0-9]*": {"C", "R", "R", "QX12"}, "~x*": nil, "tea": nil} {
		spans, err := tokenize.Find(text, other)
		var got []string
		for _, s := range spans {
			got = append(got, text[s[0]:s[1]])
		}
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %q, %v", other, got, err)
		}
	}
	for _, wrong := range []string{"", "~", "~(", "\xff"} {
		_, err := tokenize.Find(text, wrong)
		if err == nil {
			t.Errorf("%q: no error", wrong)
		}
	}
}

// TestMaskable: a blank may take the place of a word, and not of a number, a sign or a
// short form.
func TestMaskable(t *testing.T) {
	const text = "the dog 's 3 tails don ’t wag , she's in mother-in-law"
	var got []string
	for _, p := range tokenize.Maskable(text) {
		got = append(got, text[p.Start:p.End])
	}
	want := []string{"the", "dog", "tails", "don", "wag", "she's", "in", "mother-in-law"}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestWordSpans: a word is one in every script, with its marks, and a blank is
// none.
func TestWordSpans(t *testing.T) {
	for _, c := range []struct {
		text string
		want []string
	}{
		{"हिन्दी भाषा बहुत [MASK] है", []string{"हिन्दी", "भाषा", "बहुत", "है"}},
		{"the cafe\u0301s of 1990", []string{"the", "cafe\u0301s", "of", "1990"}},
		{"she's a well-known o’clock - 'no'", []string{"she's", "a", "well-known", "o’clock", "no"}},
		{"می\u200cروم [MASK]", []string{"می\u200cروم"}},
		{"crois\u00adsant crois\u200bsant \u200bcat\u200b mother\u00ad-\u200bin-law", []string{"crois\u00adsant",
			"crois\u200bsant", "cat", "mother\u00ad-\u200bin-law"}},
		{"ภาษาไทย [MASK]", []string{"ภาษาไทย"}},
		{"தமிழ் ___ מִלָּה", []string{"தமிழ்", "מִלָּה"}},
		{"[MASK=word~st..d] [MASK] <mask> ____ \\[MASK] a", []string{"a"}},
		{"\u0301 [MASK", []string{"MASK"}},
		{"", nil},
	} {
		var got []string
		for _, span := range tokenize.WordSpans(c.text, "") {
			got = append(got, c.text[span[0]:span[1]])
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", c.text, got, c.want)
		}
	}
	if got := tokenize.WordSpans("a BLANK b", "BLANK"); !slices.Equal(got, [][2]int{{0, 1}, {8, 9}}) {
		t.Errorf("with a further spelling: %v", got)
	}
}
