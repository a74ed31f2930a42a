package serve

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sync/semaphore"

	"infill/infill"
	"infill/internal/object"
)

// Requests that need much memory wait for each other, and those that need little pass them.
func TestMemoryOfRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limits := DefaultLimits()
		limits.Requests, limits.Memory = 8, 1600
		g := newGate(limits) // 100 bytes a place, and 800 for those that need more
		enter := func(bytes float64) func() {
			leave, err := g.enter(t.Context(), bytes)
			if err != nil {
				t.Fatal(err)
			}
			return leave
		}
		var refused *Problem
		if _, err := g.enter(t.Context(), 901); !errors.As(err, &refused) || refused.status != 422 ||
			!strings.Contains(err.Error(), "this server has 0.0009 for one") {
			t.Errorf("more than there is: %v", err)
		}
		first := enter(600)
		entered := make(chan func())
		go func() { entered <- enter(500) }()
		synctest.Wait()
		if g.waiting.Load() != 1 {
			t.Error("900 bytes beside 800 at work: it does not wait")
		}
		for range 7 { // as many as there are places
			defer enter(100)()
		}
		first()
		second := <-entered
		if g.inside.Load() != 8 {
			t.Errorf("%d are inside, want 8", g.inside.Load())
		}
		// One that leaves while it waits takes nothing.
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := g.enter(ctx, 900); !errors.Is(err, context.Canceled) {
			t.Errorf("it left: %v", err)
		}
		began := time.Now()
		if _, err := g.enter(t.Context(), 900); !errors.As(err, &refused) || refused.status != 429 ||
			time.Since(began) != limits.Wait {
			t.Errorf("too long a wait: %v after %v", err, time.Since(began))
		}
		second()
		enter(900)()
	})
}

// A request of one blank as it comes needs no more than the share of its place, so that it
// passes those that wait for more.
func TestOneBlankPasses(t *testing.T) {
	f, err := infill.Open(infill.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	s, err := New(Options{Models: map[string]*infill.Filler{"": f}, Fill: infill.DefaultOptions(),
		Limits: DefaultLimits()})
	if err != nil {
		t.Fatal(err)
	}
	for template, passes := range map[string]bool{"the [MASK] sat": true, "the [MASK] sat [MASK] the [MASK]": false} {
		_, bytes, err := s.plans(
			[]fillRequest{{fields: object.Object{{Key: "template", Value: object.Quote(template)}}}})
		if err != nil {
			t.Fatal(err)
		}
		if got := int64(bytes) <= s.gate.share; got != passes {
			t.Errorf("%q may hold %.0f bytes, the share of a place is %d", template, bytes, s.gate.share)
		}
	}
}

// Texts of requests that have several share their places, and a request of one passes them.
func TestTextsShareTheirPlaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &Server{texts: semaphore.NewWeighted(textsAtOnce)}
		var atWork, most atomic.Int64
		var requests sync.WaitGroup
		for range 10 {
			requests.Go(func() {
				err := s.each(t.Context(), textsAtOnce, 50, func(context.Context, int) error {
					if n := atWork.Add(1); n > most.Load() {
						most.Store(n)
					}
					time.Sleep(time.Second)
					atWork.Add(-1)
					return nil
				})
				if err != nil {
					t.Error(err)
				}
			})
		}
		time.Sleep(1500 * time.Millisecond)
		began := time.Now()
		if err := s.each(t.Context(), textsAtOnce, 1, func(context.Context, int) error { return nil }); err != nil ||
			time.Since(began) > 0 {
			t.Errorf("one text: %v after %v", err, time.Since(began))
		}
		requests.Wait()
		if most.Load() != textsAtOnce {
			t.Errorf("%d texts at work at once", most.Load())
		}
	})
}

// Long texts are read one request after the other, for a bounded time, and short ones pass them.
func TestLongTextsAreReadInTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limits := DefaultLimits()
		s := &Server{Options: Options{Limits: limits}, gate: newGate(limits), reading: semaphore.NewWeighted(1)}
		var wait sync.WaitGroup
		read := func(size int, takes time.Duration) (after time.Duration, err error) {
			began := time.Now()
			err = s.read(t.Context(), size, func() error { time.Sleep(takes); return nil })
			return time.Since(began), err
		}
		wait.Go(func() {
			if _, err := read(longTexts, 15*time.Second); err != nil {
				t.Error(err)
			}
		})
		synctest.Wait()
		if after, err := read(longTexts-1, 0); err != nil || after > 0 {
			t.Errorf("a short text: %v after %v", err, after)
		}
		var refused *Problem
		if after, err := read(longTexts, 0); !errors.As(err, &refused) || refused.status != 429 ||
			after != limits.Wait {
			t.Errorf("a long text that waits too long: %v after %v", err, after)
		}
		if after, err := read(longTexts, 0); err != nil || after == 0 {
			t.Errorf("a long text that waits: %v after %v", err, after)
		}
		wait.Wait()
	})
}
