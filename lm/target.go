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

// Energy names an energy of a template's fills, in nats. The DLP paper (Zhang,
// Liu and Liu 2022, appendix I.6) uses PLL.
type Energy string

// These are the energies. X is the text.
const (
	// PLL is Σ_i log f(θ_i | X with slot i masked and every other slot filled).
	PLL Energy = "pll"
	// Filled is Σ_i log f(θ_i | X with every slot filled), for comparison only:
	// the model sees each token, and mostly copies it.
	Filled Energy = "filled"
)

// Values lists the energies.
func (Energy) Values() []Energy { return []Energy{PLL, Filled} }

// Gradient names a way to compute the gradient of the energy with respect to
// one-hot slots.
type Gradient string

// These are the ways to compute the gradient.
const (
	// Full is the exact gradient.
	Full Gradient = "full"
	// Local takes only the direct term of the gradient, log p_j(v). It needs no
	// backward pass, and is valid in a Metropolis-adjusted proposal.
	Local Gradient = "local"
)

// Values lists the gradients.
func (Gradient) Values() []Gradient { return []Gradient{Local, Full} }

// TargetOptions choose a target.
type TargetOptions struct {
	Energy   Energy   // PLL if empty
	Gradient Gradient // Full if empty
	// Support lists the token ids that each slot may take: category k of slot j
	// is token Support[j][k].
	Support [][]int
}

// Counts is the cost of a target so far.
type Counts struct {
	EnergyEvaluations   int64 // number of states whose energy was evaluated
	GradientEvaluations int64 // number of states whose gradient was evaluated
	// Rows is the number of rows that ran through the model. States share rows,
	// and rows are cached, so Rows can be less than slots × evaluations.
	Rows int64
}

// Target is the distribution π(θ) ∝ exp(U(θ)) over fills of a template's slots.
// A model's target also implements samplers.GradientTarget, ConditionalTarget
// and MaskedConditionalTarget. A Target is not safe for concurrent use, but the
// model is.
type Target interface {
	samplers.Target
	// Counts returns the cost of the target so far.
	Counts() Counts
}

// target is the Target of a model.
//
// A row is a text in which some slots are masked and the others filled. The
// model returns the distributions of the masked slots of a row, or of all slots
// if none is masked. These do not depend on the tokens that a state has in
// masked slots, so states share rows. The target remembers rows, up to a bound.
type target struct {
	m          *MaskedLM
	asker      *asker
	energy     Energy
	gradient   Gradient
	template   []int64 // ids with [MASK] at the slots
	slots      []int
	support    [][]int
	categories []int
	width      int  // largest number of categories
	everything bool // whether rows come with the whole vocabulary, which remember reduces to the support
	counts     Counts

	remembered *simplelru.LRU[string, []float32]
	size       int // count of numbers in the remembered rows
	// pending are the rows that this call needs and that are not remembered.
	pending []string
	batch   batch
	batched gradientBatch        // rows with a backward pass
	found   map[string][]float32 // rows of this call, which eviction cannot remove
	key     []byte
	one     []bool // scratch space: the mask of a single slot
}

var (
	_ Target                           = (*target)(nil)
	_ samplers.GradientTarget          = (*target)(nil)
	_ samplers.ConditionalTarget       = (*target)(nil)
	_ samplers.MaskedConditionalTarget = (*target)(nil)
)

const (
	// wholeAbove is the size of a support above which rows come with the whole
	// vocabulary: then gathering inside the graph costs more than it saves.
	wholeAbove = 2048
	// rememberedNumbers bounds the memory for rows to 64 MiB.
	rememberedNumbers = 16 << 20
)

func (a *asker) NewTarget(ids, slots []int, o TargetOptions) (Target, error) {
	m := a.m
	template, err := m.template(ids, slots)
	if err != nil {
		return nil, err
	}
	t := &target{m: m, asker: a, template: template, slots: slices.Clone(slots), support: o.Support}
	t.energy, err = oneOf("energy", cmp.Or(o.Energy, PLL))
	if err != nil {
		return nil, err
	}
	t.gradient, err = oneOf("gradient", cmp.Or(o.Gradient, Full))
	if err != nil {
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
	// Only a size below 1 is an error.
	t.remembered, _ = simplelru.NewLRU(math.MaxInt, func(_ string, row []float32) { t.size -= len(row) })
	t.one = make([]bool, len(slots))
	t.found = map[string][]float32{}
	return t, nil
}

// Categories returns the number of tokens that each slot may take.
func (t *target) Categories() []int { return t.categories }

// Counts returns the cost of the target so far.
func (t *target) Counts() Counts { return t.counts }

// terms returns the number of rows that score a fill: one row with a mask for
// each slot for PLL, one row for Filled.
func (t *target) terms() int {
	if t.energy == Filled {
		return 1
	}
	return len(t.slots)
}

// masked returns what term i's row masks: slot i for PLL, nil for Filled.
func (t *target) masked(i int) []bool {
	if t.energy == Filled {
		return nil
	}
	return t.only(i)
}

// scored returns the slots that term i of the energy scores, first to last−1.
// The row of the term begins with the distributions of these slots.
func (t *target) scored(i int) (first, last int) {
	if t.energy == Filled {
		return 0, len(t.slots)
	}
	return i, i + 1
}

// Energy writes U of every chain to energy [chains], in nats. states [chains ×
// slots] holds categories, row-major.
func (t *target) Energy(ctx context.Context, states []int, energy []float64) error {
	t.counts.EnergyEvaluations += int64(len(energy))
	if err := t.evaluate(ctx, states); err != nil {
		return err
	}
	t.sum(states, energy, nil)
	return nil
}

// EnergyGradient writes U to energy, as Energy does, and ∂U/∂θ_j[v] over
// one-hot θ to gradient [chains × slots × max(Categories())]. The gradient is
// full, or its direct term alone, as TargetOptions.Gradient says.
func (t *target) EnergyGradient(ctx context.Context, states []int, energy, gradient []float64) error {
	if t.gradient == Local || t.energy == PLL && len(t.slots) == 1 { // with one slot, no other slot is context
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
				whole := t.batched.crossWhole[(g*m+j)*v:][:v]
				for k, id := range t.support[j] {
					row[k] += float64(whole[id])
				}
				continue
			}
			for k, x := range t.batched.cross[(g*m+j)*t.width:][:len(row)] {
				row[k] += float64(x)
			}
		}
	}
	return nil
}

