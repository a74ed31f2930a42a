package bits

import (
	"context"
	"math/rand/v2"

	"infill/cmd/lab/internal/lab"
	"infill/internal/logmath"
)

// gumbel is Gumbel-softmax with straight-through (Jang and others 2017;
// Maddison and others 2017). It takes the slope of U(b + s(z) - c), with b = [z
// > 0], s(z) = sigmoid(z/λ), and c = s(z) held constant. It is biased.
type gumbel struct{ batch }

func newGumbel(b batch) estimator { return gumbel{b} }

func (e gumbel) estimate(ctx context.Context, logits []float64, draws int, r *rand.Rand, gradient []float64) error {
	return e.throughSoft(ctx, logits, draws, r, gradient, true)
}

// throughSoft takes the slope of U by z through s(z), with z = φ + logit(u): at
// the bits [z > 0] if hard, else at s(z) itself.
func (b batch) throughSoft(ctx context.Context, logits []float64, draws int, r *rand.Rand, gradient []float64,
	hard bool) error {
	n := len(logits)
	soft := make([]float64, n)
	at := soft
	if hard {
		at = make([]float64, n)
	}
	slopes := make([]float64, n)
	energy := make([]float64, n/b.slots)
	clear(gradient)
	for range draws {
		for j, phi := range logits {
			z := phi + lab.LogOdds(inside(r.Float64()))
			soft[j] = logmath.Sigmoid(z / temperature)
			if hard {
				at[j] = float64(lab.Bit(z > 0))
			}
		}
		err := b.relaxed.RelaxedEnergyGradient(ctx, at, energy, slopes)
		if err != nil {
			return err
		}
		for j, s := range soft {
			gradient[j] += slopes[j] * s * (1 - s) / temperature / float64(draws)
		}
	}
	return nil
}
