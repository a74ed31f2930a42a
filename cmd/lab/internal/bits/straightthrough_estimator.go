package bits

import (
	"context"
	"math/rand/v2"

	"infill/cmd/lab/internal/lab"
	"infill/internal/logmath"
)

// straightThrough is the straight-through estimator (Bengio, Léonard and
// Courville 2013): the slope of U at the bits, times that of their means, θ(1 -
// θ). It is biased unless U is linear in each bit.
type straightThrough struct{ batch }

func newStraightThrough(b batch) estimator { return straightThrough{b} }

func (e straightThrough) estimate(ctx context.Context, logits []float64, draws int, r *rand.Rand,
	gradient []float64) error {
	return e.atBits(ctx, logits, draws, r, gradient, func(slope, phi, _ float64) float64 {
		theta := logmath.Sigmoid(phi)
		return slope * theta * (1 - theta)
	})
}

// atBits writes the mean over draws of what of says of each slot, given the
// slope of U at the drawn bits, the slot's logit and its bit.
func (b batch) atBits(ctx context.Context, logits []float64, draws int, r *rand.Rand, gradient []float64,
	of func(slope, phi, bit float64) float64) error {
	n := len(logits)
	bits := make([]float64, n)
	slopes := make([]float64, n)
	energy := make([]float64, n/b.slots)
	clear(gradient)
	for range draws {
		drawBits(logits, r, bits)
		err := b.relaxed.RelaxedEnergyGradient(ctx, bits, energy, slopes)
		if err != nil {
			return err
		}
		for j, phi := range logits {
			gradient[j] += of(slopes[j], phi, bits[j]) / float64(draws)
		}
	}
	return nil
}

func drawBits(logits []float64, r *rand.Rand, bits []float64) {
	for i, phi := range logits {
		bits[i] = float64(lab.Bit(r.Float64() < logmath.Sigmoid(phi)))
	}
}
