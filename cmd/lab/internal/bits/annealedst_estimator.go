package bits

import (
	"context"
	"math/rand/v2"

	"infill/internal/logmath"
)

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

func newAnnealedThrough(b batch) estimator {
	return &annealedThrough{batch: b, slope: 1, rate: steeper}
}

func (e *annealedThrough) estimate(ctx context.Context, logits []float64, draws int, r *rand.Rand,
	gradient []float64) error {
	err := e.atBits(ctx, logits, draws, r, gradient, func(slope, phi, _ float64) float64 {
		theta := logmath.Sigmoid(e.slope * phi)
		return slope * e.slope * theta * (1 - theta)
	})
	e.slope = min(e.slope+e.rate, steepest)
	return err
}
