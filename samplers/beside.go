package samplers

import (
	"cmp"
	"context"
	"encoding/binary"
	"math"
	"math/rand/v2"
	"slices"

	"infill/internal/logmath"
)

// sources is how many of the known states of highest energy have neighbours drawn.
const sources = 64

// beside proposes states that are not known and differ from a known one in one slot,
// with what a Gibbs sampler's step would take there: a source x with probability
// ∝ exp(U(x)), a slot i, and a category v that leads out of what is known,
//
//	r(y) ∝ Σ_i Σ_{x: x_-i = y_-i} exp(U(x)) f(y_i | x_-i)
//
// so that exp(U)/r hardly differs among the neighbours of a mode that the chain rule
// hardly reaches, as long as f is near exp(U)'s own conditional.
type beside struct {
	places map[string]*opened
	list   []*opened
	flow   []float64 // log of what leads out of each, [places]
	total  float64   // log of their sum
	share  float64   // of the draws that are made here

	weight  []float64
	scratch []byte
}

// opened is what sources that agree in all slots but one open.
type opened struct {
	state   []int // of one of them
	slot    int
	logMass float64   // of their exp(U)
	logp    []float64 // of the slot's categories, -Inf of those that are known
}

// besideKnown is nil if nothing is known, and where all neighbours are.
func (m *Importance) besideKnown(ctx context.Context) (*beside, error) {
	if len(m.knownEnergy) == 0 {
		return nil, nil
	}
	from := ascending(len(m.knownEnergy))
	slices.SortStableFunc(from, func(a, b int) int { return cmp.Compare(m.knownEnergy[b], m.knownEnergy[a]) })
	b := &beside{share: m.besideShare(), places: map[string]*opened{}}
	var states []int
	var open []bool
	for _, x := range from[:min(sources, len(from))] {
		state, energy := m.stateOf(m.knownStates, x), m.knownEnergy[x]
		for i := range state {
			key := b.key(state, i)
			if p, ok := b.places[string(key)]; ok {
				p.logMass = logmath.LogSumExp([]float64{p.logMass, energy})
				continue
			}
			p := &opened{state: state, slot: i, logMass: energy}
			b.places[string(key)], b.list = p, append(b.list, p)
			states = append(states, state...)
			for j := range state {
				open = append(open, j == i)
			}
		}
	}
	categories := m.rules[0].categories
	wide := width(categories)
	step := max(1, chainRuleNumbers/(m.slots*wide))
	var logp []float64
	b.flow, b.weight = make([]float64, len(b.list)), make([]float64, max(wide, len(b.list)))
	for first := 0; first < len(b.list); first += step {
		some := b.list[first:min(first+step, len(b.list))]
		logp = resized(logp, len(some)*m.slots*wide)
		to := (first + len(some)) * m.slots
		if err := m.rules[0].target.LogMaskedConditionals(ctx, states[first*m.slots:to], open[first*m.slots:to],
			logp); err != nil {
			return nil, err
		}
		for n, p := range some {
			row := logp[(n*m.slots+p.slot)*wide:][:categories[p.slot]]
			total := logmath.LogSumExp(row)
			if !logmath.Finite(total) {
				return nil, errNoDistribution
			}
			p.logp = make([]float64, len(row))
			for v, l := range row {
				p.logp[v] = l - total
			}
		}
	}
	for x := range m.knownEnergy {
		state := m.stateOf(m.knownStates, x)
		for i, v := range state {
			if p, ok := b.places[string(b.key(state, i))]; ok {
				p.logp[v] = math.Inf(-1)
			}
		}
	}
	for n, p := range b.list {
		b.flow[n] = p.logMass + logmath.LogSumExp(p.logp)
	}
	if b.total = logmath.LogSumExp(b.flow); !logmath.Finite(b.total) {
		return nil, nil
	}
	return b, nil
}

// besideShares are the shares of draws that may be made beside what is known: neither
// proposal is ever given up, for each may reach what the other does not.
var besideShares = []float64{0.25, 0.125, 0.5, 0.75}

// besideShare is the share for which the squares of the weights outside of what is known
// would have been least on average, judged by the draws that were made.
func (m *Importance) besideShare() float64 {
	best, least := besideShares[0], math.Inf(1)
	for _, share := range besideShares {
		var squares []float64
		for i, l := range m.logWeight {
			if !m.inside[i] {
				squares = append(squares, l+logWeight(m.energy[i], mixed(share, m.logq[i], m.logr[i])))
			}
		}
		if sum := logmath.LogSumExp(squares); sum < least {
			best, least = share, sum
		}
	}
	return best
}

// mixed is the log of the proposal that draws are made by; b may be nil.
func (b *beside) mixed(logq, logr float64) float64 {
	if b == nil {
		return logq
	}
	return mixed(b.share, logq, logr)
}

func mixed(share, logq, logr float64) float64 {
	return logmath.LogSumExp([]float64{math.Log1p(-share) + logq, math.Log(share) + logr})
}

// key is that of what the slots but one hold.
func (b *beside) key(state []int, slot int) []byte {
	b.scratch = b.scratch[:0]
	for j, v := range state {
		if j == slot {
			v = -1
		}
		b.scratch = binary.AppendUvarint(b.scratch, uint64(v+1))
	}
	return b.scratch
}

// draw draws a state.
func (b *beside) draw(state []int, stream *rand.Rand) {
	at := drawLog(random{stream}, b.flow, b.total, b.weight)
	p := b.list[at]
	copy(state, p.state)
	state[p.slot] = drawLog(random{stream}, p.logp, b.flow[at]-p.logMass, b.weight)
}

// logProbability is log r of a state.
func (b *beside) logProbability(state []int) float64 {
	var terms []float64
	for i, v := range state {
		if p, ok := b.places[string(b.key(state, i))]; ok {
			terms = append(terms, p.logMass+p.logp[v]-b.total)
		}
	}
	return logmath.LogSumExp(terms)
}
