package lm

import (
	"cmp"
	"context"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"infill/internal/parallel"
)

// InFlight returns the number of texts that a program should fill at once on that many
// cores (0 for all). With fewer, calls are less full; more only cost memory. 6,000 lines
// of one blank on two cores took 14.2 ± 0.4 s with 128, 13.2 ± 0.2 s with 256.
func InFlight(threads int) int {
	return min(128*cmp.Or(threads, runtime.GOMAXPROCS(0)), 1024)
}

// A job is rows to compute. Calls take them from the front, perhaps together
// with rows of other jobs.
type job interface {
	// rows returns the number of rows.
	rows() int
	// cost returns what a row costs, as a number of tokens.
	cost() int
	// room returns how many tokens a call has room for, and size how many of these a
	// row takes up.
	room() int
	size() int
	// fitting returns how many rows, from row on, a call with the given room
	// takes: they may take up more than the room.
	fitting(room, row int) int
	// shares reports whether rows of the other job may stand in the same call.
	// A job shares calls with itself.
	shares(other job) bool
	// wide reports whether a call by itself uses all cores. Else an engine without other
	// work deals the rows among its workers.
	wide() bool
	// run computes the rows of parts, whose jobs share calls with this one.
	run(ctx context.Context, c *sharedCall, parts []part) error
}

// engine runs the jobs of all goroutines that use a model. A call takes the
// rows that gathered while earlier calls ran, and never waits for rows that may
// not come. Each goroutine waits for its jobs, one for each shape of its rows.
type engine struct {
	workers int // the most calls that run at once

	lock    sync.Mutex
	running int // number of workers that run now
	spare   []*sharedCall
	// light and heavy queue the requests with waiting rows, the oldest first. Of
	// light, calls take those first whose callers have spent least, and of heavy
	// those whose turn comes first.
	// light is for callers whose rows have cost little so far, heavy for all
	// others. The queues take turns, so that a caller with few blanks need not
	// wait for all.
	light, heavy []*request
	heavyNext    bool // whether the next call takes from heavy
	// short is how many of the next calls from heavy are kept short, so that a
	// caller in light need not wait long when it returns with the next slot.
	short int

	since time.Time     // when running became 1
	busy  time.Duration // how long calls ran before since
	cost  float64       // of the rows of these calls, and of those that run
	told  bool          // whether enough have run to tell the rate

	calls, rows atomic.Int64
}

// rate returns the cost of the rows that run in a second, or 0 if it is not
// known yet. The last seconds count most.
func (e *engine) rate() float64 {
	const memory = 20 * time.Second
	e.lock.Lock()
	defer e.lock.Unlock()
	if e.running > 0 {
		now := time.Now()
		e.busy += now.Sub(e.since)
		e.since = now
	}
	e.told = e.told || e.cost >= MostLight // the first calls are slow
	if e.busy > memory {
		e.busy /= 2
		e.cost /= 2
	}
	if !e.told {
		return 0
	}
	return e.cost / e.busy.Seconds()
}

// request is a job of which some rows wait or run. Until done is closed, only
// the engine uses the fields, under engine.lock.
type request struct {
	ctx    context.Context
	caller *Caller
	job    job
	next   int // index of the first row that no call has taken
	left   int // number of rows without a result
	calls  int // how many calls take the waiting rows, if these are dealt among workers; else 0
	err    error
	closed bool
	done   chan struct{}
}

func newRequest(ctx context.Context, c *Caller, j job) *request {
	return &request{ctx: ctx, caller: c, job: j, left: j.rows(), done: make(chan struct{})}
}

func (r *request) waiting() int { return r.job.rows() - r.next }

// After a call from light, the next shortCalls calls from heavy cost at most
// shortCost.
const (
	shortCost  = 192
	shortCalls = 8
)

// leastDealt is the least cost of a call among which rows are dealt.
const leastDealt = 48

