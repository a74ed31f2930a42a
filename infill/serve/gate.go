package serve

import (
	"context"
	"errors"
	"math"
	"net/http"
	"runtime"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"

	"infill/infill"
)

// gate shares the server's memory among the running requests. Each request
// takes the memory that it may need, and at least share, so that no more than
// Limits.Requests run at once. Up to Limits.Queue requests wait in turn, each
// for at most Limits.Wait. A refused request takes no memory.
type gate struct {
	limits  Limits
	memory  *semaphore.Weighted
	share   int64 // least memory of a request, in bytes
	waiting atomic.Int64
	inside  atomic.Int64
}

func newGate(l Limits) *gate {
	return &gate{limits: l, memory: semaphore.NewWeighted(l.Memory), share: l.Memory / int64(l.Requests)}
}

// enter waits until that many bytes are free, and takes them. The caller calls
// leave once, when its work is done.
func (g *gate) enter(ctx context.Context, bytes float64) (leave func(), err error) {
	err = g.fits(bytes)
	if err != nil {
		return nil, err
	}
	need := max(int64(bytes), g.share)
	if !g.memory.TryAcquire(need) {
		defer g.waiting.Add(-1)
		if g.waiting.Add(1) > int64(g.limits.Queue) {
			return nil, busy("as many requests wait as this server allows")
		}
		waiting, cancel := context.WithTimeout(ctx, g.limits.Wait)
		defer cancel()
		if g.memory.Acquire(waiting, need) != nil {
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			return nil, busy("the request waited " + g.limits.Wait.Round(time.Millisecond).String() + " for its turn")
		}
	}
	g.inside.Add(1)
	return func() {
		g.inside.Add(-1)
		g.memory.Release(need)
	}, nil
}

// fits returns an error if there are never that many bytes.
func (g *gate) fits(bytes float64) error {
	if bytes <= float64(g.limits.Memory) {
		return nil
	}
	return unfit("the request could hold %.3g MB, this server has %.3g: ask for less, with fewer texts, "+
		"candidates or samples, or a smaller budget", bytes/1e6, float64(g.limits.Memory)/1e6)
}

// effort is what a request needs.
type effort struct {
	bytes   float64 // memory
	likely  float64 // tokens of model rows, as a rule
	seconds float64 // how long all its rows take at most, alone
	unknown bool    // whether a model has not run enough to tell seconds
}

// add adds model rows to the effort: how many tokens they have as a rule, and at
// most.
func (e *effort) add(f *infill.Filler, likely, most float64) {
	e.likely += likely
	const slowest = 100 // tokens a second, of a large model on a small machine
	rate := f.Rate()
	e.unknown = e.unknown || rate == 0
	e.seconds += most / max(rate, slowest)
}

// turns are the shares of the machine that requests of many rows may have
// together.
const turns = 1 << 30

// newTurns returns the gate at which requests of many rows wait, before they
// take a place at the other gate. As many of them run at once as can end in
// time, and a quarter of the places is left for small requests.
func newTurns(l Limits) *gate {
	l.Memory = turns
	l.Requests = max(1, l.Requests*3/4)
	return newGate(l)
}

// turn waits until all that runs with a turn, and this request, can end within
// half of the time limit. Until a model's speed is known, as many run as there
// are processors.
func (s *Server) turn(ctx context.Context, e effort) (leave func(), err error) {
	share := e.seconds / (s.Limits.Time.Seconds() / 2)
	if e.unknown {
		share = min(share, 1/float64(runtime.GOMAXPROCS(0)))
	}
	leave, err = s.turns.enter(ctx, turns*min(1, share))
	var full *Problem
	if errors.As(err, &full) {
		full.retry = int(math.Ceil(min(e.seconds, s.Limits.Time.Seconds())))
	}
	return leave, err
}

func busy(why string) error {
	return &Problem{status: http.StatusTooManyRequests, Message: why + ": try again later"}
}
