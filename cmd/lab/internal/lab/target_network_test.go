package lab

import (
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/diff/fd"

	"infill/internal/targets"
)

// TestBinaryNetworkGradient: the gradient of all weights against finite
// differences, at weights that are any numbers: that of -1 and +1 is a case of it.
func TestBinaryNetworkGradient(t *testing.T) {
	const p, h, examples = 3, 4, 5
	r := rand.New(rand.NewPCG(3, 3))
	inputs, y := matrix(examples, p, targets.Normals(r, examples*p, 1)), targets.Normals(r, examples, 1)
	weights := targets.Normals(r, (p+2)*h+1, 1)
	energy := func(w []float64) float64 {
		f, _ := layersOf(w, p, h).forward(inputs)
		return -100 * meanSquare(f, y)
	}
	want := fd.Gradient(nil, energy, weights, &fd.Settings{Formula: fd.Central})
	l := layersOf(weights, p, h)
	f, units := l.forward(inputs)
	seed, got := make([]float64, examples), make([]float64, len(weights))
	for i, q := range f {
		seed[i] = -2 * 100.0 / examples * (q - y[i]) * q * (1 - q)
	}
	l.backward(inputs, units, seed, got)
	for i := range want {
		if math.Abs(got[i]-want[i]) > 1e-6*(1+math.Abs(want[i])) {
			t.Errorf("weight %d: %v, by differences %v", i, got[i], want[i])
		}
	}

	// The same numbers over one-hot slots, at a state of -1 and +1.
	network := newBinaryNetwork(inputs.Data, y, h, 100)
	state := make([]int, len(weights))
	for j := range state {
		state[j] = r.IntN(2)
		weights[j] = targets.Spin(state[j])
	}
	want = fd.Gradient(want, energy, weights, &fd.Settings{Formula: fd.Central})
	gradient, u := make([]float64, 2*len(state)), make([]float64, 1)
	if err := network.EnergyGradient(t.Context(), state, u, gradient); err != nil {
		t.Fatal(err)
	}
	if math.Abs(u[0]-energy(weights)) > 1e-9 {
		t.Errorf("energy %v, want %v", u[0], energy(weights))
	}
	for j, d := range want {
		if math.Abs(gradient[2*j+1]-d) > 1e-5*(1+math.Abs(d)) || gradient[2*j] != -gradient[2*j+1] {
			t.Errorf("slot %d: %v and %v, by differences %v", j, gradient[2*j], gradient[2*j+1], d)
		}
	}
}
