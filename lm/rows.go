package lm

import (
	"strings"

	"infill/models"
)

// chunkLimits bounds how much one model call computes. On a CPU, a call is
// fastest if the values between two matrix products stay in its caches; on a
// GPU, memory is the bound.
type chunkLimits struct {
	tokens  int // largest rows × tokens of a call
	queries int // most queried positions of a call, each of which has an array of vocabulary size
}

// limits returns the limits for a model on a device, with figures from
// BenchmarkChunk. For large vocabularies, memory bounds the queries: all
// distributions of a call take 32 MiB on a CPU, and a few such arrays exist at
// once.
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
	b.tokens = tokens
	b.perRow = perRow
	b.width = width
	b.everything = everything
	b.ids = b.ids[:0]
	b.queries = b.queries[:0]
	b.targets = b.targets[:0]
	b.candidates = b.candidates[:0]
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

// prepare makes room for the results.
func (b *batch) prepare(vocabulary int) {
	n := b.rows() * b.perRow
	b.target = resized(b.target, n)
	b.candidate = resized(b.candidate, n*b.width)
	if b.everything {
		b.vocabulary = resized(b.vocabulary, n*vocabulary)
	}
}

// gradientBatch is a batch whose rows come in groups, chains × terms. Its
// result is the gradient with respect to the embeddings of slots, summed over
// each group.
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
