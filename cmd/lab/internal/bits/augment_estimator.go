package bits

import (
	"context"
	"math"
	"math/rand/v2"

	"gonum.org/v1/gonum/floats"

	"infill/internal/logmath"
)

// augment has the two steps that ARM's slides take before ARM itself, in the
// space of two exponential numbers ε₁ and ε₂ for each slot, with
// b = [ε₁ exp(-φ) < ε₂]. First, REINFORCE for the law of ε₁ exp(-φ):
//
//	U(b) (1 - ε₁)
//
// If merged, the mean of this and of the same with ε₁ and ε₂ swapped:
//
//	(U(b) - U([ε₂ exp(-φ) < ε₁])) (1 - ε₁)/2
//
// ARM is the mean of the latter given ε₁/(ε₁ + ε₂).
type augment struct {
	batch
	merged bool
}

func (e augment) evaluations() int { return 1 + logmath.Indicator(e.merged) }

func (e augment) estimate(ctx context.Context, logits []float64, draws int, r *rand.Rand, gradient []float64) error {
	states := make([]int, len(logits))
	swapped := make([]int, len(logits))
	scores := make([]float64, len(logits))
	clear(gradient)
	for range draws {
		for j, phi := range logits {
			first := -math.Log(inside(r.Float64()))
			second := -math.Log(inside(r.Float64()))
			states[j] = logmath.Indicator(first*math.Exp(-phi) < second)
			swapped[j] = logmath.Indicator(second*math.Exp(-phi) < first)
			scores[j] = 1 - first
		}
		weight, err := e.energies(ctx, states)
		if err != nil {
			return err
		}
		if e.merged {
			other, err := e.energies(ctx, swapped)
			if err != nil {
				return err
			}
			floats.Sub(weight, other)
			floats.Scale(0.5, weight)
		}
		for j, score := range scores {
			gradient[j] += weight[j/e.slots] * score / float64(draws)
		}
	}
	return nil
}
