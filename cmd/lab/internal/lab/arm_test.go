package lab

import (
	"math"
	"strings"
	"testing"
)

// A bound is below log Σ exp(U), and near it where the slots are independent.
func TestFitARM(t *testing.T) {
	for _, c := range []struct {
		problem  string
		gap, off float64 // at most
	}{
		{"ising:size=2x3,coupling=0,field=0.7", 0.05, 0.05},
		{"ising:size=2x3,coupling=0.15,field=0.2", 0.6, 0.15},
		{"rbm:data=none,visible=6,hidden=3,scale=0.3", 0.5, 0.15},
	} {
		p, err := NewProblem(t.Context(), c.problem, 1)
		if err != nil {
			t.Fatal(err)
		}
		o := DefaultARM()
		o.Fits, o.Steps, o.Seed = 3, 1000, 4
		last := 0
		o.Observe = func(p Progress) { last = p.Step }
		r, err := FitARM(t.Context(), p, o)
		if err != nil {
			t.Fatal(err)
		}
		if len(r.Fits.Fits) != 3 || last != 3 || r.Fits.Recombined {
			t.Errorf("%s: %+v after %d", c.problem, r.Fits, last)
		}
		for _, f := range r.Fits.Fits {
			// The bound is estimated: its noise may lift it a little.
			if gap := *f.LogNormaliser - f.Bound; !(gap > -0.05 && gap < c.gap) || !(*f.MeansError < c.off) {
				t.Errorf("%s: bound %v of %v, means off by %v", c.problem, f.Bound, *f.LogNormaliser, *f.MeansError)
			}
			if f.Energy > *f.Best+1e-9 || !(f.Energy > *f.Best-1) {
				t.Errorf("%s: the best state found has energy %v, the best there is %v", c.problem, f.Energy, *f.Best)
			}
		}
		text := r.Text(0)
		for _, want := range []string{"Independent slots by ARM on ", "log Σ exp(U)", " ± ", "seed 4"} {
			if !strings.Contains(text, want) {
				t.Errorf("no %q in:\n%s", want, text)
			}
		}
		if csv := written(t, r, ".csv", 0); !strings.HasPrefix(csv, "fit,bound,log_normaliser,means_error,energy,best_energy\n1,") {
			t.Errorf("CSV:\n%s", csv)
		}
	}
}

// Slots of several categories are recombined, and slots too many to list have no
// exact numbers.
func TestFitARMOfOthers(t *testing.T) {
	o := DefaultARM()
	o.Fits, o.Steps, o.Seed = 2, 50, 4
	table, err := NewProblem(t.Context(), "table:categories=4/3/5", 1)
	if err != nil {
		t.Fatal(err)
	}
	r, err := FitARM(t.Context(), table, o)
	if err != nil {
		t.Fatal(err)
	}
	if !r.Fits.Recombined || r.Fits.Fits[0].Best == nil || !strings.Contains(r.Text(0), "one of two random states") {
		t.Errorf("%+v\n%s", r.Fits, r.Text(0))
	}
	large, err := NewProblem(t.Context(), "ising:size=5x5", 1)
	if err != nil {
		t.Fatal(err)
	}
	if r, err = FitARM(t.Context(), large, o); err != nil || r.Fits.Fits[0].LogNormaliser != nil || math.IsNaN(r.Fits.Fits[0].Bound) {
		t.Errorf("%+v, %v", r, err)
	}
	for option, change := range map[string]func(*ARMOptions){
		"fits": func(o *ARMOptions) { o.Fits = 0 }, "steps": func(o *ARMOptions) { o.Steps = -1 },
		"samples": func(o *ARMOptions) { o.Samples = 0 }, "rate": func(o *ARMOptions) { o.Rate = math.NaN() },
	} {
		bad := o
		change(&bad)
		if _, err := FitARM(t.Context(), large, bad); err == nil {
			t.Errorf("%s: no error", option)
		}
	}
}
