package lab

import (
	"math"
	"math/rand/v2"

	"gonum.org/v1/gonum/floats"
)

func LogOdds(p float64) float64 { return math.Log(p) - math.Log1p(-p) }

// Softmax returns probabilities proportional to exp(logs).
func Softmax(logs []float64) []float64 {
	law := make([]float64, len(logs))
	total := floats.LogSumExp(logs)
	for v, l := range logs {
		law[v] = math.Exp(l - total)
	}
	return law
}

// Bernoulli returns the law of two categories, the second with chance on.
func Bernoulli(on float64) []float64 { return []float64{1 - on, on} }

// DrawFrom draws, with each stream, a state of independent slots.
func DrawFrom(laws [][]float64, streams []*rand.Rand) (states []int) {
	for _, stream := range streams {
		for _, law := range laws {
			u := stream.Float64()
			v := 0
			for ; v < len(law)-1; v++ {
				u -= law[v]
				if u < 0 {
					break
				}
			}
			states = append(states, v)
		}
	}
	return states
}

// StatesOf returns the number of states of slots with the given categories.
func StatesOf(categories []int) float64 {
	states := 1.0
	for _, k := range categories {
		states *= float64(k)
	}
	return states
}

// SymmetricNormals draws a coupling between each two sites from N(0, scale²).
func SymmetricNormals(sites int, scale float64, r *rand.Rand) []float64 {
	w := make([]float64, sites*sites)
	for i := range sites {
		for j := range i {
			w[i*sites+j] = scale * r.NormFloat64()
			w[j*sites+i] = w[i*sites+j]
		}
	}
	return w
}
