package lm

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"infill/internal/logmath"
	"infill/samplers"
)

// Energy names an energy of a template's fills, in nats. The DLP paper (Zhang, Liu and Liu 2022, appendix I.6)
// uses PLL.
type Energy string

// The energies.
const (
	// PLL is Σ_i log f(θ_i | X with slot i masked and every other slot filled).
	PLL Energy = "pll"
	// Filled is Σ_i log f(θ_i | X with every slot filled): the model sees the token it scores, and mostly copies
	// it. For comparison only.
	Filled Energy = "filled"
)

// Values lists the energies.
func (Energy) Values() []Energy { return []Energy{PLL, Filled} }

// Gradient names how the gradient of the energy over one-hot slots is computed.
type Gradient string

// The gradients.
const (
	// Full is the exact gradient.
	Full Gradient = "full"
	// Local is its direct term alone, log p_j(v). It needs no backward pass, and is valid in a
	// Metropolis-adjusted proposal.
	Local Gradient = "local"
	// Stochastic is the direct term and an unbiased estimate of the rest from a random subset of the energy's terms.
	Stochastic Gradient = "stochastic"
)

// Values lists the gradients.
func (Gradient) Values() []Gradient { return []Gradient{Local, Full, Stochastic} }

// A Term of an energy is Weight · log f(θ_Slot | X with the slots of Masked masked
// and every other slot filled), in nats.
type Term struct {
	Slot   int
	Masked []int // Slot among them, or none at all: the model then sees what it scores
	Weight float64
	// Part is the sum that the term belongs to, see [TargetOptions.Terms].
	Part int
}

// ChainRule returns the terms of log Π_t f(θ_σ(t) | θ_σ(1), ..., θ_σ(t−1), the rest masked), where order is σ,
// the slots from first to last. They form one part of an energy. Over all fills of the whole vocabulary, exp of
// this part sums to one.
func ChainRule(order []int, part int) []Term {
	terms := make([]Term, len(order))
	for t, slot := range order {
		terms[t] = Term{Slot: slot, Masked: slices.Clone(order[t:]), Weight: 1, Part: part}
	}
	return terms
}

// TargetOptions choose a target.
type TargetOptions struct {
	Energy Energy // PLL when empty
	// Terms, if not nil, replace the named energy: U is the logarithm of the mean, over the parts
	// 0, 1, ..., of exp of the sum of the part's terms. Terms of one part are their sum; the parts of [ChainRule] in
	// several orders are the mean of these orders' probabilities.
	Terms    []Term
	Gradient Gradient // Full when empty
	// Support is the token ids that each slot may take: category k of slot j is token Support[j][k].
	Support [][]int
	// Distances asks for a samplers.MetricTarget: the word embeddings are read into memory, once for each model.
	Distances bool
}

// Counts is the cost of a target so far.
type Counts struct {
	EnergyEvaluations   int64 // states whose energy was asked for
	GradientEvaluations int64 // states whose gradient was asked for
	// Rows is how many rows ran through the model. States share rows, and rows are cached, so it can be less
	// than slots × evaluations.
	Rows int64
}

// Target is the distribution π(θ) ∝ exp(U(θ)) over fills of a template's slots. A model's target is also a
// samplers.GradientTarget, StochasticGradientTarget, ConditionalTarget and MaskedConditionalTarget, and a
// MetricTarget if distances are wanted. It is not safe for concurrent use; the model below it is.
type Target interface {
	samplers.Target
	// Counts is what the target has cost so far.
	Counts() Counts
}

// EnumerableTarget is a target that computes the energies of all fills with fewer rows than one by one. A
// model's target is one.
type EnumerableTarget interface {
	Target
	// EnumerationRows is the largest number of rows that Enumerate takes.
	EnumerationRows() float64
	// Enumerate writes U of every fill, nats, to energy [Π Categories()], row-major: the category of the last slot runs
	// fastest. progress, if not nil, is called with how many rows have run. If it fails, energy holds U by the
	// orders that are complete, and NaN elsewhere.
	Enumerate(ctx context.Context, energy []float64, progress func(rows int)) error
}

