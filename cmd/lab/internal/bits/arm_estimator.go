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

func (a arm) evaluations() int { return 1 + a.categories*(a.categories-1)/2 }

func (a arm) estimate(ctx context.Context, logits []float64, draws int, r *rand.Rand, gradient []float64) error {
	k := a.categories
	sites := len(logits) / (k - 1)
	pi := make([]float64, sites*k)
	clear(gradient)
	for range draws {
		drawSimplices(pi, k, r)
		u, err := a.swapped(ctx, pi, logits)
		if err != nil {
			return err
		}
		for i := range sites {
			row := i / a.slots
			for d := range k {
				mean := 0.0
				for c := range k {
					mean += u[c][d][row] / float64(k)
				}
				weight := 1/float64(k) - pi[i*k+d]
				for c := 1; c < k; c++ {
					gradient[i*(k-1)+c-1] += (u[c][d][row] - mean) * weight / float64(draws)
				}
			}
		}
	}
	return nil
}

// drawSimplices draws each k numbers of pi uniformly from the simplex.
func drawSimplices(pi []float64, k int, r *rand.Rand) {
	for part := range slices.Chunk(pi, k) {
		for c := range part {
			part[c] = r.ExpFloat64()
		}
		floats.Scale(1/floats.Sum(part), part)
	}
}

// swapped returns U of b^cd for all parts c and d of π, [c][d][rows]. b^cc is
// the state without a swap, whatever c is.
func (a arm) swapped(ctx context.Context, pi, logits []float64) ([][][]float64, error) {
	k := a.categories
	u := make([][][]float64, k)
	for c := range u {
		u[c] = make([][]float64, k)
	}
	states := make([]int, len(pi)/k)
	for c := range k {
		for d := range max(c, 1) { // without a swap once, for c = d = 0
			for i := range states {
				states[i] = race(pi[i*k:(i+1)*k], logits[i*(k-1):(i+1)*(k-1)], c, d)
			}
			of, err := a.energies(ctx, states)
			if err != nil {
				return nil, err
			}
			u[c][d] = of
			u[d][c] = of
		}
		u[c][c] = u[0][0]
	}
	return u, nil
}

// race returns the least π_i exp(-φ_i)'s category, parts c and d of π swapped.
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
