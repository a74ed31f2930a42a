package infill

import (
	"slices"

	"infill/samplers"
	"infill/tokenize"
)

// layout is a template whose blanks have known lengths: the ids that the model
// reads, and what the blanks may hold. Slots are numbered as in template.Slots. A
// state holds a token id or samplers.Open for each slot, [slots].
type layout struct {
	template *tokenize.Template
	ids      []int // what the model reads: [CLS], the context, the text or a window of the text, [SEP]
	slots    []int // positions of the slots in ids, ascending
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
	l := &layout{template: t, ids: t.IDs, slots: t.Slots, rules: r}
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
	open := slices.Repeat([]int{samplers.Open}, len(l.slots))
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

// alone returns the tokens, ascending, that a slot may take while all other slots
// are open.
func (l *layout) alone(slot int) []int {
	return l.choices(slices.Repeat([]int{samplers.Open}, len(l.slots)), slot)
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

// masked returns the ids with the token mask in every slot.
func (l *layout) masked(mask int) []int {
	ids := slices.Clone(l.ids)
	for _, position := range l.slots {
		ids[position] = mask
	}
	return ids
}

// order returns the slots in the order in which the chain rule takes them,
// [slots].
func (l *layout) order(o Order) ([]int, error) {
	order := make([]int, len(l.slots))
	for i := range order {
		order[i] = i
	}
	switch o {
	case LeftToRight:
		return order, nil
	case RightToLeft:
		slices.Reverse(order)
		return order, nil
	}
	numbers := o.numbers()
	if len(numbers) != len(l.template.Blanks) {
		return nil, misfit("order", "it names %d blanks, the template has %d: name each once, as in 2,1,3",
			len(numbers), len(l.template.Blanks))
	}
	var blanks []int
	for _, n := range numbers {
		b := l.template.Blanks[n]
		blanks = append(blanks, order[b.First:b.First+b.Slots]...)
	}
	return blanks, nil
}

// see sets the ids that the model reads: the context, and then the text's
// tokens at the positions from to to.
func (l *layout) see(from, to int, context []int) {
	t := l.template
	l.ids = slices.Concat(t.IDs[:1], context, t.IDs[from:to+1], t.IDs[len(t.IDs)-1:])
	l.slots = nil
	for _, position := range t.Slots {
		l.slots = append(l.slots, position-from+1+len(context))
	}
}
