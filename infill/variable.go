package infill

import (
	"slices"

	"infill/samplers"
)

// A variable is what the chains move: a slot; several blanks of one name, which
// hold the same token; or the slots of a blank that takes one of a list of words
// of several pieces, together with those of the other blanks of its name.
type variable struct {
	slots []int
	// support is the token of each category, ascending, the same in all slots.
	support []int
	// words are, if not nil, the categories in its place, [categories][slots].
	words [][]int
	// find gives the words from the log-probabilities of the slots, where they have a
	// pattern and are not known before; it is nil for other variables.
	find func(logp [][]float32) ([][]int, error)
	// spell gives the pieces that a place of a word with a pattern may have beside the known
	// ones; nil for other variables.
	spell func(word []int, place int) []int
	// listed reports that the user named what it takes: the support is then not narrowed to
	// the likely tokens, and probabilities are among what is listed.
	listed bool
}

func (v *variable) categories() int {
	if v.words != nil {
		return len(v.words)
	}
	return len(v.support)
}

// token is what a category puts into the variable's slot number i.
func (v *variable) token(category, i int) int {
	if v.words != nil {
		return v.words[category][i]
	}
	return v.support[category]
}

// supportOf is the tokens of the variable's slot number i, ascending.
func (v *variable) supportOf(i int) []int {
	if v.words == nil {
		return v.support
	}
	var tokens []int
	for _, word := range v.words {
		tokens = append(tokens, word[i])
	}
	slices.Sort(tokens)
	return slices.Compact(tokens)
}

// logWeights sums the slots' log-probabilities of each category; logp is
// [slots][tokens], and the result of the variable's categories.
func (v *variable) logWeights(logp [][]float32) []float32 {
	weights := make([]float32, v.categories())
	for i, slot := range v.slots {
		for category := range weights {
			weights[category] += logp[slot][v.token(category, i)]
		}
	}
	return weights
}

// tied groups slots, in the order of the groups' first slots; those of a tie are
// one group, [groups][slots].
func tied(slots int, ties [][]int) [][]int {
	tie := make([][]int, slots)
	for _, t := range ties {
		for _, slot := range t {
			tie[slot] = t
		}
	}
	var groups [][]int
	for slot := range slots {
		switch t := tie[slot]; {
		case t == nil:
			groups = append(groups, []int{slot})
		case t[0] == slot:
			groups = append(groups, t)
		}
	}
	return groups
}

// agreeing are the pieces, ascending, that words have in a place where they agree with what is known of a word.
func agreeing(words [][]int, known []int, place int) (pieces []int) {
next:
	for _, word := range words {
		for i, piece := range known {
			if piece != samplers.Open && piece != word[i] {
				continue next
			}
		}
		pieces = append(pieces, word[place])
	}
	slices.Sort(pieces)
	return slices.Compact(pieces)
}
