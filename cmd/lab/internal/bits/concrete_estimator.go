package bits

import (
	"context"
	"math/rand/v2"
)

// concrete is the Concrete relaxation (Maddison, Mnih and Teh 2017;
// Gumbel-softmax of Jang, Gu and Poole 2017): the slope of U(s(z)), with s(z) =
// sigmoid(z/λ) and z = φ + logit(u). It is the gradient of E[U(s(z))], and so
// biased for E[U(b)]. The densities in U are those of bits, not of the Concrete
// distribution.
type concrete struct{ batch }

func newConcrete(b batch) estimator { return concrete{b} }

func (e concrete) estimate(ctx context.Context, logits []float64, draws int, r *rand.Rand, gradient []float64) error {
	return e.throughSoft(ctx, logits, draws, r, gradient, false)
}
