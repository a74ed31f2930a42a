package lm

import (
	"context"
	"fmt"
	"sync"

	"infill/internal/ort"
)

// rowsJob computes the rows of a batch. Rows of about one length with equal
// numbers of queries share calls, whichever text they come from.
//
// The results of a row do not depend on the other rows of a call
// (TestNeighbours).
type rowsJob struct {
	m     *MaskedLM
	batch *batch
	// once is when the first call makes room for the results: those of all rows that
	// wait would take gigabytes.
	once sync.Once
}

var _ job = (*rowsJob)(nil)

func (j *rowsJob) rows() int                 { return j.batch.rows() }
func (j *rowsJob) cost() int                 { return j.batch.tokens }
func (j *rowsJob) room() int                 { return j.m.chunk.tokens }
func (j *rowsJob) size() int                 { return j.m.chunk.size(j.batch.tokens, j.batch.perRow) }
func (j *rowsJob) fitting(room, row int) int { return min(room/j.size(), j.rows()-row) }

// wide: a large model, whose weights come from memory at each call, has a session for all
// cores.
func (j *rowsJob) wide() bool { return !j.m.onCores() || j.m.wide.threads > 1 }

func (j *rowsJob) shares(other job) bool {
	o, ok := other.(*rowsJob)
	return ok && o.batch.perRow == j.batch.perRow && j.m.alike(o.batch.tokens, j.batch.tokens)
}

// alike reports whether rows of two lengths share calls: if the model packs them,
// those of about one length, because attention is as wide as the longest is long.
func (m *MaskedLM) alike(a, b int) bool {
	const about = 8
	return a == b || m.packed && whole(a, about) == whole(b, about)
}

func (a *asker) run(ctx context.Context, b *batch) error {
	return a.m.engine.await(ctx, a.caller, &rowsJob{m: a.m, batch: b})
}

// stretch is the rows from <= row < to of a batch.
type stretch struct {
	*batch
	from, to int
}

// sharedCall holds the buffers of one worker, and the sizes (rows, tokens, perRow,
// width) of the call that the worker runs.
type sharedCall struct {
	ids, queries, targets, candidates, chosen []int64
	positions, spread, kept, lengths          []int64 // of packed rows, see graphs.Packing
	target, candidate, vocabulary             []float32
	rows, tokens, perRow, width               int
	alone                                     bool // whether no other call runs, and no row waits

	at, wanted []int64   // inputs of calls that compute gradients
	bySlot     []float32 // output of gradient calls [slots × chains × slotWidth]
}

// gather fills c with the inputs of one call: all stretches, one behind the other.
func (c *sharedCall) gather(stretches []stretch) {
	for _, list := range []*[]int64{&c.ids, &c.queries, &c.targets, &c.candidates, &c.chosen} {
		*list = (*list)[:0]
	}
	c.rows = 0
	c.tokens = 0
	c.perRow = stretches[0].perRow
	c.width = 0
	for _, s := range stretches {
		c.rows += s.to - s.from
		c.tokens = max(c.tokens, s.tokens)
		c.width = max(c.width, s.width)
	}
	for _, s := range stretches {
		for row := s.from; row < s.to; row++ {
			base := int64(len(c.ids))
			c.ids = append(c.ids, s.ids[row*s.tokens:(row+1)*s.tokens]...)
			for q := row * c.perRow; q < (row+1)*c.perRow; q++ {
				if s.everything {
					c.chosen = append(c.chosen, int64(len(c.queries)))
				}
				c.queries = append(c.queries, base+s.queries[q])
				c.candidates = append(c.candidates, s.candidates[q*s.width:(q+1)*s.width]...)
				for range c.width - s.width {
					c.candidates = append(c.candidates, 0)
				}
			}
		}
		c.targets = append(c.targets, s.targets[s.from*c.perRow:s.to*c.perRow]...)
	}
}

// attentionStep is what the width of attention is a multiple of. With such widths,
// its results do not depend on the width (TestNeighbours).
const attentionStep = 4

