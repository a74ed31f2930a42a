package bits

import (
	"context"
	"math"
	"math/rand/v2"

	"infill/cmd/lab/internal/lab"
	"infill/internal/logmath"
)

// temperature is λ, the temperature of the relaxed bits.
const temperature = 0.5

// noise is what REBAR and RELAX draw for each slot: z = φ + logit(u), b = [z >
// 0], and z̃, drawn as z given b.
type noise struct {
	hard         []int
	score        []float64    // ∂log p(b)/∂φ
	given        []float64    // ∂z̃/∂φ
	logits, soft [2][]float64 // z and z̃, and sigmoid(z/λ) and sigmoid(z̃/λ)
}

func newNoise(n int) *noise {
	w := &noise{hard: make([]int, n), score: make([]float64, n), given: make([]float64, n)}
	for i := range w.soft {
		w.logits[i] = make([]float64, n)
		w.soft[i] = make([]float64, n)
	}
	return w
}

func (w *noise) draw(logits []float64, r *rand.Rand) {
	for j, phi := range logits {
		theta := logmath.Sigmoid(phi)
		u := inside(r.Float64())
		v := inside(r.Float64())
		z := phi + lab.LogOdds(u)
		w.hard[j] = logmath.Indicator(z > 0)
		w.score[j] = float64(w.hard[j]) - theta
		// Given b, u is uniform above or below 1 - θ.
		conditional := v * (1 - theta)
		slope := -v * theta * (1 - theta)
		if w.hard[j] == 1 {
			conditional = 1 - theta*(1-v)
			slope = -(1 - v) * theta * (1 - theta)
		}
		conditional = inside(conditional)
		w.given[j] = 1 + slope/(conditional*(1-conditional))
		w.logits[0][j] = z
		w.logits[1][j] = phi + lab.LogOdds(conditional)
		for i := range w.soft {
			w.soft[i][j] = logmath.Sigmoid(w.logits[i][j] / temperature)
		}
	}
}

// relaxation evaluates a target at the relaxed bits of z and of z̃: its
// energies, and their slopes by z and z̃.
type relaxation struct{ values, slopes [2][]float64 }

// drawn draws w, and returns the energies of its bits and the relaxation there.
func (b batch) drawn(ctx context.Context, w *noise, logits []float64, r *rand.Rand) (energy []float64, at relaxation,
	err error) {
	w.draw(logits, r)
	energy, err = b.energies(ctx, w.hard)
	if err != nil {
		return nil, at, err
	}
	at, err = b.relaxAt(ctx, w)
	return energy, at, err
}

func (b batch) relaxAt(ctx context.Context, w *noise) (relaxation, error) {
	var at relaxation
	for i, soft := range w.soft {
		at.values[i] = make([]float64, len(soft)/b.slots)
		at.slopes[i] = make([]float64, len(soft))
		err := b.relaxed.RelaxedEnergyGradient(ctx, soft, at.values[i], at.slopes[i])
		if err != nil {
			return at, err
		}
		for j, s := range soft {
			at.slopes[i][j] *= s * (1 - s) / temperature
		}
	}
	return at, nil
}

// rebar is the score function with REBAR's control variate (Tucker and others
// 2017). The temperature λ is fixed; each call moves the scale η to lower the
// variance. With s(z) = sigmoid(z/λ):
//
//	(U(b) - ηU(s(z̃))) ∂log p(b)/∂φ + η ∂U(s(z))/∂φ - η ∂U(s(z̃))/∂φ
type rebar struct {
	batch
	eta    float64
	rate   float64 // of η; 0 keeps it
	moment float64 // running mean square of η's gradient
	calls  int
}

func (*rebar) evaluations() int { return 3 }

func (e *rebar) estimate(ctx context.Context, logits []float64, draws int, r *rand.Rand, gradient []float64) error {
	w := newNoise(len(logits))
	clear(gradient)
	pull := 0.0
	for range draws {
		energy, at, err := e.drawn(ctx, w, logits, r)
		if err != nil {
			return err
		}
		for j := range logits {
			row := j / e.slots
			variate := -at.values[1][row]*w.score[j] + at.slopes[0][j] - at.slopes[1][j]*w.given[j]
			g := energy[row]*w.score[j] + e.eta*variate
			gradient[j] += g / float64(draws)
			pull += 2 * g * variate / float64(draws*len(energy))
		}
	}
	// The step is scaled by the gradient's running size, as in RMSprop, and
	// falls from call to call.
	e.moment = 0.9*e.moment + 0.1*pull*pull
	e.calls++
	if e.moment > 0 {
		e.eta -= e.rate / math.Sqrt(float64(e.calls)) * pull / math.Sqrt(e.moment)
	}
	return nil
}