// target is the Target of a model.
//
// A row is a text in which some slots are masked and the others filled. It gives the distributions of its masked slots,
// or of all where none is, whatever those slots hold: rows are computed once for all that share them and kept, up to a
// bound.
type target struct {
	m          *MaskedLM
	terms      []rowTerms
	parts      int // of the energy
	gradient   Gradient
	template   []int64 // ids with [MASK] at the slots
	slots      []int
	support    [][]int
	categories []int
	width      int  // largest number of categories
	everything bool // rows come over whole, and are narrowed here
	counts     Counts

	remembered *simplelru.LRU[string, []float32]
	size       int // numbers in the rows that are remembered
	// pending are this call's rows that were not remembered.
	pending []string
	batch   batch
	back    gradientBatch
	found   map[string][]float32 // this call's rows, out of reach of eviction
	key     []byte
	one     []bool    // scratch: a single masked slot
	sums    []float64 // scratch: of the parts
}

// rowTerms are the terms of the energy that one row scores.
type rowTerms struct {
	masked  []bool // [slots]
	slots   []int  // that are scored
	places  []int  // their distributions' in the row
	weights []float64
	parts   []int
}

// constant reports whether the row is the same for every fill.
func (r *rowTerms) constant() bool { return !slices.Contains(r.masked, false) }

var (
	_ Target                            = (*target)(nil)
	_ samplers.GradientTarget           = (*target)(nil)
	_ samplers.StochasticGradientTarget = (*target)(nil)
	_ samplers.ConditionalTarget        = (*target)(nil)
	_ samplers.MaskedConditionalTarget  = (*target)(nil)
	_ EnumerableTarget                  = (*target)(nil)
)

const (
	// wholeAbove is the support size from which rows are taken over the whole
	// vocabulary: gathering inside the graph then costs more than it saves.
	wholeAbove = 2048
	// rememberedNumbers bounds the memory for rows: 64 MiB.
	rememberedNumbers = 16 << 20
)

// NewTarget returns the target over the fills of ids (with [CLS] and [SEP]) at the positions slots; the ids
// there are ignored.
func (m *MaskedLM) NewTarget(ids, slots []int, o TargetOptions) (Target, error) {
	template, err := m.template(ids, slots)
	if err != nil {
		return nil, err
	}
	t := &target{m: m, template: template, slots: slices.Clone(slots), support: o.Support}
	energy, err := oneOf("energy", cmp.Or(o.Energy, PLL))
	if err != nil {
		return nil, err
	}
	if o.Terms == nil {
		o.Terms = energy.terms(len(slots))
	}
	if t.gradient, err = oneOf("gradient", cmp.Or(o.Gradient, Full)); err != nil {
		return nil, err
	}
	if len(o.Support) != len(slots) {
		return nil, fmt.Errorf("there are %d slots and supports for %d", len(slots), len(o.Support))
	}
	for j, s := range o.Support {
		if len(s) == 0 {
			return nil, fmt.Errorf("slot %d may take no token at all", j)
		}
		for _, id := range s {
			if id < 0 || id >= m.Vocabulary() {
				return nil, fmt.Errorf("slot %d: token %d is outside the vocabulary of %d", j, id, m.Vocabulary())
			}
		}
		t.categories = append(t.categories, len(s))
		t.width = max(t.width, len(s))
	}
	t.everything = t.width > wholeAbove
	if t.terms, t.parts, err = groupTerms(o.Terms, len(slots)); err != nil {
		return nil, err
	}
	t.sums = make([]float64, t.parts)
	if t.remembered, err = simplelru.NewLRU(math.MaxInt,
		func(_ string, row []float32) { t.size -= len(row) }); err != nil {
		return nil, err
	}
	t.one = make([]bool, len(slots))
	t.found = map[string][]float32{}
	if o.Distances {
		return t.withDistances()
	}
	return t, nil
}

// terms are those of a named energy over so many slots.
func (e Energy) terms(slots int) []Term {
	terms := make([]Term, slots)
	for j := range terms {
		terms[j] = Term{Slot: j, Weight: 1}
		if e == PLL {
			terms[j].Masked = []int{j}
		}
	}
	return terms
}

