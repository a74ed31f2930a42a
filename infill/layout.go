package infill

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"infill/samplers"
	"infill/tokenize"
)

// layout is a template whose blanks have known lengths: the ids that the model reads, and the tokens that each slot may
// take. Slots are numbered as in template.Slots. A state holds a token id or samplers.Open for each slot, [slots].
type layout struct {
	template *tokenize.Template
	ids      []int // what the model reads: [CLS], the context, the text or a window of the text, [SEP]
	slots    []int // positions of the slots in ids, ascending
	blankOf  []int // the blank of each slot
	ties     [][]int
	rules    *rules
	places   [][]int // tokens that each slot may take by itself, ascending; nil if the blank has a list
	judged   []int   // blanks that can be checked only when all of their tokens are known
	distinct [][2]int
}

// newLayout finds the tokens that each slot of a template may take. It returns an error if a slot may take none.
func newLayout(t *tokenize.Template, r *rules) (*layout, error) {
	l := &layout{template: t, ids: t.IDs, slots: t.Slots, rules: r, ties: make([][]int, len(t.Slots)),
		places: make([][]int, len(t.Slots))}
	for _, tie := range t.Ties {
		for _, slot := range tie {
			l.ties[slot] = tie
		}
	}
	for number, b := range t.Blanks {
		if r.judged(number, b) {
			l.judged = append(l.judged, number)
		}
		for piece := range b.Slots {
			l.blankOf = append(l.blankOf, number)
			if r.blanks[number].list != nil {
				continue
			}
			slot := b.First + piece
			if l.places[slot] = r.place(number, b, piece); len(l.places[slot]) == 0 {
				if len(r.kinds(b, piece == 0)) == 0 {
					return nil, misfit("fill", "the model's vocabulary (vocab.txt or tokenizer.json) has nothing "+
						"that blank %d may take: --fill any takes every token", number+1)
				}
				if r.blanks[number].pattern != nil {
					advice := "loosen it"
					odd := func(c rune) bool { return c > unicode.MaxASCII || unicode.IsUpper(c) }
					if !r.vocabulary.tokenizer.Cased() && strings.ContainsFunc(b.Pattern, odd) {
						advice = "its words have no capitals, and mostly no accents; loosen it"
					}
					return nil, misfit("pattern", "no word of the vocabulary fits %s: %s, or give the blank a list "+
						"with --slot", b.Pattern, advice)
				}
				return nil, misfit("constraints", "nothing is left for blank %d: loosen them", number+1)
			}
		}
	}
	for i, a := range t.Blanks {
		for j, b := range t.Blanks[:i] {
			if r.distinct && a.Slots == b.Slots && (a.Name == "" || a.Name != b.Name) {
				l.distinct = append(l.distinct, [2]int{j, i})
			}
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

// tokens returns the token ids of a blank in a state.
func (l *layout) tokens(state []int, blank int) []int {
	b := l.template.Blanks[blank]
	return state[b.First : b.First+b.Slots]
}

// choices returns the tokens, ascending, that a slot may take, given the tokens in the filled slots of a state.
func (l *layout) choices(state []int, slot int) []int {
	number := l.blankOf[slot]
	b := l.template.Blanks[number]
	piece := slot - b.First
	list := l.places[slot]
	if words := l.rules.blanks[number].list[b.Slots]; words != nil {
		known := l.tokens(state, number)
		if b.Name != "" {
			known = slices.Clone(known)
			for i := range known {
				for _, other := range l.ties[b.First+i] {
					if state[other] != samplers.Open {
						known[i] = state[other]
					}
				}
			}
			if token := known[piece]; token != samplers.Open {
				return []int{token}
			}
		}
		return words.at(known, piece)
	}
	for _, other := range l.ties[slot] {
		if token := state[other]; token != samplers.Open {
			if _, ok := slices.BinarySearch(list, token); ok {
				return []int{token}
			}
			return nil
		}
	}
	return list
}

// alone returns the tokens, ascending, that a slot may take while all other slots are open.
func (l *layout) alone(slot int) []int {
	return l.choices(slices.Repeat([]int{samplers.Open}, len(l.slots)), slot)
}

// free reports whether the choices of the slots are the only constraint, so that allows is always true.
func (l *layout) free() bool { return len(l.judged) == 0 && len(l.distinct) == 0 }

// allows reports whether the constraints allow a state whose slots are all filled, each with one of its choices.
func (l *layout) allows(state []int) bool {
	for _, number := range l.judged {
		if !l.rules.allows(number, l.template.Blanks[number], l.tokens(state, number)) {
			return false
		}
	}
	for _, pair := range l.distinct {
		if slices.Equal(l.tokens(state, pair[0]), l.tokens(state, pair[1])) {
			return false
		}
	}
	return true
}

// combinations returns the number of fills if every blank has a list, else 0.
func (l *layout) combinations() float64 {
	n := 1.0
	for i, j := range firstOfName(l.template.Blanks) {
		list := l.rules.blanks[i].list[l.template.Blanks[i].Slots]
		switch {
		case list == nil:
			return 0
		case i == j:
			n *= float64(len(list.forward))
		}
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

// orders returns the slots in each order in which the chain rule of the option order takes them, [orders][slots].
func (l *layout) orders(o Order) ([][]int, error) {
	left := make([]int, len(l.slots))
	for i := range left {
		left[i] = i
	}
	right := slices.Clone(left)
	slices.Reverse(right)
	numbers := o.numbers()
	switch {
	case numbers != nil && len(numbers) != len(l.template.Blanks):
		return nil, misfit("order", "it names %d blanks, the template has %d: name each once, as in 2,1,3",
			len(numbers), len(l.template.Blanks))
	case len(left) == 1 || o == orderLeftToRight:
		return [][]int{left}, nil
	case o == orderBoth:
		return [][]int{left, right}, nil
	case o == orderRightToLeft:
		return [][]int{right}, nil
	}
	var order []int
	for _, n := range numbers {
		b := l.template.Blanks[n]
		order = append(order, left[b.First:b.First+b.Slots]...)
	}
	return [][]int{order}, nil
}

// goOn replaces text directly after a blank, as in "[MASK]ing", by pieces that continue the word in the blank: ##ing.
// The tokenizer reads such text as a word of its own. goOn changes only the ids that the model reads, and their offsets
// and slots.
func (v *vocabulary) goOn(t *tokenize.Template) {
	for _, b := range t.Blanks {
		if !b.TouchesRight {
			continue
		}
		from := t.Slots[b.First+b.Slots-1] + 1
		to := from + 1
		for v.tokenizer.Continues(t.IDs[to]) {
			to++
		}
		word := ""
		for _, id := range t.IDs[from:to] {
			word += v.pieceText(id)
		}
		ids, err := v.candidate(word, tokenize.Blank{TouchesLeft: true}, v.continuations())
		if err != nil {
			continue
		}
		offsets := make([][2]int, len(ids))
		for i := range offsets {
			offsets[i] = [2]int{t.Offsets[from][0], t.Offsets[to-1][1]}
		}
		t.IDs = slices.Concat(t.IDs[:from], ids, t.IDs[to:])
		t.Offsets = slices.Concat(t.Offsets[:from], offsets, t.Offsets[to:])
		t.Slots = slices.Clone(t.Slots)
		for i := b.First + b.Slots; i < len(t.Slots); i++ {
			t.Slots[i] += len(ids) - (to - from)
		}
	}
}

// see sets the ids that the model reads: the context, and then the text's tokens at the positions from to to.
func (l *layout) see(from, to int, context []int) {
	t := l.template
	l.ids = slices.Concat(t.IDs[:1], context, t.IDs[from:to+1], t.IDs[len(t.IDs)-1:])
	l.slots = nil
	for _, position := range t.Slots {
		l.slots = append(l.slots, position-from+1+len(context))
	}
}

// window chooses the tokens of a text that the model sees, from position from to position to. room is how many fit
// beside [CLS], context and [SEP]. A longer text keeps the tokens around its blanks, about as many on the left as on
// the right. The window starts at the beginning of a word if one is near.
func window(t *tokenize.Template, room int) (from, to int, err error) {
	last := len(t.IDs) - 2 // the last token before [SEP]
	if last <= room {
		return 1, last, nil
	}
	first, end := t.Slots[0], t.Slots[len(t.Slots)-1]
	if end-first+1 > room {
		return 0, 0, apart(t, room)
	}
	left := min(first-1, (room-(end-first+1))/2)
	right := min(last-end, room-(end-first+1)-left)
	left = min(first-1, room-(end-first+1)-right)
	if from = first - left; from > 1 {
		for p := from; p <= first-left/2; p++ {
			if begins(t, p) {
				return p, end + right, nil
			}
		}
	}
	return from, end + right, nil
}

// begins reports whether white space stands before the token at a position.
func begins(t *tokenize.Template, position int) bool {
	return t.Offsets[position-1][1] < t.Offsets[position][0]
}

// apart returns an error that lists the groups of blanks that fit together into a window of room tokens.
func apart(t *tokenize.Template, room int) error {
	var groups []string
	start := 0
	for i := range t.Blanks {
		fits := func(last int) bool {
			b := t.Blanks[last]
			return t.Slots[b.First+b.Slots-1]-t.Slots[t.Blanks[start].First]+1 <= room
		}
		if i+1 < len(t.Blanks) && fits(i+1) {
			continue
		}
		group := fmt.Sprint(start + 1)
		if i > start {
			group = fmt.Sprintf("%d to %d", start+1, i+1)
		}
		groups, start = append(groups, group), i+1
	}
	text := groups[0]
	for _, group := range groups[1:] {
		text += ", then " + group
	}
	return &tokenize.InputError{Fault: tokenize.ErrTooLong, Offset: -1, Detail: fmt.Sprintf(
		"the model sees %d tokens at once, and the blanks are further apart; these fit together: %s; give each group "+
			"its part of the text", room, text)}
}
