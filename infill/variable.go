package infill

import (
	"context"
	"fmt"
	"math"
	"slices"

	"infill/internal/option"
	"infill/internal/phrase"
	"infill/lm"
	"infill/samplers"
)

// A variable is what chains move at once: a slot, or the slots of blanks with
// one name, which hold the same token. The slots of a blank with a list of
// words of several pieces, and of the blanks with its name, are one variable.
type variable struct {
	slots []int
	// support holds the token of each category, ascending, the same in all
	// slots. For a list of words, words holds the tokens of each category
	// instead, [categories][slots].
	support []int
	words   [][]int
}

func (v *variable) categories() int {
	if v.words != nil {
		return len(v.words)
	}
	return len(v.support)
}

func (v *variable) token(category, i int) int {
	if v.words != nil {
		return v.words[category][i]
	}
	return v.support[category]
}

func (v *variable) supportOf(i int) []int {
	if v.words == nil {
		return v.support
	}
	return distinctAt(v.words, i)
}

// logWeights returns each category's log-probability, summed over the slots,
// [categories]. logp is [slots][tokens].
func (v *variable) logWeights(logp [][]float32) []float64 {
	weights := make([]float64, v.categories())
	for i, slot := range v.slots {
		for category := range weights {
			weights[category] += float64(logp[slot][v.token(category, i)])
		}
	}
	return weights
}

// variables returns the variables of a layout. logp holds the model's
// log-probabilities of each slot while all slots are masked. A blank without a
// list keeps its likeliest tokens, candidates in number; with 0 it keeps all.
func (l *layout) variables(logp [][]float32, candidates int) []variable {
	var list []variable
	for slot := range l.question.slots {
		g := &l.groups[l.groupOf[slot]]
		piece := l.pieceOf[slot]
		tie := l.tie(slot)
		if tie[0] != slot {
			continue // the slot moves with the first slot of its tie
		}
		support := g.spellings.next(slices.Repeat([]int{samplers.Open}, g.pieces), piece)
		switch {
		case g.list == nil:
			list = append(list, variable{slots: tie, support: narrowed(support, tie, logp, candidates)})
		case g.pieces == 1:
			list = append(list, variable{slots: tie, support: support})
		case piece == 0:
			v := variable{}
			for _, first := range tie {
				for piece := range g.pieces {
					v.slots = append(v.slots, first+piece)
				}
			}
			for _, ids := range g.list.forward {
				v.words = append(v.words, slices.Repeat(ids, len(tie)))
			}
			list = append(list, v)
		}
	}
	return list
}

// narrowed returns, ascending, the likeliest tokens of support that slots can
// share, candidates in number.
func narrowed(support, slots []int, logp [][]float32, candidates int) []int {
	sum := logp[slots[0]]
	if len(slots) > 1 {
		sum = slices.Clone(sum)
		for _, slot := range slots[1:] {
			for token, x := range logp[slot] {
				sum[token] += x
			}
		}
	}
	return mostProbable(support, sum, candidates)
}

// mostProbable returns the tokens that a slot may take, ascending: the number
// of fillable tokens that the model finds most probable, or all if number is 0.
// Of tokens with equal probabilities, it prefers the smaller id.
func mostProbable(fillable []int, logp []float32, number int) []int {
	if number == 0 || number >= len(fillable) {
		return fillable
	}
	best := samplers.Likeliest(fillable, logp, number)
	slices.Sort(best)
	return best
}

// together names what makes some slots move together, or "" for nothing.
func (l *layout) together() string {
	several := func(g group) bool { return g.list != nil && g.pieces > 1 }
	named := func(g group) bool { return len(g.blanks) > 1 }
	switch {
	case slices.ContainsFunc(l.groups, several):
		return "words of several tokens"
	case slices.ContainsFunc(l.groups, named):
		return "blanks of one name"
	case !l.free():
		return "limits on several slots together"
	}
	return ""
}

// fits returns an error if the chains of the sampler cannot move the plan's slots.
func (c Chains) fits(p *Plan) error {
	if p.lengths > 1 {
		return misfit("sampler", "chains move blanks of one length, and here are %d combinations of lengths: name "+
			"one, as in [MASK:2]", p.lengths)
	}
	why := p.layouts[0].together()
	kind := c.Sampler.Describe()
	switch {
	case why == "":
	case kind.Conditionals:
		return misfit("sampler", "%s cannot move slots together, which %s need: take dmala", kind.Name, why)
	case c.Initial.Kind == StartMask:
		return misfit("initial", "mask fills slot by slot, and %s need several at once: take model or random", why)
	}
	if c.Initial.Kind == StartGiven && len(c.Initial.Fill) != len(p.typed.Blanks) {
		return misfit("initial", "%d fills given, the template has %d blanks", len(c.Initial.Fill), len(p.typed.Blanks))
	}
	return nil
}

