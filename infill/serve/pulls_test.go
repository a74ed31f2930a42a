package serve_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"infill/infill"
	"infill/infill/serve"
	"infill/internal/modelstest"
	"infill/models"
)

// pulling serves with a hub on the loopback.
func pulling(t *testing.T, limits func(*serve.Limits)) (url string, hub *modelstest.Hub, said func() string) {
	hub = modelstest.NewHub(t)
	store := &models.Store{Dir: t.TempDir()}
	var lock sync.Mutex
	var log strings.Builder
	o := options(t)
	if limits != nil {
		limits(&o.Limits)
	}
	o.Log = func(message string) { lock.Lock(); defer lock.Unlock(); log.WriteString(message + "\n") }
	o.Pull = func(ctx context.Context, name string, progress models.Progress) (*infill.Filler, error) {
		from := hub.Options()
		from.Progress = progress
		bundle, err := store.Pull(ctx, name, from)
		if err != nil {
			return nil, err
		}
		return infill.Open(infill.OpenOptions{Model: bundle.Dir, Device: "cpu"})
	}
	url = started(t, o)
	return url, hub, func() string { lock.Lock(); defer lock.Unlock(); return log.String() }
}

// awaited asks until the answer is another than 503.
func awaited(t *testing.T, url, body string) (code int, text string) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if code, text = ask(t, url, body); code != http.StatusServiceUnavailable {
			return code, text
		}
	}
	t.Fatalf("still %s", text)
	return 0, ""
}

// A model that a request names is fetched while the client is reported to come again, and
// then answers it.
func TestPull(t *testing.T) {
	url, hub, said := pulling(t, nil)
	const body = `{"inputs": "a [MASK] b"}`
	r, err := http.Post(url+"/models/org/tiny", "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Body.Close()
	if r.StatusCode != 503 || r.Header.Get("Retry-After") == "" {
		t.Fatalf("%d %v", r.StatusCode, r.Header)
	}
	if code, text := awaited(t, url+"/models/org/tiny", body); code != 200 ||
		len(decode[[]serve.Candidate](t, text)) != 5 {
		t.Fatalf("%d %s\n%s", code, text, said())
	}
	if code, text := ask(t, url+"/v1/fill",
		`{"template": "a [MASK] b", "model": "org/tiny", "fill": "any"}`); code != 200 {
		t.Errorf("%d %s", code, text)
	}
	answer, err := http.Get(url + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	text, _ := io.ReadAll(answer.Body)
	for _, line := range []string{"infill_models 2", "infill_pulls_running 0", "infill_pulls_failed_total 0",
		"infill_pulls_bytes_total "} {
		if !strings.Contains(string(text), line) {
			t.Errorf("no %s in\n%.3000s", line, text)
		}
	}
	if len(hub.Seen("safetensors")) == 0 || strings.Count(said(), "fetching") != 1 {
		t.Errorf("%s", said())
	}
}

// What cannot be fetched is refused: an invalid name before any request, and
// one that the hub lacks once a minute.
func TestPullRefuses(t *testing.T) {
	url, hub, said := pulling(t, func(l *serve.Limits) { l.Models, l.ModelBytes = 1, 10000 })
	const body = `{"inputs": "a [MASK] b"}`
	for _, name := range []string{"org/tiny@main", "..%2F..%2Fetc%2Fpasswd", "%2Fetc", "a%20b",
		"https:%2F%2Fexample.org%2Fx"} {
		if code, text := ask(t, url+"/models/"+name, body); code != 404 || len(hub.Seen("")) > 0 {
			t.Errorf("%s: %d %s", name, code, text)
		}
	}
	hub.Answer(func(w http.ResponseWriter, r *http.Request) bool {
		w.WriteHeader(http.StatusNotFound)
		return true
	})
	if code, text := awaited(t, url+"/models/org/none", body); code != 404 ||
		!strings.Contains(text, "could not be fetched") {
		t.Errorf("%d %s", code, text)
	}
	hub.Answer(nil)
	hub.Forget()
	if code, _ := ask(t, url+"/models/org/none", body); code != 404 || len(hub.Seen("")) > 0 {
		t.Errorf("asked again at once: %d", code)
	}
	if code, text := awaited(t, url+"/models/org/tiny", body); code != 422 || !strings.Contains(text, "10000 at most") {
		t.Errorf("too large: %d %s\n%s", code, text, said())
	}
	// Without --allow-pull nothing is asked of the hub.
	hub.Forget()
	if code, text := ask(t, start(t, nil)+"/models/org/tiny", body); code != 404 || len(hub.Seen("")) > 0 {
		t.Errorf("%d %s", code, text)
	}
}

// The end of the server ends a fetch.
func TestPullEnds(t *testing.T) {
	o := options(t)
	begun := make(chan struct{})
	var why error
	o.Pull = func(ctx context.Context, _ string, _ models.Progress) (*infill.Filler, error) {
		close(begun)
		<-ctx.Done()
		why = context.Cause(ctx)
		return nil, why
	}
	s, err := serve.New(o)
	if err != nil {
		t.Fatal(err)
	}
	tryMalformed(t.Context(), t, s, "/models/org/a", []byte(`{"inputs": "a [MASK]"}`))
	<-begun
	tryMalformed(t.Context(), t, s, "/models/org/b", []byte(`{"inputs": "a [MASK]"}`))
	if err := s.Close(); err != nil || why == nil || errors.Is(why, context.Canceled) {
		t.Errorf("%v, %v", err, why)
	}
}
