package bits

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/diff/fd"
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/integrate/quad"

	"infill/cmd/lab/internal/lab"
	"infill/cmd/lab/internal/lab/labtest"
	"infill/internal/check"
	"infill/internal/logmath"
	"infill/internal/targets"
	"infill/samplers"
)

// script is a source of given uniform numbers.
type script struct{ numbers []float64 }

func (s *script) Uint64() uint64 {
	u := s.numbers[0]
	s.numbers = s.numbers[1:]
	return uint64(u * (1 << 53))
}

// cells is the number of parts of each uniform number in an enumeration. The
// probabilities of the bits in the tests are multiples of 1/cells.
const cells = 400

// meanOverNoise is the mean of an estimator's estimates over all the uniform
// numbers that it draws: the midpoints of cells parts of each. The parts of the
// first number are the rows of one call.
func meanOverNoise(t *testing.T, e estimator, logits []float64, draws, numbers int) []float64 {
	t.Helper()
	mean := make([]float64, len(logits))
	rows := slices.Repeat(logits, cells)
	got := make([]float64, len(rows))
	count := int(math.Pow(cells, float64(numbers)))
	for first := 0; first < count; first += cells {
		s := &script{}
		for of := range slices.Chunk([]int{1, cells}[:numbers], numbers/draws) { // numbers of a draw
			for row := range cells {
				for _, size := range of {
					s.numbers = append(s.numbers, (float64((first+row)/size%cells)+0.5)/cells)
				}
			}
		}
		check.OK(t, e.estimate(t.Context(), rows, draws, rand.New(s), got))
		for i, g := range got {
			mean[i%len(logits)] += g / float64(count)
		}
		if len(s.numbers) != 0 {
			t.Fatalf("%d numbers are left", len(s.numbers))
		}
	}
	return mean
}

// frozen makes an estimator, lets it learn from 200 calls, and then keeps what
// it has learned, so that estimates do not depend on each other.
func frozen(t *testing.T, name string, target samplers.Target, logits []float64) estimator {
	t.Helper()
	e := check.Must(newEstimator(name, target))(t)
	r := rand.New(rand.NewPCG(3, 4))
	got := make([]float64, len(logits))
	for range 200 {
		check.OK(t, e.estimate(t.Context(), logits, 2, r, got))
	}
	switch of := e.(type) {
	case *nvil:
		if of.mean == 0 || floats.Norm(of.baseline.Weights, 1) == 0 {
			t.Error("nvil has learned nothing")
		}
		of.rate = 0
	case *rebar:
		if of.eta == 1 {
			t.Error("rebar has learned nothing")
		}
		of.rate = 0
	case *relax:
		if of.parameters[0] == 1 || of.parameters[1] == 0 {
			t.Error("relax has learned nothing")
		}
		of.rate = 0
	case *annealedThrough:
		if of.slope == 1 {
			t.Error("annealed-st has not become steeper")
		}
		of.rate = 0
	case *scoreEstimator:
		if of.kind == "ar" { // its baseline is the mean of earlier calls: keep it
			of.count *= 1e9
			of.sum *= 1e9
		}
	}
	return e
}

