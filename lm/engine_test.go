package lm

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"infill/internal/check"
	"infill/internal/modelstest"
	"infill/internal/onnx"
	"infill/models"
)

func engineModel(tb testing.TB, bundle *models.Bundle, o Options) *MaskedLM {
	tb.Helper()
	o.MaskID = 103
	m := check.Must(Open(context.Background(), bundle, o))(tb)
	tb.Cleanup(func() {
		if err := m.Close(); err != nil {
			tb.Error(err)
		}
	})
	return m
}

func builtIn(tb testing.TB) *models.Bundle {
	tb.Helper()
	bundle := check.Must(models.Open(""))(tb)
	return bundle
}

// small is a model of one layer with the vocabulary and the calls of the built-in one, for
// tests of what becomes of calls, and not of their bits.
func small(tb testing.TB) *models.Bundle {
	tb.Helper()
	dir := tb.TempDir()
	check.OK(tb, modelstest.Write(dir,
		`{"model_type": "bert", "vocab_size": 30522, "hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2,
  "intermediate_size": 1536, "max_position_embeddings": 64}`, modelstest.Options{Spread: 0.3}))
	return check.Must(models.Open(dir))(tb)
}

// anyBatch is a batch like those that templates make: of any length, number of
// queries and width.
func anyBatch(rng *rand.Rand, rows int) *batch { return batchOf(rng, rows, 4+rng.IntN(30)) }

// batchOf makes a batch of rows with so many tokens.
func batchOf(rng *rand.Rand, rows, tokens int) *batch {
	b := &batch{}
	b.reset(tokens, 1+rng.IntN(2), []int{0, 7, 40}[rng.IntN(3)], rng.IntN(3) == 0)
	for range rows {
		for range b.tokens {
			b.ids = append(b.ids, int64(1000+rng.IntN(20000)))
		}
		for range b.perRow {
			b.queries = append(b.queries, int64(rng.IntN(b.tokens)))
			b.targets = append(b.targets, int64(1000+rng.IntN(20000)))
			for range b.width {
				b.candidates = append(b.candidates, int64(1000+rng.IntN(20000)))
			}
		}
	}
	return b
}

func same(a, b *batch) bool {
	return slices.Equal(a.target, b.target) && slices.Equal(a.candidate, b.candidate) &&
		(!a.everything || slices.Equal(a.vocabulary, b.vocabulary))
}

// A row's value does not depend on its neighbours: texts in flight together
// get, bit for bit, what they get one by one.
func TestNeighbours(t *testing.T) {
	large := t.TempDir()
	// The weights of a model this large are read as they lie in their file.
	if err := modelstest.Write(large,
		`{"model_type": "bert", "vocab_size": 30522, "hidden_size": 1104, "num_hidden_layers": 1, "num_attention_heads": 12,
  "intermediate_size": 512, "max_position_embeddings": 64}`, modelstest.Options{}); err != nil {
		t.Fatal(err)
	}
	mapped := check.Must(models.Open(large))(t)
	cases := map[string]*MaskedLM{
		"built-in": engineModel(t, builtIn(t), Options{Device: "cpu"}),
		"mapped":   engineModel(t, mapped, Options{Device: "cpu"}),
	}
	if CheckInt8() == nil {
		float := builtIn(t)
		whole := check.Must(modelstest.Int8(t.Context(), t.TempDir(), float, modelstest.Largest(float)))(t)
		cases["int8"] = engineModel(t, whole, Options{Device: "cpu"})
	}
	for name, m := range cases {
		t.Run(name, func(t *testing.T) {
			if m.mapped() != (name == "mapped") {
				t.Fatal("not the case that is meant")
			}
			rng := rand.New(rand.NewPCG(5, 6))
			alone, together := make([]*batch, 40), make([]*batch, 40)
			for i := range alone {
				b := anyBatch(rng, 1+rng.IntN(3)*rng.IntN(4))
				if i%7 == 0 { // attention is as wide as a call's longest row
					b = batchOf(rng, 1, m.Positions()*(i/7+1)/6)
				}
				c := *b
				alone[i], together[i] = b, &c
				check.OK(t, m.as(&Caller{}).run(t.Context(), b))
			}
			calls, rows := m.engine.calls.Load(), m.engine.rows.Load()
			var wait sync.WaitGroup
			for _, b := range together {
				wait.Go(func() {
					if err := m.as(&Caller{}).run(t.Context(), b); err != nil {
						t.Error(err)
					}
				})
			}
			wait.Wait()
			for i := range alone {
				if !same(alone[i], together[i]) {
					t.Errorf("batch %d of %d rows, %d tokens, %d queries: it depends on its neighbours", i,
						alone[i].rows(), alone[i].tokens, alone[i].perRow)
				}
			}
			calls, rows = m.engine.calls.Load()-calls, m.engine.rows.Load()-rows
			if calls >= 40 {
				t.Errorf("%d calls for 40 batches: none was shared", calls)
			}
			t.Logf("%d rows in %d calls", rows, calls)
		})
	}
}

