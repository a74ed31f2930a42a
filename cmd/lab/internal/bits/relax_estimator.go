package bits

import (
	"context"
	"math"
	"math/rand/v2"

	"gonum.org/v1/gonum/floats"

	"infill/cmd/lab/internal/lab"
)

// relax is RELAX (Grathwohl and others 2018) with the control variate of its
// section 3.3, REBAR's plus a network of one hidden layer, r(z) = aᵀtanh(Wz +
// d):
//
//	c(z) = ηU(sigmoid(z/λ)) + r(z)
//	(U(b) - c(z̃)) ∂log p(b)/∂φ + ∂c(z)/∂φ - ∂c(z̃)/∂φ
//
// Each call moves η, a, W and d against the slope of the estimate's square,
// which is that of its variance. The temperature λ is fixed: its slope needs
// second derivatives of U.
type relax struct {
	batch
	parameters []float64 // η, a, d, W [units × slots]
	adam       lab.Adam
	calls      int
	rate       float64 // of the parameters; 0 keeps them
}

func newRELAX(b batch) estimator {
	n := 1 + baselineUnits*(2+b.slots)
	e := &relax{batch: b, parameters: make([]float64, n), adam: lab.NewAdam(n), rate: 0.005}
	r := rand.New(rand.NewPCG(2, 0))
	for i := 1 + 2*baselineUnits; i < n; i++ {
		e.parameters[i] = 0.1 * r.NormFloat64()
	}
	e.parameters[0] = 1
	return e
}

func (*relax) evaluations() int { return 3 }

func (e *relax) estimate(ctx context.Context, logits []float64, draws int, r *rand.Rand, gradient []float64) error {
	w := newNoise(len(logits))
	g := make([]float64, e.slots)
	slope := make([]float64, len(e.parameters))
	clear(gradient)
	for range draws {
		energy, at, err := e.drawn(ctx, w, logits, r)
		if err != nil {
			return err
		}
		for row, u := range energy {
			first := row * e.slots
			e.row(w, at, first, u-e.parameters[0]*at.values[1][row], g)
			floats.AddScaled(gradient[first:first+e.slots], 1/float64(draws), g)
			e.addSlope(w, at, first, g, slope)
		}
	}
	e.calls++
	floats.Scale(-float64(e.slots)/float64(draws*len(logits)), slope)
	e.adam.Ascend(e.parameters, slope, e.rate, e.calls)
	return nil
}

// hidden returns the units at a row's slots, and how fast each changes.
func (e *relax) hidden(z []float64) (units, speeds []float64) {
	weights := e.parameters[1+2*baselineUnits:]
	for k := range baselineUnits {
		h := math.Tanh(floats.Dot(weights[k*e.slots:(k+1)*e.slots], z) + e.parameters[1+baselineUnits+k])
		units = append(units, h)
		speeds = append(speeds, 1-h*h)
	}
	return units, speeds
}

// row writes a row's estimate, from slot first, to g. left is U(b) - ηU(s(z̃)).
func (e *relax) row(w *noise, at relaxation, first int, left float64, g []float64) {
	a := e.parameters[1 : 1+baselineUnits]
	weights := e.parameters[1+2*baselineUnits:]
	eta := e.parameters[0]
	_, forth := e.hidden(w.logits[0][first : first+e.slots])
	units, back := e.hidden(w.logits[1][first : first+e.slots])
	left -= floats.Dot(a, units)
	for j := range g {
		i := first + j
		g[j] = left*w.score[i] + eta*(at.slopes[0][i]-w.given[i]*at.slopes[1][i])
		for k, x := range a {
			g[j] += x * weights[k*e.slots+j] * (forth[k] - w.given[i]*back[k])
		}
	}
}

// addSlope adds the slope of half the square of g, by the parameters.
func (e *relax) addSlope(w *noise, at relaxation, first int, g, slope []float64) {
	scored := 0.0 // Σ g ∂log p/∂φ
	given := make([]float64, e.slots)
	for j, x := range g {
		i := first + j
		scored += x * w.score[i]
		given[j] = -x * w.given[i]
		slope[0] += x * (at.slopes[0][i] - w.given[i]*at.slopes[1][i])
	}
	slope[0] -= scored * at.values[1][first/e.slots]
	e.addDirection(w.logits[0][first:first+e.slots], g, 0, slope)
	e.addDirection(w.logits[1][first:first+e.slots], given, -scored, slope)
}

// addDirection adds Σ_j p_j ∂r(z)/∂z_j + q r(z)'s slope by the parameters.
func (e *relax) addDirection(z, p []float64, q float64, slope []float64) {
	a := e.parameters[1 : 1+baselineUnits]
	weights := e.parameters[1+2*baselineUnits:]
	units, speeds := e.hidden(z)
	for k, h := range units {
		along := floats.Dot(weights[k*e.slots:(k+1)*e.slots], p)
		slope[1+k] += speeds[k]*along + q*h
		bend := a[k] * speeds[k] * (q - 2*h*along) // by what tanh is taken of
		slope[1+baselineUnits+k] += bend
		own := slope[1+2*baselineUnits+k*e.slots : 1+2*baselineUnits+(k+1)*e.slots]
		floats.AddScaled(own, bend, z)
		floats.AddScaled(own, a[k]*speeds[k], p)
	}
}