// groupTerms puts the terms of one row together, and counts the parts.
func groupTerms(terms []Term, slots int) (groups []rowTerms, parts int, err error) {
	var of []int
	for _, term := range terms {
		masked := make([]bool, slots)
		for _, j := range append(term.Masked, term.Slot) {
			if j < 0 || j >= slots {
				return nil, 0, fmt.Errorf("a term of slot %d in an energy of %d slots", j, slots)
			}
		}
		for _, j := range term.Masked {
			masked[j] = true
		}
		if len(term.Masked) > 0 && !masked[term.Slot] {
			return nil, 0, fmt.Errorf("a term of slot %d, which its row does not mask", term.Slot)
		}
		at := slices.IndexFunc(groups, func(g rowTerms) bool { return slices.Equal(g.masked, masked) })
		if at < 0 {
			at = len(groups)
			groups = append(groups, rowTerms{masked: masked})
		}
		g := &groups[at]
		g.slots, g.places, g.weights = append(g.slots, term.Slot), append(g.places, place(masked, term.Slot)),
			append(g.weights, term.Weight)
		g.parts, of = append(g.parts, term.Part), append(of, term.Part)
	}
	if groups == nil {
		return nil, 0, errors.New("an energy of no term")
	}
	slices.Sort(of)
	of = slices.Compact(of)
	for part, number := range of {
		if part != number {
			return nil, 0, fmt.Errorf("part %d of an energy has no term", part)
		}
	}
	return groups, len(of), nil
}

// place is where a row has the distribution of a slot that it scores.
func place(masked []bool, slot int) int {
	if !slices.Contains(masked, true) {
		return slot
	}
	before := 0
	for _, m := range masked[:slot] {
		if m {
			before++
		}
	}
	return before
}

// Categories is the number of tokens that each slot may take.
func (t *target) Categories() []int { return t.categories }

// Counts is what the target has cost so far.
func (t *target) Counts() Counts { return t.counts }

// Terms is the number of rows that score a fill, whose gradients a stochastic
// gradient draws from: the masked rows of PLL; Filled has a single row.
func (t *target) Terms() int { return len(t.terms) }

// Energy writes U of every chain into energy [chains], nats. states is [chains × slots], row-major, categories.
func (t *target) Energy(ctx context.Context, states []int, energy []float64) error {
	t.counts.EnergyEvaluations += int64(len(energy))
	if err := t.evaluate(ctx, states); err != nil {
		return err
	}
	t.sum(states, energy)
	return nil
}

// EnergyGradient is Energy together with ∂U/∂θ_j[v] over one-hot θ into gradient [chains × slots × max(Categories())],
// as far as the target's Gradient goes: Stochastic here means all terms.
func (t *target) EnergyGradient(ctx context.Context, states []int, energy, gradient []float64) error {
	if t.gradient == Local {
		return t.local(ctx, states, energy, gradient)
	}
	all := make([]int, t.Terms())
	for i := range all {
		all[i] = i
	}
	return t.EnergyGradientOf(ctx, all, states, energy, gradient)
}

// EnergyGradientOf is EnergyGradient with the part of the gradient that goes through the context estimated from the
// given terms, scaled by Terms()/len(terms). The energy and the direct part are exact.
func (t *target) EnergyGradientOf(ctx context.Context, terms, states []int, energy, gradient []float64) error {
	asked := len(terms)
	if asked == 0 {
		return fmt.Errorf("a stochastic gradient needs at least one term")
	}
	terms, err := t.through(terms)
	if err != nil {
		return err
	}
	if len(terms) == 0 {
		return t.local(ctx, states, energy, gradient) // no row sees a slot
	}
	distinct := t.distinct(states)
	if t.parts > 1 {
		// How much of each part's gradient counts is known by the energies alone.
		if err := t.evaluate(ctx, distinct.states); err != nil {
			return err
		}
	}
	if err := t.backward(ctx, distinct, terms, float32(t.Terms())/float32(asked)); err != nil {
		return err
	}
	if err := t.local(ctx, states, energy, gradient); err != nil {
		return err
	}
	m, v := len(t.slots), t.m.Vocabulary()
	for c := range energy {
		g := distinct.index[c]
		for j := range m {
			row := gradient[(c*m+j)*t.width:][:t.categories[j]]
			if t.everything {
				whole := t.back.crossWhole[(g*m+j)*v:][:v]
				for k, id := range t.support[j] {
					row[k] += float64(whole[id])
				}
				continue
			}
			for k, x := range t.back.cross[(g*m+j)*t.width:][:len(row)] {
				row[k] += float64(x)
			}
		}
	}
	return nil
}

