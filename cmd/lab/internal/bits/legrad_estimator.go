package bits

import (
	"context"
	"math/rand/v2"
	"slices"
)

// leGrad has local expectation gradients (Titsias and Lázaro-Gredilla 2015).
// Given a draw of all slots, it sums over the categories of one slot at a time:
//
//	∂E[U]/∂φ_jc ≈ p_jc Σ_v p_jv (U(b with b_j = c) - U(b with b_j = v))
//
// A draw takes an evaluation for each slot and category, and so more than other
// estimators.
type leGrad struct{ batch }

func (e leGrad) evaluations() int { return 1 + e.slots*(e.categories-1) }

func (e leGrad) estimate(ctx context.Context, logits []float64, draws int, r *rand.Rand, gradient []float64) error {
	more := e.categories - 1
	laws := lawsOf(logits, more)
	clear(gradient)
	for range draws {
		states := make([]int, len(laws))
		for i, law := range laws {
			states[i] = drawCategory(law, r.Float64())
		}
		energy, err := e.energies(ctx, states)
		if err != nil {
			return err
		}
		for slot := range e.slots {
			u, err := e.alone(ctx, states, energy, slot)
			if err != nil {
				return err
			}
			for row := range energy {
				i := row*e.slots + slot
				mean := 0.0
				for v, p := range laws[i] {
					mean += p * u[v][row]
				}
				for c := range more {
					gradient[i*more+c] += laws[i][c+1] * (u[c+1][row] - mean) / float64(draws)
				}
			}
		}
	}
	return nil
}

// alone returns U for each category of one slot, [categories][rows]. The other
// slots keep their states, whose energies are known.
func (e leGrad) alone(ctx context.Context, states []int, energy []float64, slot int) ([][]float64, error) {
	u := make([][]float64, e.categories)
	for v := range u {
		u[v] = make([]float64, len(energy))
	}
	moved := slices.Clone(states)
	for shift := range e.categories {
		of := energy
		if shift > 0 {
			for row := range energy {
				i := row*e.slots + slot
				moved[i] = (states[i] + shift) % e.categories
			}
			var err error
			of, err = e.energies(ctx, moved)
			if err != nil {
				return nil, err
			}
		}
		for row, x := range of {
			u[(states[row*e.slots+slot]+shift)%e.categories][row] = x
		}
	}
	return u, nil
}
