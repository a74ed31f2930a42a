package serve_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"infill/infill"
	"infill/internal/check"
	"infill/internal/lmtest"
	"infill/internal/serve"
)

// panicking has a model whose evaluations panic while broken is set.
func panicking(t *testing.T) (o serve.Options, broken *bool, logged func() []string) {
	t.Helper()
	words := strings.Fields("[PAD] [UNK] [CLS] [SEP] [MASK] the cat dog sat ran . on rug")
	m := lmtest.New(len(words), 64)
	broken = new(bool)
	m.Before = func(ctx context.Context) error {
		if *broken {
			panic("no such row")
		}
		return ctx.Err()
	}
	f := infill.New(m, check.Must(lmtest.Tokenizer(words))(t))
	var lock sync.Mutex
	var lines []string
	o = serve.Options{Models: map[string]*infill.Filler{name: f}, Default: name, Limits: serve.DefaultLimits(),
		Log: func(line string) {
			lock.Lock()
			defer lock.Unlock()
			lines = append(lines, line)
		}}
	return o, broken, func() []string {
		lock.Lock()
		defer lock.Unlock()
		list := lines
		lines = nil
		return list
	}
}

// TestPanic: a panic at work for a request is a 500 by every path, and a line in
// the log that says where. The server goes on.
func TestPanic(t *testing.T) {
	o, broken, logged := panicking(t)
	url := started(t, o)
	const failed = "the server failed at this request"
	said := func(what string) {
		t.Helper()
		lines := logged()
		if len(lines) != 1 || strings.Contains(lines[0], "\n") || !strings.Contains(lines[0], "panic_test.go:") ||
			!strings.HasSuffix(lines[0], ": no such row") {
			t.Errorf("%s: the log says %q", what, lines)
		}
	}
	events := []string{"Accept", "text/event-stream"}
	for _, test := range []struct {
		path, body string
		header     []string
	}{
		{"/v1/fill", `{"template": "the [MASK] sat"}`, nil},
		{"/v1/fill", `[{"template": "the [MASK] sat"}, {"template": "the [MASK] ran"}]`, nil},
		{"/v1/fill", `{"template": "the [MASK] sat", "sampler": "gibbs", "samples": 3, "steps": 3}`, nil},
		{"/v1/fill", `{"template": "the [MASK] sat"}`, events},
		{"/v1/fill", `{"template": "the [MASK] sat", "samples": 3}`, events},
		{"/v1/score", `{"texts": ["the cat sat"]}`, nil},
		{"/", `{"inputs": "the [MASK] sat"}`, nil},
	} {
		*broken = true
		code, text := ask(t, url+test.path, test.body, test.header...)
		if code != 500 || !strings.Contains(text, failed) || strings.Contains(text, "row") {
			t.Errorf("%s: %d %s", test.body, code, text)
		}
		said(test.body)
		*broken = false
		code, text = ask(t, url+test.path, test.body, test.header...)
		if code != 200 {
			t.Errorf("%s afterwards: %d %s", test.body, code, text)
		}
	}

	s := check.Must(serve.New(o))(t)
	*broken = true
	var out bytes.Buffer
	check.OK(t, s.Pipe(t.Context(), strings.NewReader(
		`{"id": 1, "path": "/v1/fill", "body": {"template": "the [MASK] sat"}}`+"\n"), &out))
	var answer struct {
		ID, Status int
		Body       struct{ Error string }
	}
	check.OK(t, json.Unmarshal(out.Bytes(), &answer))
	if answer.ID != 1 || answer.Status != 500 || answer.Body.Error != failed {
		t.Errorf("the pipe says %s", out.Bytes())
	}
	said("pipe")

	call := tools(t, o)
	text, wrong := call("fill", map[string]any{"template": "the [MASK] sat"})
	if !wrong || !strings.Contains(text, failed) {
		t.Errorf("the agent's tool says %q", text)
	}
	said("tool")
}

// A brokenWriter panics at its first event.
type brokenWriter struct {
	*httptest.ResponseRecorder
	broken bool
}

func (w *brokenWriter) Write(p []byte) (int, error) {
	if !w.broken {
		w.broken = true
		panic(fmt.Errorf("no such row"))
	}
	return w.ResponseRecorder.Write(p)
}

// TestPanicOfObserver: a panic in an observer of the progress of a fill ends the fill
// with an event that says so.
func TestPanicOfObserver(t *testing.T) {
	o, _, logged := panicking(t)
	s := check.Must(serve.New(o))(t)
	r := httptest.NewRequest("POST", "/v1/fill",
		strings.NewReader(`{"template": "the [MASK] sat", "sampler": "gibbs", "samples": 2, "steps": 3}`))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "text/event-stream")
	w := &brokenWriter{ResponseRecorder: httptest.NewRecorder()}
	s.ServeHTTP(w, r)
	if body := w.Body.String(); strings.Count(body, "event: ") != 1 ||
		!strings.Contains(body, "event: error\ndata: {\"error\":\"the server failed at this request\"}") {
		t.Errorf("the events are\n%s", body)
	}
	if lines := logged(); len(lines) != 1 || !strings.HasSuffix(lines[0], ": no such row") {
		t.Errorf("the log says %q", lines)
	}
}

// TestPanicOfHandler: a panic outside the work of a request ends the request.
func TestPanicOfHandler(t *testing.T) {
	o, _, logged := panicking(t)
	s := check.Must(serve.New(o))(t)
	w := &brokenWriter{ResponseRecorder: httptest.NewRecorder()}
	s.ServeHTTP(w, httptest.NewRequest("GET", "/docs", nil))
	if w.Code != 500 || !strings.Contains(w.Body.String(), "the server failed at this request") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if lines := logged(); len(lines) != 1 || !strings.HasSuffix(lines[0], ": no such row") {
		t.Errorf("the log says %q", lines)
	}
	defer func() {
		if value := recover(); value != http.ErrAbortHandler {
			t.Errorf("recovered %v", value)
		}
	}()
	s.ServeHTTP(abortedWriter{httptest.NewRecorder()}, httptest.NewRequest("GET", "/docs", nil))
}

// An abortedWriter ends the connection as package http asks for it.
type abortedWriter struct{ *httptest.ResponseRecorder }

func (abortedWriter) Write([]byte) (int, error) { panic(http.ErrAbortHandler) }
