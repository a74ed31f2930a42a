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

// textLaw is the chain rule's law over the fills of a plan, as samplers.Search takes it. Its
// slots are those of the first text and then those of each further one, and its categories
// are token ids. It knows the model's probabilities over the whole vocabulary: what a blank
// may take narrows the fills, and not the law.
type textLaw struct {
	model       LanguageModel
	plan        *layout
	mask        int // [MASK]'s id
	temperature float64
	texts       []lawText
	slots       []lawSlot
	words       []tokenize.Blank // those of the plan in all texts, First a slot of the law
	byVariable  [][]int          // the slots of each variable
	root        [][]float32      // log-probabilities of each slot while all are masked
	rows        *int64           // that went through the model
	remembered  rememberedRows   // of several texts, and where words that exist and others have laws; or nil
}

type rememberedRows = *simplelru.LRU[string, []float32]

// askedNumbers bounds the probabilities that are asked for at once, over whole vocabularies: 32 MiB.
const askedNumbers = 8 << 20

// mostCombined bounds the combinations of the orders of several texts.
const mostCombined = 256

// lawText is one of the texts.
type lawText struct {
	ids    []int // the slots masked
	first  int   // the number of its first slot
	number int   // of slots
}

// lawSlot is a slot of one of the texts.
type lawSlot struct {
	text, position int
	variable       int
	place          int // among the slots of its variable in its text
}

// newLaw makes the law of a plan, asking the model for the row of each text in which all
// slots are masked.
func (f *Filler) newLaw(ctx context.Context, model LanguageModel, p *layout, temperature float64,
	rows *int64) (*textLaw, error) {
	l := &textLaw{model: model, plan: p, mask: f.tokenizer.MaskID(), temperature: temperature,
		byVariable: make([][]int, len(p.variables)), rows: rows}
	for number, text := range append([]*layout{p}, p.others...) {
		ids := slices.Clone(text.template.IDs)
		for _, position := range text.template.Slots {
			ids[position] = l.mask
		}
		l.texts = append(l.texts, lawText{ids, len(l.slots), len(text.template.Slots)})
		first := len(l.slots)
		for _, position := range text.template.Slots {
			l.slots = append(l.slots, lawSlot{text: number, position: position})
		}
		for n, v := range text.variables {
			for place, slot := range v.slots {
				l.slots[first+slot].variable, l.slots[first+slot].place = n, place
				l.byVariable[n] = append(l.byVariable[n], first+slot)
			}
			for _, b := range p.words {
				if b.First == p.variables[n].slots[0] {
					b.First = first + v.slots[0]
					l.words = append(l.words, b)
				}
			}
		}
		logp, err := model.MaskedLogProbabilities(ctx, text.template.IDs, text.template.Slots)
		if err != nil {
			return nil, err
		}
		*l.rows++
		l.root = append(l.root, logp...)
	}
	for i := range l.root {
		l.root[i] = l.tempered(l.root[i])
	}
	if len(l.texts) > 1 || len(p.words) > 0 {
		var err error
		// 64 MiB of rows.
		if l.remembered, err = simplelru.NewLRU[string, []float32](max(1, 16<<20/len(l.root[0])), nil); err != nil {
			return nil, err
		}
	}
	return l, nil
}

// tempered are log-probabilities at the temperature.
func (l *textLaw) tempered(logp []float32) []float32 {
	if l.temperature == 1 {
		return logp
	}
	highest := slices.Max(logp)
	sum := 0.0
	for _, x := range logp {
		sum += math.Exp(float64(x-highest) / l.temperature)
	}
	total := float64(highest)/l.temperature + math.Log(sum)
	list := make([]float32, len(logp))
	for i, x := range logp {
		list[i] = float32(float64(x)/l.temperature - total)
	}
	return list
}

var _ samplers.PartialTarget = (*textLaw)(nil)

