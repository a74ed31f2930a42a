package lm

import (
	"context"
	"strings"

	"infill/lm/internal/ort"
	"infill/models"
)

// chunkLimits bounds how much one model call computes. On a CPU, a call is fastest if the values between two matrix
// products stay in its caches; on a GPU, memory is the bound.
type chunkLimits struct {
	tokens  int // largest rows × tokens of a call
	queries int // most queried positions of a call, each of which has an array of vocabulary size
}

// limits returns the limits for a model on a device, with figures from BenchmarkChunk. For large vocabularies, memory
// bounds the queries: all distributions of a call take 32 MiB on a CPU, and a few such arrays exist at once.
func limits(c models.Config, device string) chunkLimits {
	if strings.HasPrefix(device, "cuda") {
		return chunkLimits{tokens: 64 << 10, queries: max(1, min(2<<10, (64<<20)/c.VocabularySize))}
	}
	return chunkLimits{tokens: max(384, (3<<19)/c.IntermediateSize),
		queries: max(1, min(256, (8<<20)/c.VocabularySize))}
}

// rows returns how many rows of the given size fit one call.
func (l chunkLimits) rows(tokens, perRow int) int {
	return max(1, min(l.tokens/tokens, l.queries/perRow))
}

// batch is rows of one length, each with the same number of queried positions.
type batch struct {
	tokens, perRow, width int
	ids                   []int64 // [rows × tokens]
	queries               []int64 // [rows × perRow], positions within the row
	targets               []int64 // [rows·perRow]
	candidates            []int64 // [rows·perRow × width]
	everything            bool    // whether every query wants the whole vocabulary

	// These are the results, float32 in nats. run makes them long enough.
	target     []float32 // [rows·perRow]
	candidate  []float32 // [rows·perRow × width]
	vocabulary []float32 // [rows·perRow × vocabulary], if everything is true
}

// reset empties the batch and keeps its memory.
func (b *batch) reset(tokens, perRow, width int, everything bool) {
	b.tokens, b.perRow, b.width, b.everything = tokens, perRow, width, everything
	b.ids, b.queries, b.targets, b.candidates = b.ids[:0], b.queries[:0], b.targets[:0], b.candidates[:0]
}

// text appends ids as a row.
func (b *batch) text(ids []int) {
	for _, id := range ids {
		b.ids = append(b.ids, int64(id))
	}
}

func (b *batch) rows() int { return len(b.ids) / b.tokens }

// resized returns s with length n; its contents are undefined.
func resized[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	return s[:n]
}

// results returns the parts of the result slices that belong to the rows from <= row < to.
func (b *batch) results(from, to, vocabulary int) (target, candidate, all []float32) {
	from, to = from*b.perRow, to*b.perRow
	if b.everything {
		all = b.vocabulary[from*vocabulary : to*vocabulary]
	}
	return b.target[from:to], b.candidate[from*b.width : to*b.width], all
}

// prepare makes room for the results.
func (b *batch) prepare(vocabulary int) {
	n := b.rows() * b.perRow
	b.target, b.candidate = resized(b.target, n), resized(b.candidate, n*b.width)
	if b.everything {
		b.vocabulary = resized(b.vocabulary, n*vocabulary)
	}
}

// gradientBatch is a batch whose rows come in groups, chains × terms. Its result is the gradient with respect to the
// embeddings of slots, summed over each group.
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

// whole returns how many rows, from row from on, a call with room for n rows takes. It never splits a chain. It avoids
// calls of one chain: their products run in a special kernel with other last digits (TestGradientNeighbours).
func (b *gradientBatch) whole(n, from int, most chunkLimits) int {
	chains, left := n/b.terms, (b.rows()-from)/b.terms
	step := max(1, most.rows(b.tokens, b.perRow)/b.terms) // the largest number of chains of a call
	chains = min(max(chains, min(2, step)), left)
	if step > 1 && left-chains == 1 {
		if chains > 2 {
			chains--
		} else {
			chains++
		}
	}
	return chains * b.terms
}

// runGradient computes the batch's results.
func (m *MaskedLM) runGradient(ctx context.Context, b *gradientBatch) error {
	session, err := m.gradient.get(ctx, m)
	if err != nil {
		return err
	}
	vocabulary := m.Vocabulary()
	b.prepare(vocabulary)
	if b.everything {
		b.crossWhole = resized(b.crossWhole, b.chains()*b.slots*vocabulary)
	} else {
		b.cross = resized(b.cross, b.chains()*b.slots*b.slotWidth)
	}
	return m.engine.await(&request{ctx: ctx, batch: &b.batch, gradient: b, session: session})
}

// runChains runs the chains from <= chain < to of b as one call of the model.
func (m *MaskedLM) runChains(ctx context.Context, c *sharedCall, b *gradientBatch, session *ort.Session,
	from, to int) error {
	chains, rows, vocabulary := to-from, (to-from)*b.terms, m.Vocabulary()
	first, last := from*b.terms*b.slots, to*b.terms*b.slots
	c.gather([]part{{&request{batch: &b.batch}, from * b.terms, to * b.terms}}, b.tokens)
	target, candidate, all := b.results(from*b.terms, to*b.terms, vocabulary)
	inputs, outputs := c.tensors(b.tokens, vocabulary, target, candidate, all)
	c.at = resized(c.at, rows*b.slots)
	for i := range c.at {
		c.at[i] = int64(i/b.slots*b.tokens) + b.at[first+i]
	}
	width, whole := b.slotWidth, 0
	var crossWhole []float32
	if b.everything {
		width, whole = 0, chains*b.slots
		crossWhole = b.crossWhole[from*b.slots*vocabulary : to*b.slots*vocabulary]
	}
	c.wanted = resized(c.wanted, whole)
	for i := range c.wanted {
		c.wanted[i] = int64(i)
	}
	c.bySlot = resized(c.bySlot, b.slots*chains*width)
	inputs = append(inputs,
		ort.Int64([]int64{int64(rows), int64(b.slots)}, c.at),
		ort.Float32([]int64{int64(chains), int64(b.terms), int64(b.slots), 1}, b.weights[first:last]),
		ort.Int64([]int64{int64(b.slots), int64(width)}, b.slotCandidates[:b.slots*width]),
		ort.Int64([]int64{int64(whole)}, c.wanted))
	outputs = append(outputs,
		ort.Float32([]int64{int64(b.slots), int64(chains), int64(width)}, c.bySlot),
		ort.Float32([]int64{int64(whole), int64(vocabulary)}, crossWhole))
	if err := session.Run(ctx, inputs, outputs); err != nil {
		return m.named(err)
	}
	if err := m.numbers(target, c.bySlot, crossWhole); err != nil {
		return err
	}
	for j := range b.slots {
		for chain := range chains {
			copy(b.cross[((from+chain)*b.slots+j)*width:][:width], c.bySlot[(j*chains+chain)*width:][:width])
		}
	}
	return nil
}
