package tui

import (
	"context"
	"testing"

	"infill/infill"
)

// TestProteins: the mask of a model of proteins is a blank, typed or given, and so is what --blank names. A blank
// stands beside residues without a space, and residues are marked one by one.
func TestProteins(t *testing.T) {
	for _, test := range []struct{ template, blank, keys, want string }{
		{template: "MKT<mask>YIA", want: "MKT[MASK]YIA"},
		{template: "MKTXYIA", blank: "X", want: "MKT[MASK]YIA"},
		{keys: "MKT<mask>YIA", want: "MKT[MASK]YIA"},
		{keys: "MKT_", want: "MKT[MASK]"},
		{template: "MKT[MASK]YIA", keys: "ml ", want: "M[MASK]T[MASK]YIA"},
	} {
		c, _ := testConfig(t, test.template)
		c.Blank, c.Options = test.blank, infill.DefaultOptions()
		c.Open = func(context.Context, string) (Filler, error) {
			return infill.Open(infill.OpenOptions{Model: "../lm/internal/bert/testdata/esm", Device: "cpu"})
		}
		d := newDriver(t, c, 80, 24)
		d.settle()
		d.typeText(test.keys)
		d.settle()
		s := d.model.sides[0].snapshot
		if got := d.model.editor.text(); got != test.want || s == nil || s.Result == nil ||
			d.model.sides[0].fault != "" {
			t.Errorf("%q and the keys %q: %q, want %q; fault %q", test.template, test.keys, got, test.want,
				d.model.sides[0].fault)
			continue
		}
		f, err := c.Open(t.Context(), "")
		if err != nil {
			t.Fatal(err)
		}
		want, err := f.Fill(t.Context(), test.want, c.Options, nil)
		if err != nil || s.Fills[0].Text != want.Fills[0].Text {
			t.Errorf("%s: %q comes first, want %+v, %v", test.want, s.Fills[0].Text, want, err)
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
}
