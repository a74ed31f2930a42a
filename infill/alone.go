package infill

import (
	"context"
	"math"
	"slices"

	"infill/samplers"
	"infill/tokenize"
)

// Value is a token that a blank may hold, with the model's probability of the
// token.
type Value struct {
	Text        string  `json:"text"`
	TokenID     int     `json:"token_id"`
	Probability float64 `json:"probability"`
}

// leastAlone is how many values a list of Result.Alone has even if fewer fills
// are asked for, as far as there are as many.
const leastAlone = 5

// alone makes the lists of Result.Alone. Of tokens that spell the same text, it
// lists the likeliest.
func (w *work) alone() [][]Value {
	l := w.plan.layouts[0]
	most := max(int(w.plan.Request.Top), leastAlone)
	list := make([][]Value, len(l.template.Blanks))
	for blank, b := range l.template.Blanks {
		list[blank] = []Value{}
		if b.Slots > 1 {
			continue
		}
		logp := w.roots[0][b.First]
		for _, token := range samplers.Likeliest(l.alone(b.First), logp, 4*most) {
			if len(list[blank]) == most {
				break
			}
			text := w.plan.with(b.First, token).Fills[blank]
			same := func(v Value) bool { return v.Text == text }
			if !slices.ContainsFunc(list[blank], same) {
				list[blank] = append(list[blank], Value{text, token, math.Exp(float64(logp[token]))})
			}
		}
	}
	return list
}

// entropies makes Result.Entropy.
func (w *work) entropies() []*float64 {
	l := w.plan.layouts[0]
	list := make([]*float64, len(l.template.Blanks))
	for blank, b := range l.template.Blanks {
		if b.Slots == 1 {
			h := entropy(w.roots[0][b.First])
			list[blank] = &h
		}
	}
	return list
}

// entropy returns -Σ p log₂ p in bits, given the natural logarithms of p.
func entropy(logp []float32) (bits float64) {
	for _, lp := range logp {
		p := math.Exp(float64(lp))
		if p > 0 {
			bits -= p * float64(lp) / math.Ln2
		}
	}
	return bits
}

// with returns the text of a plan's shortest layout with one slot filled. The
// other slots hold the mask, whose text never makes a blank begin a sentence.
func (p *Plan) with(slot, token int) tokenize.Filled {
	l := p.layouts[0]
	state := slices.Repeat([]int{p.filler.tokenizer.MaskID()}, len(l.slots))
	state[slot] = token
	return l.template.Fill(state)
}

// A SlotValue is a token that a slot may hold by itself.
type SlotValue struct {
	TokenID     int
	Probability float64
	Text        string // the template with the token, and the mask in all other slots
}

// Alone returns, for each slot, the likeliest tokens that it may take while all
// blanks are masked, top at most, the likeliest first, [slots][values]. Tokens that
// spell the same text stay apart. If targets is not nil, only these tokens are
// rated; they are ascending. A blank without limits takes every token under
// FillAny, special ones included, as in the pipelines of others. Alone runs one
// row.
func (p *Plan) Alone(ctx context.Context, top int, targets []int) ([][]SlotValue, error) {
	model, err := p.filler.open(ctx)
	if err != nil {
		return nil, err
	}
	l := p.layouts[0]
	logp, err := model.MaskedLogProbabilities(ctx, l.ids, l.slots)
	if err != nil {
		return nil, cancelled(ctx, err)
	}
	list := make([][]SlotValue, len(l.slots))
	for slot, row := range logp {
		list[slot] = []SlotValue{}
		for _, token := range samplers.Likeliest(l.rated(slot, targets), row, top) {
			list[slot] = append(list[slot], SlotValue{token, math.Exp(float64(row[token])), p.with(slot, token).Text})
		}
	}
	return list, nil
}

// rated returns the tokens, ascending, that a slot may take and that targets has.
func (l *layout) rated(slot int, targets []int) []int {
	if l.limitless(slot) {
		if targets != nil {
			return targets
		}
		return l.rules.vocabulary.all()
	}
	tokens := l.alone(slot)
	if targets == nil {
		return tokens
	}
	return slices.DeleteFunc(slices.Clone(targets), func(token int) bool {
		_, ok := slices.BinarySearch(tokens, token)
		return !ok
	})
}

// limitless reports whether no rule limits what a slot may take.
func (l *layout) limitless(slot int) bool {
	r := l.rules
	if r.fill != FillAny || len(r.bans.plain)+len(r.bans.joined) > 0 {
		return false
	}
	for _, blank := range l.groups[l.groupOf[slot]].blanks {
		b := r.blanks[blank]
		if b.list != nil || b.pattern != nil || b.part != nil {
			return false
		}
	}
	return true
}