// LogConditionals writes log f(· | X with the chain's slot masked), normalised over the slot's categories, into logp
// [chains × max(Categories())]. slots is [chains]. They are the model's own conditionals, whatever the energy; those of
// a masked language model belong to no joint distribution.
func (t *target) LogConditionals(ctx context.Context, states, slots []int, logp []float64) error {
	m := len(t.slots)
	t.begin()
	for c, j := range slots {
		t.want(t.keyOf(states[c*m:(c+1)*m], t.only(j)))
	}
	if err := t.runPending(ctx); err != nil {
		return err
	}
	for c, j := range slots {
		row := t.found[string(t.keyOf(states[c*m:(c+1)*m], t.only(j)))]
		normalize(logp[c*t.width:][:t.categories[j]], row)
	}
	return nil
}

// LogMaskedConditionals writes log f(· | X with every open slot masked), normalised over the slot's categories, to the
// rows of logp [chains × slots × max(Categories())] that belong to open slots. open is [chains × slots].
func (t *target) LogMaskedConditionals(ctx context.Context, states []int, open []bool, logp []float64) error {
	m := len(t.slots)
	t.begin()
	for at := 0; at < len(states); at += m {
		t.want(t.keyOf(states[at:at+m], open[at:at+m]))
	}
	if err := t.runPending(ctx); err != nil {
		return err
	}
	for at := 0; at < len(states); at += m {
		row := t.found[string(t.keyOf(states[at:at+m], open[at:at+m]))]
		for j, n := range t.categories {
			if open[at+j] {
				normalize(logp[(at+j)*t.width:][:n], row)
				row = row[t.width:]
			}
		}
	}
	return nil
}

// normalize writes log-probabilities that sum to one over out's categories.
func normalize(out []float64, row []float32) {
	for k := range out {
		out[k] = float64(row[k])
	}
	logmath.Normalise(out)
}

// local is the energy and the direct term of the gradient, log p_j(v).
func (t *target) local(ctx context.Context, states []int, energy, gradient []float64) error {
	t.counts.EnergyEvaluations += int64(len(energy))
	t.counts.GradientEvaluations += int64(len(energy))
	if err := t.evaluate(ctx, states); err != nil {
		return err
	}
	m := len(t.slots)
	clear(gradient)
	for c := range energy {
		state := states[c*m : (c+1)*m]
		shares := t.shares(state)
		for i := range t.terms {
			r := &t.terms[i]
			row := t.found[string(t.keyOf(state, r.masked))]
			for k, j := range r.slots {
				out := gradient[(c*m+j)*t.width:][:t.categories[j]]
				weight := r.weights[k] * shares[r.parts[k]]
				for v, x := range row[r.places[k]*t.width:][:len(out)] {
					out[v] += weight * float64(x)
				}
			}
		}
	}
	t.sum(states, energy)
	return nil
}

// sum adds up the energies of states whose rows have been found.
func (t *target) sum(states []int, energy []float64) {
	m := len(t.slots)
	for c := range energy {
		energy[c] = logMean(t.sumParts(states[c*m : (c+1)*m]))
	}
}

// sumParts adds up the parts of the energy of a state whose rows have been found.
func (t *target) sumParts(state []int) []float64 {
	clear(t.sums)
	for i := range t.terms {
		r := &t.terms[i]
		row := t.found[string(t.keyOf(state, r.masked))]
		for k, j := range r.slots {
			t.sums[r.parts[k]] += r.weights[k] * float64(row[r.places[k]*t.width+state[j]])
		}
	}
	return t.sums
}

// shares is what the gradient of each part counts for in that of the energy: exp of the part over the sum of all.
func (t *target) shares(state []int) []float64 {
	if t.parts == 1 {
		t.sums[0] = 1
		return t.sums
	}
	sums := t.sumParts(state)
	u := logMean(sums) + math.Log(float64(len(sums)))
	for i, s := range sums {
		sums[i] = math.Exp(s - u)
	}
	return sums
}

