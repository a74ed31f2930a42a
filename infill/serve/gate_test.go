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
	"infill/lm/lmtest"
)

// Requests wait for each other in turn, for memory and for places.
func TestGateInTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limits := DefaultLimits()
		limits.Requests, limits.Memory, limits.Queue = 8, 1600, 1
		g := newGate(limits, new(atomic.Int64)) // 200 bytes a place
		enter := func(bytes float64) func() {
			leave, err := g.enter(t.Context(), bytes, new(time.Duration))
			if err != nil {
				t.Fatal(err)
			}
			return leave
		}
		var refused *Problem
		if _, err := g.enter(t.Context(), 1601, new(time.Duration)); !errors.As(err, &refused) ||
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
		if _, err := g.enter(t.Context(), 600, new(time.Duration)); !errors.As(err, &refused) || refused.status != 429 {
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
		if _, err := g.enter(ctx, 900, new(time.Duration)); !errors.Is(err, context.Canceled) {
			t.Errorf("it left: %v", err)
		}
		began := time.Now()
		if _, err := g.enter(t.Context(), 0, new(time.Duration)); !errors.As(err, &refused) || refused.status != 429 ||
			time.Since(began) != limits.Wait {
			t.Errorf("too long a wait: %v after %v", err, time.Since(began))
		}
		second()
	})
}

// Long texts are read in turn, and short ones pass them.
func TestLongTextsAreReadInTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limits := DefaultLimits()
		limits.Requests = 1
		s := &Server{Options: Options{Limits: limits}, reading: newGate(limits, new(atomic.Int64))}
		slow := func() error { time.Sleep(15 * time.Second); return nil }
		go s.read(t.Context(), longTexts, &effort{}, slow) //nolint:errcheck
		synctest.Wait()
		began := time.Now()
		var refused *Problem
		err := s.read(t.Context(), longTexts-1, &effort{}, func() error { return nil })
		if err != nil || time.Since(began) > 0 {
			t.Errorf("a short text: %v after %v", err, time.Since(began))
		}
		if err := s.read(t.Context(), longTexts, &effort{}, func() error { return nil }); !errors.As(err, &refused) ||
			refused.status != 429 || time.Since(began) != limits.Wait {
			t.Errorf("a long text that waits too long: %v after %v", err, time.Since(began))
		}
		if err := s.read(t.Context(), longTexts, &effort{}, func() error { return nil }); err != nil ||
			time.Since(began) != 15*time.Second {
			t.Errorf("a long text that waits: %v after %v", err, time.Since(began))
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
		read := check.Must(s.reading.enter(t.Context(), 0, new(time.Duration)))(t)
		check.Must(s.gate.enter(t.Context(), float64(limits.Memory), new(time.Duration)))(t)
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
			name string
			time time.Duration
			e    effort
			want int
		}{
			{"12 s of each in 60 s", time.Minute, effort{likely: 12_000, models: []pace{steady(1000)}}, 5},
			{"4 s of each in 60 s", time.Minute, effort{likely: 4000, models: []pace{steady(1000)}}, 15},
			{"more than there is time", time.Minute, effort{likely: 1e6, models: []pace{steady(1000)}}, 1},
			{"unknown", time.Minute, effort{likely: 1e6, models: []pace{steady(0)}}, 96},
			{"without end", 1e6 * time.Hour, effort{likely: 1e6, models: []pace{steady(1000)}}, 96},
			{"unknown, without end", 1e6 * time.Hour, effort{likely: 1e6, models: []pace{steady(0)}}, 96},
		} {
			limits := DefaultLimits()
			limits.Time = c.time
			limits.Wait = time.Second
			s := &Server{Options: Options{Limits: limits}, turns: newTurns(limits, new(atomic.Int64))}
			running := 0
			for range 100 {
				leave, err := s.turn(t.Context(), &c.e)
				var full *Problem
				if errors.As(err, &full) {
					want := int(min(max(1, c.e.seconds(c.e.likely)), c.time.Seconds()))
					if full.status != 429 || full.retry != want {
						t.Errorf("%s: %d, again after %d s, want %d", c.name, full.status, full.retry, want)
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
