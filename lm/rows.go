package lm

import (
	"context"
	"strings"

	"infill/lm/internal/ort"
	"infill/models"
)

// chunkLimits bound how much one model call computes. On a CPU a call works best when the values between two matrix
// products stay in its caches; on a GPU the bound is memory.
type chunkLimits struct {
	tokens  int // rows × tokens of a call
	queries int // queried positions of a call: each has a row of vocabulary size
}

// limits: the figures come from BenchmarkChunk. Large vocabularies bound the queries by the memory for their
// distributions, of which a few exist at once: 32 MiB each on a CPU.
func limits(c models.Config, device string) chunkLimits {
	if strings.HasPrefix(device, "cuda") {
		return chunkLimits{tokens: 64 << 10, queries: max(1, min(2<<10, (64<<20)/c.VocabularySize))}
	}
	return chunkLimits{tokens: max(256, (4<<20)/c.IntermediateSize),
		queries: max(1, min(256, (8<<20)/c.VocabularySize))}
}

// rows is the number of rows for one call.
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
	everything            bool    // the whole vocabulary for every query

	// Results, float32 and in nats, made long enough by run.
	target     []float32 // [rows·perRow]
	candidate  []float32 // [rows·perRow × width]
	vocabulary []float32 // [rows·perRow × vocabulary], when everything is set
}

// reset empties the batch and keeps its memory.
func (b *batch) reset(tokens, perRow, width int, everything bool) {
	b.tokens, b.perRow, b.width, b.everything = tokens, perRow, width, everything
	b.ids, b.queries, b.targets, b.candidates = b.ids[:0], b.queries[:0], b.targets[:0], b.candidates[:0]
}

// text appends the ids of a row.
func (b *batch) text(ids []int) {
	for _, id := range ids {
		b.ids = append(b.ids, int64(id))
	}
}

func (b *batch) rows() int { return len(b.ids) / b.tokens }

// resized is s with length n, its contents undefined.
func resized[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	return s[:n]
}

// results is the memory for what rows from..to give.
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

// gradientBatch is a batch whose rows come in groups, chains × terms, with the
// gradient with respect to the embeddings of slots summed over each group.
type gradientBatch struct {
	batch
	terms, slots   int
	at             []int64   // [rows × slots], positions within the row
	weights        []float32 // [rows × slots]
	slotWidth      int
	slotCandidates []int64 // [slots × slotWidth], unless everything is set

	// Results of the gradient through the context, nats: one of the two.
	cross      []float32 // [chains × slots × slotWidth]
	crossWhole []float32 // [chains × slots × vocabulary], when everything is set

	call sharedCall
	more struct {
		at, chosen []int64
		bySlot     []float32 // [slots × chains × slotWidth]
	}
}

func (b *gradientBatch) chains() int { return b.rows() / b.terms }

// runGradient computes the batch's results; a chain is never split.
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
	step := max(1, m.chunk.rows(b.tokens, b.perRow)/b.terms)
	for from := 0; from < b.chains(); from += step {
		to := min(from+step, b.chains())
		if err := m.runChains(ctx, b, session, from, to, vocabulary); err != nil {
			return err
		}
	}
	return nil
}

func (m *MaskedLM) runChains(ctx context.Context, b *gradientBatch, session *ort.Session, from, to,
	vocabulary int) error {
	chains, rows := to-from, (to-from)*b.terms
	first, last := from*b.terms*b.slots, to*b.terms*b.slots
	b.call.gather([]part{{&request{batch: &b.batch}, from * b.terms, to * b.terms}}, b.tokens)
	target, candidate, all := b.results(from*b.terms, to*b.terms, vocabulary)
	inputs, outputs := b.call.tensors(b.tokens, vocabulary, target, candidate, all)
	b.more.at = resized(b.more.at, rows*b.slots)
	for i := range b.more.at {
		b.more.at[i] = int64(i/b.slots*b.tokens) + b.at[first+i]
	}
	width, whole := b.slotWidth, 0
	var crossWhole []float32
	if b.everything {
		width, whole = 0, chains*b.slots
		crossWhole = b.crossWhole[from*b.slots*vocabulary : to*b.slots*vocabulary]
	}
	b.more.chosen = resized(b.more.chosen, whole)
	for i := range b.more.chosen {
		b.more.chosen[i] = int64(i)
	}
	b.more.bySlot = resized(b.more.bySlot, b.slots*chains*width)
	inputs = append(inputs,
		ort.Int64([]int64{int64(rows), int64(b.slots)}, b.more.at),
		ort.Float32([]int64{int64(chains), int64(b.terms), int64(b.slots), 1}, b.weights[first:last]),
		ort.Int64([]int64{int64(b.slots), int64(width)}, b.slotCandidates[:b.slots*width]),
		ort.Int64([]int64{int64(whole)}, b.more.chosen))
	outputs = append(outputs,
		ort.Float32([]int64{int64(b.slots), int64(chains), int64(width)}, b.more.bySlot),
		ort.Float32([]int64{int64(whole), int64(vocabulary)}, crossWhole))
	if err := session.Run(ctx, inputs, outputs); err != nil {
		return m.named(err)
	}
	if err := m.numbers(target, b.more.bySlot, crossWhole); err != nil {
		return err
	}
	for j := range b.slots {
		for c := range chains {
			copy(b.cross[((from+c)*b.slots+j)*width:][:width], b.more.bySlot[(j*chains+c)*width:][:width])
		}
	}
	return nil
}
