package lm

import (
	"errors"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"infill/internal/check"
	"infill/internal/onnx"
	"infill/internal/parallel"
	"infill/models"
)

// TestPanic: a panic in a call, or while a session is made, is an error for the
// requests that wait for it. The engine goes on with the others.
func TestPanic(t *testing.T) {
	m := engineModel(t, builtIn(t), Options{})
	rng := rand.New(rand.NewPCG(1, 1))
	good := func() { check.OK(t, m.as(&Caller{}).run(t.Context(), anyBatch(rng, 3))) }
	panics := func(err error, place string) {
		t.Helper()
		var p *parallel.Panic
		if !errors.As(err, &p) || !strings.HasPrefix(p.Place, place) || !strings.Contains(string(p.Stack), place) {
			t.Errorf("%v, want a panic at %s", err, place)
		}
	}
	build := m.conditionals.build
	m.conditionals.build = func(*models.Bundle) (*onnx.Graph, error) { panic("no graph") }
	panics(m.as(&Caller{}).run(t.Context(), anyBatch(rng, 3)), "lm/panic_test.go")
	m.conditionals.build = build
	good()
	for range 3 { // more than there are workers
		broken := anyBatch(rng, 3)
		broken.queries = nil
		panics(m.as(&Caller{}).run(t.Context(), broken), "lm/call.go")
	}
	good()

	// Rows that share the call get the error, too: both requests wait in the
	// queue before a worker begins.
	broken := anyBatch(rng, 2)
	neighbour := *broken
	broken.queries = nil
	e := m.engine
	locked := func(do func()) {
		e.lock.Lock()
		defer e.lock.Unlock()
		do()
	}
	locked(func() { e.running = e.workers })
	errs := make([]error, 2)
	var wait sync.WaitGroup
	for i, b := range []*batch{broken, &neighbour} {
		wait.Go(func() { errs[i] = m.as(&Caller{}).run(t.Context(), b) })
	}
	for waiting := 0; waiting < 2; time.Sleep(time.Millisecond) {
		locked(func() { waiting = len(*e.queue()) })
	}
	locked(func() { e.running = 1 })
	e.work()
	wait.Wait()
	panics(errs[0], "lm/call.go")
	panics(errs[1], "lm/call.go")
	good()
}
