package samplers

import (
	"encoding/binary"
	"math"
	"slices"
)

// A Census normalises exp(U) by chains: of a set A of states whose energies are
// known it counts how often the chains are there,
//
//	Z = Σ_{x∈A} exp(U(x)) / π(A)
//
// so that the probability of any state of known energy follows, with one error
// for all. A must be chosen without the draws that are counted, from a warm-up,
// say, or a search; the more of π it holds, the smaller the error.
type Census struct {
	slots  int
	listed map[string]bool
	log    float64 // log Σ exp(U) over A
	inside [][]float64
	energy [][]float64
	key    []byte
}

// NewCensus lists the states of A, [states × slots], with their energies; states
// that come twice count once.
func NewCensus(slots int, states []int, energy []float64) *Census {
	c := &Census{slots: slots, listed: map[string]bool{}}
	var distinct []float64
	for i, u := range energy {
		if key := string(c.keyOf(states[i*slots : (i+1)*slots])); !c.listed[key] && finite(u) {
			c.listed[key] = true
			distinct = append(distinct, u)
		}
	}
	c.log = logSumExp(distinct)
	return c
}

func (c *Census) keyOf(state []int) []byte {
	c.key = c.key[:0]
	for _, v := range state {
		c.key = binary.AppendUvarint(c.key, uint64(v))
	}
	return c.key
}

// Observe counts the chains of a state once; a run counts as many chains every
// time.
func (c *Census) Observe(s *State) {
	if c.inside == nil {
		c.inside, c.energy = make([][]float64, s.Chains()), make([][]float64, s.Chains())
	}
	for chain := range c.inside {
		in := 0.0
		if c.listed[string(c.keyOf(s.Position(chain)))] {
			in = 1
		}
		c.inside[chain] = append(c.inside[chain], in)
		c.energy[chain] = append(c.energy[chain], s.Energy[chain])
	}
}

// Normaliser is the estimate so far. Its error is the Monte Carlo standard error
// of the share of A, by the effective sample size that chains which disagree
// lower; +Inf where no chain, or every one, was always in A, or too little was
// seen to tell. ParetoK is NaN, as the draws have no weights.
func (c *Census) Normaliser() Normaliser {
	share, n := 0.0, 0
	for _, chain := range c.inside {
		n += len(chain)
		for _, in := range chain {
			share += in
		}
	}
	z := Normaliser{Log: math.NaN(), Error: math.Inf(1), Draws: n, EffectiveSampleSize: EffectiveSampleSize(c.inside), ParetoK: math.NaN()}
	if share /= float64(n); share > 0 {
		z.Log = c.log - math.Log(share)
		if e := MonteCarloStandardError(c.inside) / share; !math.IsNaN(e) {
			z.Error = e
		}
	}
	return z
}

// RHat is the larger of [SplitRHat] of U and of being in A; NaN before there are
// four draws a chain.
func (c *Census) RHat() float64 {
	u, in := SplitRHat(c.energy), SplitRHat(c.inside)
	if math.IsNaN(in) {
		return u // always in A, or never
	}
	return slices.Max([]float64{u, in})
}
