package lab

import (
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"infill/internal/targets"
	"infill/samplers"
)

func enumerated(t *testing.T, target samplers.Target) *targets.Enumeration {
	t.Helper()
	return must(targets.Enumerate(t.Context(), target))(t)
}

// One estimate is the formula of algorithm 1 at the stream's own numbers.
func TestARMEstimate(t *testing.T) {
	target := must(targets.NewRandomRBM(3, 2, 1, rand.New(rand.NewPCG(8, 8))))(t)
	w := enumerated(t, target)
	logits := []float64{0.7, -1.1, 0.2}
	got := make([]float64, 3)
	for seed := range uint64(20) {
		if _, err := (arm{target}).estimate(t.Context(), logits, samplers.Streams(seed, "", 1), got); err != nil {
			t.Fatal(err)
		}
		u, right, left := make([]float64, 3), make([]int, 3), make([]int, 3)
		twin := samplers.Streams(seed, "", 1)[0]
		for j, phi := range logits {
			u[j] = twin.Float64()
			right[j] = bit(u[j] > 1/(1+math.Exp(phi)))
			left[j] = bit(u[j] < 1/(1+math.Exp(-phi)))
		}
		for j := range u {
			want := (w.Energy[w.Index(right)] - w.Energy[w.Index(left)]) * (u[j] - 0.5)
			if !(math.Abs(got[j]-want) < 1e-12) {
				t.Errorf("seed %d, slot %d: %v, want %v", seed, j, got[j], want)
			}
		}
	}
	table := must(targets.NewTable([]int{3, 2}, rand.New(rand.NewPCG(1, 2)), targets.TableOptions{}))(t)
	if _, err := newEstimator("arm", table); !errors.Is(err, samplers.ErrUnsupported) {
		t.Errorf("three categories: error %v", err)
	}
	table = must(targets.NewTable([]int{2, 2}, rand.New(rand.NewPCG(1, 2)), targets.TableOptions{}))(t)
	table.Set([]int{0, 1}, math.Inf(-1))
	if _, err := (arm{table}).estimate(t.Context(), logits[:2], samplers.Streams(1, "", 100), got[:2]); err == nil ||
		!strings.Contains(err.Error(), "no finite expectation") {
		t.Errorf("a forbidden state leaves no expectation: error %v", err)
	}
}

// TestEstimators: every estimator is unbiased to four standard errors. ARM varies less than REINFORCE a draw, and also
// at equal evaluations where energies are far from 0, as log-likelihoods are.
func TestEstimators(t *testing.T) {
	r := studied(t, study(t, "arm gradients", "target", "square:0.49", "target", "ising:size=3x3",
		"target", "rbm:data=none,visible=6,hidden=5,scale=1", "estimates", "4000", "repeats", "1"),
		StudyOptions{Seed: 1})
	variance := map[string]map[string]float64{}
	for _, c := range r.Cells {
		target, kind := c.Labels.value("target"), c.Labels.value("estimator")
		if variance[target] == nil {
			variance[target] = map[string]float64{}
		}
		if variance[target][kind] = c.Numbers["variance"]; !(c.Numbers["deviation"] < 4) {
			t.Errorf("%s on %s: %.1f standard errors from the exact gradient", kind, target, c.Numbers["deviation"])
		}
	}
	for target, of := range variance { // of an estimate of 12 evaluations: a draw of ARM takes two
		if len(of) != 4 || of["arm"]/2 >= of["reinforce"] {
			t.Errorf("%s: variance of ARM %v, of REINFORCE %v, at a draw", target, of["arm"]/2, of["reinforce"])
		}
		if !strings.HasPrefix(target, "ising") && of["arm"] >= of["reinforce"] {
			t.Errorf("%s: variance of ARM %v, of REINFORCE %v: not below at equal evaluations", target, of["arm"],
				of["reinforce"])
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
		by[c.Labels.value("estimator")] = c.Numbers["deviation"]
		if p := c.Numbers["probability"]; c.Labels.value("estimator") != "reinforce" && !(p > 0.9) {
			t.Errorf("%v: probability %v", c.Labels, p)
		}
	}
	if by["exact"] != 0 || !(by["arm"] < by["reinforce"]) {
		t.Errorf("deviations %v", by)
	}
	for _, bad := range []struct{ name, flag, value, want string }{
		{"arm gradients", "target", "square:x", `"x" is not a finite number`},
		{"arm gradients", "target", "ising:size=5", "at most 16"},
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
		if !errors.As(err, &option) || !strings.Contains(err.Error(), bad.want) {
			t.Errorf("%s --%s %s: %v", bad.name, bad.flag, bad.value, err)
		}
	}
}