// LogConditionals writes log f(· | X with the chain's slot masked), normalised
// over the slot's categories, to logp [chains × max(Categories())]. slots
// [chains] has the slot of each chain. For every energy these are the model's
// own conditionals, which in a masked language model belong to no joint
// distribution.
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

// LogMaskedConditionals writes log f(· | X with every open slot masked),
// normalised over the slot's categories, to the rows of logp [chains × slots ×
// max(Categories())] that belong to open slots. open is [chains × slots].
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

// normalize writes the log-probabilities in row to out, normalised so that
// out's probabilities sum to 1.
func normalize(out []float64, row []float32) {
	for k := range out {
		out[k] = float64(row[k])
	}
	logmath.Normalise(out)
}

// local computes the energy and the gradient's direct term, log p_j(v).
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

// sum adds up the energies of states from their rows, which must be in t.found.
// If gradient is not nil, it also adds up the direct terms of the gradients.
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

func (t *target) only(slot int) []bool {
	clear(t.one)
	t.one[slot] = true
	return t.one
}

// keyOf returns the key of a row: for each slot, 0 for [MASK], else category +
// 1. A nil masked masks no slot.
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

// decode reads the key of a row. state has the categories, −1 where the slot is
// masked. perRow is the number of slots whose distribution the row gives.
func decode(key string, slots int) (state []int, perRow int) {
	b := []byte(key)
	state = make([]int, slots)
	for i := range state {
		x, n := binary.Uvarint(b)
		state[i] = int(x) - 1
		b = b[n:]
		if state[i] < 0 {
			perRow++
		}
	}
	return state, cmp.Or(perRow, slots)
}

// begin forgets which rows the previous call found or needed.
func (t *target) begin() {
	clear(t.found)
	t.pending = t.pending[:0]
}

// want looks up the row with the given key. If the target does not remember the
// row, want adds it to t.pending.
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

// evaluate puts into t.found all rows that score the states.
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

// runPending computes the pending rows and remembers them. Rows with equal
// numbers of distributions form a batch.
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
		if err := t.asker.run(ctx, &t.batch); err != nil {
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

// forget removes the oldest rows until the memory is within bounds. It keeps
// the rows of the last call in any case.
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

// query adds to b a query for slot j's distribution over its categories.
func (t *target) query(b *batch, j int) {
	b.queries = append(b.queries, int64(t.slots[j]))
	b.targets = append(b.targets, int64(t.support[j][0]))
	if !t.everything {
		b.candidates = appendInts(b.candidates, t.support[j])
		for range t.width - t.categories[j] {
			b.candidates = append(b.candidates, int64(t.support[j][0]))
		}
	}
}

// remember stores row r of b, which has perRow distributions, under key.
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

// distinctStates lists the different states of the chains.
type distinctStates struct {
	states []int // [distinct × slots]
	index  []int // [chains], the index in states of each chain's state
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

// backward runs the rows of every distinct state with a backward pass, and
// remembers the rows' distributions.
func (t *target) backward(ctx context.Context, d distinctStates) error {
	m := len(t.slots)
	b := &t.batched
	from, to := t.scored(0)
	perRow := to - from
	b.reset(len(t.template), perRow, t.gathered(), t.everything)
	b.terms = t.terms()
	b.slots = m
	b.slotWidth = t.width
	b.at = b.at[:0]
	b.weights = b.weights[:0]
	b.slotCandidates = b.slotCandidates[:0]
	var keys []string
	for g := range len(d.states) / m {
		state := d.states[g*m : (g+1)*m]
		for i := range t.terms() {
			row := len(b.ids)
			masked := t.masked(i)
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
	if err := t.asker.runGradient(ctx, b); err != nil {
		return err
	}
	t.counts.Rows += int64(len(keys))
	for r, key := range keys {
		t.remember(key, &b.batch, r, perRow)
	}
	t.forget()
	return nil
}
