package serve_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"infill/infill"
	"infill/internal/lmtest"
	"infill/internal/serve"
)

// logbook is the log of a server, for several goroutines.
type logbook struct {
	lock  sync.Mutex
	lines []string
}

func (l *logbook) write(line string) {
	l.lock.Lock()
	defer l.lock.Unlock()
	l.lines = append(l.lines, line)
}

// take returns the lines so far, and forgets them.
func (l *logbook) take() []string {
	l.lock.Lock()
	defer l.lock.Unlock()
	lines := l.lines
	l.lines = nil
	return lines
}

// faultyModel is a fake model of which call failAt does something, and only
// that one: an error that is dropped leaves an answer.
type faultyModel struct {
	*lmtest.Model
	calls, failAt atomic.Int64
}

func newFaulty(t testing.TB, fail func() error) (*infill.Filler, *faultyModel) {
	t.Helper()
	words := strings.Fields("[PAD] [UNK] [CLS] [SEP] [MASK] the cat dog sat ran on under mat rug old")
	tokenizer, err := lmtest.Tokenizer(words)
	if err != nil {
		t.Fatal(err)
	}
	m := &faultyModel{Model: lmtest.New(len(words), 32)}
	m.Before = func(ctx context.Context) error {
		if m.calls.Add(1) == m.failAt.Load() {
			return fail()
		}
		return ctx.Err()
	}
	return infill.New(m, tokenizer), m
}

// askedBy are requests by every door of a server, each of which returns the text
// of the answer, and whether the answer is that of a failure of the server.
func askedBy(t *testing.T, o serve.Options, model string) map[string]func() (string, bool) {
	url := started(t, o)
	call := tools(t, o)
	s, err := serve.New(o)
	if err != nil {
		t.Fatal(err)
	}
	posted := func(path, body string, header ...string) func() (string, bool) {
		return func() (string, bool) {
			code, text := ask(t, url+path, body, header...)
			failed := code == 500 || strings.Contains(text, "event: error\n")
			if !failed && code != 200 {
				t.Errorf("%s %s: %d %s", path, body, code, text)
			}
			return text, failed
		}
	}
	piped := func(path, body string) func() (string, bool) {
		return func() (string, bool) {
			var out bytes.Buffer
			err := s.Pipe(t.Context(), strings.NewReader(fmt.Sprintf(`{"path":%q,"body":%s}`, path, body)+"\n"), &out)
			if err != nil {
				t.Error(err)
			}
			answer := decode[struct{ Status int }](t, out.String())
			return out.String(), answer.Status == 500
		}
	}
	const two = "the [MASK] [MASK] on the mat"
	fill := fmt.Sprintf(`{"template":%q,"model":%q}`, two, model)
	chains := fmt.Sprintf(`{"template":%q,"model":%q,"sampler":"dmala","steps":4,"samples":2}`, two, model)
	score := fmt.Sprintf(`{"texts":["the cat sat on the mat","the dog ran"],"model":%q}`, model)
	masks := fmt.Sprintf(`{"inputs":[%q,"the [MASK] sat"]}`, two)
	return map[string]func() (string, bool){
		"fill":           posted("/v1/fill", fill),
		"fills":          posted("/v1/fill", "["+fill+","+chains+","+fill+"]"),
		"events":         posted("/v1/fill", fill, "Accept", "text/event-stream"),
		"chains' events": posted("/v1/fill", chains, "Accept", "text/event-stream"),
		"score":          posted("/v1/score", score),
		"masks":          posted("/models/"+model, masks),
		"gaps":           posted("/v1/gaps", fmt.Sprintf(`{"text":"the [cat] sat","options":2,"model":%q}`, model)),
		"a line's fill":  piped("/v1/fill", fill),
		"a line's score": piped("/v1/score", score),
		"a line's masks": piped("/models/"+model, masks),
		"the tool fill":  func() (string, bool) { return call("fill", json.RawMessage(fill)) },
		"the tool score": func() (string, bool) { return call("score", json.RawMessage(score)) },
	}
}

// TestFaults: whichever call of a model fails or panics, the request that asked
// for it gets the server's failure, by every door. The log says why, in one
// line, and the client does not learn it.
func TestFaults(t *testing.T) {
	for want, fail := range map[string]func() error{
		"out of memory at /secret/path": func() error {
			return errors.New("out of memory at /secret/path")
		},
		"a fault of the program at serve/faults_test.go": func() error { panic("/secret/path") },
	} {
		f, m := newFaulty(t, fail)
		log := &logbook{}
		o := serve.Options{Models: map[string]*infill.Filler{"fake": f}, Default: "fake",
			Limits: serve.DefaultLimits(), Log: log.write}
		for door, do := range askedBy(t, o, "fake") {
			for n := int64(1); ; n++ {
				m.calls.Store(0)
				m.failAt.Store(n)
				text, failed := do()
				lines := log.take()
				if m.calls.Load() < n {
					if failed || len(lines) > 0 || n == 1 {
						t.Errorf("%s, without a fault in %d calls: %s, log %q", door, m.calls.Load(), text, lines)
					}
					break
				}
				if !failed || !strings.Contains(text, "the server failed at this request") ||
					strings.Contains(text, "secret") || strings.Contains(text, "event: result") {
					t.Errorf("%s, call %d, %s: %s", door, n, want, text)
				}
				if len(lines) != 1 || !strings.Contains(lines[0], want) || strings.Contains(lines[0], "\n") {
					t.Errorf("%s, call %d, %s: log %q", door, n, want, lines)
				}
			}
		}
	}
}

// TestPlanPanics: a panic before any model runs ends its own request, too, and
// the server goes on with others. A filler without a tokenizer panics.
func TestPlanPanics(t *testing.T) {
	f, _ := newFaulty(t, func() error { return nil })
	log := &logbook{}
	o := serve.Options{Models: map[string]*infill.Filler{"fake": f, "broken": new(infill.Filler)}, Default: "fake",
		Limits: serve.DefaultLimits(), Log: log.write}
	good := askedBy(t, o, "fake")
	for door, do := range askedBy(t, o, "broken") {
		text, failed := do()
		lines := log.take()
		program := func(line string) bool { return strings.Contains(line, "a fault of the program at ") }
		if !failed || !strings.Contains(text, "the server failed at this request") || len(lines) != 1 ||
			!slices.ContainsFunc(lines, program) {
			t.Errorf("%s: %s, log %q", door, text, lines)
		}
		text, failed = good[door]()
		if failed {
			t.Errorf("%s afterwards: %s", door, text)
		}
	}
}