// PartialConditionals implements samplers.PartialTarget.
func (l *textLaw) PartialConditionals(ctx context.Context, asked []samplers.Partial,
	take func(i int, logp []float32)) error {
	for number, text := range l.texts {
		var rows []lm.Row
		var places []int
		var keys []string
		for i, a := range asked {
			s := l.slots[a.Slot]
			if s.text != number {
				continue
			}
			ids, filled := slices.Clone(text.ids), false
			for n, token := range a.State[text.first : text.first+text.number] {
				if token != samplers.Open {
					ids[l.slots[text.first+n].position], filled = token, true
				}
			}
			if !filled {
				take(i, l.root[a.Slot])
				continue
			}
			key := ""
			if l.remembered != nil {
				key = rowKey(number, s.position, ids)
				if logp, ok := l.remembered.Get(key); ok {
					take(i, logp)
					continue
				}
			}
			rows, places, keys = append(rows, lm.Row{IDs: ids, Position: s.position}), append(places, i),
				append(keys, key)
		}
		if len(rows) == 0 {
			continue
		}
		step := max(1, askedNumbers/len(l.root[0]))
		for first := 0; first < len(rows); first += step {
			last := min(first+step, len(rows))
			found, err := l.model.LogProbabilities(ctx, rows[first:last])
			if err != nil {
				return err
			}
			*l.rows += int64(len(found))
			for i, logp := range found {
				logp = l.tempered(logp)
				if l.remembered != nil {
					l.remembered.Add(keys[first+i], slices.Clone(logp))
				}
				take(places[first+i], logp)
			}
		}
	}
	return nil
}

func rowKey(text, position int, ids []int) string {
	return string(appendKey(appendKey(nil, []int{text, position}), ids))
}

// support is what a slot may take beside what a state holds.
func (l *textLaw) support(state []int, slot int) []int {
	s := l.slots[slot]
	v := &l.plan.variables[s.variable]
	slots := l.byVariable[s.variable]
	switch {
	case v.words != nil || v.spell != nil:
		pieces := l.plan.piecesOf(s.variable)
		word := slices.Repeat([]int{samplers.Open}, pieces)
		for _, other := range slots {
			if state[other] != samplers.Open {
				word[l.slots[other].place%pieces] = state[other]
			}
		}
		if token := word[s.place%pieces]; token != samplers.Open {
			return []int{token}
		}
		if v.words != nil {
			return agreeing(v.words, word, s.place%pieces)
		}
		return v.spell(word, s.place%pieces)
	}
	for _, other := range slots {
		if state[other] != samplers.Open {
			return []int{state[other]}
		}
	}
	return v.support
}

// listedSupport narrows the slots of what the user listed alone.
func (l *textLaw) listedSupport() func(state []int, slot int) []int {
	all := make([]int, len(l.root[0]))
	for token := range all {
		all[token] = token
	}
	return func(state []int, slot int) []int {
		if l.plan.variables[l.slots[slot].variable].listed {
			return l.support(state, slot)
		}
		return all
	}
}

// settling are the given slots, and then the others that have to be filled until it is known
// what a beginning with them holds: those of the same variables, and of lists.
func (l *textLaw) settling(slots []int) []int {
	all := slices.Clone(slots)
	for variable, own := range l.byVariable {
		if l.plan.variables[variable].listed ||
			slices.ContainsFunc(own, func(slot int) bool { return slices.Contains(slots, slot) }) {
			for _, slot := range own {
				if !slices.Contains(all, slot) {
					all = append(all, slot)
				}
			}
		}
	}
	return all
}

// allows judges the tokens of all slots.
func (l *textLaw) allows(state []int) bool {
	tokens := state[:l.texts[0].number]
	if l.plan.allowed != nil && !l.plan.allowed(tokens) {
		return false
	}
	return l.plan.cut == nil || l.plan.cut(tokens)
}

// orders are those of all texts, combined in every way: the mean over the combinations of
// their products is the product of the texts' means.
func (l *textLaw) orders(o Order) ([][]int, error) {
	combined := [][][]int{nil}
	for number, text := range append([]*layout{l.plan}, l.plan.others...) {
		own, err := o.slots(text)
		if err != nil {
			return nil, err
		}
		var more [][][]int
		for _, before := range combined {
			for _, order := range own {
				shifted := make([]int, len(order))
				for i, slot := range order {
					shifted[i] = l.texts[number].first + slot
				}
				more = append(more, append(slices.Clone(before), shifted))
			}
		}
		if combined = more; len(combined) > mostCombined {
			return nil, misfit("together",
				"%d texts have too many combinations of two orders: take order l2r, or fewer texts", len(l.texts))
		}
	}
	orders := make([][]int, len(combined))
	for i, texts := range combined {
		orders[i] = l.merged(texts)
	}
	return orders, nil
}

