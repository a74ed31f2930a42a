package lm

import (
	"cmp"
	"context"
	"encoding/binary"
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

// Gradient names a way to compute the gradient of the energy over one-hot slots.
type Gradient string

// The gradients.
const (
	// Full is the exact gradient.
	Full Gradient = "full"
	// Local is only the direct term of the gradient, log p_j(v). It needs no backward pass, and is valid in a
	// Metropolis-adjusted proposal.
	Local Gradient = "local"
)

// Values lists the gradients.
func (Gradient) Values() []Gradient { return []Gradient{Local, Full} }

// TargetOptions choose a target.
type TargetOptions struct {
	Energy   Energy   // PLL when empty
	Gradient Gradient // Full when empty
	// Support is the token ids that each slot may take: category k of slot j is token Support[j][k].
	Support [][]int
}

// Counts is the cost of a target so far.
type Counts struct {
	EnergyEvaluations   int64 // states whose energy was evaluated
	GradientEvaluations int64 // states whose gradient was evaluated
	// Rows is the number of rows that ran through the model. States share rows, and rows are cached, so it can be
	// less than slots × evaluations.
	Rows int64
}

// Target is the distribution π(θ) ∝ exp(U(θ)) over fills of a template's slots. A model's target is also a
// samplers.GradientTarget, ConditionalTarget and MaskedConditionalTarget. It is not safe for concurrent use; the model
// below it is.
type Target interface {
	samplers.Target
	// Counts returns the cost of the target so far.
	Counts() Counts
}

// target is the Target of a model.
//
// A row is a text in which some slots are masked and the others filled. It gives the distributions of its masked slots,
// or of all slots if none is masked. They do not depend on the tokens that a state has in masked slots. So states share
// rows, which are kept up to a bound.
type target struct {
	m          *MaskedLM
	energy     Energy
	gradient   Gradient
	template   []int64 // ids with [MASK] at the slots
	slots      []int
	support    [][]int
	categories []int
	width      int  // largest number of categories
	everything bool // rows come with the whole vocabulary, and remember narrows them
	counts     Counts

	remembered *simplelru.LRU[string, []float32]
	size       int // numbers in the rows that are remembered
	// pending are the rows of this call that the target does not remember.
	pending []string
	batch   batch
	back    gradientBatch
	found   map[string][]float32 // this call's rows, out of reach of eviction
	key     []byte
	one     []bool // scratch: a single masked slot
}

var (
	_ Target                           = (*target)(nil)
	_ samplers.GradientTarget          = (*target)(nil)
	_ samplers.ConditionalTarget       = (*target)(nil)
	_ samplers.MaskedConditionalTarget = (*target)(nil)
)

const (
	// wholeAbove is the support size from which rows come with the whole vocabulary: gathering inside the graph then
	// costs more than it saves.
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
	if t.energy, err = oneOf("energy", cmp.Or(o.Energy, PLL)); err != nil {
		return nil, err
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
	if t.remembered, err = simplelru.NewLRU(math.MaxInt,
		func(_ string, row []float32) { t.size -= len(row) }); err != nil {
		return nil, err
	}
	t.one = make([]bool, len(slots))
	t.found = map[string][]float32{}
	return t, nil
}

// Categories returns the number of tokens that each slot may take.
func (t *target) Categories() []int { return t.categories }

// Counts returns the cost of the target so far.
func (t *target) Counts() Counts { return t.counts }

// terms returns the number of rows that score a fill: for PLL a masked row for each slot, for Filled a single row.
func (t *target) terms() int {
	if t.energy == Filled {
		return 1
	}
	return len(t.slots)
}

// masked returns the mask of term i of the energy: slot i alone, or nil for no slot.
func (t *target) masked(i int) []bool {
	if t.energy == Filled {
		return nil
	}
	return t.only(i)
}

// scored returns the slots that term i of the energy scores, first to last-1. The row of the term begins with their
// distributions.
func (t *target) scored(i int) (first, last int) {
	if t.energy == Filled {
		return 0, len(t.slots)
	}
	return i, i + 1
}

// Energy writes U of every chain into energy [chains], nats. states is [chains × slots], row-major, categories.
func (t *target) Energy(ctx context.Context, states []int, energy []float64) error {
	t.counts.EnergyEvaluations += int64(len(energy))
	if err := t.evaluate(ctx, states); err != nil {
		return err
	}
	t.sum(states, energy, nil)
	return nil
}

// EnergyGradient writes U into energy, as Energy does, and ∂U/∂θ_j[v] over one-hot θ into gradient [chains × slots ×
// max(Categories())], in full or the direct term alone, as the target's Gradient says.
func (t *target) EnergyGradient(ctx context.Context, states []int, energy, gradient []float64) error {
	if t.gradient == Local || t.energy == PLL && len(t.slots) == 1 { // the row of a single slot has no context slot
		return t.local(ctx, states, energy, gradient)
	}
	distinct := t.distinct(states)
	if err := t.backward(ctx, distinct); err != nil {
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
// [chains × max(Categories())]. slots is [chains]. For every energy they are the model's own conditionals, which in a
// masked language model belong to no joint distribution.
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

// local computes the energy and the direct term of the gradient, log p_j(v).
func (t *target) local(ctx context.Context, states []int, energy, gradient []float64) error {
	t.counts.EnergyEvaluations += int64(len(energy))
	t.counts.GradientEvaluations += int64(len(energy))
	if err := t.evaluate(ctx, states); err != nil {
		return err
	}
	clear(gradient)
	t.sum(states, energy, gradient)
	return nil
}

// sum adds up the energies of states from their rows, which must be in found. It also adds up the direct terms of their
// gradients if gradient is not nil.
func (t *target) sum(states []int, energy, gradient []float64) {
	m := len(t.slots)
	clear(energy)
	for c := range energy {
		state := states[c*m : (c+1)*m]
		for i := range t.terms() {
			row := t.found[string(t.keyOf(state, t.masked(i)))]
			first, last := t.scored(i)
			for j := first; j < last; j++ {
				own := row[(j-first)*t.width:]
				energy[c] += float64(own[state[j]])
				if gradient != nil {
					out := gradient[(c*m+j)*t.width:][:t.categories[j]]
					for v, x := range own[:len(out)] {
						out[v] += float64(x)
					}
				}
			}
		}
	}
}

// only returns the mask of one slot.
func (t *target) only(slot int) []bool {
	clear(t.one)
	t.one[slot] = true
	return t.one
}

// keyOf returns the name of a row: for each slot 0 for [MASK], category + 1 otherwise. If masked is nil, no slot is.
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

// want looks a row up, and makes it pending if it is not remembered.
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
		for i := range t.terms() {
			t.want(t.keyOf(states[c*m:(c+1)*m], t.masked(i)))
		}
	}
	return t.runPending(ctx)
}

// runPending computes the pending rows and remembers them. Rows with the same number of distributions form a batch.
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

// forget makes room for rows. It keeps the rows of the last call, even beyond the bound.
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

// query adds a query to the batch, for slot j's distribution over its categories.
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
	index  []int // [chains], the number of each chain's state in states
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

// backward runs the rows of every distinct state with a backward pass, and remembers their distributions.
func (t *target) backward(ctx context.Context, d distinctStates) error {
	m := len(t.slots)
	b := &t.back
	from, to := t.scored(0)
	perRow := to - from
	b.reset(len(t.template), perRow, t.gathered(), t.everything)
	b.terms, b.slots, b.slotWidth = t.terms(), m, t.width
	b.at, b.weights, b.slotCandidates = b.at[:0], b.weights[:0], b.slotCandidates[:0]
	var keys []string
	for g := range len(d.states) / m {
		state := d.states[g*m : (g+1)*m]
		for i := range t.terms() {
			row, masked := len(b.ids), t.masked(i)
			b.ids = append(b.ids, t.template...)
			for j, s := range t.slots {
				b.at = append(b.at, int64(s))
				weight := float32(1)
				if masked != nil && masked[j] {
					weight = 0 // a masked slot has the embedding of [MASK]
				} else {
					b.ids[row+s] = int64(t.support[j][state[j]])
				}
				b.weights = append(b.weights, weight)
			}
			first, last := t.scored(i)
			for j := first; j < last; j++ {
				t.query(&b.batch, j)
				b.targets[len(b.targets)-1] = int64(t.support[j][state[j]])
			}
			keys = append(keys, string(t.keyOf(state, masked)))
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
		t.remember(key, &b.batch, r, perRow)
	}
	t.forget()
	return nil
}
