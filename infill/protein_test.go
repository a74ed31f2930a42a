package infill

import (
	"math"
	"slices"
	"testing"
)

// openProteins opens a small ESM with random weights.
func openProteins(t *testing.T) *Filler {
	t.Helper()
	f, err := Open(OpenOptions{Model: "../lm/internal/bert/testdata/esm"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// TestProteinSites: three sites hold 20³ fills, and the likeliest are the likeliest of all.
func TestProteinSites(t *testing.T) {
	f := openProteins(t)
	const template = "MKT<mask>LV<mask>A<mask>"
	o := DefaultOptions()
	o.Top = 12
	r := fill(t, f, template, o)
	plan, err := f.Plan(Request{Template: template, Options: o})
	if err != nil {
		t.Fatal(err)
	}
	layout := plan.layouts[0]
	var rows int64
	model, err := f.open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	text, err := f.newLaw(t.Context(), model, layout, 1, &rows)
	if err != nil {
		t.Fatal(err)
	}
	law, err := text.law(o.Order, 0)
	if err != nil {
		t.Fatal(err)
	}
	states := [][]int{nil}
	for _, v := range layout.variables {
		var longer [][]int
		for _, state := range states {
			for _, token := range v.support {
				longer = append(longer, append(slices.Clone(state), token))
			}
		}
		states = longer
	}
	logp, err := law.LogProbability(t.Context(), states)
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(logp)
	slices.Reverse(logp)
	if len(logp) != 8000 || !*r.Proven || len(r.Fills) != 12 {
		t.Fatalf("%d fills in all, %d found, proven %v", len(logp), len(r.Fills), *r.Proven)
	}
	for i, fill := range r.Fills {
		if math.Abs(fill.LogLikelihood-logp[i]) > 1e-6 {
			t.Errorf("fill %d has log-likelihood %v, want %v", i+1, fill.LogLikelihood, logp[i])
		}
	}
}
