package serve

import (
	"context"
	"net/http"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"
)

// gate lets so many requests in at once, and lets a bounded number wait for a bounded
// time. A request that it refuses has cost nothing.
type gate struct {
	limits  Limits
	places  *semaphore.Weighted
	waiting atomic.Int64
	inside  atomic.Int64
	refused atomic.Int64
}

func newGate(l Limits) *gate {
	return &gate{limits: l, places: semaphore.NewWeighted(int64(l.Requests))}
}

// enter waits for a place. The caller calls leave once, when its work is done.
func (g *gate) enter(ctx context.Context) (leave func(), err error) {
	if !g.places.TryAcquire(1) {
		if g.waiting.Add(1) > int64(g.limits.Queue) {
			g.waiting.Add(-1)
			return nil, g.refuse("as many requests wait as this server allows")
		}
		waiting, cancel := context.WithTimeout(ctx, g.limits.Wait)
		err := g.places.Acquire(waiting, 1)
		cancel()
		g.waiting.Add(-1)
		switch {
		case ctx.Err() != nil:
			if err == nil {
				g.places.Release(1)
			}
			return nil, ctx.Err()
		case err != nil:
			return nil, g.refuse("the request waited " + g.limits.Wait.Round(time.Millisecond).String() + " for its turn")
		}
	}
	g.inside.Add(1)
	return func() {
		g.inside.Add(-1)
		g.places.Release(1)
	}, nil
}

func (g *gate) refuse(why string) error {
	g.refused.Add(1)
	return &Problem{status: http.StatusTooManyRequests, Message: why + ": try again later"}
}
