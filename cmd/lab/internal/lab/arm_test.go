package lab

import (
	"strings"
	"testing"
)

// runFit runs the study of a target, with flags as they are written.
func runFit(t *testing.T, kind string, settings map[string]string) *StudyReport {
	t.Helper()
	for _, k := range Kinds() {
		if k.Name == kind {
			s := newARMFit(k)
			for name, value := range settings {
				if err := s.Flags.Set(name, value); err != nil {
					t.Fatal(err)
				}
			}
			r, err := s.Run(t.Context(), StudyOptions{Seed: 4})
			if err != nil {
				t.Fatal(err)
			}
			return r
		}
	}
	t.Fatalf("no kind %q", kind)
	return nil
}

// A bound is below log Σ exp(U), and near it where the slots are independent.
func TestFitARM(t *testing.T) {
	for _, c := range []struct {
		kind     string
		settings map[string]string
		gap, off float64 // at most
	}{
		{"ising", map[string]string{"size": "2x3", "coupling": "0", "field": "0.7"}, 0.05, 0.05},
		{"ising", map[string]string{"size": "2x3", "coupling": "0.15", "field": "0.2"}, 0.6, 0.15},
		{"rbm", map[string]string{"data": "none", "visible": "6", "hidden": "3", "scale": "0.3"}, 0.5, 0.15},
	} {
		c.settings["fits"], c.settings["steps"] = "3", "1000"
		r := runFit(t, c.kind, c.settings)
		if len(r.Cells) != 3 {
			t.Errorf("%s: %d fits", c.kind, len(r.Cells))
		}
		for _, cell := range r.Cells {
			f := cell.Numbers
			// The bound is estimated: its noise may lift it a little.
			if gap := f["log_normaliser"] - f["bound"]; !(gap > -0.05 && gap < c.gap) || !(f["means_error"] < c.off) {
				t.Errorf("%s: %v", c.kind, f)
			}
			if f["energy"] > f["best_energy"]+1e-9 || !(f["energy"] > f["best_energy"]-1) {
				t.Errorf("%s: the best state found has energy %v, the best there is %v", c.kind, f["energy"],
					f["best_energy"])
			}
		}
		text := r.Text(0)
		for _, want := range []string{"Independent slots by ARM on " + c.kind, "log Σ exp(U)", " ± ", "seed 4"} {
			if !strings.Contains(text, want) {
				t.Errorf("no %q in:\n%s", want, text)
			}
		}
	}
}

// Slots of several categories are recombined, and slots too many to list have no exact numbers.
func TestFitARMOfOthers(t *testing.T) {
	r := runFit(t, "table", map[string]string{"categories": "4/3/5", "fits": "2", "steps": "50"})
	if _, exact := r.Cells[0].Numbers["best_energy"]; !exact ||
		!strings.Contains(r.Text(0), "one of two random states") {
		t.Errorf("%s", r.Text(0))
	}
	r = runFit(t, "ising", map[string]string{"size": "5x5", "fits": "2", "steps": "50"})
	if _, exact := r.Cells[0].Numbers["log_normaliser"]; exact || len(r.Cells[0].Numbers) != 2 {
		t.Errorf("%v", r.Cells[0].Numbers)
	}
}
