package lab

import (
	"errors"
	"math"
	"strings"
	"testing"

	"gonum.org/v1/gonum/stat"

	"infill/internal/targets"
	"infill/samplers"
)

// spreads is the mean and the variance of an estimator's estimates, by slot, and the
// largest deviation of the mean from the exact gradient in standard errors.
func spreads(t *testing.T, kind string, target samplers.Target, logits []float64, draws,
	estimates int) (variance, worst float64) {
	t.Helper()
	e, err := newEstimator(kind, target)
	if err != nil {
		t.Fatal(err)
	}
	all, err := targets.Enumerate(t.Context(), target)
	if err != nil {
		t.Fatal(err)
	}
	want := make([]float64, len(logits))
	exactGradient(all, logits, want)
	streams := samplers.Streams(11, kind, draws)
	gradient := make([]float64, len(logits))
	bySlot := make([][]float64, len(logits))
	for range estimates {
		if _, err := e.estimate(t.Context(), logits, streams, gradient); err != nil {
			t.Fatal(err)
		}
		for j, g := range gradient {
			bySlot[j] = append(bySlot[j], g)
		}
	}
	for j, list := range bySlot {
		mean, sd := stat.MeanStdDev(list, nil)
		variance += sd * sd
		worst = math.Max(worst, math.Abs(mean-want[j])/stat.StdErr(sd, float64(len(list))))
	}
	return variance, worst
}

// TestEstimators: every estimator is unbiased to four standard errors. ARM varies less than REINFORCE a draw, and also
// at equal evaluations where energies are far from 0, as log-likelihoods are.
func TestEstimators(t *testing.T) {
	ising, err := targets.NewIsing(3, 3, 0.1, 0.2)
	if err != nil {
		t.Fatal(err)
	}
	r := samplers.Streams(6, "rbm", 1)[0]
	rbm, err := targets.NewRandomRBM(6, 5, 1, r)
	if err != nil {
		t.Fatal(err)
	}
	for name, target := range map[string]samplers.Target{"square": squareTarget(0.49), "ising": ising, "rbm": rbm} {
		logits := targets.Normals(samplers.Streams(2, name, 1)[0], len(target.Categories()), 1)
		one := map[string]float64{}
		for _, kind := range estimators() {
			variance, worst := spreads(t, kind, target, logits, 4, 4000)
			one[kind] = variance
			if worst > 4 {
				t.Errorf("%s on %s: %.1f standard errors from the exact gradient", kind, name, worst)
			}
		}
		if one["arm"] >= one["reinforce"] {
			t.Errorf("%s: variance of ARM %v, of REINFORCE %v, a draw", name, one["arm"], one["reinforce"])
		}
		if name != "ising" && 2*one["arm"] >= one["reinforce"] {
			t.Errorf("%s: variance of ARM %v, of REINFORCE %v: not below at equal evaluations", name, one["arm"],
				one["reinforce"])
		}
	}
	hard := newMixture([]float64{1}, []float64{0.5})
	if _, err := newEstimator("relax", hard); !errors.Is(err, samplers.ErrUnsupported) {
		t.Errorf("relax without relaxed energies: %v", err)
	}
}

func TestARMStudies(t *testing.T) {
	toy := studied(t, study(t, "arm toy", "p0", "0.4", "steps", "300", "repeats", "1"), StudyOptions{Seed: 1})
	by := map[string]float64{}
	for _, c := range toy.Cells {
		by[c.label("estimator")] = c.Numbers["deviation"]
		if p := c.Numbers["probability"]; c.label("estimator") != "reinforce" && !(p > 0.9) {
			t.Errorf("%v: probability %v", c.Labels, p)
		}
	}
	if by["exact"] != 0 || !(by["arm"] < by["reinforce"]) {
		t.Errorf("deviations %v", by)
	}
	gradients := studied(t,
		study(t, "arm gradients", "targets", "square:0.3;mixture:slots=3,components=2", "estimators", "arm,reinforce",
			"estimates", "100", "repeats", "1"), StudyOptions{Seed: 1})
	if len(gradients.Cells) != 4 || gradients.Cells[0].Numbers["deviation"] > 5 {
		t.Errorf("%d cells, %v", len(gradients.Cells), gradients.Cells[0].Numbers)
	}
	for _, bad := range []struct{ name, flag, value, want string }{
		{"arm gradients", "targets", "square:x", `"x" is not a finite number`},
		{"arm gradients", "targets", "ising:size=5", "at most 16"},
		{"arm gradients", "estimators", "muprop", "is not one of"},
		{"arm gradients", "evaluations", "7", "not a multiple of 6"},
		{"learn images", "data", "none", "name a file"},
		{"learn images", "ais-sampler", "dula", "not one exact sampler"},
		{"learn images", "downsampling", "5", "5 of 4 blocks"},
		{"learn ising", "samplers", "all", "all"},
		{"learn ising", "batch", "300", "a batch moves 300 of them"},
		{"learn ising", "size", "100x100", "at most 2048 are learnt"},
	} {
		var option *OptionError
		_, err := study(t, bad.name, bad.flag, bad.value).Run(t.Context(), StudyOptions{})
		if !errors.As(err, &option) ||
			!strings.Contains(err.Error(), bad.want) {
			t.Errorf("%s --%s %s: %v", bad.name, bad.flag, bad.value, err)
		}
	}
}
