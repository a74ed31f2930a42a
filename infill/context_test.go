package infill

import (
	"slices"
	"strings"
	"testing"

	"infill/internal/lmtest"
)

// TestContext: the model reads the context before the text, in every length and
// text; windows count it; and a wrong one is refused in one line.
func TestContext(t *testing.T) {
	tokenizer := newTokenizer(t)
	model := &listener{Model: newModel(16, 0)}
	f := New(model, tokenizer)
	o := asked{}
	o.Context = "the dog ran"
	// [CLS] context [SEP] the blank sat [SEP]
	before := []int{2, 6, 8, 10, 3}
	for _, change := range []func(*asked){func(*asked) {}, func(o *asked) { o.Samples = 3 },
		func(o *asked) { c := newAskedChains("dmala"); c.Steps = 2; o.Samples, o.Chains = 2, &c }} {
		o := o
		change(&o)
		model.rows = nil
		r := fill(t, f, "the [MASK] sat", o)
		for _, row := range model.rows {
			text := row.IDs[len(before):]
			if !slices.Equal(row.IDs[:len(before)], before) || text[0] != 6 || text[1] != lmtest.Mask ||
				!slices.Equal(text[len(text)-2:], []int{9, 3}) {
				t.Errorf("%s asks %v", r.Method, row.IDs)
			}
		}
		if len(model.rows) == 0 || !strings.Contains(r.Signature, "|context:") ||
			strings.Contains(r.Fills[0].Text, "ran ") {
			t.Errorf("%d rows, %s, %q", len(model.rows), r.Signature, r.Fills[0].Text)
		}
	}
	// Of 16 tokens the context leaves 11 beside [CLS].
	r := fill(t, f, strings.Repeat("The cat sat. ", 3)+"the dog [MASK] on the mat.", o)
	if r.Stats.Seen != 16 || !strings.Contains(strings.Join(r.Warnings, "\n"),
		"of the text's 21 tokens the model sees the 16") {
		t.Errorf("%d tokens seen, warnings %q", r.Stats.Seen, r.Warnings)
	}
	for text, want := range map[string]string{
		"the [MASK] ran":              "context: blank in a whole text",
		strings.Repeat("the dog ", 5): "context: 11 tokens, at most half of the 16 that the model sees",
		"\x00":                        "context: control character",
	} {
		o.Context = text
		if _, err := f.Plan(t.Context(), o.request("the [MASK] sat")); err == nil ||
			!strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}