// pack fills c with the places of the tokens that gather has joined.
func (c *sharedCall) pack(stretches []stretch) {
	for _, list := range []*[]int64{&c.positions, &c.spread, &c.kept, &c.lengths} {
		*list = (*list)[:0]
	}
	c.tokens = whole(c.tokens, attentionStep) * attentionStep
	for _, s := range stretches {
		for range s.to - s.from {
			first := len(c.lengths) * c.tokens // of the row, where each has the width of attention
			base := len(c.kept)                // of the row, among the packed
			for i := range c.tokens {
				at := base // at padding, any
				if i < s.tokens {
					at += i
					c.positions = append(c.positions, int64(i))
					c.kept = append(c.kept, int64(first+i))
				}
				c.spread = append(c.spread, int64(at))
			}
			c.lengths = append(c.lengths, int64(s.tokens))
		}
	}
}

// tensors returns the inputs and outputs that every graph has. The outputs
// write to target, candidate and all.
func (c *sharedCall) tensors(vocabulary int, target, candidate, all []float32) (inputs, outputs []ort.Tensor) {
	rows := int64(c.rows)
	queries := int64(c.rows * c.perRow)
	width := int64(c.width)
	whole := int64(len(c.chosen))
	inputs = []ort.Tensor{
		ort.Int64([]int64{rows, int64(c.tokens)}, c.ids),
		ort.Int64([]int64{rows, int64(c.perRow)}, c.queries),
		ort.Int64([]int64{queries, 1}, c.targets),
		ort.Int64([]int64{queries, width}, c.candidates),
		ort.Int64([]int64{whole}, c.chosen),
	}
	outputs = []ort.Tensor{
		ort.Float32([]int64{queries, 1}, target),
		ort.Float32([]int64{queries, width}, candidate),
		ort.Float32([]int64{whole, int64(vocabulary)}, all),
	}
	return inputs, outputs
}

// packing replaces the inputs' ids by packed ones, and appends where these stand.
func (c *sharedCall) packing(inputs []ort.Tensor) []ort.Tensor {
	all := []int64{int64(len(c.ids))}
	inputs[0] = ort.Int64(all, c.ids)
	return append(inputs, ort.Int64(all, c.positions), ort.Int64([]int64{int64(c.rows), int64(c.tokens)}, c.spread),
		ort.Int64(all, c.kept), ort.Int64([]int64{int64(c.rows)}, c.lengths))
}

func (j *rowsJob) run(ctx context.Context, c *sharedCall, parts []part) error {
	m := j.m
	from := &m.conditionals
	if c.alone && m.wide.threads > 1 {
		from = &m.wide
	}
	session, err := from.get(ctx, m)
	if err != nil {
		return err
	}
	vocabulary := m.Vocabulary()
	var stretches []stretch
	queries := 0
	for _, p := range parts {
		other := p.job.(*rowsJob)
		other.once.Do(func() { other.batch.prepare(vocabulary) })
		stretches = append(stretches, stretch{other.batch, p.from, p.to})
		queries += (p.to - p.from) * other.batch.perRow
	}
	if queries == 1 && m.mapped() {
		// The kernel for an unpacked matrix and one row has other last digits.
		stretches = append(stretches, stretches[0])
	}
	c.gather(stretches)
	if m.packed {
		c.pack(stretches)
	}
	var target, candidate, all []float32
	alone := len(stretches) == 1
	if alone { // the model writes into the caller's memory
		target, candidate, all = stretches[0].results(vocabulary)
	} else {
		c.target = resized(c.target, c.rows*c.perRow)
		c.candidate = resized(c.candidate, c.rows*c.perRow*c.width)
		c.vocabulary = resized(c.vocabulary, len(c.chosen)*vocabulary)
		target = c.target
		candidate = c.candidate
		all = c.vocabulary
	}
	inputs, outputs := c.tensors(vocabulary, target, candidate, all)
	if m.packed {
		inputs = c.packing(inputs)
	}
	err = session.Run(ctx, inputs, outputs)
	if err != nil {
		return m.named(err)
	}
	err = m.numbers(target) // a NaN among the log-probabilities of a query makes all of them NaN
	if err != nil || alone {
		return err
	}
	for _, s := range stretches {
		target, candidate, all = s.handOut(vocabulary, c.width, target, candidate, all)
	}
	return nil
}

