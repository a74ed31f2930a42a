package serve

import (
	"context"
	"errors"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"infill/infill"
	"infill/internal/check"
	"infill/internal/lmtest"
	"infill/internal/rawjson"
)

// Requests wait for each other in turn, for memory and for places.
func TestGateInTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limits := DefaultLimits()
		limits.Requests, limits.Memory, limits.Queue = 8, 1600, 1
		g := newGate(limits, new(atomic.Int64)) // 200 bytes a place
		enter := func(bytes float64) func() {
			leave, err := g.enter(t.Context(), bytes, &effort{})
			if err != nil {
				t.Fatal(err)
			}
			return leave
		}
		var refused *Problem
		if _, err := g.enter(t.Context(), 1601, &effort{}); !errors.As(err, &refused) ||
			refused.status != 422 || !strings.Contains(err.Error(), "this server has 0.0016: ask for less") {
			t.Errorf("more than there is: %v", err)
		}
		first := enter(1100)
		entered := make(chan func())
		go func() { entered <- enter(600) }()
		synctest.Wait()
		if g.waiting.Load() != 1 {
			t.Error("600 bytes beside 1100 at work: it does not wait")
		}
		if _, err := g.enter(t.Context(), 600, &effort{}); !errors.As(err, &refused) || refused.status != 429 {
			t.Errorf("more wait than the queue has: %v", err)
		}
		first()
		second := <-entered
		for range 5 { // beside 600 bytes as many as there are places
			defer enter(0)()
		}
		// One that leaves while it waits takes nothing.
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := g.enter(ctx, 900, &effort{}); !errors.Is(err, context.Canceled) {
			t.Errorf("it left: %v", err)
		}
		began := time.Now()
		if _, err := g.enter(t.Context(), 0, &effort{}); !errors.As(err, &refused) || refused.status != 429 ||
			time.Since(began) != limits.Wait {
			t.Errorf("too long a wait: %v after %v", err, time.Since(began))
		}
		second()
	})
}

// bare is a server without models.
func bare(limits Limits) *Server {
	s := &Server{Options: Options{Limits: limits}, reading: newGate(limits, new(atomic.Int64))}
	s.ending, s.end = context.WithCancel(context.Background())
	return s
}

// reads reads a body of so many bytes by do.
func reads(ctx context.Context, s *Server, size int, do func(ctx context.Context)) error {
	body := []byte(`"` + strings.Repeat("x", size-2) + `"`)
	_, _, err := read(ctx, s, body, func(ctx context.Context, _ rawjson.Value, _ *effort) (int, error) {
		do(ctx)
		return 0, nil
	})
	return err
}

// shutDown ends a server as SIGTERM does.
func shutDown(s *Server) { s.HTTPServer().Shutdown(context.Background()) } //nolint:errcheck // it listens nowhere

// status returns the status of a Problem, and 200 for no error.
func status(err error) int {
	var wrong *Problem
	if errors.As(err, &wrong) {
		return wrong.status
	}
	return 200
}

// Long texts are read in turn, and short ones pass them.
func TestLongTextsAreReadInTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limits := DefaultLimits()
		limits.Requests = 1
		s := bare(limits)
		quick := func(context.Context) {}
		go reads(t.Context(), s, longTexts, func(context.Context) { time.Sleep(15 * time.Second) }) //nolint:errcheck
		synctest.Wait()
		began := time.Now()
		err := reads(t.Context(), s, longTexts-1, quick)
		if err != nil || time.Since(began) > 0 {
			t.Errorf("a short text: %v after %v", err, time.Since(began))
		}
		err = reads(t.Context(), s, longTexts, quick)
		if status(err) != 429 || time.Since(began) != limits.Wait {
			t.Errorf("a long text that waits too long: %v after %v", err, time.Since(began))
		}
		err = reads(t.Context(), s, longTexts, quick)
		if err != nil || time.Since(began) != 15*time.Second {
			t.Errorf("a long text that waits: %v after %v", err, time.Since(began))
		}
	})
}

// TestReadingEnds: reading ends with its time, when the client leaves and when the
// server ends, also if it looks at no context. /health counts it until it is over.
func TestReadingEnds(t *testing.T) {
	for name, c := range map[string]struct {
		after time.Duration
		end   func(s *Server, leave func())
		want  int
	}{
		"time":   {time.Minute, func(*Server, func()) {}, 503},
		"left":   {time.Second, func(_ *Server, leave func()) { leave() }, statusGone},
		"ending": {time.Second, func(s *Server, _ func()) { shutDown(s) }, 503},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := bare(DefaultLimits())
			s.reading = newGate(Limits{Memory: 1, Requests: 1}, new(atomic.Int64))
			ctx, leave := context.WithCancel(t.Context())
			began := time.Now()
			time.AfterFunc(time.Second, func() { c.end(s, leave) })
			told := make(chan time.Duration, 1) // when the context that do looks at has ended
			err := reads(ctx, s, longTexts, func(ctx context.Context) {
				context.AfterFunc(ctx, func() { told <- time.Since(began) })
				time.Sleep(2 * time.Minute)
			})
			if status(err) != c.want || time.Since(began) != c.after || <-told != c.after {
				t.Errorf("%s: %v after %v", name, err, time.Since(began))
			}
			if s.working.Load() != 1 || s.reading.memory.TryAcquire(1) {
				t.Errorf("%s: while it still reads, /health does not count it, or another takes its turn", name)
			}
			time.Sleep(2 * time.Minute)
			if s.working.Load() != 0 || !s.reading.memory.TryAcquire(1) {
				t.Errorf("%s: it is over, and /health still counts it, or no other may read", name)
			}
			leave()
		})
	}
}

