package energies

import (
	"strings"
	"testing"

	"infill/cmd/lab/internal/lab"
	"infill/cmd/lab/internal/lab/labtest"
)

// TestNetworks: each sampler learns.
func TestNetworks(t *testing.T) {
	settings := []string{"data", "diabetes", "samplers", "dmala:step-size=0.2,dula:step-size=0.2,terms=50", "hidden",
		"10", "chains", "3", "steps", "50", "repeats", "1"}
	r := labtest.Studied(t, study(t, "networks", settings...), lab.StudyOptions{Seed: 2})
	for _, c := range r.Cells {
		curve := c.Curves["train-ll"]
		if last := curve[len(curve)-1]; len(curve) != 25 || last.X != 50 || !(last.Y > curve[0].Y) ||
			last.Y != c.Numbers["train-ll"] || !(last.Y < 0) {
			t.Errorf("%v: from %v to %v", c.Labels, curve[0], last)
		}
		if rmse := c.Numbers["test-rmse"]; !(rmse > 0.1 && rmse < 0.4) {
			t.Errorf("%v: test RMSE %v", c.Labels, rmse)
		}
	}
	r.WithoutTimes()
	if out := r.Text(); !strings.Contains(out, "dmala:step-size=0.2") || strings.Contains(out, "seconds") {
		t.Errorf("without times:\n%s", out)
	}
}
