package samplers

import (
	"encoding/binary"
	"math"
	"slices"
)

// A Census estimates Z = Σ exp(U) by how often chains are in a set A of states of known
// energies: Z = Σ_{x∈A} exp(U(x)) / π(A). A must be chosen without the draws that are
// counted, by a warm-up or a search; the more of π it holds, the smaller the error.
type Census struct {
	slots  int
	listed map[string]bool
	log    float64 // log Σ exp(U) over A
	inside [][]float64
	energy [][]float64
	key    []byte
}

// NewCensus takes A, [states × slots], and its energies; states that come twice count once.
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

// Observe counts the chains of a state once; every state has to have as many.
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

// Normaliser is the estimate so far. Its error comes from the [EffectiveSampleSize] of
// being in A; +Inf where no chain, or every one, was always in A, or too little was
// seen to tell. ParetoK is NaN: the draws have no weights.
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
		if e := monteCarloStandardError(c.inside) / share; !math.IsNaN(e) {
			z.Error = e
		}
	}
	return z
}

// RHat is the larger [SplitRHat] of U and of being in A; NaN below four draws a chain.
func (c *Census) RHat() float64 {
	u, in := SplitRHat(c.energy), SplitRHat(c.inside)
	if math.IsNaN(in) {
		return u // always in A, or never
	}
	return slices.Max([]float64{u, in})
}
