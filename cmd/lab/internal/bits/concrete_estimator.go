package bits

import (
	"context"
	"math/rand/v2"

	"infill/cmd/lab/internal/lab"
	"infill/internal/logmath"
)

// concrete is the Concrete relaxation (Maddison, Mnih and Teh 2017;
// Gumbel-softmax of Jang, Gu and Poole 2017): the slope of U(s(z)), with s(z) =
// sigmoid(z/λ) and z = φ + logit(u). It is the gradient of E[U(s(z))], and so
// biased for E[U(b)]. The densities in U are those of bits, not of the Concrete
// distribution.
//
// If hard, it is Gumbel-softmax with straight-through (the same papers): the
// slope of U(b + s(z) - c), with b = [z > 0], and c = s(z) held constant. It is
// biased, too.
type concrete struct {
	batch
	hard bool
}

func (e concrete) estimate(ctx context.Context, logits []float64, draws int, r *rand.Rand, gradient []float64) error {
	n := len(logits)
	soft := make([]float64, n)
	at := soft
	if e.hard {
		at = make([]float64, n)
	}
	slopes := make([]float64, n)
	energy := make([]float64, n/e.slots)
	clear(gradient)
	for range draws {
		for j, phi := range logits {
			z := phi + lab.LogOdds(inside(r.Float64()))
			soft[j] = logmath.Sigmoid(z / temperature)
			if e.hard {
				at[j] = float64(logmath.Indicator(z > 0))
			}
		}
		err := e.relaxed.RelaxedEnergyGradient(ctx, at, energy, slopes)
		if err != nil {
			return err
		}
		for j, s := range soft {
			gradient[j] += slopes[j] * s * (1 - s) / temperature / float64(draws)
		}
	}
	return nil
}