// chunkLimits bounds a model call. On a CPU, values between two products should
// stay in its caches; on a GPU, memory is the bound.
type chunkLimits struct {
	tokens  int // largest rows × tokens of a call
	queries int // most queried positions of a call, each of which has an array of vocabulary size
}

// size returns the part of a call's tokens that a row takes up: its own, or more
// if its queries are what bounds the call.
func (l chunkLimits) size(tokens, perRow int) int {
	return max(tokens, whole(l.tokens*perRow, l.queries))
}

// batch is rows of one length, each with the same number of queried positions.
type batch struct {
	tokens, perRow, width int
	ids                   []int64 // [rows × tokens]
	queries               []int64 // [rows × perRow], positions within the row
	targets               []int64 // [rows·perRow]
	candidates            []int64 // [rows·perRow × width]
	everything            bool    // whether every query wants the whole vocabulary

	// These are the results, float32 in nats.
	target     []float32 // [rows·perRow]
	candidate  []float32 // [rows·perRow × width]
	vocabulary []float32 // [rows·perRow × vocabulary], if everything is true
}

func (b *batch) reset(tokens, perRow, width int, everything bool) {
	b.tokens = tokens
	b.perRow = perRow
	b.width = width
	b.everything = everything
	b.ids = b.ids[:0]
	b.queries = b.queries[:0]
	b.targets = b.targets[:0]
	b.candidates = b.candidates[:0]
}

func (b *batch) rows() int { return len(b.ids) / b.tokens }

// resized returns s with length n; its contents are undefined.
func resized[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	return s[:n]
}

// results returns the parts of the result slices that belong to the stretch.
func (s stretch) results(vocabulary int) (target, candidate, all []float32) {
	from := s.from * s.perRow
	to := s.to * s.perRow
	if s.everything {
		all = s.vocabulary[from*vocabulary : to*vocabulary]
	}
	return s.target[from:to], s.candidate[from*s.width : to*s.width], all
}

// handOut copies the first results of a call to the stretch, and returns those
// of the stretches after it. candidate has width columns.
func (s stretch) handOut(vocabulary, width int, target, candidate, all []float32) (_, _, _ []float32) {
	ownTarget, ownCandidate, ownAll := s.results(vocabulary)
	n := copy(ownTarget, target)
	for q := range n {
		copy(ownCandidate[q*s.width:][:s.width], candidate[q*width:])
	}
	copy(ownAll, all)
	return target[n:], candidate[n*width:], all[len(ownAll):]
}

func (b *batch) prepare(vocabulary int) {
	n := b.rows() * b.perRow
	b.target = resized(b.target, n)
	b.candidate = resized(b.candidate, n*b.width)
	if b.everything {
		b.vocabulary = resized(b.vocabulary, n*vocabulary)
	}
}

// gradientBatch is a batch whose rows come in groups, chains × terms. Its result
// is each group's gradient by the embeddings of slots.
type gradientBatch struct {
	batch
	terms, slots   int
	at             []int64   // [rows × slots], positions within the row
	weights        []float32 // [rows × slots]
	slotWidth      int
	slotCandidates []int64 // [slots × slotWidth], unless everything is true

	// The result is the gradient through the context, nats, in one of the two.
	cross      []float32 // [chains × slots × slotWidth]
	crossWhole []float32 // [chains × slots × vocabulary], if everything is true
}

func (b *gradientBatch) chains() int { return b.rows() / b.terms }

// numbers returns an error for a NaN: sums of finite weights can overflow.
func (m *MaskedLM) numbers(lists ...[]float32) error {
	for _, list := range lists {
		for _, x := range list {
			if x != x {
				return fmt.Errorf("%s: the model computes what is no number (NaN): its weights are damaged or too "+
					"large; fetch or export it again", m.file())
			}
		}
	}
	return nil
}