// logMean is the logarithm of the mean of exp of the numbers.
func logMean(x []float64) float64 { return logmath.LogSumExp(x) - math.Log(float64(len(x))) }

// only masks one slot.
func (t *target) only(slot int) []bool {
	clear(t.one)
	t.one[slot] = true
	return t.one
}

// keyOf names a row by what its slots hold: 0 for [MASK], category + 1 otherwise. No masks, nil, are none.
func (t *target) keyOf(state []int, masked []bool) []byte {
	t.key = t.key[:0]
	for i, k := range state {
		if masked != nil && masked[i] {
			k = -1
		}
		t.key = binary.AppendUvarint(t.key, uint64(k+1))
	}
	return t.key
}

// decode reads a row's name: categories, −1 where the slot is masked, and the
// number of slots whose distribution the row gives.
func decode(key string, slots int) (state []int, perRow int) {
	b := []byte(key)
	state = make([]int, slots)
	for i := range state {
		x, n := binary.Uvarint(b)
		if state[i], b = int(x)-1, b[n:]; state[i] < 0 {
			perRow++
		}
	}
	if perRow == 0 {
		perRow = slots
	}
	return state, perRow
}

// begin forgets the rows of the call before.
func (t *target) begin() {
	clear(t.found)
	t.pending = t.pending[:0]
}

// want looks a row up, and makes it pending when it is not remembered.
func (t *target) want(key []byte) {
	if _, ok := t.found[string(key)]; ok {
		return
	}
	row, ok := t.remembered.Get(string(key))
	if !ok {
		t.pending = append(t.pending, string(key))
	}
	t.found[string(key)] = row
}

// evaluate finds the rows that score the states.
func (t *target) evaluate(ctx context.Context, states []int) error {
	t.begin()
	m := len(t.slots)
	for c := range len(states) / m {
		for i := range t.terms {
			t.want(t.keyOf(states[c*m:(c+1)*m], t.terms[i].masked))
		}
	}
	return t.runPending(ctx)
}

// runPending computes the pending rows and remembers them: in one batch those that give as many distributions.
func (t *target) runPending(ctx context.Context) error {
	for perRow := 1; perRow <= len(t.slots) && len(t.pending) > 0; perRow++ {
		t.batch.reset(len(t.template), perRow, t.gathered(), t.everything)
		var run []string
		t.pending = slices.DeleteFunc(t.pending, func(key string) bool {
			state, gives := decode(key, len(t.slots))
			if gives != perRow {
				return false
			}
			run = append(run, key)
			row := len(t.batch.ids)
			t.batch.ids = append(t.batch.ids, t.template...)
			for i, s := range t.slots {
				if state[i] >= 0 {
					t.batch.ids[row+s] = int64(t.support[i][state[i]])
				}
				if state[i] < 0 || !slices.Contains(state, -1) {
					t.query(&t.batch, i)
				}
			}
			return true
		})
		if len(run) == 0 {
			continue
		}
		if err := t.m.run(ctx, &t.batch); err != nil {
			return err
		}
		t.counts.Rows += int64(len(run))
		for r, key := range run {
			t.remember(key, &t.batch, r, perRow)
		}
	}
	t.forget()
	return nil
}

// forget makes room: the rows of the last call stay, whatever they take.
func (t *target) forget() {
	last := 0
	for _, row := range t.found {
		last += len(row)
	}
	for t.size > max(rememberedNumbers, last) {
		t.remembered.RemoveOldest()
	}
}

func (t *target) gathered() int {
	if t.everything {
		return 0
	}
	return t.width
}

// query asks for slot j's distribution over its categories.
func (t *target) query(b *batch, j int) {
	b.queries = append(b.queries, int64(t.slots[j]))
	b.targets = append(b.targets, int64(t.support[j][0]))
	if !t.everything {
		for _, id := range t.support[j] {
			b.candidates = append(b.candidates, int64(id))
		}
		for range t.width - t.categories[j] {
			b.candidates = append(b.candidates, int64(t.support[j][0]))
		}
	}
}