// TestBodyIsOwn: what goes on reading when its client has left reads its own request,
// even if the bytes of the body hold another one by then.
func TestBodyIsOwn(t *testing.T) {
	for range 100 {
		synctest.Test(t, func(t *testing.T) {
			s := bare(DefaultLimits())
			ctx, leave := context.WithCancel(t.Context())
			leave()
			body := []byte(`"mine"`)
			seen := make(chan string, 1)
			_, _, err := read(ctx, s, body, func(_ context.Context, v rawjson.Value, _ *effort) (int, error) {
				seen <- string(v)
				return 0, nil
			})
			copy(body, `"next"`)
			if got := <-seen; got != `"mine"` {
				t.Errorf("it reads %s (%v)", got, err)
			}
		})
	}
}

// TestReadingIsTime: the time in which a request is read is a part of its time.
func TestReadingIsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := bare(DefaultLimits())
		_, e, err := read(t.Context(), s, []byte("1"), func(context.Context, rawjson.Value, *effort) (int, error) {
			time.Sleep(40 * time.Second)
			return 0, nil
		})
		if err != nil || e.ran != 40*time.Second {
			t.Fatalf("%v, read for %v", err, e.ran)
		}
		began := time.Now()
		ctx, done := s.timed(t.Context(), e)
		defer done()
		<-ctx.Done()
		if time.Since(began) != 20*time.Second {
			t.Errorf("after 40 s of reading it has %v left of a minute", time.Since(began))
		}
	})
}

// TestWaitsOnce: a request that waits at several gates waits no longer than one
// that waits at one, and is one of those that may wait, which /health counts.
func TestWaitsOnce(t *testing.T) {
	words := strings.Fields("[PAD] [UNK] [CLS] [SEP] [MASK] the cat")
	tokenizer := check.Must(lmtest.Tokenizer(words))(t)
	synctest.Test(t, func(t *testing.T) {
		limits := DefaultLimits()
		limits.Queue = 1
		f := infill.New(lmtest.New(len(words), 32), tokenizer)
		s := check.Must(New(Options{Models: map[string]*infill.Filler{"fake": f}, Default: "fake", Limits: limits}))(t)
		ask := func(method, path, body string) string {
			r := httptest.NewRequest(method, path, strings.NewReader(body))
			r.Header.Set("Content-Type", "application/json")
			w := httptest.NewRecorder()
			s.ServeHTTP(w, r)
			return w.Body.String()
		}
		read := check.Must(s.reading.enter(t.Context(), 0, &effort{}))(t)
		check.Must(s.gate.enter(t.Context(), float64(limits.Memory), &effort{}))(t)
		began := time.Now()
		refused := make(chan string)
		go func() {
			refused <- ask("POST", "/v1/score", `{"texts": "`+strings.Repeat("the cat ", longTexts/8)+`"}`)
		}()
		synctest.Wait()
		if health := ask("GET", "/health", ""); !strings.Contains(health, `"waiting":1`) {
			t.Errorf("while a long text waits to be read: %s", health)
		}
		second := ask("POST", "/v1/fill", `{"template": "the [MASK]"}`)
		if !strings.Contains(second, "as many requests wait") {
			t.Errorf("a second request that has to wait: %s", second)
		}
		time.Sleep(limits.Wait * 3 / 5)
		read()
		if text := <-refused; !strings.Contains(text, "waited 10s for its turn") || time.Since(began) != limits.Wait {
			t.Errorf("after %v: %s", time.Since(began), text)
		}
	})
}

// steady is the pace of a model that is always as fast.
type steady float64

func (s steady) Rate() float64                 { return float64(s) }
func (s steady) Measure(context.Context) error { return nil }

// As many large requests run at once as can end in time: all of them where time
// has no end, as by a pipe, or where the model does not tell its speed.
func TestTurnsByTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, c := range []struct {
			name  string
			time  time.Duration
			e     effort
			want  int
			again int // seconds until who is refused after a second shall come again
		}{
			{"12 s of each in 60 s", time.Minute, effort{likely: 12_000, models: []pace{steady(1000)}}, 5, 59},
			{"4 s of each in 60 s", time.Minute, effort{likely: 4000, models: []pace{steady(1000)}}, 15, 59},
			{"more than there is time", time.Minute, effort{likely: 1e6, models: []pace{steady(1000)}}, 1, 59},
			{"unknown", time.Minute, effort{likely: 1e6, models: []pace{steady(0)}}, 96, 59},
			{"without end", 1e6 * time.Hour, effort{likely: 1e6, models: []pace{steady(1000)}}, 96, 96_000},
			{"unknown, without end", 1e6 * time.Hour, effort{likely: 1e6, models: []pace{steady(0)}}, 96, 3.6e9},
		} {
			limits := DefaultLimits()
			limits.Time = c.time
			limits.Wait = time.Second
			s := &Server{Options: Options{Limits: limits}, turns: newTurns(limits, new(atomic.Int64)),
				book: &book{limit: limits.Time}}
			running := 0
			for range 100 {
				leave, err := s.turn(t.Context(), &c.e)
				var full *Problem
				if errors.As(err, &full) {
					if full.status != 429 || full.retry != c.again {
						t.Errorf("%s: %d, again after %d s, want %d", c.name, full.status, full.retry, c.again)
					}
					break
				}
				defer leave()
				running++
			}
			if running != min(c.want, 96) {
				t.Errorf("%s: %d run at once, want %d", c.name, running, c.want)
			}
		}
	})
}
