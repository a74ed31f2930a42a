package infill

import (
	"cmp"
	"context"
	"math"
	"slices"

	"infill/samplers"
)

// visited holds every different state (a fill) that chains visit once, and for
// every draw the number of its fill.
type visited struct {
	chains, slots int
	states        []int          // different fills as categories, [fills × slots]
	energy        []float64      // U in nats, [fills]; NaN if not known
	index         map[string]int // the number of each fill, by its categories as bytes
	draws         []int32        // the number of each draw's fill, [rounds × chains]
	key           []byte
}

func newVisited(chains, slots int) *visited {
	return &visited{chains: chains, slots: slots, index: map[string]int{}}
}

// add counts the chains' states as draws. state.Energy is U over temperature.
func (p *visited) add(state *samplers.State, temperature float64) {
	for chain, u := range state.Energy {
		position := state.Position(chain)
		p.key = samplers.AppendKey(p.key[:0], position...)
		fill, known := p.index[string(p.key)]
		if !known {
			fill = len(p.energy)
			p.index[string(p.key)] = fill
			p.states = append(p.states, position...)
			p.energy = append(p.energy, u*temperature)
		} else if math.IsNaN(p.energy[fill]) {
			p.energy[fill] = u * temperature
		}
		p.draws = append(p.draws, int32(fill))
	}
}

func (p *visited) state(fill int) []int { return p.states[fill*p.slots : (fill+1)*p.slots] }

// final returns the number of each chain's fill at its last draw, [chains].
func (p *visited) final() []int32 { return p.draws[len(p.draws)-p.chains:] }

// evaluate computes the energies that the sampler did not need (Gibbs moves
// without energies). A batch has at most as many states as there are chains, so
// that the model gets no larger batch than before.
func (p *visited) evaluate(ctx context.Context, target samplers.Target) error {
	var missing []int
	for fill, u := range p.energy {
		if math.IsNaN(u) {
			missing = append(missing, fill)
		}
	}
	states := make([]int, 0, p.chains*p.slots)
	energy := make([]float64, p.chains)
	for batch := range slices.Chunk(missing, p.chains) {
		states = states[:0]
		for _, fill := range batch {
			states = append(states, p.state(fill)...)
		}
		if err := target.Energy(ctx, states, energy[:len(batch)]); err != nil {
			return err
		}
		for i, fill := range batch {
			p.energy[fill] = energy[i]
		}
	}
	return nil
}

// distinct ranks the different fills by energy, the best first. Of equal
// energies, the fill drawn more often comes first, then the fill with smaller
// token numbers. So the order never depends on which chain came first.
func (p *visited) distinct() []int {
	counts := p.counts()
	fills := make([]int, len(p.energy))
	for fill := range fills {
		fills[fill] = fill
	}
	slices.SortFunc(fills, func(a, b int) int {
		return cmp.Or(cmp.Compare(p.energy[b], p.energy[a]), cmp.Compare(counts[b], counts[a]),
			slices.Compare(p.state(a), p.state(b)))
	})
	return fills
}

// finals ranks the chains' final states by energy, with repeats, top at most.
// Equal energies keep the order of chains.
func (p *visited) finals(top int) []int {
	fills := make([]int, p.chains)
	for chain, fill := range p.final() {
		fills[chain] = int(fill)
	}
	slices.SortStableFunc(fills, func(a, b int) int { return cmp.Compare(p.energy[b], p.energy[a]) })
	return fills[:min(top, len(fills))]
}

func (p *visited) counts() []int {
	counts := make([]int, len(p.energy))
	for _, fill := range p.draws {
		counts[fill]++
	}
	return counts
}

// byChain returns, for each fill in order, the share of each chain's draws that
// are this fill, [order][chains].
func (p *visited) byChain(order []int) [][]float64 {
	place := make(map[int][]int, len(order)) // a fill can occur in order more than once
	counts := make([][]float64, len(order))
	for i, fill := range order {
		place[fill] = append(place[fill], i)
		counts[i] = make([]float64, p.chains)
	}
	for i, fill := range p.draws {
		for _, at := range place[int(fill)] {
			counts[at][i%p.chains]++
		}
	}
	rounds := float64(len(p.draws) / p.chains)
	for _, row := range counts {
		for c := range row {
			row[c] /= rounds
		}
	}
	return counts
}

// meanEnergies returns each chain's mean U over its draws, [chains].
func (p *visited) meanEnergies() []float64 {
	means := make([]float64, p.chains)
	rounds := float64(len(p.draws) / p.chains)
	for i, fill := range p.draws {
		means[i%p.chains] += p.energy[fill] / rounds
	}
	return means
}
