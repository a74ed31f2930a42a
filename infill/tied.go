package infill

import (
	"context"
	"fmt"

	"infill/samplers"
	"infill/tokenize"
)

// A variable is what the chains move: a slot, or several slots of one name that
// hold the same token. variables returns the slots of each, in the order of the
// variables' first slots, [variables][slots].
func variables(slots int, ties [][]int) [][]int {
	tie := make([][]int, slots)
	for _, t := range ties {
		for _, slot := range t {
			tie[slot] = t
		}
	}
	var list [][]int
	for slot := range slots {
		switch t := tie[slot]; {
		case t == nil:
			list = append(list, []int{slot})
		case t[0] == slot:
			list = append(list, t)
		}
	}
	return list
}

// sumOver adds what the slots of each variable have, [variables][tokens]; with
// one slot each it is the slots' own rows.
func sumOver(variables [][]int, logp [][]float32) [][]float32 {
	sums := make([][]float32, len(variables))
	for v, slots := range variables {
		sums[v] = logp[slots[0]]
		if len(slots) == 1 {
			continue
		}
		sums[v] = append([]float32(nil), sums[v]...)
		for _, slot := range slots[1:] {
			for token, l := range logp[slot] {
				sums[v][token] += l
			}
		}
	}
	return sums
}

// checkTies returns an *OptionError where slots of one name cannot be sampled
// together, or are pinned to different tokens.
func checkTies(template *tokenize.Template, pins []int, sampler string) error {
	if p := presets()[sampler]; len(template.Ties) > 0 && (p.gradient == "" || p.metric) {
		return &OptionError{"sampler", sampler + " cannot move slots of one name together: take " + defaultSampler}
	}
	for _, tie := range template.Ties {
		for _, slot := range tie {
			if pins != nil && pins[slot] != pins[tie[0]] {
				return &OptionError{"pins", fmt.Sprintf("slots %d and %d have one name and different pins", tie[0]+1, slot+1)}
			}
		}
	}
	return nil
}

// slotTarget is what tiedTarget needs of the target over slots.
type slotTarget interface {
	Target
	samplers.StochasticGradientTarget
}

// tiedTarget is a target over slots as one over variables. Its energy is that of
// the slots; the gradient of a variable is the sum over its slots, whose
// categories are the same. It has no conditionals: those of a variable are not
// made of the conditionals of its slots, each of which sees the others' token.
type tiedTarget struct {
	slotTarget
	variables  [][]int
	of         []int // variable of each slot
	categories []int // [variables]
	width      int   // the largest number of categories, over variables as over slots
	states     []int // scratch, [chains × slots]
	gradient   []float64
}

var _ slotTarget = (*tiedTarget)(nil)

func newTiedTarget(target Target, variables [][]int) (*tiedTarget, error) {
	over, ok := target.(slotTarget)
	if !ok {
		return nil, fmt.Errorf("%T has no gradient, which slots of one name need", target)
	}
	t := &tiedTarget{slotTarget: over, variables: variables, of: make([]int, len(target.Categories()))}
	for v, slots := range variables {
		for _, slot := range slots {
			t.of[slot] = v
		}
		n := target.Categories()[slots[0]]
		t.categories = append(t.categories, n)
		t.width = max(t.width, n)
	}
	return t, nil
}

// Categories implements samplers.Target.
func (t *tiedTarget) Categories() []int { return t.categories }

// expand gives every slot its variable's category.
func (t *tiedTarget) expand(states []int) []int {
	t.states = t.states[:0]
	for at := 0; at < len(states); at += len(t.variables) {
		for _, v := range t.of {
			t.states = append(t.states, states[at+v])
		}
	}
	return t.states
}

// collect sums the slots' gradients, which evaluate has been given room for.
func (t *tiedTarget) collect(chains int, gradient []float64, evaluate func(gradient []float64) error) error {
	size := chains * len(t.of) * t.width
	if len(t.gradient) != size {
		t.gradient = make([]float64, size)
	}
	if err := evaluate(t.gradient); err != nil {
		return err
	}
	for chain := range chains {
		for v, slots := range t.variables {
			sum := gradient[(chain*len(t.variables)+v)*t.width:][:t.categories[v]]
			clear(sum)
			for _, slot := range slots {
				for category, g := range t.gradient[(chain*len(t.of)+slot)*t.width:][:len(sum)] {
					sum[category] += g
				}
			}
		}
	}
	return nil
}

// Energy implements samplers.Target.
func (t *tiedTarget) Energy(ctx context.Context, states []int, energy []float64) error {
	return t.slotTarget.Energy(ctx, t.expand(states), energy)
}

// EnergyGradient implements samplers.GradientTarget.
func (t *tiedTarget) EnergyGradient(ctx context.Context, states []int, energy, gradient []float64) error {
	return t.collect(len(energy), gradient, func(g []float64) error {
		return t.slotTarget.EnergyGradient(ctx, t.expand(states), energy, g)
	})
}

// EnergyGradientOf implements samplers.StochasticGradientTarget; the terms are
// those of the slots.
func (t *tiedTarget) EnergyGradientOf(ctx context.Context, terms []int, states []int, energy, gradient []float64) error {
	return t.collect(len(energy), gradient, func(g []float64) error {
		return t.slotTarget.EnergyGradientOf(ctx, terms, t.expand(states), energy, g)
	})
}
