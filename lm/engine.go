package lm

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"sync/atomic"

	"infill/lm/internal/ort"
)

// InFlight is the number of texts that a program should fill at once. More texts cost memory and make no call fuller:
// 2,000 lines of one blank took 5.3 s with 64, and 4.9 s with 128, 256 and 512 on two cores.
const InFlight = 128

// engine runs the rows of all goroutines that use a model. Rows of one length and one number of queries share calls,
// whichever text they come from: a call takes the rows that gathered while the calls before it ran, so nobody waits for
// rows that may not come. Each goroutine waits for its rows, and so has at most one request in the queues.
//
// The results of a row do not depend on its neighbours: a row always runs at the length of its bucket, alone or not
// (TestNeighbours).
//
// Gradients wait in the same queues, but their calls are not shared. So they take turns with rows, and at most one for
// each worker is computed at once: a gradient needs the memory of all layers.
type engine struct {
	m       *MaskedLM
	workers int // calls at once

	lock    sync.Mutex
	running int // workers
	spare   []*sharedCall
	// little and much queue the requests with waiting rows, the oldest first: little those of callers with few tokens
	// so far, much all others. They take turns, so that a caller that fills a blank or two does not wait for all.
	little, much []*request
	turn         bool // whether the next call is much's
	// short is the number of calls of much that stay short, so that a caller of little soon has its turn when it comes
	// back with the next slot.
	short int

	calls, rows atomic.Int64
}

// request is a batch with rows that still wait or run. Only the engine uses its fields, under its lock, until done is
// closed.
type request struct {
	ctx    context.Context
	caller *caller
	batch  *batch
	tokens int // the length of its rows, padding included
	cost   int // of a row: its tokens, times back if it has a backward pass
	next   int // the first row that no call has taken
	left   int // the number of rows without a result
	err    error
	closed bool
	done   chan struct{}
	// gradient, if not nil, is the gradientBatch that contains batch, for a call of session.
	gradient *gradientBatch
	session  *ort.Session
}

// waiting returns the number of rows that no call has taken.
func (r *request) waiting() int { return r.batch.rows() - r.next }

// shares reports whether rows of both requests may share a call.
func (r *request) shares(other *request) bool {
	return r == other || r.gradient == nil && other.gradient == nil && r.tokens == other.tokens &&
		r.batch.perRow == other.batch.perRow
}

// caller counts the tokens of all rows of one user of the engine.
type caller struct{ tokens atomic.Int64 }

type callerKey struct{}

// OneCaller returns a context under which all rows count for one caller, so that a caller of many rows does not keep
// others waiting. much says from the start that it is one. Without OneCaller, each call of a model counts by itself.
func OneCaller(ctx context.Context, much bool) context.Context {
	if ctx.Value(callerKey{}) != nil {
		return ctx
	}
	c := &caller{}
	if much {
		c.tokens.Store(little)
	}
	return context.WithValue(ctx, callerKey{}, c)
}

// A request joins the queue little if its caller then has at most little tokens. A second call begins beside another
// from enough tokens on. A short call has shortTokens; shortCalls short calls follow each call of the queue little.
const little, enough, shortTokens, shortCalls = 1024, 384, 192, 8

// back is how many times as much a row with a backward pass costs.
const back = 3

// part is rows from..to of a request, within one call.
type part struct {
	*request
	from, to int
}

// engineWorkers returns the number of calls that run at once: on a CPU two, because the cores can work on one call
// while the other is between two products.
func engineWorkers(device string) int {
	if device != "cpu" {
		return 1
	}
	return 2
}

// bucket returns the padded length of a row with a number of tokens.
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

// await queues a request and waits for its results.
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
	r.tokens = e.m.bucket(r.batch.tokens)
	if r.cost = r.tokens; r.gradient != nil {
		r.tokens, r.cost = r.batch.tokens, back*r.batch.tokens
	}
	if int(r.caller.tokens.Load())+r.left*r.cost <= little {
		e.little = append(e.little, r)
	} else {
		e.much = append(e.much, r)
	}
	if e.running < e.workers && e.begins(e.running) {
		e.running++
		go e.work()
	}
}

// queue returns the queue of the next call.
func (e *engine) queue() *[]*request {
	if len(e.little) == 0 || e.turn && len(e.much) > 0 {
		return &e.much
	}
	return &e.little
}

// begins reports whether a call should begin while a number of others run.
func (e *engine) begins(others int) bool {
	queue, tokens := *e.queue(), 0
	for _, r := range queue {
		if r.shares(queue[0]) {
			tokens += r.waiting() * r.cost
		}
	}
	return tokens > 0 && (others == 0 || tokens >= enough)
}

// abandon takes back the rows of a request whose caller leaves. It returns false while a call runs some of them: that
// call uses the caller's memory, and ends soon.
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
	is := func(other *request) bool { return other == r }
	e.little, e.much = slices.DeleteFunc(e.little, is), slices.DeleteFunc(e.much, is)
	r.left -= r.waiting()
	r.next = r.batch.rows()
	e.finish(r)
}

// finish closes done when no row of the request waits or runs.
func (e *engine) finish(r *request) {
	if r.left == 0 && !r.closed {
		r.closed = true
		close(r.done)
	}
}

// work makes calls until too few rows wait for this worker to begin another.
func (e *engine) work() {
	e.lock.Lock()
	defer e.lock.Unlock()
	c := &sharedCall{}
	if last := len(e.spare) - 1; last >= 0 {
		c, e.spare = e.spare[last], e.spare[:last]
	}
	for e.begins(e.running - 1) {
		parts := e.take()
		e.lock.Unlock()
		err := e.call(c, parts)
		e.lock.Lock()
		for _, p := range parts {
			p.left -= p.to - p.from
			if err != nil {
				e.drop(p.request, cmp.Or(p.ctx.Err(), err))
			}
			e.finish(p.request)
		}
	}
	e.running--
	e.spare = append(e.spare, c)
}

// take returns the rows of a worker's next call: those that may share a call with the oldest request of the queue whose
// turn it is. If the call takes only some rows of a request, the request goes to the end of the queue.
func (e *engine) take() (parts []part) {
	queue := e.queue()
	first := (*queue)[0]
	room := e.m.chunk.rows(first.tokens, first.batch.perRow)
	if e.turn = queue == &e.little; e.turn {
		e.short = shortCalls
	} else if e.short > 0 {
		e.short--
		room = min(room, max(1, shortTokens/first.cost))
	}
	var later []*request
	*queue = slices.DeleteFunc(*queue, func(r *request) bool {
		if room <= 0 || !r.shares(first) {
			return false
		}
		n := min(room, r.waiting())
		if r.gradient != nil {
			n = r.gradient.whole(n, r.next, e.m.chunk)
		}
		parts = append(parts, part{r, r.next, r.next + n})
		r.next += n
		room -= n
		r.caller.tokens.Add(int64(n * r.cost))
		if r.waiting() > 0 {
			later = append(later, r)
		}
		return true
	})
	*queue = append(*queue, later...)
	return parts
}

// Calls returns how often the session was called for rows of texts, and how many rows these calls had.
func (m *MaskedLM) Calls() (calls, rows int64) { return m.engine.calls.Load(), m.engine.rows.Load() }
