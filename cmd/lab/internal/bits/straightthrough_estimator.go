package bits

import (
	"context"
	"math/rand/v2"

	"infill/internal/logmath"
)

// atBits is the mean over draws of what of says of each slot, given the slope
// of U at the drawn bits, the slot's logit and its bit.
type atBits struct {
	batch
	of func(slope, phi, bit float64) float64
}

func newAtBits(of func(slope, phi, bit float64) float64) func(batch) estimator {
	return func(b batch) estimator { return atBits{b, of} }
}

// straightThrough is the straight-through estimator (Bengio, Léonard and
// Courville 2013): the slope of U at the bits, times that of their means, θ(1 -
// θ). It is biased unless U is linear in each bit.
func straightThrough(slope, phi, _ float64) float64 {
	theta := logmath.Sigmoid(phi)
	return slope * theta * (1 - theta)
}

// darn is the estimator of deep autoregressive networks (Gregor and others
// 2014, as in Gu and others 2016, section 3). Its baseline is U's first-order
// expansion about the bits, at one half, which leaves
//
//	U'(b) (b - ½) ∂log p(b)/∂φ
//
// It is biased unless U is quadratic in each bit.
func darn(slope, phi, bit float64) float64 { return slope * (bit - 0.5) * (bit - logmath.Sigmoid(phi)) }

func (e atBits) estimate(ctx context.Context, logits []float64, draws int, r *rand.Rand, gradient []float64) error {
	n := len(logits)
	bits := make([]float64, n)
	slopes := make([]float64, n)
	energy := make([]float64, n/e.slots)
	clear(gradient)
	for range draws {
		drawBits(logits, r, bits)
		err := e.relaxed.RelaxedEnergyGradient(ctx, bits, energy, slopes)
		if err != nil {
			return err
		}
		for j, phi := range logits {
			gradient[j] += e.of(slopes[j], phi, bits[j]) / float64(draws)
		}
	}
	return nil
}

func drawBits(logits []float64, r *rand.Rand, bits []float64) {
	for i, phi := range logits {
		bits[i] = float64(logmath.Indicator(r.Float64() < logmath.Sigmoid(phi)))
	}
}

// steepest is the slope at which annealing ends, and steeper what each call
// adds: 0.04 for an epoch of the digits, of 28 batches (Chung, Ahn and Bengio
// 2017, section 4.1).
const (
	steepest = 5
	steeper  = 0.04 / 28
)

// annealedThrough is straight-through with an annealed slope (Chung, Ahn and
// Bengio 2017; table 4 of ARM's slides has it from Jang and others 2017). The
// bits are drawn by their logits φ, but pass the slope of sigmoid(aφ). Each
// call makes a steeper, from 1. It is biased, also where straight-through is
// not.
type annealedThrough struct {
	batch
	slope float64 // a
	rate  float64 // by which a rises at each call; 0 keeps it
}

func (e *annealedThrough) estimate(ctx context.Context, logits []float64, draws int, r *rand.Rand,
	gradient []float64) error {
	err := atBits{e.batch, func(slope, phi, _ float64) float64 {
		theta := logmath.Sigmoid(e.slope * phi)
		return slope * e.slope * theta * (1 - theta)
	}}.estimate(ctx, logits, draws, r, gradient)
	e.slope = min(e.slope+e.rate, steepest)
	return err
}
