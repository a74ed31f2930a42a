package tokenize_test

import (
	"slices"
	"testing"

	"infill/tokenize"
)

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
