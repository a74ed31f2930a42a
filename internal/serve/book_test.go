package serve

import (
	"context"
	"fmt"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"infill/infill"
	"infill/internal/check"
	"infill/internal/lmtest"
	"infill/lm"
)

// paced is a fake model on a machine that runs so many tokens of rows in a second, and
// gives each caller a little of its time in turn.
type paced struct {
	*lmtest.Model
	rate    float64
	machine chan struct{}
}

const quantum = 5 * time.Millisecond

func (m *paced) Rate() float64                 { return m.rate }
func (m *paced) Measure(context.Context) error { return nil }

func (m *paced) For(*lm.Caller) lm.Asker { return m }

func (m *paced) LogProbabilities(ctx context.Context, rows []lm.Row) ([][][]float32, error) {
	tokens := 0
	for _, r := range rows {
		tokens += len(r.IDs)
	}
	for left := time.Duration(float64(tokens) / m.rate * float64(time.Second)); left > 0; left -= quantum {
		m.machine <- struct{}{}
		time.Sleep(min(left, quantum))
		<-m.machine
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
	}
	return m.Model.LogProbabilities(ctx, rows)
}

// newPaced returns a server of a paced model, of whose fills none is likelier than
// another, so that a search goes to the end of its budget.
func newPaced(t *testing.T, rate float64) *Server {
	words := strings.Fields("[PAD] [UNK] [CLS] [SEP] [MASK] the cat dog sat ran on under mat rug old")
	tokenizer := check.Must(lmtest.Tokenizer(words))(t)
	m := &paced{Model: lmtest.New(len(words), 32), rate: rate, machine: make(chan struct{}, 1)}
	m.Weight = func(int) float64 { return 0 }
	m.Bond = 0
	return check.Must(New(Options{Models: map[string]*infill.Filler{"fake": infill.New(m, tokenizer)}, Default: "fake",
		Limits: DefaultLimits()}))(t)
}

// asked posts a request, and returns its status and what Retry-After says.
func asked(ctx context.Context, s *Server, body string) (status int, again time.Duration) {
	r := httptest.NewRequestWithContext(ctx, "POST", "/v1/fill", strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	seconds, _ := strconv.Atoi(w.Header().Get("Retry-After"))
	return w.Code, time.Duration(seconds) * time.Second
}

// TestComeAgain: of 70 clients that ask for much at once, each is answered, at the latest
// when it comes again at the time that it was told: also if each request takes several
// times as long as is likely, if all are alike, or if others come all the time. Meanwhile
// small requests are answered within half a second.
func TestComeAgain(t *testing.T) {
	const clients = 70
	four := func(int) string { return `{"template": "the [MASK] [MASK] [MASK] [MASK] .", "budget": 280}` }
	for name, c := range map[string]struct {
		rate float64 // tokens a second
		body func(i int) string
		new  time.Duration // how often another one comes
		most time.Duration // until all are answered
	}{
		// 280 rows of 7 tokens take 4 s.
		"as likely, alike": {490, four, 0, 6 * time.Minute},
		"as likely": {490, func(i int) string {
			return fmt.Sprintf(`{"id": %d, "template": "the [MASK] [MASK] [MASK] [MASK] .", "budget": 280}`, i)
		}, 0, 6 * time.Minute},
		// 4,000 rows of 7 and 10 tokens take 10 and 14 s, which is 14 and 8 times as likely.
		"longer": {2800, func(i int) string {
			template := "the [MASK] [MASK] [MASK] [MASK] ."
			if i%2 == 1 {
				template = "the [MASK] cat [MASK] on [MASK] and [MASK] [MASK] ."
			}
			return fmt.Sprintf(`{"id": %d, "template": %q, "budget": 4000}`, i, template)
		}, 0, 10 * time.Minute},
		"beside others": {490, four, 6 * time.Second, 12 * time.Minute},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := newPaced(t, c.rate)
			ctx, end := context.WithCancel(t.Context())
			began := time.Now()
			var small []time.Duration
			var others, all sync.WaitGroup
			others.Go(func() {
				for ctx.Err() == nil {
					asking := time.Now()
					status, _ := asked(t.Context(), s, `{"template": "the [MASK] ."}`)
					small = append(small, time.Since(asking))
					if status != 200 {
						t.Errorf("%s: a small request gets %d", name, status)
					}
					time.Sleep(200 * time.Millisecond)
				}
			})
			for i := 0; c.new > 0 && i < 60; i++ {
				others.Go(func() {
					time.Sleep(time.Duration(i) * c.new)
					const body = `{"id": %d, "template": "a [MASK] [MASK] [MASK] [MASK] .", "budget": 280}`
					asked(ctx, s, fmt.Sprintf(body, i))
				})
			}
			var refused atomic.Int64
			for i := range clients {
				all.Go(func() {
					status, again := asked(t.Context(), s, c.body(i))
					if status == 429 {
						refused.Add(1)
						time.Sleep(again)
						status, again = asked(t.Context(), s, c.body(i))
					}
					if status != 200 {
						t.Errorf("%s: client %d gets %d when it comes again, and is told %v", name, i, status, again)
					}
				})
			}
			all.Wait()
			took := time.Since(began)
			end()
			others.Wait()
			slices.Sort(small)
			t.Logf("%s: %d of %d were told to come again, all answered after %v; small ones within %v", name,
				refused.Load(), clients, took, small[len(small)-1])
			if refused.Load() == 0 || took > c.most || small[len(small)-1] > 500*time.Millisecond {
				t.Errorf("%s: see above", name)
			}
		})
	}
}

// TestBook: a promise holds when its holder comes too early, and is void when the holder
// stays away; nobody is promised a time beyond the horizon.
func TestBook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		k := &book{limit: time.Minute}
		of := func(body byte, span time.Duration) booking {
			return booking{body: [32]byte{body}, span: span, at: time.Now()}
		}
		refuse := func(body byte, want time.Duration) {
			t.Helper()
			b := of(body, 10*time.Second)
			got := k.refuse(b, k.claim(b))
			if got != want {
				t.Errorf("after %v, request %d is told %v, want %v", time.Since(began), body, got, want)
			}
		}
		end := k.begin(of(0, 40*time.Second))
		time.Sleep(30 * time.Second)
		refuse(1, 20*time.Second) // what runs has half of its time left
		refuse(2, 30*time.Second)
		refuse(3, 40*time.Second)
		time.Sleep(10 * time.Second)
		refuse(2, 20*time.Second) // too early
		refuse(4, 40*time.Second)
		end()
		time.Sleep(60 * time.Second) // one and two should have come
		for body, want := range map[byte]bool{1: true, 2: true, 3: true, 4: true, 5: false} {
			if own := k.claim(of(body, 0)); (own != nil) != want {
				t.Errorf("request %d has the promise %v", body, own)
			}
		}
		refuse(1, 0) // nothing runs
		time.Sleep(61 * time.Second)
		if own := k.claim(of(1, 0)); own != nil {
			t.Errorf("who stays away for more than a minute still has the promise %v", own)
		}
		defer k.begin(of(0, time.Minute))()
		for i := range byte(55) { // 1 min of what runs, and 54 times 10 s
			refuse(i, time.Minute+time.Duration(i)*10*time.Second)
		}
		for range 3 {
			refuse(99, time.Minute)
		}
		if len(k.promised) != 55 {
			t.Errorf("%d promises within 10 minutes of 10 s each", len(k.promised))
		}
	})
}
