package lab

import (
	"context"
	"math/rand/v2"

	"infill/internal/logmath"
)

// concrete is the Concrete relaxation (Maddison, Mnih and Teh 2017;
// Gumbel-softmax of Jang, Gu and Poole 2017): the slope of U(s(z)), with s(z) =
// sigmoid(z/λ) and z = φ + logit(u). It is the gradient of E[U(s(z))], and so
// biased for E[U(b)]. The densities in U are those of bits, not of the Concrete
// distribution.
type concrete struct{ batch }

func newConcrete(b batch) estimator { return concrete{b} }

func (concrete) evaluations() int { return 1 }

func (e concrete) estimate(ctx context.Context, logits []float64, draws int, r *rand.Rand, gradient []float64) error {
	n := len(logits)
	soft := make([]float64, n)
	slopes := make([]float64, n)
	energy := make([]float64, n/e.slots)
	clear(gradient)
	for range draws {
		for j, phi := range logits {
			soft[j] = logmath.Sigmoid((phi + logOdds(inside(r.Float64()))) / temperature)
		}
		err := e.relaxed.RelaxedEnergyGradient(ctx, soft, energy, slopes)
		if err != nil {
			return err
		}
		for j, s := range soft {
			gradient[j] += slopes[j] * s * (1 - s) / temperature / float64(draws)
		}
	}
	return nil
}
