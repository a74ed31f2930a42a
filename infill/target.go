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

// targets are those of all texts, as one.
func (r *problem) targets(o Options) (lm.Target, error) {
	all := &sumTarget{}
	for _, p := range append([]*layout{&r.layout}, r.others...) {
		energy, err := o.energy(p)
		if err != nil {
			return nil, err
		}
		energy.Gradient, energy.Distances = r.options.Gradient, samplers.Describe(o.Sampler).Distances
		slots := p.template.Slots
		if p != &r.layout {
			for n := range p.variables {
				v, first := &p.variables[n], &r.variables[n]
				if v.support = first.support; first.words != nil {
					v.words = nil
					for _, word := range first.words {
						v.words = append(v.words, slices.Repeat(word[:r.piecesOf(n)], len(v.slots)/r.piecesOf(n)))
					}
				}
			}
		}
		if r.together() == "" {
			// A variable is a slot: those of all texts in the order of the first's.
			slots = nil
			for _, v := range p.variables {
				slots = append(slots, p.template.Slots[v.slots[0]])
				energy.Support = append(energy.Support, v.support)
			}
		} else {
			energy.Support = make([][]int, len(slots))
			for n := range p.variables {
				for i, slot := range p.variables[n].slots {
					energy.Support[slot] = p.variables[n].supportOf(i)
				}
			}
		}
		target, err := r.model.NewTarget(p.template.IDs, slots, energy)
		if err != nil {
			return nil, err
		}
		if r.together() != "" {
			if target, err = newVariableTarget(target, p.variables, p.allowed); err != nil {
				return nil, err
			}
		}
		all.targets = append(all.targets, target)
	}
	if len(all.targets) == 1 {
		return all.targets[0], nil
	}
	return all, nil
}

// sumTarget is the target of several texts with the same fills: U = Σ_k U_k.
type sumTarget struct {
	targets []lm.Target
	one     []float64 // scratch: what one text gives
	two     []float64
}

var (
	_ enumerableTarget                 = (*sumTarget)(nil)
	_ samplers.GradientTarget          = (*sumTarget)(nil)
	_ samplers.ConditionalTarget       = (*sumTarget)(nil)
	_ samplers.MaskedConditionalTarget = (*sumTarget)(nil)
)

// Categories implements samplers.Target.
func (t *sumTarget) Categories() []int { return t.targets[0].Categories() }

// Counts implements lm.Target.
func (t *sumTarget) Counts() (sum lm.Counts) {
	for _, one := range t.targets {
		c := one.Counts()
		sum.Rows += c.Rows
		sum.EnergyEvaluations += c.EnergyEvaluations
		sum.GradientEvaluations += c.GradientEvaluations
	}
	return sum
}

// add writes the sum of what each target writes.
func add[T any](targets []lm.Target, sum []float64, scratch *[]float64,
	write func(target T, into []float64) error) error {
	clear(sum)
	*scratch = slices.Grow((*scratch)[:0], len(sum))[:len(sum)]
	for _, one := range targets {
		target, ok := one.(T)
		if !ok {
			return fmt.Errorf("%T: %w", one, samplers.ErrUnsupported)
		}
		clear(*scratch)
		if err := write(target, *scratch); err != nil {
			return err
		}
		floats.Add(sum, *scratch)
	}
	return nil
}

// energy are the target's options for a joint over the slots of a layout.
func (o *Options) energy(p *layout) (lm.TargetOptions, error) {
	switch o.Joint {
	case JointFilled:
		return lm.TargetOptions{Energy: lm.Filled}, nil
	case JointChain:
		return lm.TargetOptions{}, misfit("joint", "samplers know no chain rule: take pll or filled")
	case jointAG:
		if len(p.template.Slots) > 2 {
			return lm.TargetOptions{},
				misfit("joint", "ag is for two slots, and the template has %d: take chain", len(p.template.Slots))
		}
		if p.together() != "" {
			return lm.TargetOptions{},
				misfit("joint", "ag is for slots that move one by one, not for %s: take chain", p.together())
		}
	}
	return lm.TargetOptions{Energy: lm.PLL}, nil
}

