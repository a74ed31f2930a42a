package lm

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"sync/atomic"

	"infill/lm/internal/ort"
)

// InFlight is how many texts a program should fill at once. More cost memory and fill no more of the model's calls:
// 2,000 lines of one blank took 5.3 s with 64, and 4.9 s with 128, 256 and 512 on two cores.
const InFlight = 128

// engine runs the rows of all goroutines that use a model. Rows of one length and one number of queries share calls,
// whichever text they come from: a call takes what has gathered while the calls before it ran, so nobody waits for rows
// that may not come. A caller waits for its rows, so the queue is as long as there are callers. A second call begins
// beside a first one when enough rows have gathered, or when the first is long: 16 texts in calls of three rows, as
// they come, cost a quarter more than in calls of seven.
//
// What a row gives does not depend on its neighbours: a row always runs at the
// length of its bucket, alone or not (TestNeighbours).
//
// Gradients come in calls of the same queue, each of one caller: so their turns are those of rows, and no more of them
// than workers are computed at once, whose memory is that of all layers.
type engine struct {
	m       *MaskedLM
	workers int // calls at once

	lock    sync.Mutex
	running int // workers
	tokens  int // in the calls that run
	spare   []*sharedCall
	groups  []*group // that have rows waiting
	turn    bool     // of those who have had much
	// calm is how many calls stay short, so that those who have had little find their turn
	// when they come back; lately is the tokens of their last call.
	calm, lately int

	calls, rows atomic.Int64
}

// group is the requests whose rows may share a call; of gradients a single one.
type group struct {
	tokens, perRow int // tokens of the bucket
	requests       []*request
	waiting        int // rows
	passed         int // calls that others were given since rows wait
}

// request is a batch some of whose rows may not have been taken yet. Its fields
// are the engine's, under its lock, until done is closed.
type request struct {
	ctx    context.Context
	caller *caller
	batch  *batch
	next   int // row
	left   int // rows without a result
	cost   int // of a row: its tokens, more often where it is differentiated
	err    error
	closed bool
	done   chan struct{}
	// gradient is, if not nil, what batch belongs to, for a call of session.
	gradient *gradientBatch
	session  *ort.Session
}

// caller is whose rows are counted together: who has had little goes before who has had much.
type caller struct{ tokens atomic.Int64 }

type callerKey struct{}

// OneCaller returns a context whose rows all count as those of one caller, so that a caller who asks for many does not
// keep others waiting; much reports that this one will, from the first. Without it each call of a model is one.
func OneCaller(ctx context.Context, much bool) context.Context {
	if ctx.Value(callerKey{}) != nil {
		return ctx
	}
	c := &caller{}
	if much {
		c.tokens.Store(long)
	}
	return context.WithValue(ctx, callerKey{}, c)
}

// light reports whether a request is little with what its caller has had, as those are that fill a blank or two.
func (r *request) light() bool {
	return int(r.caller.tokens.Load())+(r.batch.rows()-r.next)*r.cost <= long
}

// lightTokens is the tokens of a group's rows that are little.
func (g *group) lightTokens() (tokens int) {
	for _, r := range g.requests {
		if r.light() {
			tokens += (r.batch.rows() - r.next) * r.cost
		}
	}
	return tokens
}

// part is rows from..to of a request, within one call.
type part struct {
	*request
	from, to int
}

// enough is the tokens of a call that more would make little better, and long
// those of a call for whose end a few rows do not wait.
const enough, long = 192, 1024

// calmCalls is how many calls stay short after one for those who have had little, who come
// back with the next slot or length: not more than twice as long as theirs, or than this part
// of the longest, which takes hardly longer than a row.
const calmCalls, shortest = 8, 64

// back is what a row costs that is differentiated, in rows that are not. Calls of so many fewer take no longer a row.
const back = 3

// patience is how many calls a group may be passed over for a fuller one.
const patience = 4

// engineWorkers is how many calls run at once: on a CPU, while one call is
// between two products, another has work for the cores.
func engineWorkers(device string) int {
	if device != "cpu" {
		return 1
	}
	return 2
}

