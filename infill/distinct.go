package infill

import (
	"slices"

	"infill/samplers"
)

// This file keeps blanks apart that must hold different tokens (the option
// distinct). Groups of one length can be filled with different sequences if each
// can be matched with a sequence of its own. A group with at least as many
// sequences as there are groups always can, after all others.

// apart returns those of tokens that a slot may take so that its group and the
// rivals can hold different sequences.
func (l *layout) apart(state []int, slot int, tokens []int) []int {
	number := l.groupOf[slot]
	piece := l.pieceOf[slot]
	g := &l.groups[number]
	known := l.known(state, number)
	suspects := map[int]bool{} // tokens that lead to a sequence that a rival needs
	for _, rival := range g.rivals {
		sequences := l.sequences(state, rival, len(g.rivals)+1)
		if len(sequences) > len(g.rivals) {
			continue
		}
		for _, sequence := range sequences {
			if agree(known, sequence) {
				suspects[sequence[piece]] = true
			}
		}
	}
	all := append(slices.Clone(g.rivals), number)
	own := slices.Clone(state)
	return slices.DeleteFunc(slices.Clone(tokens), func(token int) bool {
		own[slot] = token
		return suspects[token] && !l.differ(own, all)
	})
}

// sequences returns what a group may hold that agrees with a state, many at most.
func (l *layout) sequences(state []int, number, many int) [][]int {
	var list [][]int
	for whole := range l.groups[number].spellings.wholes(l.known(state, number)) {
		list = append(list, slices.Clone(whole))
		if len(list) == many {
			break
		}
	}
	return list
}

// differ reports whether groups that are rivals of each other can be filled with
// different sequences that agree with a state.
func (l *layout) differ(state []int, groups []int) bool {
	var few [][][]int
	for _, number := range groups {
		list := l.sequences(state, number, len(groups))
		if len(list) < len(groups) {
			few = append(few, list)
		}
	}
	holder := map[string]int{} // the index in few of the group that holds a sequence
	// Kuhn's algorithm: a group takes a free sequence, or one whose holder can
	// take another.
	var place func(group int, tried map[string]bool) bool
	place = func(group int, tried map[string]bool) bool {
		for _, sequence := range few[group] {
			key := string(samplers.AppendKey(nil, sequence...))
			if tried[key] {
				continue
			}
			tried[key] = true
			other, held := holder[key]
			if !held || place(other, tried) {
				holder[key] = group
				return true
			}
		}
		return false
	}
	for group := range few {
		if !place(group, map[string]bool{}) {
			return false
		}
	}
	return true
}
