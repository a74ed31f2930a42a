package serve

import (
	"context"
	"net/http"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"
)

// gate lets so many requests in at once, and lets a bounded number wait for a bounded
// time. A request that it refuses has cost nothing. Half of the memory is shared by the
// places; a request that needs more than the share of its place takes the rest from the
// other half before it takes a place, so that those that need little pass those that wait.
type gate struct {
	limits  Limits
	places  *semaphore.Weighted
	memory  *semaphore.Weighted
	share   int64 // bytes of a place
	waiting atomic.Int64
	inside  atomic.Int64
	refused atomic.Int64
}

func newGate(l Limits) *gate {
	places, memory := semaphore.NewWeighted(int64(l.Requests)), semaphore.NewWeighted(l.Memory-l.Memory/2)
	return &gate{limits: l, places: places, memory: memory, share: l.Memory / 2 / int64(l.Requests)}
}

// enter waits for a place, and for as many bytes. The caller calls leave once, when its work
// is done.
func (g *gate) enter(ctx context.Context, bytes float64) (leave func(), err error) {
	most := g.share + g.limits.Memory - g.limits.Memory/2
	if bytes > float64(most) {
		return nil, unfit("the request could hold %.3g MB, this server has %.3g for one: ask for less, with fewer "+
			"texts, candidates or samples, or a smaller budget", bytes/1e6, float64(most)/1e6)
	}
	more := max(0, int64(bytes)-g.share)
	leave = func() {
		g.inside.Add(-1)
		g.places.Release(1)
		g.memory.Release(more)
	}
	if more == 0 || g.memory.TryAcquire(more) { // none passes those that wait for more
		if g.places.TryAcquire(1) {
			g.inside.Add(1)
			return leave, nil
		}
		g.memory.Release(more)
	}
	if g.waiting.Add(1) > int64(g.limits.Queue) {
		g.waiting.Add(-1)
		return nil, g.refuse("as many requests wait as this server allows")
	}
	waiting, cancel := context.WithTimeout(ctx, g.limits.Wait)
	defer cancel()
	if more > 0 {
		err = g.memory.Acquire(waiting, more)
	}
	if err == nil {
		if err = g.places.Acquire(waiting, 1); err != nil {
			g.memory.Release(more)
		}
	}
	g.waiting.Add(-1)
	switch {
	case err == nil && ctx.Err() != nil:
		g.places.Release(1)
		g.memory.Release(more)
		return nil, ctx.Err()
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case err != nil:
		return nil, g.refuse("the request waited " + g.limits.Wait.Round(time.Millisecond).String() + " for its turn")
	}
	g.inside.Add(1)
	return leave, nil
}

func (g *gate) refuse(why string) error {
	g.refused.Add(1)
	return &Problem{status: http.StatusTooManyRequests, Message: why + ": try again later"}
}
