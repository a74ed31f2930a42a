package tui

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"infill/infill"
)

func openBuiltIn(context.Context, string) (Filler, error) {
	return infill.Open(infill.OpenOptions{Device: "cpu"})
}

// TestContext: fills and the slots' distributions are those behind the context.
func TestContext(t *testing.T) {
	c, _ := testConfig(t, "The [MASK] sat on the [MASK].")
	c.Options, c.Open = infill.DefaultOptions(), openBuiltIn
	c.Options.Context = "We have a cat."
	d := newDriver(t, c, 80, 24)
	d.settle()
	d.keys("2")
	d.settle()
	f, err := openBuiltIn(t.Context(), "")
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
	if got := d.model.run.snapshot; got.Fills[0].Text != want.Fills[0].Text ||
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
