package lm

import (
	"context"
	"sync/atomic"

	"infill/lm/internal/ort"
)

// sharedCall holds the buffers of one worker, and the sizes (rows, perRow, width) of the call that the worker runs.
type sharedCall struct {
	ids, queries, targets, candidates, chosen, lengths []int64
	target, candidate, vocabulary                      []float32
	rows, perRow, width                                int

	at, wanted []int64   // inputs of calls that compute gradients
	bySlot     []float32 // output of gradient calls [slots × chains × slotWidth]
}

// gather fills c with the inputs of one call: all parts, whose rows are padded to the same number of tokens.
func (c *sharedCall) gather(parts []part, tokens int) {
	c.ids, c.queries, c.targets, c.candidates, c.chosen, c.lengths = c.ids[:0], c.queries[:0], c.targets[:0],
		c.candidates[:0], c.chosen[:0], c.lengths[:0]
	c.rows, c.perRow, c.width = 0, parts[0].batch.perRow, 0
	for _, p := range parts {
		c.rows += p.to - p.from
		c.width = max(c.width, p.batch.width)
	}
	for _, p := range parts {
		b := p.batch
		for row := p.from; row < p.to; row++ {
			base := int64(len(c.ids))
			c.ids = append(c.ids, b.ids[row*b.tokens:(row+1)*b.tokens]...)
			for range tokens - b.tokens {
				c.ids = append(c.ids, 0)
			}
			c.lengths = append(c.lengths, int64(b.tokens))
			for q := row * c.perRow; q < (row+1)*c.perRow; q++ {
				if b.everything {
					c.chosen = append(c.chosen, int64(len(c.queries)))
				}
				c.queries = append(c.queries, base+b.queries[q])
				c.candidates = append(c.candidates, b.candidates[q*b.width:(q+1)*b.width]...)
				for range c.width - b.width {
					c.candidates = append(c.candidates, 0)
				}
			}
		}
		c.targets = append(c.targets, b.targets[p.from*c.perRow:p.to*c.perRow]...)
	}
}

// tensors returns the inputs and outputs that every graph has. The outputs write to target, candidate and all.
func (c *sharedCall) tensors(tokens, vocabulary int, target, candidate, all []float32) (inputs, outputs []ort.Tensor) {
	rows, n, width, whole := int64(c.rows), int64(c.rows*c.perRow), int64(c.width), int64(len(c.chosen))
	return []ort.Tensor{
			ort.Int64([]int64{rows, int64(tokens)}, c.ids),
			ort.Int64([]int64{rows, int64(c.perRow)}, c.queries),
			ort.Int64([]int64{n, 1}, c.targets),
			ort.Int64([]int64{n, width}, c.candidates),
			ort.Int64([]int64{whole}, c.chosen),
		}, []ort.Tensor{
			ort.Float32([]int64{n, 1}, target),
			ort.Float32([]int64{n, width}, candidate),
			ort.Float32([]int64{whole, int64(vocabulary)}, all),
		}
}

// call runs parts, whose rows all have the same padded length, as one call of the model.
func (e *engine) call(c *sharedCall, parts []part) error {
	ctx, stop := mergedContext(parts)
	defer stop()
	tokens := parts[0].tokens
	if r := parts[0]; r.gradient != nil {
		return e.m.runChains(ctx, c, r.gradient, r.session, r.from/r.gradient.terms, r.to/r.gradient.terms)
	}
	session, err := e.m.conditionals.get(ctx, e.m)
	if err != nil {
		return err
	}
	vocabulary := e.m.Vocabulary()
	c.gather(parts, tokens)
	e.calls.Add(1)
	e.rows.Add(int64(c.rows))
	perRow, width, n := c.perRow, c.width, c.rows*c.perRow
	// An unpacked matrix times one row runs in a kernel whose last digits differ, so the row is doubled.
	twice := n == 1 && e.m.mapped()
	if twice {
		c.rows, n = 2, 2
		c.ids, c.queries, c.lengths = append(c.ids, c.ids...), append(c.queries, c.queries[0]+int64(tokens)),
			append(c.lengths, c.lengths...)
		c.targets, c.candidates = append(c.targets, c.targets...), append(c.candidates, c.candidates...)
	}
	var target, candidate, all []float32
	alone := len(parts) == 1 && !twice
	if alone { // the model writes into the caller's memory
		target, candidate, all = parts[0].batch.results(parts[0].from, parts[0].to, vocabulary)
	} else {
		target, candidate = resized(c.target, n), resized(c.candidate, n*width)
		all = resized(c.vocabulary, len(c.chosen)*vocabulary)
		c.target, c.candidate, c.vocabulary = target, candidate, all
	}
	inputs, outputs := c.tensors(tokens, vocabulary, target, candidate, all)
	if e.m.padded {
		inputs = append(inputs, ort.Int64([]int64{int64(c.rows)}, c.lengths))
	}
	if err := session.Run(ctx, inputs, outputs); err != nil {
		return e.m.named(err)
	}
	if err := e.m.numbers(target); err != nil || alone {
		return err
	}
	for _, p := range parts {
		b, n := p.batch, (p.to-p.from)*perRow
		copy(b.target[p.from*perRow:], target[:n])
		for q := range n {
			copy(b.candidate[(p.from*perRow+q)*b.width:][:b.width], candidate[q*width:])
		}
		target, candidate = target[n:], candidate[n*width:]
		if b.everything {
			copy(b.vocabulary[p.from*perRow*vocabulary:], all[:n*vocabulary])
			all = all[n*vocabulary:]
		}
	}
	return nil
}

// mergedContext returns a context that ends when the contexts of all parts have ended, and a function to release it.
func mergedContext(parts []part) (context.Context, func()) {
	if len(parts) == 1 {
		return parts[0].ctx, func() {}
	}
	ctx, cancel := context.WithCancel(context.Background())
	var left atomic.Int32
	left.Store(int32(len(parts)))
	stops := make([]func() bool, 0, len(parts))
	for _, p := range parts {
		if p.ctx.Done() != nil {
			stops = append(stops, context.AfterFunc(p.ctx, func() {
				if left.Add(-1) == 0 {
					cancel()
				}
			}))
		}
	}
	return ctx, func() {
		for _, stop := range stops {
			stop()
		}
		cancel()
	}
}
