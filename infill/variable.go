package infill

import (
	"context"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"

	"infill/lm"
	"infill/samplers"
)

// A variable is what the chains move: a slot; several blanks of one name, which
// hold the same token; or the slots of a blank that takes one of a list of words
// of several pieces, together with those of the other blanks of its name.
type variable struct {
	slots []int
	// support is the token of each category, ascending, the same in all slots.
	support []int
	// words are, where not nil, the categories in its place, [categories][slots].
	words [][]int
	// find gives the words from the log-probabilities of the slots, where they have a
	// pattern and are not known before; it is nil for other variables.
	find func(logp [][]float32) ([][]int, error)
	// spell gives the pieces that a place of a word with a pattern may have beside the known
	// ones; nil for other variables.
	spell func(word []int, place int) []int
	// listed tells that the user named what it takes: the support is then not narrowed to
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

// slotTarget is what variableTarget needs of the target over slots.
type slotTarget interface {
	lm.Target
	samplers.StochasticGradientTarget
}

// variableTarget is a target over slots as one over variables, in which some
// combinations may be forbidden. Its energy is that of the slots; the gradient of
// a variable sums that of its slots, each at the token the category puts there.
// It has no conditionals of single variables: those are not made of the conditionals
// of its slots, each of which sees the others' tokens. With several open it offers
// distributions to draw from.
type variableTarget struct {
	slotTarget
	variables  []variable
	categories []int            // [variables]
	width      int              // the largest number of categories of a variable
	slotWidth  int              // and of a slot
	slots      int              //
	category   [][][]int        // of the slot, [variables][slots of it][categories]
	allowed    func([]int) bool // of the tokens of the slots; nil: all are
	states     []int            // scratch, [chains × slots]
	tokens     []int            // scratch, [slots]
	gradient   []float64        // scratch, [chains × slots × slotWidth]
	open       []bool           // scratch, [chains × slots]
}

var (
	_ slotTarget                       = (*variableTarget)(nil)
	_ samplers.MaskedConditionalTarget = (*variableTarget)(nil)
)

// newVariableTarget stands over a target whose support in every slot is that of
// the slot's variable. allowed may be nil.
func newVariableTarget(target lm.Target, list []variable, allowed func(tokens []int) bool) (*variableTarget, error) {
	over, ok := target.(slotTarget)
	if !ok {
		return nil, fmt.Errorf("%T has no gradient, which slots that move together need", target)
	}
	t := &variableTarget{
		slotTarget: over, variables: list, slots: len(target.Categories()), slotWidth: slices.Max(target.Categories()),
		category: make([][][]int, len(list)), allowed: allowed, tokens: make([]int, len(target.Categories())),
	}
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

// Categories implements samplers.Target.
func (t *variableTarget) Categories() []int { return t.categories }

// expand gives every slot its category.
func (t *variableTarget) expand(states []int) []int {
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

// forbid takes the energies of the states that are not allowed away.
func (t *variableTarget) forbid(states []int, energy []float64) {
	if t.allowed == nil {
		return
	}
	for chain := range energy {
		if !t.allowed(fillSlots(t.tokens, t.variables, states[chain*len(t.variables):])) {
			energy[chain] = math.Inf(-1)
		}
	}
}

// fillSlots writes the tokens of a state's slots into tokens, and returns it.
func fillSlots(tokens []int, variables []variable, state []int) []int {
	for n := range variables {
		v := &variables[n]
		for i, slot := range v.slots {
			tokens[slot] = v.token(state[n], i)
		}
	}
	return tokens
}

// Energy implements samplers.Target.
func (t *variableTarget) Energy(ctx context.Context, states []int, energy []float64) error {
	err := t.slotTarget.Energy(ctx, t.expand(states), energy)
	t.forbid(states, energy)
	return err
}

// EnergyGradient implements samplers.GradientTarget.
func (t *variableTarget) EnergyGradient(ctx context.Context, states []int, energy, gradient []float64) error {
	return t.sum(len(energy), gradient, func(slots []float64) error {
		err := t.slotTarget.EnergyGradient(ctx, t.expand(states), energy, slots)
		t.forbid(states, energy)
		return err
	})
}

// EnergyGradientOf implements samplers.StochasticGradientTarget; the terms are
// those of the slots.
func (t *variableTarget) EnergyGradientOf(ctx context.Context, terms []int, states []int, energy, gradient []float64) error {
	return t.sum(len(energy), gradient, func(slots []float64) error {
		err := t.slotTarget.EnergyGradientOf(ctx, terms, t.expand(states), energy, slots)
		t.forbid(states, energy)
		return err
	})
}

// sum adds up the slots' gradients, which evaluate is given room for.
func (t *variableTarget) sum(chains int, gradient []float64, evaluate func(slots []float64) error) error {
	t.gradient = slices.Grow(t.gradient[:0], chains*t.slots*t.slotWidth)[:chains*t.slots*t.slotWidth]
	if err := evaluate(t.gradient); err != nil {
		return err
	}
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

// LogMaskedConditionals implements samplers.MaskedConditionalTarget: the distribution
// of a variable is the product of its slots', all of them masked, normalised over its
// categories. It is one to draw and weigh by, and no conditional of the energy.
func (t *variableTarget) LogMaskedConditionals(ctx context.Context, states []int, open []bool, logp []float64) error {
	below, ok := t.slotTarget.(samplers.MaskedConditionalTarget)
	if !ok {
		return fmt.Errorf("%T has no conditionals of several masked slots", t.slotTarget)
	}
	chains, n := len(states)/len(t.variables), len(t.variables)
	t.open = slices.Grow(t.open[:0], chains*t.slots)[:chains*t.slots]
	for chain := range chains {
		for v := range t.variables {
			for _, slot := range t.variables[v].slots {
				t.open[chain*t.slots+slot] = open[chain*n+v]
			}
		}
	}
	size := chains * t.slots * t.slotWidth
	t.gradient = slices.Grow(t.gradient[:0], size)[:size]
	if err := below.LogMaskedConditionals(ctx, t.expand(states), t.open, t.gradient); err != nil {
		return err
	}
	for chain := range chains {
		for v := range t.variables {
			if !open[chain*n+v] {
				continue
			}
			row := logp[(chain*n+v)*t.width:][:t.categories[v]]
			clear(row)
			for i, slot := range t.variables[v].slots {
				distribution := t.gradient[(chain*t.slots+slot)*t.slotWidth:]
				for category, at := range t.category[v][i] {
					row[category] += distribution[at]
				}
			}
			total := floats.LogSumExp(row)
			for category := range row {
				row[category] -= total
			}
		}
	}
	return nil
}