// Packing changes no more than rounding does.
func TestPacking(t *testing.T) {
	m := engineModel(t, builtIn(t), Options{Device: "cpu"})
	exact := engineModel(t, builtIn(t), Options{Device: "cpu"})
	exact.packed = false
	exact.conditionals.inputs = exact.conditionals.inputs[:5]
	rng, worst := rand.New(rand.NewPCG(7, 8)), 0.0
	for range 15 {
		b := anyBatch(rng, 2)
		c := *b
		check.OK(t, errors.Join(m.as(&Caller{}).run(t.Context(), b), exact.as(&Caller{}).run(t.Context(), &c)))
		for i := range b.target {
			worst = max(worst, float64(b.target[i]-c.target[i]), float64(c.target[i]-b.target[i]))
		}
	}
	t.Logf("largest difference %.2g nats", worst)
	if worst > 2e-5 {
		t.Errorf("packing changes a log-probability by %g nats", worst)
	}
}

// Who leaves while others share its call gets its own context's error, and they
// their rows.
func TestLeave(t *testing.T) {
	m := engineModel(t, builtIn(t), Options{Device: "cpu"})
	rng := rand.New(rand.NewPCG(9, 10))
	var wait sync.WaitGroup
	for i := range 20 {
		b := anyBatch(rng, 1+i%3*20)
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(rng.IntN(40))*time.Millisecond)
		if i%2 == 0 {
			ctx = t.Context()
		}
		wait.Go(func() {
			defer cancel()
			c := *b
			err := m.as(&Caller{}).run(ctx, b)
			switch {
			case err == nil:
				if err := m.as(&Caller{}).run(t.Context(), &c); err != nil || !same(b, &c) {
					t.Errorf("batch %d: other results when asked again (%v)", i, err)
				}
			case !errors.Is(err, context.DeadlineExceeded) || i%2 == 0:
				t.Errorf("batch %d: %v", i, err)
			}
		})
	}
	wait.Wait()
	left := func() (workers, requests int) {
		m.engine.lock.Lock()
		defer m.engine.lock.Unlock()
		return m.engine.running, len(m.engine.light) + len(m.engine.heavy)
	}
	// A worker may be about to see that nothing waits.
	for range 1000 {
		if workers, _ := left(); workers == 0 {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	if workers, requests := left(); workers != 0 || requests != 0 {
		t.Errorf("%d workers and %d requests are left", workers, requests)
	}
}

// Nobody waits for a session that takes long to make: neither who asked and was
// stopped, nor Close.
func TestSessionLeftBehind(t *testing.T) {
	m := engineModel(t, small(t), Options{Device: "cpu"})
	begun, release := make(chan bool), make(chan bool)
	for _, s := range []*lazySession{&m.conditionals, &m.gradient} {
		build := s.build
		s.build = func(b *models.Bundle) (*onnx.Graph, error) {
			begun <- true
			<-release
			return build(b)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-begun; cancel() }()
	if _, err := m.conditionals.get(ctx, m); !errors.Is(err, context.Canceled) {
		t.Fatalf("stopped: %v", err)
	}
	release <- true
	if s, err := m.conditionals.get(t.Context(), m); err != nil || s == nil { // the one that was left behind
		t.Fatal(err)
	}
	ctx, cancel = context.WithCancel(t.Context())
	go func() { <-begun; cancel() }()
	if _, err := m.gradient.get(ctx, m); !errors.Is(err, context.Canceled) {
		t.Fatalf("stopped: %v", err)
	}
	m.gradient.lock.Lock()
	made := m.gradient.making
	m.gradient.lock.Unlock()
	check.OK(t, m.gradient.close())
	release <- true
	<-made.done
	if made.err != nil || m.gradient.session != nil {
		t.Errorf("made after close: session %v, error %v", m.gradient.session, made.err)
	}
	check.OK(t, m.Close())
	for _, s := range []*lazySession{&m.conditionals, &m.gradient} {
		_, err := s.get(t.Context(), m)
		if !errors.Is(err, errClosed) {
			t.Errorf("after Close: error %v", err)
		}
	}
}

// TestSessionFails: all who wait for a session get the error of making it, and none makes
// it again.
func TestSessionFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broken := errors.New("broken")
		release := make(chan bool)
		made := 0
		l := &lazySession{build: func(*models.Bundle) (*onnx.Graph, error) {
			made++
			<-release
			return nil, broken
		}}
		var wait sync.WaitGroup
		for range 20 {
			wait.Go(func() {
				_, err := l.get(t.Context(), &MaskedLM{bundle: &models.Bundle{}})
				if !errors.Is(err, broken) {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		close(release)
		wait.Wait()
		if made != 1 {
			t.Errorf("made %d times", made)
		}
	})
}

// A call that fails fails for all who share it.
func TestFailedCall(t *testing.T) {
	m := engineModel(t, small(t), Options{Device: "cpu"})
	m.conditionals.inputs = []string{"nothing of this name"}
	m.conditionals.build = m.gradient.build
	rng := rand.New(rand.NewPCG(11, 12))
	var wait sync.WaitGroup
	for range 10 {
		b := anyBatch(rng, 300)
		wait.Go(func() {
			if err := m.as(&Caller{}).run(t.Context(), b); err == nil {
				t.Error("no error")
			}
		})
	}
	wait.Wait()
}

// Who asks for a row of a length of its own waits for one call, however many
// rows of another length wait.
func TestOldestFirst(t *testing.T) {
	m := &MaskedLM{chunk: chunkLimits{tokens: 2730, queries: 256}} // of rows of one length
	e := &engine{running: 1}
	for _, of := range []struct{ tokens, rows int }{{8, 4000}, {16, 1}} {
		b := &batch{}
		b.reset(of.tokens, 1, 0, false)
		b.ids, b.queries = make([]int64, of.tokens*of.rows), make([]int64, of.rows)
		e.submit(newRequest(t.Context(), &Caller{Heavy: true}, &rowsJob{m: m, batch: b}))
	}
	for call, tokens := range []int{8, 16, 8, 8} {
		if parts := e.take(); parts[0].job.cost() != tokens {
			t.Errorf("call %d is of %d tokens, want %d", call, parts[0].job.cost(), tokens)
		}
	}
}

// TestWide: the lone row of a large model, whose call has all cores, has the same bits as
// in a call of one.
func TestWide(t *testing.T) {
	one := engineModel(t, builtIn(t), Options{Device: "cpu", Threads: 1})
	wide := engineModel(t, builtIn(t), Options{Device: "cpu", Threads: 3})
	wide.wide.threads = 3
	rng := rand.New(rand.NewPCG(15, 16))
	for range 5 {
		b := anyBatch(rng, 1)
		same := *b
		same.target, same.candidate, same.vocabulary = nil, nil, nil
		check.OK(t, one.as(&Caller{}).run(t.Context(), b))
		check.OK(t, wide.as(&Caller{}).run(t.Context(), &same))
		if !slices.Equal(b.target, same.target) || !slices.Equal(b.candidate, same.candidate) ||
			!slices.Equal(b.vocabulary, same.vocabulary) {
			t.Error("a call with all cores has other bits")
		}
	}
	if wide.wide.session == nil || wide.conditionals.session != nil || one.wide.session != nil {
		t.Error("the session for all cores did not run the lone rows, and that one alone")
	}
}
