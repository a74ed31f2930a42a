package bits

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/floats"
)

// arm is the augment-REINFORCE-merge estimator of Yin and Zhou, "ARM:
// Augment-REINFORCE-Merge Gradient for Stochastic Binary Networks" (ICLR 2019,
// algorithm 1), an unbiased gradient that needs energies only:
//
//	u ~ Uniform(0,1)^m
//	∂E[U]/∂φ_j ≈ (U([u > sigmoid(-φ)]) - U([u < sigmoid(φ)])) (u_j - ½)
//
// For K categories it is ARSM (Yin, Yue and Zhou, ICML 2019); ARM is its case K
// = 2. π is uniform on the simplex, and b is the category of the least π_i
// exp(-φ_i). If b^ck is the state after parts c and k of π swap in every slot,
//
//	∂E[U]/∂φ_jc ≈ Σ_k (U(b^ck) - mean_i U(b^ik)) (1/K - π_jk)
type arm struct{ batch }

func newARM(b batch) estimator { return arm{b} }

func (a arm) evaluations() int { return 1 + a.categories*(a.categories-1)/2 }

func (a arm) estimate(ctx context.Context, logits []float64, draws int, r *rand.Rand, gradient []float64) error {
	k := a.categories
	sites := len(logits) / (k - 1)
	pi := make([]float64, sites*k)
	states := make([]int, sites)
	u := make([][]float64, k*k) // U of b^ck, [rows]
	clear(gradient)
	for range draws {
		for part := range slices.Chunk(pi, k) {
			for c := range part {
				part[c] = r.ExpFloat64()
			}
			floats.Scale(1/floats.Sum(part), part)
		}
		for c := range k {
			for d := range c + 1 {
				if c == d && c > 0 {
					u[c*k+c] = u[0] // here c = d, which swaps nothing
					continue
				}
				for i := range states {
					states[i] = race(pi[i*k:(i+1)*k], logits[i*(k-1):(i+1)*(k-1)], c, d)
				}
				of, err := a.energies(ctx, states)
				if err != nil {
					return err
				}
				u[c*k+d] = of
				u[d*k+c] = of
			}
		}
		for i := range sites {
			row := i / a.slots
			for d := range k {
				mean := 0.0
				for c := range k {
					mean += u[c*k+d][row] / float64(k)
				}
				for c := 1; c < k; c++ {
					gradient[i*(k-1)+c-1] += (u[c*k+d][row] - mean) * (1/float64(k) - pi[i*k+d]) / float64(draws)
				}
			}
		}
	}
	return nil
}

// race returns the category with the least π_i exp(-φ_i), after parts c and d
// of π are swapped.
func race(pi, logits []float64, c, d int) int {
	best := math.Inf(1)
	at := 0
	for v := range pi {
		part := v
		weight := 1.0
		switch v {
		case c:
			part = d
		case d:
			part = c
		}
		if v > 0 {
			weight = math.Exp(-logits[v-1])
		}
		if x := pi[part] * weight; x < best {
			best = x
			at = v
		}
	}
	return at
}
