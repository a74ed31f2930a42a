package bits

import (
	"context"
	"math/rand/v2"

	"infill/internal/logmath"
)

// darn is the estimator of deep autoregressive networks (Gregor and others
// 2014, as in Gu and others 2016, section 3). Its baseline is U's first-order
// expansion about the bits, at one half, which leaves
//
//	U'(b) (b - ½) ∂log p(b)/∂φ
//
// It is biased unless U is quadratic in each bit.
type darn struct{ batch }

func newDARN(b batch) estimator { return darn{b} }

func (e darn) estimate(ctx context.Context, logits []float64, draws int, r *rand.Rand, gradient []float64) error {
	return e.atBits(ctx, logits, draws, r, gradient, func(slope, phi, bit float64) float64 {
		return slope * (bit - 0.5) * (bit - logmath.Sigmoid(phi))
	})
}
