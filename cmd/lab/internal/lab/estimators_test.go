package lab

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/diff/fd"
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
	all, err := listBits(t.Context(), target)
	if err != nil {
		t.Fatal(err)
	}
	want := make([]float64, len(logits))
	all.gradient(logits, want)
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

// TestEstimators: every estimator is unbiased to four standard errors. ARM varies
// less than REINFORCE a draw, and also at equal evaluations where energies are far
// from 0, as log-likelihoods are.
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
	if _, err := newEstimator("relax", &listed{make([]float64, 2), 1}); !errors.Is(err, samplers.ErrUnsupported) {
		t.Errorf("relax without relaxed energies: %v", err)
	}
}

// TestAutoencoder: the gradient over codes and that of the decoder against finite
// differences.
func TestAutoencoder(t *testing.T) {
	const pixels, codes = 6, 3
	m := newAutoencoder(pixels, codes, slices.Repeat([][]float64{{0.4, 0.6}}, pixels), samplers.Streams(1, "m", 1)[0])
	copy(m.weights, targets.Normals(samplers.Streams(1, "w", 1)[0], len(m.weights), 1))
	m.image = []int{1, 0, 0, 1, 1, 0}
	code := []float64{0.2, 0.9, 0.5}
	energy := func(x []float64) float64 {
		u := make([]float64, 1)
		if err := m.RelaxedEnergyGradient(t.Context(), x, u, nil); err != nil {
			t.Fatal(err)
		}
		return u[0]
	}
	u, gradient := make([]float64, 1), make([]float64, codes)
	if err := m.RelaxedEnergyGradient(t.Context(), code, u, gradient); err != nil {
		t.Fatal(err)
	}
	for l, want := range fd.Gradient(nil, energy, code, &fd.Settings{Formula: fd.Central}) {
		near(t, "code", gradient[l], want, 1e-6)
	}
	of := make([]float64, len(m.weights))
	m.addDecoder(code, 1, of)
	weights := slices.Clone(m.weights)
	want := fd.Gradient(nil, func(w []float64) float64 { copy(m.weights, w); return energy(code) }, weights,
		&fd.Settings{Formula: fd.Central})
	for i := range of {
		near(t, "weight", of[i], want[i], 1e-6)
	}
	// Exactly: the bound is below the likelihood, and many draws come close to it.
	exact := math.Inf(-1)
	for s := range 1 << codes {
		x := []float64{float64(s & 1), float64(s >> 1 & 1), float64(s >> 2 & 1)}
		exact = math.Log(math.Exp(exact) + math.Exp(energy(x)))
	}
	elbo, likelihood, err := m.judge(t.Context(), [][]int{m.image}, 5000, samplers.Streams(1, "j", 1)[0])
	if err != nil {
		t.Fatal(err)
	}
	near(t, "likelihood", likelihood, exact, 0.1)
	if elbo >= exact {
		t.Errorf("bound %v above the likelihood %v", elbo, exact)
	}
}

// twoModes is a target of three bits whose best fit is known to be worse than exact.
func twoModes(context.Context, string) (samplers.Target, error) {
	return &listed{[]float64{2, 0, 0, 0.5, 0, 0, 0, 1.5}, 3}, nil
}

func TestARMStudies(t *testing.T) {
	vae := studied(t,
		study(t, "arm vae", "data", "bars-and-stripes", "codes", "4", "updates", "150", "learning-rate", "0.02",
			"batch", "10", "repeats", "1"), StudyOptions{Seed: 1})
	for _, c := range vae.Cells {
		n, curve := c.Numbers, c.Curves["test-bound"]
		if n["test-nll"] > n["test-bound"] || len(curve) != 30 || !(n["train-bound"] < 16*math.Ln2) ||
			!(n["deviation"] > 0) {
			t.Errorf("%v: %v, curve of %d", c.Labels, n, len(curve))
		}
	}
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
	fills := studied(t, study(t, "arm fills", "templates", "x", "repeats", "1"), StudyOptions{Seed: 1})
	for _, c := range fills.Cells {
		// KL from the best product: at least 0, and near what the exact ascent reaches.
		if n := c.Numbers; !(n["gap"] > 0) || !(n["best-gap"] > 0) || n["gap"] > n["best-gap"]+0.5 ||
			!(n["variance"] > 0) {
			t.Errorf("%v: %v", c.Labels, n)
		}
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
		{"arm fills", "estimators", "relax", "is not one of"},
		{"arm vae", "data", "none", "name a file"},
		{"ais", "samplers", "dula", "not exact"},
		{"learn images", "ais-sampler", "dula", "not one exact sampler"},
		{"learn images", "downsampling", "5", "5 of 4 blocks"},
	} {
		if _, err := study(t, bad.name, bad.flag, bad.value).Run(t.Context(), StudyOptions{}); err == nil ||
			!strings.Contains(err.Error(), bad.want) {
			t.Errorf("%s --%s %s: %v", bad.name, bad.flag, bad.value, err)
		}
	}
}
