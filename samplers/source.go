package samplers

import (
	"math"
	"math/rand/v2"
	"slices"
)

// A source makes the random decisions of one chain. Kernels make every
// discrete decision through a source. So tests can replace the stream by a
// script, follow every path through the same code, and compute its
// transition matrix exactly.
type source interface {
	// categorical returns i with probability weight[i] / Σ weight. The sum must
	// be positive and finite.
	categorical(weight []float64) int
	// index returns a uniform index from 0 to n-1.
	index(n int) int
	// chance returns true with probability p, and false if p is NaN.
	chance(p float64) bool
	// normal returns a standard normal number.
	normal() float64
}

// random is the source that draws from a chain's stream.
type random struct{ r *rand.Rand }

var _ source = random{}

func (s random) categorical(weight []float64) int {
	total := 0.0
	for _, w := range weight {
		total += w
	}
	u := s.r.Float64() * total
	last := 0
	for i, w := range weight {
		if w <= 0 {
			continue
		}
		u -= w
		if u < 0 {
			return i
		}
		last = i
	}
	// By rounding, u can still be 0 or more after the last weight.
	return last
}

func (s random) index(n int) int       { return s.r.IntN(n) }
func (s random) chance(p float64) bool { return s.r.Float64() < p }
func (s random) normal() float64       { return s.r.NormFloat64() }

// drawLog returns i with probability proportional to exp(logWeight[i]). total
// is the log of the sum of the weights, and weight is scratch memory.
func drawLog(src source, logWeight []float64, total float64, weight []float64) int {
	weight = weight[:len(logWeight)]
	for i, l := range logWeight {
		weight[i] = math.Exp(l - total)
	}
	return src.categorical(weight)
}

// Accumulate replaces weights by the sums up to them, and returns the whole.
func Accumulate(weights []float64) float64 {
	sum := 0.0
	for i, w := range weights {
		sum += w
		weights[i] = sum
	}
	return sum
}

// DrawCumulative draws a category in proportion to its weight, from the
// cumulative sums of the weights (see [Accumulate]). The last sum must be above
// 0. It never draws a category of weight 0.
func DrawCumulative(cumulative []float64, stream *rand.Rand) int {
	return min(placed(cumulative, stream.Float64()*cumulative[len(cumulative)-1]), len(cumulative)-1)
}

// placed returns the first index whose cumulative weight is above u, or
// len(cumulative) if there is no such index.
func placed(cumulative []float64, u float64) int {
	place, _ := slices.BinarySearchFunc(cumulative, u, func(c, u float64) int {
		if c <= u {
			return -1
		}
		return 1
	})
	return place
}

// accept accepts with probability min(1, exp(logRatio)). If logRatio is NaN, it rejects.
func accept(s source, logRatio float64) bool {
	return s.chance(math.Exp(math.Min(0, logRatio)))
}

// chooseSlots fills block with distinct slots, drawn uniformly. order holds
// every slot, ascending, before and after the call, so that chains do not
// depend on each other.
func chooseSlots(block, order []int, src source) {
	for i := range block {
		j := i + src.index(len(order)-i)
		order[i], order[j] = order[j], order[i]
	}
	copy(block, order)
	for i := range order {
		order[i] = i
	}
}

func normalAround(mean, variance float64, src source) float64 {
	return mean + math.Sqrt(variance)*src.normal()
}
