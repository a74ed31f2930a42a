package bits

import (
	"context"
	"math/rand/v2"

	"infill/internal/logmath"
)

// muProp is MuProp (Gu, Levine, Sutskever and Mnih 2016, equation 7). Its
// control variate is U's first-order expansion about the means θ of the bits,
// whose expectation is known:
//
//	(U(b) - U(θ) - U'(θ)ᵀ(b - θ)) ∂log p(b)/∂φ + U'(θ) ∂θ/∂φ
//
// The paper's further baselines, those of NVIL, are left out.
type muProp struct{ batch }

// evaluations counts the state and the means; draws share the latter.
func (muProp) evaluations() int { return 2 }

func (e muProp) estimate(ctx context.Context, logits []float64, draws int, r *rand.Rand, gradient []float64) error {
	n := len(logits)
	means := make([]float64, n)
	for j, phi := range logits {
		means[j] = logmath.Sigmoid(phi)
	}
	slopes := make([]float64, n)
	centre := make([]float64, n/e.slots)
	err := e.relaxed.RelaxedEnergyGradient(ctx, means, centre, slopes)
	if err != nil {
		return err
	}
	for j, theta := range means {
		gradient[j] = slopes[j] * theta * (1 - theta)
	}
	states := make([]int, n)
	for range draws {
		for j, theta := range means {
			states[j] = logmath.Indicator(r.Float64() < theta)
		}
		left, err := e.energies(ctx, states)
		if err != nil {
			return err
		}
		for row, u := range centre {
			left[row] -= u
		}
		for j, theta := range means {
			left[j/e.slots] -= slopes[j] * (float64(states[j]) - theta)
		}
		for j, theta := range means {
			gradient[j] += left[j/e.slots] * (float64(states[j]) - theta) / float64(draws)
		}
	}
	return nil
}
