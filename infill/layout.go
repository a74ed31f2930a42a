package infill

import (
	"cmp"
	"slices"
	"strings"

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
	blanks    []int    // numbers of the blanks
	first     []int    // the first slot of each
	pieces    int      // slots of each
	list      *choices // the listed words of the length; nil without a list
	spellings *spellings
	// rivals are the groups that must read otherwise than this one does.
	rivals []int
}

// newLayout finds what the blanks of a template may hold. err says why they cannot be
// filled: a blank may hold nothing, or not all can be filled together.
func newLayout(t *tokenize.Template, r *rules) (l *layout, err error) {
	l = &layout{template: t, rules: r, groupOf: make([]int, len(t.Slots)), pieceOf: make([]int, len(t.Slots))}
	for number, blanks := range t.Groups {
		one := blanks[0]
		g := group{blanks: blanks, pieces: t.Blanks[one].Slots}
		g.list = r.blanks[one].list[g.pieces]
		for _, blank := range blanks {
			first := t.Blanks[blank].First
			g.first = append(g.first, first)
			for piece := range g.pieces {
				l.groupOf[first+piece] = number
				l.pieceOf[first+piece] = piece
			}
		}
		spellings, nothing := r.spellings(t, blanks)
		if nothing != nil {
			spellings = newSpellings(make(supports, g.pieces), bans{}, g.pieces)
			err = cmp.Or(err, nothing)
		}
		g.spellings = spellings
		l.groups = append(l.groups, g)
	}
	for i := range l.groups {
		g := &l.groups[i]
		for j := range l.groups {
			if r.distinct && i != j {
				g.rivals = append(g.rivals, j)
			}
		}
	}
	open := slices.Repeat([]int{samplers.Open}, len(t.Slots))
	if err == nil && r.distinct && !l.differ(open, slices.Concat([]int{0}, l.groups[0].rivals)) {
		err = constrained("blank 1 and others have too few words to hold different ones: give them more, or leave " +
			"distinct out")
	}
	return l, err
}

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

// free reports whether no slot's choices depend on the other slots.
func (l *layout) free() bool {
	for _, g := range l.groups {
		if len(g.rivals) > 0 || g.list == nil && !g.spellings.free {
			return false
		}
	}
	return true
}

// allows reports whether the constraints allow a state without open slots.
func (l *layout) allows(state []int) bool {
	for i, g := range l.groups {
		known := l.known(state, i)
		if !g.spellings.fillable(known) {
			return false
		}
		for _, rival := range g.rivals {
			if l.reads(i, known) == l.reads(rival, l.known(state, rival)) {
				return false
			}
		}
	}
	return true
}

func (l *layout) combinations() float64 {
	n := 1.0
	for _, g := range l.groups {
		if g.list == nil {
			return 0
		}
		n *= float64(len(g.list.forward))
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

// What follows keeps blanks apart that must differ (the option distinct), by what a
// reader sees, without capitals. Groups can differ if each can be matched with a text of
// its own. A group with at least as many texts as there are groups always can, after all
// others.

// reads returns what the tokens of a group read, without capitals.
func (l *layout) reads(number int, tokens []int) string {
	written := l.rules.spelled(l.groups[number].blanks[0], tokens)
	if written == "" {
		written = l.rules.vocabulary.tokenizer.Spelled(tokens)
	}
	return strings.ToLower(written)
}

// apart returns the tokens for a slot with which its group and rivals can differ.
func (l *layout) apart(state []int, slot int, tokens []int) []int {
	number := l.groupOf[slot]
	g := &l.groups[number]
	var taken []string // what a rival needs
	for _, rival := range g.rivals {
		texts := l.texts(state, rival, len(g.rivals)+1)
		if len(texts) <= len(g.rivals) {
			taken = append(taken, texts...)
		}
	}
	shown := l.rules.vocabulary.shown()
	suspect := func(token int) bool {
		return slices.ContainsFunc(taken, func(text string) bool { return strings.Contains(text, shown[token]) })
	}
	all := append(slices.Clone(g.rivals), number)
	own := slices.Clone(state)
	return slices.DeleteFunc(slices.Clone(tokens), func(token int) bool {
		own[slot] = token
		return suspect(token) && !l.differ(own, all)
	})
}

// texts returns what a group may read that agrees with a state, many at most.
func (l *layout) texts(state []int, number, many int) []string {
	var list []string
	for whole := range l.groups[number].spellings.wholes(l.known(state, number)) {
		text := l.reads(number, whole)
		if slices.Contains(list, text) {
			continue
		}
		list = append(list, text)
		if len(list) == many {
			break
		}
	}
	return list
}

// differ reports whether groups that are rivals of each other can be filled with
// different texts that agree with a state.
func (l *layout) differ(state []int, groups []int) bool {
	var few [][]string
	for _, number := range groups {
		list := l.texts(state, number, len(groups))
		if len(list) < len(groups) {
			few = append(few, list)
		}
	}
	holder := map[string]int{} // the index in few of the group that holds a text
	// Kuhn's algorithm: a group takes a free text, or one whose holder can take
	// another.
	var place func(group int, tried map[string]bool) bool
	place = func(group int, tried map[string]bool) bool {
		for _, text := range few[group] {
			if tried[text] {
				continue
			}
			tried[text] = true
			other, held := holder[text]
			if !held || place(other, tried) {
				holder[text] = group
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

// takes returns an *OptionError if an order does not name the plan's blanks.
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