// merged puts the orders of the texts into one: in turn, but first what is settled by a slot
// before it.
func (l *textLaw) merged(texts [][]int) (order []int) {
	settled := make([]bool, len(l.byVariable))
	at := make([]int, len(texts))
	take := func(text int) {
		slot := texts[text][at[text]]
		at[text]++
		settled[l.slots[slot].variable] = true
		order = append(order, slot)
	}
	for len(order) < len(l.slots) {
		for text := range texts {
			if at[text] < len(texts[text]) {
				take(text)
			}
			for other := range texts {
				for at[other] < len(texts[other]) && l.plan.piecesOf(l.slots[texts[other][at[other]]].variable) == 1 &&
					settled[l.slots[texts[other][at[other]]].variable] {
					take(other)
				}
			}
		}
	}
	return order
}

// law is what the search takes.
func (l *textLaw) law(o Order, logWeight float64) (samplers.Law, error) {
	orders, err := l.orders(o)
	return samplers.Law{Target: l, Orders: orders, LogWeight: logWeight, Support: l.support, Allows: l.allows}, err
}

// existing is the law of the fills whose words of several pieces are in a lexicon: each piece is among those that go on
// with the beginning or, from right to left, the end of such a word.
func (l *textLaw) existing(of samplers.Law, list func() *lexicon) samplers.Law {
	of.Target = &wordLaw{l, list, make([]float32, len(l.root[0]))}
	return of
}

// logCovered is how likely the words of all blanks begin as words of a named lexicon do, in nats: a short list would
// otherwise have the weight of all words that exist.
func (l *textLaw) logCovered(list *lexicon) (sum float64) {
	for _, b := range l.words {
		held := math.SmallestNonzeroFloat64
		for piece, head := range list.forward[b.Slots].heads {
			if !math.IsInf(float64(head), -1) {
				held += math.Exp(float64(l.root[b.First][piece]))
			}
		}
		sum += math.Log(min(1, held))
	}
	return sum
}

// invented is the law of the other fills.
func (l *textLaw) invented(of samplers.Law, list func() *lexicon) samplers.Law {
	isInvented := l.isInvented(list)
	of.Allows = func(state []int) bool { return isInvented(state) && l.allows(state) }
	return of
}

// isInvented reports whether a fill has a word that is in no lexicon.
func (l *textLaw) isInvented(list func() *lexicon) func(state []int) bool {
	return func(state []int) bool {
		return slices.ContainsFunc(l.plan.words,
			func(b tokenize.Blank) bool { return !list().has(state[b.First : b.First+b.Slots]) })
	}
}

// wordLaw is a law whose words of several pieces exist.
type wordLaw struct {
	*textLaw
	list func() *lexicon // read where it is needed
	row  []float32       // scratch
}

// PartialConditionals implements samplers.PartialTarget.
func (l *wordLaw) PartialConditionals(
	ctx context.Context, asked []samplers.Partial, take func(i int, logp []float32),
) error {
	return l.textLaw.PartialConditionals(ctx, asked, func(i int, logp []float32) {
		a := asked[i]
		for _, b := range l.words {
			if a.Slot >= b.First && a.Slot < b.First+b.Slots {
				known := a.State[b.First:a.Slot]
				words := &l.list().forward[b.Slots]
				if slices.Contains(known, samplers.Open) || a.Slot == b.First && a.State[b.First+1] != samplers.Open {
					known = slices.Clone(a.State[a.Slot+1 : b.First+b.Slots])
					slices.Reverse(known)
					words = &l.list().backward[b.Slots]
				}
				words.narrow(known, logp, l.row)
				logp = l.row
				break
			}
		}
		take(i, logp)
	})
}
