package infill

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/gonum/floats"

	"infill/lm"
	"infill/samplers"
	"infill/tokenize"
)

// togetherEnd stands between texts in an option; no text may hold it.
const togetherEnd = "\x1e"

func togetherOption() Option {
	return Option{
		Name: "together", Kind: "TEMPLATE", Help: "a further text whose blanks take the same fills; once for each, see infill help templates", Join: togetherEnd,
		want: "a template",
		get:  func(o *Options) string { return strings.Join(o.Together, togetherEnd) },
		set: func(o *Options, text string) bool {
			if o.Together = nil; text != "" {
				o.Together = strings.Split(text, togetherEnd)
			}
			return true
		},
		list: func(o *Options, values []string) bool {
			o.Together = values
			return true
		},
		check: func(o *Options) string {
			switch {
			case o.Together == nil:
			case o.Joint == JointAG:
				return "joint ag is of one text: take chain"
			case !o.answers() && o.onText().Gradient != "" && o.Gradient == lm.Stochastic:
				return "a stochastic gradient is of one text: take local or full"
			case !o.answers() && samplers.Describe(o.moves()).Distances:
				return o.moves() + " fills one text: take " + defaultSampler
			case o.Pins != nil:
				return "slots are pinned in one text alone"
			}
			return ""
		},
	}
}

// alignTogether finds the plans of the further texts whose blanks have the lengths of a
// plan, their variables in its order.
func (f *Filler) alignTogether(p *plan, others [][]*plan) error {
	keys := p.keys()
	for number, list := range others {
		// A plan that is aligned belongs to p alone.
		at := slices.IndexFunc(list, func(other *plan) bool {
			have := other.keys()
			return len(have) == len(keys) && !slices.ContainsFunc(keys, func(k string) bool { return !slices.Contains(have, k) })
		})
		if at < 0 {
			return misfit("together", "the blanks of text %d are others than those of the first: as many, with the same names and lengths", number+2)
		}
		other := *list[at]
		have := other.keys()
		variables := make([]variable, len(keys))
		for n, k := range keys {
			variables[n] = other.variables[slices.Index(have, k)]
		}
		other.variables = variables
		p.others = append(p.others, &other)
	}
	for n := range p.variables {
		v := &p.variables[n]
		if v.words != nil || v.find != nil {
			continue
		}
		for _, other := range p.others {
			v.support = common(v.support, other.variables[n].support)
		}
		if len(v.support) == 0 {
			return misfit("together", "there is nothing that blank %s may take in all of the texts", keys[n])
		}
	}
	return nil
}

// keys name the variables: by the blank's name, or its number among those without one, and
// by the piece and the number of pieces.
func (p *plan) keys() []string {
	keys := make([]string, len(p.variables))
	for n, v := range p.variables {
		unnamed := 0
		for _, b := range p.template.Blanks {
			if b.Name == "" {
				unnamed++
			}
			if first := v.slots[0]; first >= b.First && first < b.First+b.Slots {
				key := b.Name
				if key == "" {
					key = fmt.Sprint(unnamed)
				}
				if b.Slots > 1 {
					key += fmt.Sprintf(" piece %d of %d", first-b.First+1, b.Slots)
				}
				keys[n] = key
			}
		}
	}
	return keys
}

// common are the numbers that two ascending lists share.
func common(a, b []int) []int {
	if len(a) > 0 && len(a) == len(b) && &a[0] == &b[0] {
		return a
	}
	var both []int
	for i, j := 0, 0; i < len(a) && j < len(b); {
		switch {
		case a[i] < b[j]:
			i++
		case a[i] > b[j]:
			j++
		default:
			both = append(both, a[i])
			i, j = i+1, j+1
		}
	}
	return both
}

// renumbered are the lists of words by the blanks' numbers in another text, where a blank
// of a name may have another number.
func renumbered(words map[int][]string, first, other *tokenize.Template) map[int][]string {
	if len(words) == 0 {
		return words
	}
	number := func(blanks []tokenize.Blank, of tokenize.Blank, at int) int {
		if of.Name != "" {
			return slices.IndexFunc(blanks, func(b tokenize.Blank) bool { return b.Name == of.Name })
		}
		return slices.IndexFunc(blanks, func(b tokenize.Blank) bool {
			if b.Name == "" {
				at--
			}
			return at < 0
		})
	}
	list := maps.Clone(words)
	clear(list)
	for n, fills := range words {
		if n > len(first.Blanks) {
			list[n] = fills // Check tells of it
			continue
		}
		unnamed := 0
		for _, b := range first.Blanks[:n-1] {
			if b.Name == "" {
				unnamed++
			}
		}
		if at := number(other.Blanks, first.Blanks[n-1], unnamed); at >= 0 {
			list[at+1] = fills
		}
	}
	return list
}