// remember keeps row r of a batch under its name.
func (t *target) remember(key string, b *batch, r, perRow int) {
	row := make([]float32, perRow*t.width)
	for q := range perRow {
		out := row[q*t.width:][:t.width]
		if !t.everything {
			copy(out, b.candidate[(r*perRow+q)*t.width:])
			continue
		}
		j := slices.Index(t.slots, int(b.queries[r*perRow+q]))
		whole := b.vocabulary[(r*perRow+q)*t.m.Vocabulary():][:t.m.Vocabulary()]
		for k, id := range t.support[j] {
			out[k] = whole[id]
		}
	}
	t.found[key] = row
	t.remembered.Remove(key)
	t.remembered.Add(key, row)
	t.size += len(row)
}

// distinctStates are the different states among the chains.
type distinctStates struct {
	states []int // [distinct × slots]
	index  []int // [chains]: which of them each chain is in
}

func (t *target) distinct(states []int) distinctStates {
	m := len(t.slots)
	d := distinctStates{index: make([]int, len(states)/m)}
	seen := map[string]int{}
	for c := range d.index {
		state := states[c*m : (c+1)*m]
		g, ok := seen[string(t.keyOf(state, nil))]
		if !ok {
			g = len(seen)
			seen[string(t.key)] = g
			d.states = append(d.states, state...)
		}
		d.index[c] = g
	}
	return d
}

// through are those of the terms whose rows see a slot that is filled, and so pass
// a gradient on. All must score as many slots, those of a row with one weight.
func (t *target) through(terms []int) (list []int, err error) {
	for _, i := range terms {
		if i < 0 || i >= t.Terms() {
			return nil, fmt.Errorf("term %d of an energy of %d terms", i, t.Terms())
		}
		if t.terms[i].constant() {
			continue
		}
		list = append(list, i)
		r := &t.terms[i]
		if len(r.slots) != len(t.terms[list[0]].slots) || slices.Min(r.weights) != slices.Max(r.weights) ||
			slices.Min(r.parts) != slices.Max(r.parts) {
			return nil, errors.New("the energy has rows that score different numbers of slots, or with different " +
				"weights: take the local gradient")
		}
	}
	return list, nil
}

// backward runs the rows of the given terms, forth and back, for every
// distinct state. The rows' distributions are remembered on the way.
func (t *target) backward(ctx context.Context, d distinctStates, terms []int, scale float32) error {
	m := len(t.slots)
	b := &t.back
	perRow := len(t.terms[terms[0]].slots)
	b.reset(len(t.template), perRow, t.gathered(), t.everything)
	b.terms, b.slots, b.slotWidth = len(terms), m, t.width
	b.at, b.weights, b.slotCandidates = b.at[:0], b.weights[:0], b.slotCandidates[:0]
	var keys []string
	for g := range len(d.states) / m {
		state := d.states[g*m : (g+1)*m]
		shares := t.shares(state)
		for _, i := range terms {
			r := &t.terms[i]
			row := len(b.ids)
			b.ids = append(b.ids, t.template...)
			for j, s := range t.slots {
				b.at = append(b.at, int64(s))
				weight := scale * float32(r.weights[0]*shares[r.parts[0]])
				if r.masked[j] {
					weight = 0 // its embedding is [MASK]'s
				} else {
					b.ids[row+s] = int64(t.support[j][state[j]])
				}
				b.weights = append(b.weights, weight)
			}
			for _, j := range r.slots {
				t.query(&b.batch, j)
				b.targets[len(b.targets)-1] = int64(t.support[j][state[j]])
			}
			keys = append(keys, string(t.keyOf(state, r.masked)))
		}
	}
	if !t.everything {
		for j, s := range t.support {
			for k := range t.width {
				if k >= t.categories[j] {
					k = 0
				}
				b.slotCandidates = append(b.slotCandidates, int64(s[k]))
			}
		}
	}
	if err := t.m.runGradient(ctx, b); err != nil {
		return err
	}
	t.counts.Rows += int64(len(keys))
	for r, key := range keys {
		// A row that was asked for a part of its distributions is not remembered.
		if _, gives := decode(key, m); gives == perRow {
			t.remember(key, &b.batch, r, perRow)
		}
	}
	t.forget()
	return nil
}