func newTarget(model lm.Asker, l *layout, list []variable, o lm.TargetOptions) (lm.Target, error) {
	o.Support = make([][]int, len(l.question.slots))
	for n := range list {
		for i, slot := range list[n].slots {
			o.Support[slot] = list[n].supportOf(i)
		}
	}
	target, err := model.NewTarget(l.question.ids(), l.question.slots, o)
	if err != nil || l.together() == "" {
		return target, err
	}
	below, ok := target.(slotTarget)
	if !ok {
		return nil, fmt.Errorf("%T has no gradient, which slots that move together need", target)
	}
	slots := len(l.question.slots)
	t := &jointTarget{below: below, variables: list, slots: slots, slotWidth: slices.Max(target.Categories()),
		category: make([][][]int, len(list)), layout: l, tokens: make([]int, slots)}
	for n := range list {
		v := &list[n]
		t.categories = append(t.categories, v.categories())
		t.width = max(t.width, v.categories())
		t.category[n] = make([][]int, len(v.slots))
		for i := range v.slots {
			support := v.supportOf(i)
			for category := range v.categories() {
				at, _ := slices.BinarySearch(support, v.token(category, i))
				t.category[n][i] = append(t.category[n][i], at)
			}
		}
	}
	return t, nil
}

// slotTarget has the methods of the target over slots that jointTarget calls.
type slotTarget interface {
	lm.Target
	samplers.GradientTarget
}

// jointTarget makes a target over variables from the target below, which is
// over slots. Its energy is that of the slots, and -Inf in states that the
// layout forbids. The gradient of a variable is the sum over its slots,
// each at the category's token. jointTarget has no conditionals of
// variables, because the conditional of a slot depends on the tokens of the
// variable's other slots.
type jointTarget struct {
	below      slotTarget
	layout     *layout
	variables  []variable
	categories []int // [variables]
	width      int   // the largest number of categories of a variable
	slotWidth  int   // the largest number of categories of a slot
	slots      int
	category   [][][]int // the slot's category for each category of its variable, [variables][slots of it][categories]
	states     []int     // scratch, [chains × slots]
	tokens     []int     // scratch, [slots]
	gradient   []float64 // scratch, [chains × slots × slotWidth]
}

var _ slotTarget = (*jointTarget)(nil)

func (t *jointTarget) Categories() []int { return t.categories }

func (t *jointTarget) Counts() lm.Counts { return t.below.Counts() }

// expand returns states over slots for states over variables, [chains × slots].
func (t *jointTarget) expand(states []int) []int {
	chains := len(states) / len(t.variables)
	t.states = slices.Grow(t.states[:0], chains*t.slots)[:chains*t.slots]
	for chain := range chains {
		for n, v := range t.variables {
			category := states[chain*len(t.variables)+n]
			for i, slot := range v.slots {
				t.states[chain*t.slots+slot] = t.category[n][i][category]
			}
		}
	}
	return t.states
}

func (t *jointTarget) forbid(states []int, energy []float64) {
	for chain := range energy {
		if !t.layout.allows(fillSlots(t.tokens, t.variables, states[chain*len(t.variables):])) {
			energy[chain] = math.Inf(-1)
		}
	}
}

// fillSlots writes the tokens of all slots in a state to tokens, and returns them.
func fillSlots(tokens []int, variables []variable, state []int) []int {
	for n := range variables {
		v := &variables[n]
		for i, slot := range v.slots {
			tokens[slot] = v.token(state[n], i)
		}
	}
	return tokens
}

func (t *jointTarget) Energy(ctx context.Context, states []int, energy []float64) error {
	err := t.below.Energy(ctx, t.expand(states), energy)
	t.forbid(states, energy)
	return err
}

// EnergyGradient implements samplers.GradientTarget. It adds up the gradients
// of each variable's slots.
func (t *jointTarget) EnergyGradient(ctx context.Context, states []int, energy, gradient []float64) error {
	chains := len(energy)
	t.gradient = slices.Grow(t.gradient[:0], chains*t.slots*t.slotWidth)[:chains*t.slots*t.slotWidth]
	if err := t.below.EnergyGradient(ctx, t.expand(states), energy, t.gradient); err != nil {
		return err
	}
	t.forbid(states, energy)
	for chain := range chains {
		for n, v := range t.variables {
			sum := gradient[(chain*len(t.variables)+n)*t.width:][:t.categories[n]]
			clear(sum)
			for i, slot := range v.slots {
				row := t.gradient[(chain*t.slots+slot)*t.slotWidth:]
				for category, at := range t.category[n][i] {
					sum[category] += row[at]
				}
			}
		}
	}
	return nil
}

// given returns the state of the variables for fills, [blanks], or an error if
// a blank cannot hold its text.
func (v *vocabulary) given(l *layout, list []variable, fills []string) ([]int, error) {
	tokens := make([]int, len(l.question.slots))
	for i, b := range l.template.Blanks {
		ids, err := v.candidate(fills[i], b)
		if err != nil {
			return nil, misfit("initial", "blank %d cannot take %q: %v", i+1, fills[i], err)
		}
		if len(ids) != b.Slots {
			return nil, misfit("initial", "%q has %s, blank %d has %d", fills[i],
				phrase.Counted(len(ids), "token"), i+1, b.Slots)
		}
		copy(tokens[b.First:], ids)
	}
	state := make([]int, len(list))
	for n := range list {
		one := &list[n]
		fits := func() bool {
			for i, slot := range one.slots {
				if one.token(state[n], i) != tokens[slot] {
					return false
				}
			}
			return true
		}
		for state[n] < one.categories() && !fits() {
			state[n]++
		}
		if state[n] == one.categories() {
			return nil, misfit("initial", "%q is not among the %d candidates of its blank: raise candidates, 0 being "+
				"the whole vocabulary, or change the constraints", v.tokenizer.Piece(tokens[one.slots[0]]),
				one.categories())
		}
	}
	if !l.allows(tokens) {
		return nil, misfit("initial", "the constraints forbid %q", option.Join(fills))
	}
	return state, nil
}
