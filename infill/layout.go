package infill

import (
	"context"
	"math"
	"slices"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"infill/lm"
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
// [slots]. Plan.takes has checked the order.
func (l *layout) order(o Order) []int {
	order := make([]int, len(l.slots))
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

// law gives samplers.Search and samplers.Draw the chain rule's conditionals.
// Categories are token ids. Probabilities are the model's own over the whole
// vocabulary: the options narrow the fills, not the law.
type law struct {
	model  LanguageModel
	masked []int // ids with the mask token in every slot
	slots  []int // positions in ids
	root   [][]float32
	rows   *int // counts the rows that went through the model
	// kept caches the log-probabilities of earlier rows for draws, which may
	// ask again; it is nil for a search.
	kept *simplelru.LRU[string, []float32]
}

const (
	// askedNumbers is the largest number of probabilities that one model call
	// returns: 32 MiB.
	askedNumbers = 8 << 20
	// keptNumbers is the largest number of probabilities in law.kept: 64 MiB.
	keptNumbers = 16 << 20
)

var _ samplers.PartialTarget = (*law)(nil)

// laws returns the law by the chain rule for each layout. All combinations of
// lengths have the same weight, also those without a fill.
func (w *work) laws(o Order) []samplers.Law {
	var laws []samplers.Law
	mask := w.plan.filler.tokenizer.MaskID()
	for i, l := range w.plan.layouts {
		target := &law{model: w.model, masked: l.masked(mask), slots: l.slots, root: w.roots[i], rows: &w.rows}
		laws = append(laws, samplers.Law{Target: target, Order: l.order(o), Choices: l.choices,
			LogWeight: -math.Log(float64(w.plan.lengths))})
	}
	return laws
}

// PartialConditionals implements samplers.PartialTarget.
func (l *law) PartialConditionals(ctx context.Context, asked []samplers.Partial,
	take func(i int, logp []float32)) error {
	var rows []lm.Row
	var takers [][]int // for each row, the indices in asked that wait for it
	var keys []string
	own := map[string]int{} // the row of each key
	for i, a := range asked {
		ids := slices.Clone(l.masked)
		filled := false
		for slot, token := range a.State {
			if token != samplers.Open {
				ids[l.slots[slot]] = token
				filled = true
			}
		}
		if !filled {
			take(i, l.root[a.Slot])
			continue
		}
		key := ""
		if l.kept != nil {
			key = stateKey(a.State, a.Slot)
			logp, ok := l.kept.Get(key)
			if ok {
				take(i, logp)
				continue
			}
			row, asked := own[key]
			if asked {
				takers[row] = append(takers[row], i)
				continue
			}
			own[key] = len(rows)
		}
		rows = append(rows, lm.Row{IDs: ids, Position: l.slots[a.Slot]})
		takers = append(takers, []int{i})
		keys = append(keys, key)
	}
	step := max(1, askedNumbers/len(l.root[0]))
	for first := 0; first < len(rows); first += step {
		last := min(first+step, len(rows))
		found, err := l.model.LogProbabilities(ctx, rows[first:last])
		if err != nil {
			return err
		}
		*l.rows += len(found)
		for i, logp := range found {
			if l.kept != nil {
				l.kept.Add(keys[first+i], slices.Clone(logp))
			}
			for _, taker := range takers[first+i] {
				take(taker, logp)
			}
		}
	}
	return nil
}

// keep makes the law cache its rows in kept from now on.
func (l *law) keep() {
	rows := max(1, keptNumbers/len(l.root[0]))
	l.kept, _ = simplelru.NewLRU[string, []float32](rows, nil) // of 1 row or more it cannot fail
}

// stateKey returns the key in law.kept for a slot and a state.
func stateKey(state []int, slot int) string {
	return string(samplers.AppendKey(samplers.AppendKey(nil, state...), slot))
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
