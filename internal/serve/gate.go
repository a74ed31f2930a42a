package serve

import (
	"context"
	"crypto/sha256"
	"errors"
	"math"
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"

	"infill/infill"
)

// gate shares the server's memory among the running requests. Each takes what
// it may need, and at least share, so that no more than Limits.Requests run. At
// all gates, Limits.Queue requests wait in turn, each at most Limits.Wait. A
// refused one takes none.
type gate struct {
	limits  Limits
	memory  *semaphore.Weighted
	share   int64         // least memory of a request, in bytes
	waiting *atomic.Int64 // requests that wait at all gates of the server
}

func newGate(l Limits, waiting *atomic.Int64) *gate {
	return &gate{limits: l, memory: semaphore.NewWeighted(l.Memory), share: l.Memory / int64(l.Requests),
		waiting: waiting}
}

// none is the leave of a request that has not entered.
func none() {}

// enter takes bytes once they are free, and adds to how long the request has
// waited. The caller calls leave once; after an error it does nothing.
func (g *gate) enter(ctx context.Context, bytes float64, e *effort) (leave func(), err error) {
	err = g.fits(bytes)
	if err != nil {
		return none, err
	}
	need := max(int64(bytes), g.share)
	if !g.memory.TryAcquire(need) {
		defer g.waiting.Add(-1)
		if g.waiting.Add(1) > int64(g.limits.Queue) && !e.promised {
			return none, busy("as many requests wait as this server allows")
		}
		wait := g.limits.Wait
		if e.promised {
			wait += g.limits.Time // by then, all that run now have ended
		}
		began := time.Now()
		defer func() { e.waited += time.Since(began) }()
		waiting, cancel := context.WithTimeout(ctx, wait-e.waited)
		defer cancel()
		if g.memory.Acquire(waiting, need) != nil {
			if ctx.Err() != nil {
				return none, ctx.Err()
			}
			return none, busy("the request waited " + wait.Round(time.Millisecond).String() + " for its turn")
		}
	}
	return func() { g.memory.Release(need) }, nil
}

// again is enter for a request that runs: it waits as long as its time lasts.
func (g *gate) again(ctx context.Context, bytes float64) (leave func(), err error) {
	need := max(int64(bytes), g.share)
	err = g.memory.Acquire(ctx, need)
	if err != nil {
		return none, err
	}
	return func() { g.memory.Release(need) }, nil
}

// fits returns an error if there are never that many bytes.
func (g *gate) fits(bytes float64) error {
	if bytes <= float64(g.limits.Memory) {
		return nil
	}
	return unfit("the request could hold %.3g MB, this server has %.3g: ask for less, with fewer texts, "+
		"candidates or samples, or a smaller budget", bytes/1e6, float64(g.limits.Memory)/1e6)
}

type effort struct {
	bytes  float64 // memory, as a rule
	later  float64 // further memory, if the request turns out longer
	likely float64 // tokens of model rows, as a rule
	most   float64 // the same, at most
	answer float64 // bytes of the answer, at most
	models []pace
	waited time.Duration // how long it has waited for its turn
	ran    time.Duration // how long it has been read
	body   []byte        // of the request, which tells it from others
	// promised reports whether the request was told to come now.
	promised bool
}

// pace tells how many tokens of rows a model runs in a second, or 0 if it does not tell.
// Measure runs rows if too few have run to tell.
type pace interface {
	Rate() float64
	Measure(ctx context.Context) error
}

var _ pace = (*infill.Filler)(nil)

// add adds model rows, by their tokens, as a rule and at most.
func (e *effort) add(f pace, likely, most float64) {
	e.likely += likely
	e.most += most
	if !slices.Contains(e.models, f) {
		e.models = append(e.models, f)
	}
}

// seconds returns how long tokens take, by the slowest model that tells.
func (e *effort) seconds(tokens float64) float64 {
	rate := math.Inf(1)
	for _, f := range e.models {
		if f.Rate() > 0 {
			rate = min(rate, f.Rate())
		}
	}
	return tokens / rate
}

// turns are the shares of the machine for requests of many rows.
const turns = 1 << 30

// newTurns returns the gate at which requests of many rows wait, before they
// take a place at the other gate. As many of them run at once as can likely end
// in time, and a quarter of the places is left for small requests.
func newTurns(l Limits, waiting *atomic.Int64) *gate {
	l.Memory = turns
	l.Requests = max(1, l.Requests*3/4)
	return newGate(l, waiting)
}

// likely returns which part of the turns a request needs, so that all that has a turn can
// likely end within the time limit, and leaves a quarter of the memory to others.
func (s *Server) likely(e effort) float64 {
	return turns * min(1, max(e.seconds(e.likely)/s.Limits.Time.Seconds(), e.bytes/(float64(s.Limits.Memory)*3/4)))
}

// longer is likely for a request that has turned out longer: all such can end within half
// of the time, and take an eighth of the memory.
func (s *Server) longer(e effort) float64 {
	return turns * min(1, max(2*e.seconds(e.most)/s.Limits.Time.Seconds(), e.later/(float64(s.Limits.Memory)/8)))
}

// turn waits until all that runs with a turn, and this request, can likely end in time.
// If that takes too long, the error says when to ask again.
func (s *Server) turn(ctx context.Context, e *effort) (leave func(), err error) {
	for _, f := range e.models {
		err = f.Measure(ctx)
		if err != nil {
			return none, err
		}
	}
	b := booking{sha256.Sum256(e.body), s.span(*e), time.Now()}
	own := s.book.claim(b)
	e.promised = own != nil && !b.at.Before(own.at)
	release, err := s.turns.enter(ctx, s.likely(*e), e)
	var full *Problem
	if errors.As(err, &full) {
		full.retry = int(math.Ceil(s.book.refuse(b, own).Seconds()))
	}
	if err != nil {
		return none, err
	}
	end := s.book.begin(b)
	return func() {
		end()
		release()
	}, nil
}

// span returns for how long a request likely takes the machine by itself.
func (s *Server) span(e effort) time.Duration {
	part := s.likely(e) / turns
	if e.seconds(e.likely) == 0 { // as many run as there are places
		part = max(part, 1/float64(s.turns.limits.Requests))
	}
	return time.Duration(part * float64(s.Limits.Time))
}

func busy(why string) error {
	return &Problem{status: http.StatusTooManyRequests, Message: why + ": try again later"}
}