// bucket is the length at which a row of so many tokens runs.
func (m *MaskedLM) bucket(tokens int) int {
	if !m.padded {
		return tokens
	}
	const step = 4
	return min((tokens+step-1)/step*step, m.Positions())
}

// run computes the batch's results. When ctx ends, it returns at the next node
// of the graph, or after a call that others share.
func (m *MaskedLM) run(ctx context.Context, b *batch) error {
	b.prepare(m.Vocabulary())
	return m.engine.await(&request{ctx: ctx, batch: b})
}

// await has a request's rows run.
func (e *engine) await(r *request) error {
	ctx := r.ctx
	if r.caller, _ = ctx.Value(callerKey{}).(*caller); r.caller == nil {
		r.caller = &caller{}
	}
	if r.left, r.done = r.batch.rows(), make(chan struct{}); r.left == 0 {
		return nil
	}
	e.submit(r)
	select {
	case <-r.done:
	case <-ctx.Done():
		if e.abandon(r) {
			return ctx.Err()
		}
		<-r.done
	}
	return r.err
}

func (e *engine) submit(r *request) {
	e.lock.Lock()
	defer e.lock.Unlock()
	g := &group{tokens: e.m.bucket(r.batch.tokens), perRow: r.batch.perRow}
	if r.cost = g.tokens; r.gradient != nil {
		g.tokens, r.cost = r.batch.tokens, back*r.batch.tokens
	}
	at := slices.IndexFunc(e.groups, func(other *group) bool {
		return r.gradient == nil && other.requests[0].gradient == nil && other.tokens == g.tokens &&
			other.perRow == g.perRow
	})
	if at < 0 {
		at = len(e.groups)
		e.groups = append(e.groups, g)
	}
	g = e.groups[at]
	g.requests = append(g.requests, r)
	g.waiting += r.left
	if e.running < e.workers && e.begins(g, e.running) {
		e.running++
		go e.work()
	}
}

// begins reports whether a group's rows are given a call while others run.
func (e *engine) begins(g *group, others int) bool {
	if others > 0 && e.calm > 0 {
		return g.lightTokens() > 0
	}
	return others == 0 || e.tokens >= long || e.ready(g) >= enough || g.passed >= patience
}

// ready is the tokens of a group's next call.
func (e *engine) ready(g *group) int {
	cost := g.requests[0].cost
	return min(g.waiting, e.m.chunk.rows(cost, g.perRow)) * cost
}

// abandon takes back the rows of a request whose caller leaves. It is false
// while a call runs some of them: that has the caller's memory, and ends soon.
func (e *engine) abandon(r *request) bool {
	e.lock.Lock()
	defer e.lock.Unlock()
	if r.closed {
		return false
	}
	e.drop(r, r.ctx.Err())
	return r.closed
}

// drop takes the waiting rows of a request back and ends it with an error, once no call runs rows of it.
func (e *engine) drop(r *request, err error) {
	if r.err == nil {
		r.err = err
	}
	for _, g := range e.groups {
		if at := slices.Index(g.requests, r); at >= 0 {
			g.requests = slices.Delete(g.requests, at, at+1)
			g.waiting -= r.batch.rows() - r.next
		}
	}
	e.groups = slices.DeleteFunc(e.groups, func(g *group) bool { return g.waiting == 0 })
	r.left -= r.batch.rows() - r.next
	r.next = r.batch.rows()
	e.finish(r)
}

// finish tells the caller, when nothing of its request waits or runs.
func (e *engine) finish(r *request) {
	if r.left == 0 && !r.closed {
		r.closed = true
		close(r.done)
	}
}

// work makes calls until no row waits, or none for this worker.
func (e *engine) work() {
	e.lock.Lock()
	defer e.lock.Unlock()
	c := &sharedCall{}
	if last := len(e.spare) - 1; last >= 0 {
		c, e.spare = e.spare[last], e.spare[:last]
	}
	for {
		parts, tokens := e.take()
		if parts == nil {
			e.running--
			e.spare = append(e.spare, c)
			return
		}
		cost := 0
		for _, p := range parts {
			cost += (p.to - p.from) * p.cost
		}
		e.tokens += cost
		e.lock.Unlock()
		err := e.call(c, parts, tokens)
		e.lock.Lock()
		e.tokens -= cost
		for _, p := range parts {
			p.left -= p.to - p.from
			if err != nil {
				e.drop(p.request, cmp.Or(p.ctx.Err(), err))
			}
			e.finish(p.request)
		}
	}
}

