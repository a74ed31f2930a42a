package tui

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"infill/infill"
)

func openProteins(context.Context, string) (Filler, error) {
	return infill.Open(infill.OpenOptions{Model: "../lm/internal/bert/testdata/esm", Device: "cpu"})
}

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
		c.Open = openProteins
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

// TestContext: fills and the slots' distributions are those behind the context.
func TestContext(t *testing.T) {
	c, _ := testConfig(t, "MKT[MASK]YIA[MASK]")
	c.Options, c.Open = infill.DefaultOptions(), openProteins
	c.Options.Context = "MKTAYI"
	d := newDriver(t, c, 80, 24)
	d.settle()
	d.keys("2")
	d.settle()
	f, err := openProteins(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	want, err := f.Fill(t.Context(), c.Template, c.Options, nil)
	if err != nil {
		t.Fatal(err)
	}
	template, err := f.Template(c.Template)
	if err != nil {
		t.Fatal(err)
	}
	before, err := f.Tokenizer().Context(c.Options.Context)
	if err != nil {
		t.Fatal(err)
	}
	template.After(before)
	rows, err := f.LogConditionals(t.Context(), template, want.Fills[0].TokenIDs)
	if err != nil {
		t.Fatal(err)
	}
	if got := d.model.sides[0].snapshot; got.Fills[0].Text != want.Fills[0].Text ||
		got.Fills[0].LogLikelihood != want.Fills[0].LogLikelihood {
		t.Errorf("the first fill is %+v, want %+v", got.Fills[0], want.Fills[0])
	}
	if diff := cmp.Diff(rows, d.model.given.rows); diff != "" {
		t.Errorf("the slots' distributions differ (-want +got):\n%s", diff)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
}