// part holds the rows from <= row < to of a request, which run in one call.
type part struct {
	*request
	from, to int
}

// cost returns what the rows of the part cost, as a number of tokens.
func (p part) cost() int { return (p.to - p.from) * p.job.cost() }

// await runs jobs for a caller. If ctx ends, it returns at the next node of the
// graph or, in a shared call, behind it. If one fails, all end.
func (e *engine) await(ctx context.Context, c *Caller, jobs ...job) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var requests []*request
	cost := 0
	for _, j := range jobs {
		r := newRequest(ctx, c, j)
		if r.left > 0 {
			cost += r.left * j.cost()
			requests = append(requests, r)
		}
	}
	if len(requests) == 0 {
		return nil
	}
	err := c.admitted(ctx, cost)
	if err != nil {
		return err
	}
	e.submit(requests...)
	for _, r := range requests {
		failed := e.wait(ctx, r)
		if failed != nil && err == nil {
			err = failed
			stop()
		}
	}
	return err
}

// wait waits until a request has ended, or ctx and its calls.
func (e *engine) wait(ctx context.Context, r *request) error {
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

// submit queues requests of one caller, and begins a call if a worker is free.
func (e *engine) submit(requests ...*request) {
	e.lock.Lock()
	defer e.lock.Unlock()
	cost := int(requests[0].caller.weight())
	for _, r := range requests {
		cost += r.left * r.job.cost()
	}
	queue := &e.heavy
	if cost <= MostLight {
		queue = &e.light
	}
	if e.running == 0 {
		e.deal(requests)
	}
	*queue = append(*queue, requests...)
	e.wake()
}

// deal sets how many calls take the rows of each request: as many for each worker.
func (e *engine) deal(requests []*request) {
	for _, r := range requests {
		if !r.job.wide() {
			r.calls = whole(r.left, max(1, r.job.room()/r.job.size())*e.workers) * e.workers
		}
	}
}

func whole(a, b int) int { return (a + b - 1) / b }

// wake begins a call if rows wait and a worker is free.
func (e *engine) wake() {
	if !e.waits() || e.running >= e.workers {
		return
	}
	if e.running == 0 {
		e.since = time.Now()
	}
	e.running++
	go e.work()
}

func (e *engine) waits() bool { return len(e.light)+len(e.heavy) > 0 }

func (e *engine) queue() *[]*request {
	if len(e.light) == 0 || e.heavyNext && len(e.heavy) > 0 {
		return &e.heavy
	}
	return &e.light
}

// abandon removes the waiting rows of r, whose context has ended, from the
// queues. It returns false if a call still runs rows of r: such a call uses the
// caller's memory, and ends soon.
func (e *engine) abandon(r *request) bool {
	e.lock.Lock()
	defer e.lock.Unlock()
	if r.closed {
		return false
	}
	e.drop(r, r.ctx.Err())
	return r.closed
}

// drop removes the waiting rows of r from the queues. Once no call runs rows of
// r, the request ends with err.
func (e *engine) drop(r *request, err error) {
	r.err = cmp.Or(r.err, err)
	is := func(other *request) bool { return other == r }
	e.light = slices.DeleteFunc(e.light, is)
	e.heavy = slices.DeleteFunc(e.heavy, is)
	r.left -= r.waiting()
	r.next = r.job.rows()
	e.finish(r)
}

// finish closes done when no row of the request waits or runs.
func (e *engine) finish(r *request) {
	if r.left == 0 && !r.closed {
		r.closed = true
		close(r.done)
	}
}

// work makes calls until no rows wait.
func (e *engine) work() {
	e.lock.Lock()
	defer e.lock.Unlock()
	c := &sharedCall{}
	if last := len(e.spare) - 1; last >= 0 {
		c = e.spare[last]
		e.spare = e.spare[:last]
	}
	for e.waits() {
		parts := e.take()
		c.alone = e.running == 1 && !e.waits()
		e.wake()
		e.lock.Unlock()
		// A panic is an error for the requests that share the call.
		err := parallel.Safely(func() error { return e.call(c, parts) })
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
	if e.running == 0 {
		e.busy += time.Since(e.since)
	}
	e.spare = append(e.spare, c)
}

// take returns the rows of a worker's next call. It chooses the queue whose
// turn it is, and takes the rows that may share a call with the queue's first
// request. A request with rows left over moves to the end of the queue.
func (e *engine) take() (parts []part) {
	queue := e.queue()
	light := queue == &e.light
	e.heavyNext = light
	if light {
		slices.SortStableFunc(*queue, leastFirst)
		e.short = shortCalls
	} else {
		slices.SortStableFunc(*queue, byTurn)
	}
	first := (*queue)[0]
	room := e.space(first, light)
	var waiting, later []*request
	for _, r := range *queue {
		if room < r.job.size() || !r.job.shares(first.job) {
			waiting = append(waiting, r)
			continue
		}
		p := r.split(room)
		parts = append(parts, p)
		room -= (p.to - p.from) * r.job.size()
		e.cost += float64(p.cost())
		if r.waiting() > 0 {
			later = append(later, r)
		}
	}
	*queue = append(waiting, later...)
	return parts
}

// leastFirst and byTurn order light and heavy requests: by what the caller's rows
// have cost, and by the caller's turn.
func leastFirst(a, b *request) int { return cmp.Compare(a.caller.weight(), b.caller.weight()) }
func byTurn(a, b *request) int     { return cmp.Compare(a.caller.Turn, b.caller.Turn) }

// space returns the room of a call that begins with rows of r: less than the
// job's where the rows are dealt among workers, or where a call is kept short.
func (e *engine) space(r *request, light bool) int {
	size := r.job.size()
	room := max(r.job.room(), size)
	if r.calls > 0 {
		room = min(room, max(whole(r.waiting(), r.calls), leastDealt/r.job.cost())*size)
		r.calls--
	}
	if !light && e.short > 0 {
		e.short--
		room = min(room, max(1, shortCost/r.job.cost())*size)
	}
	return room
}

// split takes from r the rows for a call with that much room.
func (r *request) split(room int) part {
	p := part{r, r.next, r.next + r.job.fitting(room, r.next)}
	r.next = p.to
	r.caller.spent.Add(int64(p.cost()))
	return p
}

// call runs parts, whose jobs share calls, in one call.
func (e *engine) call(c *sharedCall, parts []part) error {
	ctx, stop := mergedContext(parts)
	defer stop()
	e.calls.Add(1)
	for _, p := range parts {
		e.rows.Add(int64(p.to - p.from))
	}
	return parts[0].job.run(ctx, c, parts)
}

// mergedContext returns a context that ends when the contexts of all parts have
// ended, and a function to release it.
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

// Rate returns how many tokens of rows run in a second of the calls so far, or 0
// if too few have run. The last seconds count most.
func (m *MaskedLM) Rate() float64 { return m.engine.rate() }

// Measure runs rows if too few have run for Rate to tell.
func (m *MaskedLM) Measure(ctx context.Context) error {
	select {
	case m.measuring <- struct{}{}:
		defer func() { <-m.measuring }()
	case <-ctx.Done():
		return ctx.Err()
	}
	if m.Rate() > 0 {
		return nil
	}
	mask := []int{m.MaskID()}
	row := Row{IDs: slices.Repeat(mask, min(16, m.Positions())), Positions: []int{0}, Targets: mask}
	_, err := m.LogProbabilities(ctx, slices.Repeat([]Row{row}, MostLight/len(row.IDs)+1))
	return err
}

// Calls returns how many calls have run so far, and their rows in all.
func (m *MaskedLM) Calls() (calls, rows int64) { return m.engine.calls.Load(), m.engine.rows.Load() }