// take gives a worker the rows of its next call: of the group that has waited for too long, or of that with most rows,
// its oldest requests first; none where they wait for another worker's call. Those who have had little have calls of
// their own, in turns with the others.
func (e *engine) take() (parts []part, tokens int) {
	var best *group
	for _, g := range e.groups {
		if !e.begins(g, e.running-1) {
			continue
		}
		if best == nil || e.before(g, best) {
			best = g
		}
	}
	if best == nil {
		return nil, 0
	}
	for _, g := range e.groups {
		g.passed++
	}
	best.passed = 0
	slices.SortStableFunc(best.requests, func(a, b *request) int {
		if a.light() == b.light() {
			return 0
		} else if a.light() {
			return -1
		}
		return 1
	})
	light, cost := best.lightTokens(), best.requests[0].cost
	room := e.m.chunk.rows(cost, best.perRow)
	switch mixed := slices.ContainsFunc(e.groups,
		func(g *group) bool { return g.lightTokens() < g.waiting*g.requests[0].cost }); {
	case light > 0 && mixed:
		room = min(room, light/cost)
		e.calm, e.lately = calmCalls, room*cost
	case e.calm > 0:
		room = min(room, max(1, max(2*e.lately, e.m.chunk.tokens/shortest)/cost))
		e.calm--
	}
	e.turn = light > 0
	for room > 0 && len(best.requests) > 0 {
		r := best.requests[0]
		n := min(room, r.batch.rows()-r.next)
		if r.gradient != nil {
			n = r.gradient.whole(n, r.next, e.m.chunk)
		}
		parts = append(parts, part{r, r.next, r.next + n})
		r.next += n
		room -= n
		best.waiting -= n
		best.requests = best.requests[1:]
		r.caller.tokens.Add(int64(n * cost))
		if r.next < r.batch.rows() { // the others of its group come first
			best.requests = append(best.requests, r)
			break
		}
	}
	if best.waiting == 0 {
		e.groups = slices.DeleteFunc(e.groups, func(g *group) bool { return g == best })
	}
	return parts, best.tokens
}

// before reports whether a group has a call before another.
func (e *engine) before(g, other *group) bool {
	if light := g.lightTokens() > 0; light != (other.lightTokens() > 0) {
		return light != e.turn
	}
	return g.passed >= patience && g.passed > other.passed || other.passed < patience && e.ready(g) > e.ready(other)
}

// sharedCall is one worker's memory, and the shape of the call that runs.
type sharedCall struct {
	ids, queries, targets, candidates, chosen, lengths []int64
	target, candidate, vocabulary                      []float32
	rows, perRow, width                                int

	at, wanted []int64   // of gradients
	bySlot     []float32 // [slots × chains × slotWidth]
}

// gather makes inputs of parts of one bucket.
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

// tensors are the inputs and outputs that every graph has, the outputs in the given memory.
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

// call runs parts of one bucket as one call of the model.
func (e *engine) call(c *sharedCall, parts []part, tokens int) error {
	ctx, stop := mergedContext(parts)
	defer stop()
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
	// A product of a single row with a matrix that is not packed has a kernel of its own, whose last digits differ.
	twice := n == 1 && e.m.mapped()
	if twice {
		c.rows, n = 2, 2
		c.ids, c.queries, c.lengths = append(c.ids, c.ids...), append(c.queries, c.queries[0]+int64(tokens)),
			append(c.lengths, c.lengths...)
		c.targets, c.candidates = append(c.targets, c.targets...), append(c.candidates, c.candidates...)
	}
	var target, candidate, all []float32
	alone := len(parts) == 1 && !twice
	if alone { // results go to the caller's memory
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
	if err := e.m.numbers(target, candidate, all); err != nil || alone {
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

// mergedContext ends when all who wait for the call have left.
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

// Calls returns how often the session was called for rows of texts, and how many rows these calls had.
func (m *MaskedLM) Calls() (calls, rows int64) { return m.engine.calls.Load(), m.engine.rows.Load() }
