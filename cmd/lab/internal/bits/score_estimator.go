package bits

import (
	"context"
	"math/rand/v2"

	"gonum.org/v1/gonum/floats"

	"infill/internal/logmath"
)

// scoreEstimator is REINFORCE (Williams 1992), (U(b) - baseline) ∂log p(b)/∂φ.
// Its baseline is 0 or, given two draws or more, the mean U of the row's other
// draws. It is also ARM's half, AR, (U([u < sigmoid(φ)]) - baseline) (1 - 2u),
// whose baseline is the mean U of earlier calls.
type scoreEstimator struct {
	batch
	kind       string
	sum, count float64
}

func (e *scoreEstimator) estimate(ctx context.Context, logits []float64, draws int, r *rand.Rand,
	gradient []float64) error {
	more := e.categories - 1
	law := lawsOf(logits, more)
	scores := make([][]float64, draws)
	energy := make([][]float64, draws)
	mean := make([]float64, len(law)/e.slots)
	for n := range draws {
		scores[n] = make([]float64, len(logits))
		states := make([]int, len(law))
		for i, p := range law {
			u := r.Float64()
			states[i] = drawCategory(p, u)
			for c := range more {
				scores[n][i*more+c] = float64(logmath.Indicator(states[i] == c+1)) - p[c+1]
			}
			if e.kind == "ar" {
				scores[n][i] = 1 - 2*u
			}
		}
		var err error
		energy[n], err = e.energies(ctx, states)
		if err != nil {
			return err
		}
		floats.AddScaled(mean, 1/float64(draws), energy[n])
	}
	clear(gradient)
	for n, of := range scores {
		for i, score := range of {
			row := i / more / e.slots
			weight := energy[n][row]
			switch e.kind {
			case "ar":
				weight -= e.sum / max(e.count, 1)
			case "leave-one-out": // the baseline is the mean of the other draws
				weight = (weight - mean[row]) * float64(draws) / float64(max(draws-1, 1))
			}
			gradient[i] += weight * score / float64(draws)
		}
	}
	e.sum = e.sum + floats.Sum(mean)
	e.count = e.count + float64(len(mean))
	return nil
}