// slots are the orders of a layout's slots that the chain rule takes, [orders][slots].
func (o Order) slots(p *layout) ([][]int, error) {
	left := make([]int, len(p.template.Slots))
	for i := range left {
		left[i] = i
	}
	right := slices.Clone(left)
	slices.Reverse(right)
	switch {
	case len(left) == 1:
		return [][]int{left}, nil
	case o == orderBoth:
		return [][]int{left, right}, nil
	case o == orderLeftToRight:
		return [][]int{left}, nil
	case o == orderRightToLeft:
		return [][]int{right}, nil
	}
	numbers := o.numbers()
	if len(numbers) != len(p.template.Blanks) {
		return nil, misfit("order", "it names %d blanks, the template has %d: name each once, as in 2,1,3",
			len(numbers), len(p.template.Blanks))
	}
	var order []int
	for _, n := range numbers {
		b := p.template.Blanks[n]
		order = append(order, left[b.First:b.First+b.Slots]...)
	}
	return [][]int{order}, nil
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
func (t *variableTarget) EnergyGradientOf(ctx context.Context, terms []int, states []int, energy,
	gradient []float64) error {
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

// Energy implements samplers.Target.
func (t *sumTarget) Energy(ctx context.Context, states []int, energy []float64) error {
	return add(t.targets, energy, &t.one,
		func(target samplers.Target, into []float64) error { return target.Energy(ctx, states, into) })
}

// EnergyGradient implements samplers.GradientTarget.
func (t *sumTarget) EnergyGradient(ctx context.Context, states []int, energy, gradient []float64) error {
	total := make([]float64, len(energy))
	err := add(t.targets, gradient, &t.one, func(target samplers.GradientTarget, into []float64) error {
		err := target.EnergyGradient(ctx, states, energy, into)
		floats.Add(total, energy)
		return err
	})
	copy(energy, total)
	return err
}

// LogConditionals implements samplers.ConditionalTarget: the product of the texts'.
func (t *sumTarget) LogConditionals(ctx context.Context, states, slots []int, logp []float64) error {
	categories := t.Categories()
	width := slices.Max(categories)
	err := add(t.targets, logp, &t.one, func(target samplers.ConditionalTarget, into []float64) error {
		return target.LogConditionals(ctx, states, slots, into)
	})
	for chain, slot := range slots {
		normalise(logp[chain*width:][:categories[slot]])
	}
	return err
}

// LogMaskedConditionals implements samplers.MaskedConditionalTarget: the product of the texts'.
func (t *sumTarget) LogMaskedConditionals(ctx context.Context, states []int, open []bool, logp []float64) error {
	categories := t.Categories()
	width := slices.Max(categories)
	// Rows of slots that are not open keep what they hold.
	t.two = slices.Grow(t.two[:0], len(logp))[:len(logp)]
	err := add(t.targets, t.two, &t.one, func(target samplers.MaskedConditionalTarget, into []float64) error {
		return target.LogMaskedConditionals(ctx, states, open, into)
	})
	for at, is := range open {
		if is {
			row := logp[at*width:][:categories[at%len(categories)]]
			copy(row, t.two[at*width:])
			normalise(row)
		}
	}
	return err
}

// enumerableTarget computes the energies of all fills with fewer rows than one by one.
type enumerableTarget interface {
	lm.Target
	EnumerationRows() float64
	Enumerate(ctx context.Context, energy []float64, progress func(rows int)) error
}

// normalise makes logarithms those of numbers that sum to one.
func normalise(logp []float64) {
	if total := floats.LogSumExp(logp); !math.IsInf(total, 0) {
		floats.AddConst(-total, logp)
	}
}

// EnumerationRows implements enumerableTarget.
func (t *sumTarget) EnumerationRows() float64 {
	rows := 0.0
	for _, one := range t.targets {
		rows += enumerationRows(one)
	}
	return rows
}

// enumerationRows is how many rows it takes at most to go through all fills.
func enumerationRows(target lm.Target) float64 {
	if e, ok := target.(enumerableTarget); ok {
		return e.EnumerationRows()
	}
	states := float64(len(target.Categories()))
	if v, ok := target.(*variableTarget); ok {
		states = float64(v.slots)
	}
	for _, k := range target.Categories() {
		states *= float64(k)
	}
	return states
}

// Enumerate implements enumerableTarget. One that breaks off writes nothing: what a
// few of the texts say is no sum.
func (t *sumTarget) Enumerate(ctx context.Context, energy []float64, progress func(rows int)) error {
	before := 0.0
	sum := make([]float64, len(energy))
	err := add(t.targets, sum, &t.one, func(target lm.Target, into []float64) error {
		done := int(before)
		before += enumerationRows(target)
		if e, ok := target.(enumerableTarget); ok {
			return e.Enumerate(ctx, into, func(rows int) {
				if progress != nil {
					progress(done + rows)
				}
			})
		}
		return energies(ctx, target, into)
	})
	if err == nil {
		copy(energy, sum)
	}
	return err
}

// energies asks a target that cannot enumerate by itself for U of every fill, the last
// variable's category running fastest. What is not known yet stays as it is.
func energies(ctx context.Context, target lm.Target, energy []float64) error {
	const batch = 256
	categories := target.Categories()
	state := make([]int, len(categories))
	var states []int
	known := make([]float64, batch)
	for first := 0; first < len(energy); first += batch {
		part := energy[first:min(first+batch, len(energy))]
		states = states[:0]
		for range part {
			states = append(states, state...)
			for n := len(state) - 1; n >= 0; n-- {
				if state[n]++; state[n] < categories[n] {
					break
				}
				state[n] = 0
			}
		}
		if err := target.Energy(ctx, states, known[:len(part)]); err != nil {
			return err
		}
		copy(part, known)
	}
	return nil
}
