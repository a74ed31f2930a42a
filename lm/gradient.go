package lm

import (
	"context"

	"infill/internal/ort"
)

// backwardCost is the factor by which a row with a backward pass costs more than
// a row without (BenchmarkFamilies).
const backwardCost = 2.4

// gradientJob computes a gradientBatch. It shares no calls. Its rows take turns
// with those of other jobs, and each worker computes at most one gradient at a
// time, because a gradient needs the memory of all layers.
type gradientJob struct {
	m       *MaskedLM
	batch   *gradientBatch
	session *ort.Session
}

var _ job = (*gradientJob)(nil)

func (j *gradientJob) rows() int             { return j.batch.rows() }
func (j *gradientJob) cost() int             { return int(backwardCost * float64(j.batch.tokens)) }
func (j *gradientJob) room() int             { return j.m.chunk.tokens }
func (j *gradientJob) size() int             { return j.m.chunk.size(j.batch.tokens, j.batch.perRow) }
func (j *gradientJob) wide() bool            { return !j.m.onCores() }
func (j *gradientJob) shares(other job) bool { return other == job(j) }

// fitting never splits a chain. It avoids calls of one chain: their products run
// in a special kernel with other last digits (TestGradientNeighbours).
func (j *gradientJob) fitting(room, row int) int {
	terms := j.batch.terms
	left := (j.rows() - row) / terms
	room /= j.size()                        // rows
	most := max(1, j.room()/j.size()/terms) // the largest number of chains of a call
	chains := min(max(room/terms, min(2, most)), left)
	if most > 1 && left-chains == 1 {
		if chains > 2 {
			chains--
		} else {
			chains++
		}
	}
	return chains * terms
}

// runGradient computes the batch's results.
func (a *asker) runGradient(ctx context.Context, b *gradientBatch) error {
	m := a.m
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
	return m.engine.await(ctx, a.caller, &gradientJob{m, b, session})
}

// run implements job. The rows of a part are whole chains.
func (j *gradientJob) run(ctx context.Context, c *sharedCall, parts []part) error {
	b := j.batch
	rows := stretch{&b.batch, parts[0].from, parts[0].to}
	from := rows.from / b.terms // chains
	to := rows.to / b.terms
	chains := to - from
	vocabulary := j.m.Vocabulary()
	c.gather([]stretch{rows})
	target, candidate, all := rows.results(vocabulary)
	inputs, outputs := c.tensors(vocabulary, target, candidate, all)
	first := rows.from * b.slots
	last := rows.to * b.slots
	c.at = resized(c.at, last-first)
	for i := range c.at {
		c.at[i] = int64(i/b.slots*b.tokens) + b.at[first+i]
	}
	width := b.slotWidth
	whole := 0
	var crossWhole []float32
	if b.everything {
		width = 0
		whole = chains * b.slots
		crossWhole = b.crossWhole[from*b.slots*vocabulary : to*b.slots*vocabulary]
	}
	c.wanted = resized(c.wanted, whole)
	for i := range c.wanted {
		c.wanted[i] = int64(i)
	}
	c.bySlot = resized(c.bySlot, b.slots*chains*width)
	inputs = append(inputs,
		ort.Int64([]int64{int64(rows.to - rows.from), int64(b.slots)}, c.at),
		ort.Float32([]int64{int64(chains), int64(b.terms), int64(b.slots), 1}, b.weights[first:last]),
		ort.Int64([]int64{int64(b.slots), int64(width)}, b.slotCandidates[:b.slots*width]),
		ort.Int64([]int64{int64(whole)}, c.wanted))
	outputs = append(outputs,
		ort.Float32([]int64{int64(b.slots), int64(chains), int64(width)}, c.bySlot),
		ort.Float32([]int64{int64(whole), int64(vocabulary)}, crossWhole))
	err := j.session.Run(ctx, inputs, outputs)
	if err != nil {
		return j.m.named(err)
	}
	err = j.m.numbers(target, c.bySlot, crossWhole)
	if err != nil {
		return err
	}
	for slot := range b.slots {
		for chain := range chains {
			copy(b.cross[((from+chain)*b.slots+slot)*width:][:width], c.bySlot[(slot*chains+chain)*width:][:width])
		}
	}
	return nil
}
