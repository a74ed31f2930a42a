package bits

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/diff/fd"
	"gonum.org/v1/gonum/floats"

	"infill/cmd/lab/internal/lab"
	"infill/cmd/lab/internal/lab/labtest"
	"infill/internal/check"
	"infill/internal/logmath"
	"infill/internal/targets"
	"infill/samplers"
)

// One estimate is the formula of algorithm 1 at the stream's own numbers.
func TestARMEstimate(t *testing.T) {
	target := check.Must(targets.NewRandomRBM(3, 2, 1, rand.New(rand.NewPCG(8, 8))))(t)
	w := labtest.Enumerated(t, target)
	logits := []float64{0.7, -1.1, 0.2}
	got := make([]float64, 3)
	for seed := range uint64(20) {
		arm := check.Must(newEstimator("arm", target))(t)
		check.OK(t, arm.estimate(t.Context(), logits, 1, rand.New(rand.NewPCG(seed, 1)), got))
		u, right, left := make([]float64, 3), make([]int, 3), make([]int, 3)
		twin := rand.New(rand.NewPCG(seed, 1))
		for j, phi := range logits {
			first, second := twin.ExpFloat64(), twin.ExpFloat64()
			u[j] = first / (first + second) // uniform
			right[j] = logmath.Indicator(u[j] > 1/(1+math.Exp(phi)))
			left[j] = logmath.Indicator(u[j] < 1/(1+math.Exp(-phi)))
		}
		for j := range u {
			want := (w.Energy[w.Index(right)] - w.Energy[w.Index(left)]) * (u[j] - 0.5)
			labtest.Near(t, fmt.Sprintf("seed %d, slot %d", seed, j), got[j], want, 1e-12)
		}
	}
	table := check.Must(targets.NewTable([]int{3, 2}, rand.New(rand.NewPCG(1, 2)), targets.TableOptions{}))(t)
	if _, err := newEstimator("arm", table); !errors.Is(err, samplers.ErrUnsupported) {
		t.Errorf("slots of three and two categories: error %v", err)
	}
	table = check.Must(targets.NewTable([]int{2, 2}, rand.New(rand.NewPCG(1, 2)), targets.TableOptions{}))(t)
	table.Set([]int{0, 1}, math.Inf(-1))
	err := check.Must(newEstimator("arm", table))(t).estimate(t.Context(), logits[:2], 100,
		rand.New(rand.NewPCG(1, 1)), got[:2])
	if err == nil || !strings.Contains(err.Error(), "no finite expectation") {
		t.Errorf("a forbidden state leaves no expectation: error %v", err)
	}
	for _, name := range []string{"muprop", "rebar", "relax", "concrete", "straight-through", "st-gumbel"} {
		if _, err := newEstimator(name, table); !errors.Is(err, samplers.ErrUnsupported) {
			t.Errorf("%s without relaxed energies: %v", name, err)
		}
	}
}

// TestEstimators: no estimator but the biased ones is further than four
// standard errors off, with three categories too. ARM varies less than AR with
// the best constant baseline, and less than REINFORCE a draw; also at equal
// evaluations where energies are far from 0, as log-likelihoods are.
func TestEstimators(t *testing.T) {
	r := labtest.Studied(t, study(t, "arm gradients", "target", "square:0.49", "target", "ising:size=3x3",
		"target", "rbm:data=none,visible=6,hidden=5,scale=1", "target", "potts:size=1x3", "estimates", "4000",
		"repeats", "1"), lab.StudyOptions{Seed: 1})
	variance := map[string]map[string]float64{}
	for _, c := range r.Cells {
		target, kind := c.Labels.Value("target"), c.Labels.Value("estimator")
		if variance[target] == nil {
			variance[target] = map[string]float64{}
		}
		variance[target][kind] = c.Numbers["variance"]
		d := c.Numbers["deviation"]
		if !biased(kind) && !(d < 4) || biased(kind) && target[0] == 'r' && !(d > 4) {
			t.Errorf("%s on %s: %.1f standard errors from the exact gradient", kind, target, d)
		}
	}
	for target, of := range variance { // of an estimate of 12 evaluations: a draw of ARM takes two
		if strings.HasPrefix(target, "potts") {
			if len(of) != 5 {
				t.Errorf("%s: %v", target, of)
			}
			continue
		}
		if len(of) != len(estimators(true)) || of["arm"]/2 >= of["reinforce"] || of["arm"]/2 >= of["ar"] {
			t.Errorf("%s: variances at 12 evaluations %v", target, of)
		}
		if !strings.HasPrefix(target, "ising") && of["arm"] >= of["reinforce"] {
			t.Errorf("%s: variance of ARM %v, of REINFORCE %v: not below at equal evaluations", target, of["arm"],
				of["reinforce"])
		}
	}
}

// TestGumbel: an estimate is the difference of the energy at the bits plus what
// the relaxed bits move by.
func TestGumbel(t *testing.T) {
	target := check.Must(targets.NewRandomRBM(3, 2, 1, rand.New(rand.NewPCG(8, 8))))(t)
	logits, got := []float64{0.7, -1.1, 0.2, 0.1, 2, -0.4}, make([]float64, 6) // two rows
	check.OK(t, check.Must(newEstimator("st-gumbel", target))(t).estimate(t.Context(), logits, 1,
		rand.New(rand.NewPCG(1, 2)), got))
	soft := func(phi []float64) (hard, s []float64) {
		twin := rand.New(rand.NewPCG(1, 2))
		for _, p := range phi {
			u := twin.Float64()
			z := p + math.Log(u/(1-u))
			hard, s = append(hard, float64(logmath.Indicator(z > 0))), append(s, 1/(1+math.Exp(-z/0.5)))
		}
		return hard, s
	}
	hard, at := soft(logits)
	sum := func(phi []float64) float64 {
		_, moved := soft(phi)
		floats.Sub(moved, at)
		floats.Add(moved, hard)
		energy := make([]float64, 2)
		check.OK(t, target.RelaxedEnergyGradient(t.Context(), moved, energy, make([]float64, 6)))
		return floats.Sum(energy)
	}
	for i, want := range fd.Gradient(nil, sum, logits, &fd.Settings{Formula: fd.Central}) {
		labtest.Near(t, fmt.Sprintf("part %d", i), got[i], want, 1e-6)
	}
}

func TestARMStudies(t *testing.T) {
	toy := labtest.Studied(t, study(t, "arm toy", "p0", "0.4", "steps", "300", "repeats", "1"),
		lab.StudyOptions{Seed: 1})
	by := map[string]float64{}
	wild := []string{"reinforce", "straight-through", "annealed-st", "st-gumbel"} // estimators that may end anywhere
	for _, c := range toy.Cells {
		by[c.Labels.Value("estimator")] = c.Numbers["deviation"]
		kind := c.Labels.Value("estimator")
		if p := c.Numbers["probability"]; !slices.Contains(wild, kind) && !(p > 0.9) {
			t.Errorf("%v: probability %v", c.Labels, p)
		}
	}
	if by["exact"] != 0 || !(by["arm"] < by["reinforce"]) {
		t.Errorf("deviations %v", by)
	}
}

func study(t *testing.T, name string, settings ...string) *lab.Study {
	t.Helper()
	return labtest.Study(t, Studies(), name, settings...)
}
