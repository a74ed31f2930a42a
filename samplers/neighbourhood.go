package samplers

import (
	"math"

	"infill/internal/logmath"
)

// blockSize is the number of categories in a block. Each block has a sum of
// weights, so that a draw reads one block instead of a whole row.
const blockSize = 256

// A scorer gives the unnormalised log weight of moving one slot of one chain
// from its current category to another.
type scorer interface {
	// auxiliary returns a number that logWeights needs besides a slot's
	// gradient, such as a normalising constant.
	auxiliary(slot, current int, gradient []float64) float64
	// logWeights writes the log weights of the categories first, first+1 and so
	// on to out. gradient is that of the slot. The weight of the current
	// category is never used. A NaN or +Inf in gradient must give NaN or +Inf
	// in out, which marks the state as unusable.
	logWeights(auxiliary float64, slot, current int, gradient []float64, first int, out []float64)
}

// neighbourhood holds, for each chain, the sums of the weights of all moves of
// a single slot, in blocks. Informed proposals draw from these sums and
// normalise by them, so that a step needs only one pass over the gradient.
type neighbourhood struct {
	categories []int
	width      int
	blocks     int
	logBlock   []float64 // [chains × slots × blocks]
	logTotal   []float64 // [chains × slots], log Σ_{v ≠ current} weight
	auxiliary  []float64 // results of scorer.auxiliary, [chains × slots]
	buffer     []float64 // scratch, [chains × room]; each chain has its own part
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

// totals returns the log of the sum of each slot's weights, [slots].
func (n *neighbourhood) totals(chain int) []float64 {
	slots := len(n.categories)
	return n.logTotal[chain*slots : (chain+1)*slots]
}

// scratch returns memory of the given length that only this chain uses.
func (n *neighbourhood) scratch(chain, length int) []float64 {
	return n.buffer[chain*n.room : chain*n.room+length]
}

// block returns the first category and the number of categories of a slot in block b.
func (n *neighbourhood) block(slot, b int) (first, length int) {
	first = b * blockSize
	return first, max(0, min(n.categories[slot]-first, blockSize))
}

// row returns the gradient of one slot, [categories]. gradient is a chain's, [slots × K].
func (n *neighbourhood) row(gradient []float64, slot int) []float64 {
	return gradient[slot*n.width : slot*n.width+n.categories[slot]]
}

// measure sums the weights around a chain's position. It reports whether the
// weights are usable: they are not if the gradient holds a NaN or +Inf.
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
			i := current - first
			if i >= 0 && i < length {
				out[i] = math.Inf(-1)
			}
			logBlock[b] = logmath.LogSumExp(out)
		}
		totals[slot] = logmath.LogSumExp(logBlock)
		// If the gradient at the current category is infinite, all other
		// categories look forbidden, as where no move is possible.
		usable = usable && totals[slot] < math.Inf(1) && logmath.Finite(row[current])
	}
	return usable
}

// draw draws a category other than current for a slot, with probability
// proportional to its weight. The slot's total must be above -Inf.
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
	i := current - first
	if i >= 0 && i < length {
		weight[i] = 0
	}
	return first + src.categorical(weight)
}

// logWeight returns the log weight of moving a slot to category v.
func (n *neighbourhood) logWeight(chain int, score scorer, slot, current, v int, gradient []float64) float64 {
	out := n.scratch(chain, 1)
	score.logWeights(n.auxiliary[chain*len(n.categories)+slot], slot, current, n.row(gradient, slot), v, out)
	return out[0]
}

// adopt copies a chain's sums of weights from the neighbourhood from, so that
// they need not be computed again.
func (n *neighbourhood) adopt(chain int, from *neighbourhood) {
	slots := len(n.categories)
	lo := chain * slots
	hi := (chain + 1) * slots
	copy(n.logTotal[lo:hi], from.logTotal[lo:hi])
	copy(n.auxiliary[lo:hi], from.auxiliary[lo:hi])
	copy(n.logBlock[lo*n.blocks:hi*n.blocks], from.logBlock[lo*n.blocks:hi*n.blocks])
}

// balanced is the scorer that weighs Δ_j(v) = ∂U/∂θ_j[v] - ∂U/∂θ_j[θ_j], the
// gradient's estimate of an energy difference, by a balancing function.
type balanced struct{ by weighing }

func (balanced) auxiliary(int, int, []float64) float64 { return 0 }

func (s balanced) logWeights(_ float64, _, current int, gradient []float64, first int, out []float64) {
	here := gradient[current]
	row := gradient[first : first+len(out)]
	if s.by.rule != powerRule {
		for i, g := range row {
			out[i] = s.one(g - here)
		}
		return
	}
	beta := s.by.beta
	for i, g := range row {
		out[i] = beta * (g - here)
	}
}

// one returns the log weight of an energy difference; +Inf stays, to be seen.
func (s balanced) one(delta float64) float64 {
	if delta > math.MaxFloat64 {
		return delta
	}
	return s.by.logWeight(delta)
}
