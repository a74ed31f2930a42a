package infill

import (
	"slices"

	"infill/samplers"
	"infill/tokenize"
)

// layout is a template whose blanks have known lengths: what the model reads, and
// what the blanks may hold. Slots are numbered as in template.Slots. A
// state holds a token id or samplers.Open for each slot, [slots].
type layout struct {
	template *tokenize.Template
	question question
	rules    *rules
	groups   []group
	// groupOf and pieceOf are the group of each slot, and the slot's place in
	// its blank, [slots].
	groupOf, pieceOf []int
}

// A group is a blank, or the blanks of one name, which hold the same tokens.
type group struct {
	blanks    []int // numbers of the blanks
	first     []int // the first slot of each
	pieces    int   // slots of each
	spellings spellings
	// rivals are the groups that must hold other tokens than this one does.
	rivals []int
}

// newLayout finds what the blanks of a template may hold. It returns an error if
// a blank may hold nothing, or if not all blanks can be filled together.
func newLayout(t *tokenize.Template, r *rules) (*layout, error) {
	l := &layout{template: t, rules: r}
	first := firstOfName(t.Blanks)
	place := make([]int, len(t.Blanks)) // the group of each blank
	for i, b := range t.Blanks {
		if first[i] == i {
			place[i] = len(l.groups)
			l.groups = append(l.groups, group{pieces: b.Slots})
		}
		place[i] = place[first[i]]
		g := &l.groups[place[i]]
		g.blanks = append(g.blanks, i)
		g.first = append(g.first, b.First)
		for piece := range b.Slots {
			l.groupOf = append(l.groupOf, place[i])
			l.pieceOf = append(l.pieceOf, piece)
		}
	}
	for i := range l.groups {
		g := &l.groups[i]
		var err error
		g.spellings, err = r.spellings(t, g.blanks)
		if err != nil {
			return nil, err
		}
		for j := range l.groups {
			if r.distinct && i != j && l.groups[j].pieces == g.pieces {
				g.rivals = append(g.rivals, j)
			}
		}
	}
	open := slices.Repeat([]int{samplers.Open}, len(l.template.Slots))
	for i, g := range l.groups {
		if !l.differ(open, append(slices.Clone(g.rivals), i)) {
			return nil, constrained("blank %d and others of its length have too few words to hold different ones: "+
				"give them more, or leave distinct out", g.blanks[0]+1)
		}
	}
	return l, nil
}

// pieces returns the number of slots of each blank, [blanks].
func (l *layout) pieces() []int {
	pieces := make([]int, len(l.template.Blanks))
	for i, b := range l.template.Blanks {
		pieces[i] = b.Slots
	}
	return pieces
}

// tie returns the slots that hold the same token as a slot, itself included.
func (l *layout) tie(slot int) []int {
	var tie []int
	for _, first := range l.groups[l.groupOf[slot]].first {
		tie = append(tie, first+l.pieceOf[slot])
	}
	return tie
}

// known returns the tokens of a group in a state, [pieces]: that of a filled
// slot in any of its blanks, or samplers.Open.
func (l *layout) known(state []int, number int) []int {
	g := &l.groups[number]
	known := slices.Clone(state[g.first[0]:][:g.pieces])
	for _, first := range g.first[1:] {
		for piece, token := range state[first:][:g.pieces] {
			if token != samplers.Open {
				known[piece] = token
			}
		}
	}
	return known
}

// choices returns the tokens, ascending, that a slot may take so that the open
// slots can be filled too, given the tokens in the filled slots of a state.
func (l *layout) choices(state []int, slot int) []int {
	number := l.groupOf[slot]
	piece := l.pieceOf[slot]
	g := &l.groups[number]
	known := l.known(state, number)
	if known[piece] != samplers.Open {
		return known[piece : piece+1]
	}
	tokens := g.spellings.next(known, piece)
	if len(g.rivals) == 0 {
		return tokens
	}
	return l.apart(state, slot, tokens)
}

// free reports whether each slot may take each of its choices, whatever the other
// slots hold.
func (l *layout) free() bool {
	for _, g := range l.groups {
		switch s := g.spellings.(type) {
		case *freely:
			if g.pieces > 1 && s.bans.longer() {
				return false
			}
		case *spoken:
			return false
		}
		if len(g.rivals) > 0 {
			return false
		}
	}
	return true
}

// allows reports whether the constraints allow a state whose slots are all
// filled.
func (l *layout) allows(state []int) bool {
	for i, g := range l.groups {
		known := l.known(state, i)
		if !some(g.spellings, known) {
			return false
		}
		for _, rival := range g.rivals {
			if slices.Equal(known, l.known(state, rival)) {
				return false
			}
		}
	}
	return true
}

// combinations returns the number of fills if every blank has a list, else 0.
func (l *layout) combinations() float64 {
	n := 1.0
	for _, g := range l.groups {
		list, ok := g.spellings.(*choices)
		if !ok {
			return 0
		}
		n *= float64(len(list.forward))
	}
	return n
}

// order returns the slots in the order in which the chain rule takes them,
// [slots]. Plan.takes has checked the order.
func (l *layout) order(o Order) []int {
	order := make([]int, len(l.template.Slots))
	for i := range order {
		order[i] = i
	}
	switch o {
	case LeftToRight:
		return order
	case RightToLeft:
		slices.Reverse(order)
		return order
	}
	var blanks []int
	for _, n := range o.numbers() {
		b := l.template.Blanks[n]
		blanks = append(blanks, order[b.First:b.First+b.Slots]...)
	}
	return blanks
}

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

// takes returns an *OptionError if an order of the chain rule does not name the
// plan's blanks.
func (p *Plan) takes(o Order) error {
	if o == LeftToRight || o == RightToLeft {
		return nil
	}
	named := len(o.numbers())
	blanks := len(p.typed.Blanks)
	if named != blanks {
		return misfit("order", "it names %d blanks, the template has %d: name each once, as in 2,1,3", named, blanks)
	}
	return nil
}
