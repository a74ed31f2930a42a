package infill

import (
	"strconv"
	"strings"
	"testing"

	"infill/tokenize"
)

// TestLimits: what is at a limit is taken, and what is just beyond it is refused.
func TestLimits(t *testing.T) {
	f := New(newModel(40, 1), newTokenizer(t))
	words := func(n int) string { return strings.TrimSpace(strings.Repeat("cat ", n)) }
	for name, c := range map[string]struct {
		limit int
		asked func(n int) (template string, o asked)
		want  string
	}{
		"pieces of a list": {tokenize.MaxPieces, func(n int) (string, asked) {
			return "the [MASK] sat", asked{Slots: Lists{1: {words(n)}}}
		}, "it has 17 tokens, and a blank 16 at most"},
		"pieces of a blank": {tokenize.MaxPieces, func(n int) (string, asked) {
			return "the [MASK:" + strconv.Itoa(n) + "] sat", asked{}
		}, "[MASK:17]"},
		"context": {20, func(n int) (string, asked) { // [SEP] counts
			return "the [MASK] sat", asked{Context: words(n - 1)}
		},
			"context: 21 tokens, at most half of the 40"},
		"fills to prove": {maxTop, func(n int) (string, asked) { return "the [MASK] sat", asked{Top: n} },
			"top: 10001 are too many to prove: ask for 10000 at most"},
	} {
		template, o := c.asked(c.limit)
		err := planned(t, f, template, o)
		if err != nil {
			t.Errorf("%s, %d: %v", name, c.limit, err)
		}
		template, o = c.asked(c.limit + 1)
		err = planned(t, f, template, o)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s, %d: error %v, want %q", name, c.limit+1, err, c.want)
		}
	}
}

// TestForeign: a text is foreign from the share of its words that the model does
// not know, or of their pieces: a half, or two further pieces on three words.
// Other letters show it in fewer words.
func TestForeign(t *testing.T) {
	f, _ := newFake(t)
	for template, want := range map[string]string{
		"the cat zebra zebra [MASK]":                  "the model does not know 2 of the text's 4 words",
		"the cat sat zebra zebra [MASK]":              "",
		"zebra zebra zebra [MASK]":                    "",
		"unseen unknown the cat sat ran [MASK]":       "",
		"unseen unknown unseen the unknown [MASK]":    "the model cuts the text's 5 words into 9 tokens",
		"unseen unknown unseen the cat sat [MASK]":    "",
		"unseen unknown unseen unseen the cat [MASK]": "the model cuts the text's 6 words into 10 tokens",
		"unseen unseen [MASK]":                        "",
		"кот [MASK]":                                  "the model does not know 1 of the text's 1 words",
		"кот the cat [MASK]":                          "",
		"unseen unseen кот the [MASK]":                "the model cuts the text's 4 words into 6 tokens",
		"unseen the кот cat [MASK]":                   "",
	} {
		warnings := strings.Join(fill(t, f, template, asked{}).Warnings, "\n")
		foreign := strings.Contains(warnings, "of the text's ") || strings.Contains(warnings, "the model cuts ")
		if foreign != (want != "") || !strings.Contains(warnings, want) {
			t.Errorf("%s: %q, want %q", template, warnings, want)
		}
	}
}
