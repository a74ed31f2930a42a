package infill

import (
	"strings"
	"testing"
)

// Where the originals are known, fills take their capitals, in a long text too.
func TestOriginals(t *testing.T) {
	f := openBuiltIn(t)
	o := asked{}
	o.Top = 1
	far := strings.Repeat(" and then they went on to the next town", 12)
	for _, template := range []string{"[MASK] film was a [MASK] one",
		"[MASK] film was good" + far + " and it was a [MASK] one"} {
		p, err := f.Plan(t.Context(), withOriginals(o.request(template), []string{"The", "Good"}))
		if err != nil {
			t.Fatal(err)
		}
		r, err := p.Fill(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		for i, word := range r.Fills[0].Values {
			if word == strings.ToLower(word) {
				t.Errorf("blank %d has %q, without the capital of the original", i+1, word)
			}
		}
	}
}