// TestEstimatorBias enumerates the noise of each estimator. The mean is the
// exact gradient, also with learned baselines and control variates, if and only
// if the estimator is not listed as biased. ARM draws exponential numbers: its
// formula, which TestARMEstimate finds in the code, is enumerated instead.
func TestEstimatorBias(t *testing.T) {
	one := []float64{math.Log(0.25 / 0.75)}
	two := []float64{math.Log(0.25 / 0.75), math.Log(0.6 / 0.4)}
	bits := check.Must(targets.NewRandomRBM(2, 3, 1, rand.New(rand.NewPCG(8, 8))))(t)
	bit1 := check.Must(targets.NewRandomRBM(1, 3, 2, rand.New(rand.NewPCG(8, 8))))(t)
	for _, kind := range estimatorKinds() {
		if kind.name == "arm" {
			continue
		}
		target, logits, draws, numbers := samplers.Target(bits), two, 1, 2
		switch kind.name {
		case "augment", "augment-merge", "rebar", "relax": // two numbers for each slot
			target, logits = bit1, one
		case "leave-one-out": // two draws
			target, logits, draws = bit1, one, 2
		}
		want := make([]float64, len(logits))
		all := labtest.Enumerated(t, target)
		exactGradient(all, logits, want)
		got := meanOverNoise(t, frozen(t, kind.name, target, logits), logits, draws, numbers)
		floats.Sub(got, want)
		// The sum over midpoints is off by about 1/cells of the energies.
		bias := floats.Norm(got, 2) / floats.Norm(all.Energy, math.Inf(1))
		t.Logf("%s: %.2g", kind.name, bias)
		if (bias > 1e-3) != kind.biased {
			t.Errorf("%s: a bias of %.2g of the largest energy, listed as biased: %v", kind.name, bias, kind.biased)
		}
	}
	// ARM over all u.
	e := labtest.Enumerated(t, bits)
	want, got := make([]float64, 2), make([]float64, 2)
	exactGradient(e, two, want)
	for a := range cells {
		for b := range cells {
			u := []float64{(float64(a) + 0.5) / cells, (float64(b) + 0.5) / cells}
			right, left := make([]int, 2), make([]int, 2)
			for j, phi := range two {
				right[j] = logmath.Indicator(u[j] > logmath.Sigmoid(-phi))
				left[j] = logmath.Indicator(u[j] < logmath.Sigmoid(phi))
			}
			change := e.Energy[e.Index(right)] - e.Energy[e.Index(left)]
			for j := range u {
				got[j] += change * (u[j] - 0.5) / cells / cells
			}
		}
	}
	for j := range want {
		labtest.Near(t, "arm", got[j], want[j], 1e-3*floats.Norm(want, 2))
	}
}

// TestConcreteBias: the mean of Concrete's estimates is the gradient of the
// mean of U over the relaxed bits, by quadrature.
func TestConcreteBias(t *testing.T) {
	target := check.Must(targets.NewRandomRBM(1, 3, 2, rand.New(rand.NewPCG(8, 8))))(t)
	relaxed := func(phi float64) float64 {
		return quad.Fixed(func(u float64) float64 {
			energy := make([]float64, 1)
			soft := logmath.Sigmoid((phi + lab.LogOdds(inside(u))) / temperature)
			check.OK(t, target.RelaxedEnergyGradient(t.Context(), []float64{soft}, energy, make([]float64, 1)))
			return energy[0]
		}, 0, 1, 2000, nil, 0)
	}
	logits := []float64{-0.7}
	want := fd.Derivative(relaxed, logits[0], &fd.Settings{Formula: fd.Central})
	got := meanOverNoise(t, check.Must(newEstimator("concrete", target))(t), logits, 1, 1)
	labtest.Near(t, "the mean", got[0], want, 1e-4)
}

func biased(estimator string) bool {
	return slices.ContainsFunc(estimatorKinds(), func(k estimatorKind) bool { return k.name == estimator && k.biased })
}

// TestRELAXSlope: the slope by which RELAX learns is that of half the square of
// an estimate, by finite differences of each parameter.
func TestRELAXSlope(t *testing.T) {
	target := check.Must(targets.NewRandomRBM(2, 3, 1, rand.New(rand.NewPCG(8, 8))))(t)
	logits := []float64{0.4, -1.2}
	e := frozen(t, "relax", target, logits).(*relax)
	w := newNoise(2)
	w.draw(logits, rand.New(rand.NewPCG(5, 6)))
	energy := check.Must(e.energies(t.Context(), w.hard))(t)
	at := check.Must(e.relaxAt(t.Context(), w))(t)
	g := make([]float64, 2)
	half := func(parameters []float64) float64 {
		moved := *e
		moved.parameters = parameters
		moved.row(w, at, 0, energy[0]-parameters[0]*at.values[1][0], g)
		return floats.Dot(g, g) / 2
	}
	want := fd.Gradient(nil, half, e.parameters, &fd.Settings{Formula: fd.Central})
	half(e.parameters)
	got := make([]float64, len(want))
	e.addSlope(w, at, 0, g, got)
	for i := range want {
		labtest.Near(t, fmt.Sprintf("parameter %d", i), got[i], want[i], 1e-6)
	}
}
