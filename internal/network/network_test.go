package network

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"infill/internal/check"
)

func open(t testing.TB, s Shape) (*Energy, []float64) {
	t.Helper()
	e := check.Must(Open(t.Context(), s, 1))(t)
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	w := make([]float64, e.Weights())
	e.Initialise(rand.New(rand.NewPCG(1, 2)), w)
	e.Set(w)
	return e, w
}

// TestGradients: of pixels and of weights, against central differences. The
// graphs run in single precision, of which 1e-3 steps leave about four digits.
func TestGradients(t *testing.T) {
	const side, images, h = 4, 3, 0.01
	e, w := open(t, Shape{Rows: side, Columns: side, Features: 3, Blocks: 2, Downsampling: 1})
	r := rand.New(rand.NewPCG(3, 4))
	x := make([]float32, images*side*side)
	for i := range x {
		x[i] = float32(r.Float64())
	}
	u := func() []float64 {
		energy := make([]float64, images)
		check.OK(t, e.run(t.Context(), energies, x, nil, energy, nil))
		return energy
	}
	close := func(what string, got, want float64) {
		t.Helper()
		if math.Abs(got-want) > 2e-4+2e-2*math.Abs(want) {
			t.Errorf("%s: %v, by differences %v", what, got, want)
		}
	}
	energy, gradient := make([]float64, images), make([]float64, len(x))
	check.OK(t, e.run(t.Context(), pixels, x, nil, energy, gradient))
	largest := 0.0
	for i := range x {
		x[i] += h
		up := u()
		x[i] -= 2 * h
		down := u()
		x[i] += h
		image := i / (side * side)
		close("pixel", gradient[i], (up[image]-down[image])/(2*h))
		largest = math.Max(largest, math.Abs(gradient[i]))
	}
	if largest < 1e-3 {
		t.Errorf("the largest gradient of a pixel is %v: nothing is tested", largest)
	}

	seeds := []float32{1, -0.5, 2}
	of := make([]float64, len(w))
	check.OK(t, e.run(t.Context(), weights, x, seeds, nil, of))
	weighted := func() (sum float64) {
		for i, v := range u() {
			sum += float64(seeds[i]) * v
		}
		return sum
	}
	for i := range w {
		before := w[i]
		w[i] = before + h
		e.Set(w)
		up := weighted()
		w[i] = before - h
		e.Set(w)
		down := weighted()
		w[i] = before
		close("weight", of[i], (up-down)/(2*h))
	}
}

// TestEnergy: by hand, with one feature, no block: the mean of the convolution.
func TestEnergy(t *testing.T) {
	e, w := open(t, Shape{Rows: 2, Columns: 3, Features: 1})
	if len(w) != 9+1+1+1 {
		t.Fatalf("%d weights", len(w))
	}
	for i := range w {
		w[i] = float64(i + 1)
	}
	e.Set(w)
	energy, gradient := make([]float64, 2), make([]float64, 12)
	// A pixel in the corner is under 4 filters, in the middle under 6. The
	// filter's middle is the fifth weight; the pixel right below it sees the
	// second, and so on.
	images := []int{1, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0}
	check.OK(t, e.PixelGradient(t.Context(), images, energy, gradient))
	const bias, out, outBias = 10, 11, 12
	for i, sum := range []float64{5 + 4 + 2 + 1, 5 + 4 + 6 + 1 + 2 + 3} {
		if want := out*(sum/6+bias) + outBias; math.Abs(energy[i]-want) > 1e-4 {
			t.Errorf("image %d: %v, want %v", i, energy[i], want)
		}
	}
	// It is linear: the gradient of a pixel is what it adds, in any image.
	if want := 11 * (5 + 4 + 2 + 1.0) / 6; math.Abs(gradient[0]-want) > 1e-4 || math.Abs(gradient[6]-want) > 1e-4 {
		t.Errorf("gradient %v, want %v", gradient[0], want)
	}
	// The mean over images, scaled, is added.
	of := make([]float64, len(w))
	of[11] = 7
	check.OK(t, e.WeightGradient(t.Context(), images, 3, of))
	if math.Abs(of[11]-10) > 1e-5 || math.Abs(of[9]-3*11) > 1e-4 {
		t.Errorf("gradient of the biases %v and %v", of[11], of[9])
	}
}

func TestBadNetworks(t *testing.T) {
	if _, err := Open(t.Context(), Shape{Rows: 1, Columns: 4, Features: 2}, 1); err == nil {
		t.Error("one row was taken")
	}
	if _, err := Open(t.Context(), Shape{Rows: 4, Columns: 4, Features: 2, Downsampling: 1}, 1); err == nil {
		t.Error("more blocks that halve than blocks")
	}
	e, _ := open(t, Shape{Rows: 2, Columns: 2, Features: 1})
	if err := e.Energies(t.Context(), []int{1, 0, 1}, make([]float64, 1)); err == nil {
		t.Error("three quarters of an image were taken")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := e.Energies(ctx, []int{1, 0, 1, 1}, make([]float64, 1)); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}