// withTogether asks the model for the further texts too, and adds their log-probabilities to
// those of the first: r.logp of a variable's first slots is then that of all texts.
func (r *run) withTogether(ctx context.Context) error {
	if len(r.others) == 0 {
		return nil
	}
	for i := range r.logp {
		r.logp[i] = slices.Clone(r.logp[i])
	}
	for _, other := range r.others {
		logp, err := r.model.MaskedLogProbabilities(ctx, other.template.IDs, other.template.Slots)
		if err != nil {
			return err
		}
		r.rows++
		for n := range r.variables {
			own := r.variables[n].slots
			pieces := r.piecesOf(n)
			for i, slot := range other.variables[n].slots {
				sum := r.logp[own[i%pieces]]
				for token, l := range logp[slot] {
					sum[token] += l
				}
			}
		}
	}
	return nil
}

// piecesOf is how many slots of a variable are one blank's: a word's pieces, or one.
func (p *plan) piecesOf(n int) int {
	v := &p.variables[n]
	if v.words == nil && v.find == nil {
		return 1
	}
	for _, b := range p.template.Blanks {
		if v.slots[0] == b.First {
			return b.Slots
		}
	}
	return 1
}

// otherTokens are the ids in the slots of a further text, where the first has the given ones.
func (r *run) otherTokens(other *plan, tokens []int) []int {
	list := make([]int, len(other.template.Slots))
	for n := range r.variables {
		pieces := r.piecesOf(n)
		for i, slot := range other.variables[n].slots {
			list[slot] = tokens[r.variables[n].slots[i%pieces]]
		}
	}
	return list
}

// togetherTexts are the further texts, filled as the first.
func (r *run) togetherTexts(tokens []int) (texts []string) {
	for _, other := range r.others {
		texts = append(texts, other.template.Fill(r.otherTokens(other, tokens)).Text)
	}
	return texts
}

// targets are those of all texts, as one.
func (r *run) targets(o Options) (lm.Target, error) {
	all := &sumTarget{}
	for _, p := range append([]*plan{&r.plan}, r.others...) {
		energy, err := o.energy(p)
		if err != nil {
			return nil, err
		}
		energy.Gradient, energy.Distances = r.options.Gradient, samplers.Describe(o.Sampler).Distances
		slots := p.template.Slots
		if p != &r.plan {
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
			place := make([]int, len(p.variables))
			for n, v := range p.variables {
				place[v.slots[0]] = n
				slots = append(slots, p.template.Slots[v.slots[0]])
				energy.Support = append(energy.Support, v.support)
			}
			for i := range energy.Terms {
				t := &energy.Terms[i]
				t.Slot, t.Masked = place[t.Slot], slices.Clone(t.Masked)
				for k, slot := range t.Masked {
					t.Masked[k] = place[slot]
				}
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
	_ lm.EnumerableTarget              = (*sumTarget)(nil)
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
func add[T any](targets []lm.Target, sum []float64, scratch *[]float64, write func(target T, into []float64) error) error {
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

// Energy implements samplers.Target.
func (t *sumTarget) Energy(ctx context.Context, states []int, energy []float64) error {
	return add(t.targets, energy, &t.one, func(target samplers.Target, into []float64) error { return target.Energy(ctx, states, into) })
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

// normalise makes logarithms those of numbers that sum to one.
func normalise(logp []float64) {
	if total := floats.LogSumExp(logp); !math.IsInf(total, 0) {
		floats.AddConst(-total, logp)
	}
}

// EnumerationRows implements lm.EnumerableTarget.
func (t *sumTarget) EnumerationRows() float64 {
	rows := 0.0
	for _, one := range t.targets {
		rows += enumerationRows(one)
	}
	return rows
}

// enumerationRows is how many rows it takes at most to go through all fills.
func enumerationRows(target lm.Target) float64 {
	if e, ok := target.(lm.EnumerableTarget); ok {
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

// Enumerate implements lm.EnumerableTarget. One that breaks off writes nothing: what a
// few of the texts say is no sum.
func (t *sumTarget) Enumerate(ctx context.Context, energy []float64, progress func(rows int)) error {
	before := 0.0
	sum := make([]float64, len(energy))
	err := add(t.targets, sum, &t.one, func(target lm.Target, into []float64) error {
		done := int(before)
		before += enumerationRows(target)
		if e, ok := target.(lm.EnumerableTarget); ok {
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

// otherPlans are the plans of the further texts, [texts][lengths].
func (f *Filler) otherPlans(first *tokenize.Template, o *Options) ([][]*plan, error) {
	var others [][]*plan
	for i, text := range o.Together {
		one := *o
		one.Together = nil
		typed, err := f.read(text)
		if err == nil {
			one.Words = renumbered(o.Words, first, typed)
			var p *Plan
			if p, err = f.plan(typed, Request{Options: one}, false); err == nil && p.windows != nil {
				return nil, misfit("together", "text %d has more tokens than the window of %d: shorten it, or give a larger window", i+2, f.windowTokens(o))
			}
			if err == nil {
				others = append(others, p.plans)
				continue
			}
		}
		return nil, misfit("together", "text %d: %v", i+2, err)
	}
	return others, nil
}
