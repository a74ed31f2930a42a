package serve

import (
	"context"
	"net/http"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"
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
	if bytes > float64(g.limits.Memory) {
		return nil, unfit("the request could hold %.3g MB, this server has %.3g: ask for less, with fewer texts, "+
			"candidates or samples, or a smaller budget", bytes/1e6, float64(g.limits.Memory)/1e6)
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

func busy(why string) error {
	return &Problem{status: http.StatusTooManyRequests, Message: why + ": try again later"}
}
