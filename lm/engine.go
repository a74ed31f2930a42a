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

// engine runs the rows of all goroutines that use a model. Rows with equal numbers of tokens and of queries share
// calls, whichever text they come from. A call takes the rows that gathered while earlier calls ran, and never waits
// for rows that may not come. Each goroutine waits for its rows, and so has at most one request in the queues.
//
// The results of a row do not depend on the other rows of a call: a row always runs at the length of its bucket, alone
// or not (TestNeighbours).
//
// Gradients wait in the same queues, but share no calls. Gradients and rows take turns, and each worker computes at
// most one gradient at a time, because a gradient needs the memory of all layers.
type engine struct {
	m       *MaskedLM
	workers int // the most calls that run at once

	lock    sync.Mutex
	running int // number of workers that run now
	spare   []*sharedCall
	// little and much queue the requests with waiting rows, the oldest first. little is for callers with few tokens so
	// far, much for all others. The queues take turns, so that a caller with few blanks need not wait for all.
	little, much []*request
	turn         bool // whether the next call takes from much
	// short is how many of the next calls from much are kept short, so that a caller in little need not wait long when
	// it returns with the next slot.
	short int

	calls, rows atomic.Int64
}

// request is a batch of which some rows wait or run. Until done is closed, only the engine uses the fields, under
// engine.lock.
type request struct {
	ctx    context.Context
	caller *caller
	batch  *batch
	tokens int // tokens of each row, padding included
	cost   int // tokens of each row, times the constant back for a row with a backward pass
	next   int // index of the first row that no call has taken
	left   int // number of rows without a result
	err    error
	closed bool
	done   chan struct{}
	// gradient, if not nil, is the gradientBatch that contains batch; session then runs the call.
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

// caller counts the tokens of all rows that one user of the engine has run.
type caller struct{ tokens atomic.Int64 }

type callerKey struct{}

// OneCaller returns a context under which all rows count for one caller, so that a caller of many rows does not delay
// others. If much is true, that caller counts as large from the start. Without it, each call of a model is a caller.
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

// A request joins the queue little if its caller then has at most little tokens. A second call runs beside another if
// enough tokens wait. After a call from little, shortCalls calls from much have shortTokens tokens each.
const little, enough, shortTokens, shortCalls = 1024, 384, 192, 8

// back is the factor by which a row with a backward pass costs more than a row without.
const back = 3

// part holds the rows from <= row < to of a request, which run in one call.
type part struct {
	*request
	from, to int
}

// engineWorkers returns the number of calls that run at once. On a CPU two calls run, because the cores can work on one
// call while the other is between two products.
func engineWorkers(device string) int {
	if device != "cpu" {
		return 1
	}
	return 2
}

// bucket returns the length to which a row with that number of tokens is padded: a multiple of 4, if the model pads.
func (m *MaskedLM) bucket(tokens int) int {
	if !m.padded {
		return tokens
	}
	const step = 4
	return min((tokens+step-1)/step*step, m.Positions())
}

// run computes the results of b. If ctx ends, run returns at the next node of the graph, or, if other callers share the
// call, after the call.
func (m *MaskedLM) run(ctx context.Context, b *batch) error {
	b.prepare(m.Vocabulary())
	return m.engine.await(&request{ctx: ctx, batch: b})
}

// await queues r and waits until all its rows have results, or its context ends.
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

// queue returns the queue from which the next call takes its rows.
func (e *engine) queue() *[]*request {
	if len(e.little) == 0 || e.turn && len(e.much) > 0 {
		return &e.much
	}
	return &e.little
}

// begins reports whether a worker should begin a call while the given number of others run.
func (e *engine) begins(others int) bool {
	queue, tokens := *e.queue(), 0
	for _, r := range queue {
		if r.shares(queue[0]) {
			tokens += r.waiting() * r.cost
		}
	}
	return tokens > 0 && (others == 0 || tokens >= enough)
}

// abandon removes the waiting rows of r, whose context has ended, from the queues. It returns false if a call still
// runs rows of r: such a call uses the caller's memory, and ends soon.
func (e *engine) abandon(r *request) bool {
	e.lock.Lock()
	defer e.lock.Unlock()
	if r.closed {
		return false
	}
	e.drop(r, r.ctx.Err())
	return r.closed
}

// drop removes the waiting rows of r from the queues. Once no call runs rows of r, the request ends with err.
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

// work makes calls until so few rows wait that no further call should begin.
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
		err := e.guarded(c, parts)
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

// take returns the rows of a worker's next call. It chooses the queue whose turn it is, and takes the rows that may
// share a call with the queue's oldest request. A request with rows left over moves to the end of the queue.
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

// Calls returns how many calls have run rows of texts so far, and how many rows these calls had in all.
func (m *MaskedLM) Calls() (calls, rows int64) { return m.engine.calls.Load(), m.engine.rows.Load() }
