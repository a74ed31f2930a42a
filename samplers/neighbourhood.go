package samplers

import (
	"math"

	"infill/internal/logmath"
)

// blockSize is the number of categories with a sum of weights of their own, so that a draw reads one block instead of a
// whole row.
const blockSize = 256

// A scorer gives the unnormalised log weight of moving one slot of one chain from its current category to another.
type scorer interface {
	// auxiliary returns a number that the weights of a slot need besides its row, such as a normalising constant.
	auxiliary(slot, current int, gradient []float64) float64
	// logWeights writes the log weights of the categories first, first+1, ... to out. gradient is the slot's row. The
	// weight of the current category itself is never used. A NaN or +Inf in the gradient must come out as NaN or +Inf:
	// it marks the state as unusable.
	logWeights(auxiliary float64, slot, current int, gradient []float64, first int, out []float64)
}

// neighbourhood holds the sums of the weights of all single-slot moves of each chain, in blocks. Every informed
// proposal takes its normalising constants and draws from them, so that a step needs one pass over the gradient.
type neighbourhood struct {
	categories []int
	width      int
	blocks     int
	logBlock   []float64 // [chains × slots × blocks]
	logTotal   []float64 // [chains × slots], log Σ_{v ≠ current} weight
	auxiliary  []float64 // [chains × slots], as the scorer gave it
	buffer     []float64 // [chains × room], so that chains share nothing
	room       int
}

func newNeighbourhood(categories []int, chains int) *neighbourhood {
	k := width(categories)
	blocks := (k + blockSize - 1) / blockSize
	room := max(min(k, blockSize), blocks, len(categories))
	return &neighbourhood{
		categories: categories,
		width:      k,
		blocks:     blocks,
		logBlock:   make([]float64, chains*len(categories)*blocks),
		logTotal:   make([]float64, chains*len(categories)),
		auxiliary:  make([]float64, chains*len(categories)),
		buffer:     make([]float64, chains*room),
		room:       room,
	}
}

// totals is the log total weight of each slot of a chain, [slots].
func (n *neighbourhood) totals(chain int) []float64 {
	slots := len(n.categories)
	return n.logTotal[chain*slots : (chain+1)*slots]
}

// scratch is the chain's own buffer of the given length.
func (n *neighbourhood) scratch(chain, length int) []float64 {
	return n.buffer[chain*n.room : chain*n.room+length]
}

// block is the part of a slot's categories in one block.
func (n *neighbourhood) block(slot, b int) (first, length int) {
	first = b * blockSize
	return first, max(0, min(n.categories[slot]-first, blockSize))
}

// row is the gradient of one slot, from a chain's [slots × K].
func (n *neighbourhood) row(gradient []float64, slot int) []float64 {
	return gradient[slot*n.width : slot*n.width+n.categories[slot]]
}

// measure sums the weights around a chain's position. It reports whether they
// are usable: with a NaN or +Inf in the gradient they are not.
func (n *neighbourhood) measure(chain int, score scorer, position []int, gradient []float64) bool {
	usable := true
	totals := n.totals(chain)
	for slot, current := range position {
		row := n.row(gradient, slot)
		at := chain*len(position) + slot
		logBlock := n.logBlock[at*n.blocks : (at+1)*n.blocks]
		n.auxiliary[at] = score.auxiliary(slot, current, row)
		for b := range logBlock {
			first, length := n.block(slot, b)
			out := n.scratch(chain, length)
			score.logWeights(n.auxiliary[at], slot, current, row, first, out)
			if i := current - first; i >= 0 && i < length {
				out[i] = math.Inf(-1)
			}
			logBlock[b] = logmath.LogSumExp(out)
		}
		totals[slot] = logmath.LogSumExp(logBlock)
		// An infinite gradient at the current category would make every other
		// look forbidden and so pass for a dead end.
		usable = usable && totals[slot] < math.Inf(1) && logmath.Finite(row[current])
	}
	return usable
}

// draw picks another category for a slot with probability proportional to its
// weight. The slot's total must be above -Inf.
func (n *neighbourhood) draw(chain int, score scorer, slot, current int, gradient []float64, src source) int {
	at := chain*len(n.categories) + slot
	logBlock := n.logBlock[at*n.blocks : (at+1)*n.blocks]
	b := 0
	if n.blocks > 1 {
		b = drawLog(src, logBlock, n.totals(chain)[slot], n.scratch(chain, n.blocks))
	}
	first, length := n.block(slot, b)
	weight := n.scratch(chain, length)
	score.logWeights(n.auxiliary[at], slot, current, n.row(gradient, slot), first, weight)
	for i, l := range weight {
		weight[i] = math.Exp(l - logBlock[b])
	}
	if i := current - first; i >= 0 && i < length {
		weight[i] = 0
	}
	return first + src.categorical(weight)
}

// logWeight is the log weight of moving a slot to category v.
func (n *neighbourhood) logWeight(chain int, score scorer, slot, current, v int, gradient []float64) float64 {
	out := n.scratch(chain, 1)
	score.logWeights(n.auxiliary[chain*len(n.categories)+slot], slot, current, n.row(gradient, slot), v, out)
	return out[0]
}

// adopt takes over a chain's sums from another neighbourhood.
func (n *neighbourhood) adopt(chain int, from *neighbourhood) {
	slots := len(n.categories)
	lo, hi := chain*slots, (chain+1)*slots
	copy(n.logTotal[lo:hi], from.logTotal[lo:hi])
	copy(n.auxiliary[lo:hi], from.auxiliary[lo:hi])
	copy(n.logBlock[lo*n.blocks:hi*n.blocks], from.logBlock[lo*n.blocks:hi*n.blocks])
}

// balanced is the scorer of the gradient's estimate of the energy difference,
// Δ_j(v) = ∂U/∂θ_j[v] - ∂U/∂θ_j[θ_j], under a balancing function.
type balanced struct{ balance Balance }

func (balanced) auxiliary(int, int, []float64) float64 { return 0 }

func (s balanced) logWeights(_ float64, _, current int, gradient []float64, first int, out []float64) {
	here := gradient[current]
	row := gradient[first : first+len(out)]
	if s.balance.rule != powerRule {
		for i, g := range row {
			out[i] = s.one(g - here)
		}
		return
	}
	beta := s.balance.exponent()
	for i, g := range row {
		out[i] = beta * (g - here)
	}
}

// one is the log weight of one difference. +Inf gives +Inf under every balance, so that the caller sees it.
func (s balanced) one(delta float64) float64 {
	if delta > math.MaxFloat64 {
		return delta
	}
	return s.balance.logWeight(delta)
}
