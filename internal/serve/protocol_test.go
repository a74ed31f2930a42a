package serve_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"infill/infill"
	"infill/internal/serve"
)

// fakeOptions serve the fake model.
func fakeOptions(t *testing.T) serve.Options {
	t.Helper()
	f, _ := newFaulty(t, func() error { return nil })
	return optionsOf(f)
}

// optionsOf serve a model as "fake".
func optionsOf(f *infill.Filler) serve.Options {
	return serve.Options{Models: map[string]*infill.Filler{"fake": f}, Default: "fake", Limits: serve.DefaultLimits()}
}

// TestAccept: events come to a client that wants them more than JSON, by the
// weights and the ranges of its header.
func TestAccept(t *testing.T) {
	url := started(t, fakeOptions(t))
	for _, c := range []struct {
		accept string
		events bool
	}{
		{"", false},
		{"*/*", false},
		{"text/event-stream", true},
		{"Text/Event-Stream", true},
		{"text/*", true},
		{"text/event-stream; charset=utf-8", true},
		{"application/json, text/event-stream", false},
		{"text/event-stream, application/json", false},
		{"text/event-stream, */*", false},
		{"text/event-stream, */*;q=0.5", true},
		{"text/event-stream;q=0.9, application/json", false},
		{"text/event-stream, application/json;q=0.9", true},
		{"text/event-stream;Q=0.2 , application/json ; q=0.1", true},
		{"application/json, text/event-stream;q=0", false},
		{"text/event-stream;q=0", false},
		{"text/event-stream;q=0.0, */*", false},
		{"text/*;q=0.5, text/event-stream;q=0.1, application/json;q=0.2", false},
		{"application/*;q=0.1, text/event-stream;q=0.2", true},
		{"text/event-stream;q=2", false},
		{"text/event-stream;q=x", false},
		{"text/event-streams", false},
		{`x/y;note="text/event-stream, text/event-stream"`, false},
		{`x/y;note="a\", text/event-stream, ", text/event-stream`, true},
		{"\ntext/event-stream, application/json;q=0.5", true}, // in two lines
	} {
		r, err := http.NewRequest(http.MethodPost, url+"/v1/fill", strings.NewReader(`{"template":"the [MASK] sat"}`))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		r.Header["Accept"] = strings.Split(c.accept, "\n")
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(answer.Body)
		answer.Body.Close()
		if err != nil {
			t.Fatal(err)
		}
		kind := map[bool]string{false: "application/json", true: "text/event-stream"}[c.events]
		if answer.StatusCode != 200 || answer.Header.Get("Content-Type") != kind ||
			strings.HasPrefix(string(text), "event: ") != c.events {
			t.Errorf("%q: %d %v %.80s, want %s", c.accept, answer.StatusCode, answer.Header, text, kind)
		}
	}
}

// TestMethods: a path tells by which methods it answers, and pages need no
// token, whether their content is asked for or their headers alone.
func TestMethods(t *testing.T) {
	o := fakeOptions(t)
	o.Token = "secret"
	o.Origin = "https://example.org"
	s, err := serve.New(o)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		method, path, token, origin string
		code                        int
		allow                       string
	}{
		{"HEAD", "/", "", "", 200, ""},
		{"HEAD", "/docs", "", "", 200, ""},
		{"HEAD", "/health", "", "", 200, ""},
		{"HEAD", "/openapi.json", "", "", 200, ""},
		{"HEAD", "/v1/fill", "", "", 401, ""},
		{"DELETE", "/health", "", "", 401, ""},
		{"HEAD", "/v1/fill", "secret", "", 405, "POST"},
		{"GET", "/v1/fill", "secret", "", 405, "POST"},
		{"GET", "/v1/score", "secret", "", 405, "POST"},
		{"GET", "/models/fake", "secret", "", 405, "POST"},
		{"OPTIONS", "/v1/fill", "secret", "", 405, "POST"},
		{"OPTIONS", "/v1/fill", "secret", "https://evil.example", 405, "POST"},
		{"OPTIONS", "/v1/fill", "", "https://example.org", 204, ""},
		{"POST", "/health", "secret", "", 405, "GET, HEAD"},
		{"PUT", "/", "secret", "", 405, "GET, HEAD, POST"},
		{"GET", "/v1/fills", "secret", "", 404, ""},
		{"GET", "/v1/fill/", "secret", "", 404, ""},
	} {
		r := httptest.NewRequest(c.method, c.path, nil)
		r.Header.Set("Content-Type", "application/json")
		if c.token != "" {
			r.Header.Set("Authorization", "Bearer "+c.token)
		}
		if c.origin != "" {
			r.Header.Set("Origin", c.origin)
		}
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		if w.Code != c.code || w.Header().Get("Allow") != c.allow {
			t.Errorf("%s %s of %q: %d, Allow %q, %s", c.method, c.path, c.origin, w.Code, w.Header().Get("Allow"),
				w.Body)
		}
		// Caches have to keep the answers to each origin apart.
		exposed := map[bool]string{true: "Retry-After, Warning"}[c.origin == o.Origin]
		if w.Header().Get("Vary") != "Origin" || w.Header().Get("Access-Control-Expose-Headers") != exposed {
			t.Errorf("%s %s of %q: %v", c.method, c.path, c.origin, w.Header())
		}
		if w.Code == 405 && !strings.Contains(w.Body.String(), "send "+c.allow) {
			t.Errorf("%s %s: %s", c.method, c.path, w.Body)
		}
	}
}

// gone is the connection of a client that leaves while it reads the answer.
type gone struct {
	header   http.Header
	statuses []int
	leave    func()
}

func (g *gone) Header() http.Header       { return g.header }
func (g *gone) WriteHeader(status int)    { g.statuses = append(g.statuses, status) }
func (g *gone) Write([]byte) (int, error) { g.leave(); return 0, net.ErrClosed }

// TestClientLeaves: an answer that nobody reads has one status, and is no
// failure of the server, whether the request is cancelled or not.
func TestClientLeaves(t *testing.T) {
	o := fakeOptions(t)
	o.Log = func(line string) { t.Errorf("the log says %q", line) }
	s, err := serve.New(o)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ method, path, body string }{
		{"POST", "/", `{"inputs": "the [MASK] sat"}`},
		{"POST", "/", `{"inputs": 3}`},
		{"POST", "/v1/fill", `{"template": "the [MASK] sat"}`},
		{"POST", "/v1/score", `{"texts": ["the cat sat"]}`},
		{"POST", "/v1/gaps", `{"text": "the [cat] sat"}`},
		{"POST", "/v1/tokens", `{"text": "the cat sat"}`},
		{"GET", "/v1/models", ""},
		{"GET", "/health", ""},
		{"GET", "/openapi.json", ""},
		{"GET", "/", ""},
		{"GET", "/nothing", ""},
	} {
		for _, leaves := range []bool{false, true} {
			ctx, cancel := context.WithCancel(t.Context())
			r := httptest.NewRequestWithContext(ctx, c.method, c.path, strings.NewReader(c.body))
			r.Header.Set("Content-Type", "application/json")
			w := &gone{http.Header{}, nil, func() {}}
			if leaves {
				w.leave = cancel
			}
			s.ServeHTTP(w, r)
			cancel()
			if len(w.statuses) > 1 {
				t.Errorf("%s %s: statuses %v", c.method, c.path, w.statuses)
			}
		}
	}
}

// TestDocumentedStatuses: openapi.json has the paths and the statuses of
// docs/reference/http.md.
func TestDocumentedStatuses(t *testing.T) {
	answer, err := http.Get(started(t, fakeOptions(t)) + "/openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	type operation struct{ Responses map[string]any }
	document := decode[struct {
		Paths map[string]map[string]operation
	}](t, string(text))
	for _, path := range []string{"/", "/models/{model}", "/v1/fill", "/v1/score"} {
		for _, code := range strings.Fields("200 400 401 403 404 408 413 415 422 429 500 503") {
			if document.Paths[path]["post"].Responses[code] == nil {
				t.Errorf("POST %s has no %s", path, code)
			}
		}
	}
	for _, code := range []string{"200", "403"} {
		if document.Paths["/health"]["get"].Responses[code] == nil {
			t.Errorf("GET /health has no %s", code)
		}
	}
}

// TestOrigins: an origin is compared in the form in which browsers send it, and
// one that no browser sends is refused.
func TestOrigins(t *testing.T) {
	for given, sent := range map[string]string{
		"https://example.org":            "https://example.org",
		"https://EXAMPLE.org:443":        "https://example.org",
		"http://example.org:80":          "http://example.org",
		"HTTP://example.org:0080":        "http://example.org",
		"http://example.org:443":         "http://example.org:443",
		"https://example.org:08443":      "https://example.org:8443",
		"https://example.org:":           "https://example.org",
		"https://example.org.":           "https://example.org.",
		"https://xn--exmple-cua.org":     "https://xn--exmple-cua.org",
		"http://127.0.0.1:3000":          "http://127.0.0.1:3000",
		"http://[::1]:80":                "http://[::1]",
		"http://[0:0:0:0:0:0:0:1]:3000":  "http://[::1]:3000",
		"http://[::FFFF:127.0.0.1]":      "http://[::ffff:7f00:1]",
		"chrome-extension://abcdefghijk": "chrome-extension://abcdefghijk",
		"https://exämple.org":            "",
		"https://*.example.org":          "",
		"https://example.org/":           "",
		"https://example.org/path":       "",
		"https://example.org?":           "",
		"https://example.org#":           "",
		"https://me@example.org":         "",
		"https://example.org:99999":      "",
		"http://127.1":                   "",
		"http://0177.0.0.1":              "",
		"http://[fe80::1%25eth0]":        "",
		"https://a..org":                 "",
		"file:///tmp":                    "",
		"null":                           "",
		"*":                              "",
		"example.org":                    "",
	} {
		o := fakeOptions(t)
		o.Origin = given
		s, err := serve.New(o)
		if sent == "" {
			if err == nil || !strings.Contains(err.Error(), "is not SCHEME://HOST, such as https://example.org: ") {
				t.Errorf("%s: %v, want an error", given, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", given, err)
			continue
		}
		r := httptest.NewRequest(http.MethodOptions, "/v1/fill", nil)
		r.Header.Set("Origin", sent)
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		if w.Code != 204 || w.Header().Get("Access-Control-Allow-Origin") != sent {
			t.Errorf("%s: %d for %s", given, w.Code, sent)
		}
	}
}

// TestTwoLengths: a connection ends after a request that could have two
// lengths. What follows it may be a part of it, and gets no answer.
func TestTwoLengths(t *testing.T) {
	address := strings.TrimPrefix(started(t, fakeOptions(t)), "http://")
	const body = `{"template":"the [MASK] sat"}`
	chunked := fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(body), body)
	length := fmt.Sprintf("Content-Length: %d\r\n", len(body))
	for name, c := range map[string]struct {
		headers, body string
		answers       int
	}{
		"a length":     {length, body, 2},
		"chunks":       {"Transfer-Encoding: chunked\r\n", chunked, 1},
		"both":         {length + "Transfer-Encoding: chunked\r\n", chunked, 1},
		"the other":    {"Transfer-Encoding: chunked\r\n" + length, chunked, 1},
		"a short one":  {"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n", chunked, 1},
		"a length too": {"Content-Length: 0\r\nTransfer-Encoding: chunked\r\n", chunked, 1},
	} {
		connection, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		connection.SetDeadline(time.Now().Add(20 * time.Second)) //nolint:errcheck // the test fails otherwise, too
		fmt.Fprintf(connection, "POST /v1/fill HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\n%s\r\n%s"+
			"GET /health HTTP/1.1\r\nHost: %[1]s\r\nConnection: close\r\n\r\n", address, c.headers, c.body)
		text, _ := io.ReadAll(bufio.NewReader(connection)) // a reset may follow the answer
		connection.Close()
		if got := strings.Count(string(text), "HTTP/1.1 200 OK"); got != c.answers {
			t.Errorf("%s: %d answers, want %d, in %s", name, got, c.answers, text)
		}
	}
}

// TestVersions: the tools agree to no version of the protocol that demands
// batches.
func TestVersions(t *testing.T) {
	for asked, want := range map[string]string{"2024-11-05": "2024-11-05", "2025-03-26": "2025-11-25",
		"2025-06-18": "2025-06-18", "2025-11-25": "2025-11-25"} {
		server, err := serve.Tools(t.Context(), fakeOptions(t))
		if err != nil {
			t.Fatal(err)
		}
		here, there := mcp.NewInMemoryTransports()
		go server.Run(t.Context(), there) //nolint:errcheck // it ends with the context
		client, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil).Connect(t.Context(), here,
			&mcp.ClientSessionOptions{ProtocolVersion: asked})
		if err != nil {
			t.Fatal(err)
		}
		got := client.InitializeResult().ProtocolVersion
		err = client.Close()
		if err != nil {
			t.Error(err)
		}
		if got != want {
			t.Errorf("%s: the server agrees to %s, want %s", asked, got, want)
		}
	}
}

// TestLeastTimes: a length of time is refused where no request can be done in
// it, with one that is a length of time.
func TestLeastTimes(t *testing.T) {
	for name, c := range map[string]func(l *serve.Limits, d time.Duration){
		"max-time": func(l *serve.Limits, d time.Duration) { l.Time = d },
		"max-wait": func(l *serve.Limits, d time.Duration) { l.Wait = d },
	} {
		for d, taken := range map[time.Duration]bool{-time.Second: false, 0: false, 1: false,
			10*time.Millisecond - 1: false, 10 * time.Millisecond: true} {
			l := serve.DefaultLimits()
			c(&l, d)
			err := l.Check()
			if (err == nil) != taken {
				t.Errorf("%s %v: %v", name, d, err)
			}
			if err != nil && !strings.HasSuffix(err.Error(), "give 10ms or more") {
				t.Errorf("%s %v: %v", name, d, err)
			}
		}
	}
}

// TestEvents: events of a search have what it has found so far, and those of
// chains the mean of U, if the sampler needs it.
func TestEvents(t *testing.T) {
	f, m := newFaulty(t, func() error { return nil })
	before := m.Before
	m.Before = func(ctx context.Context) error {
		time.Sleep(210 * time.Millisecond) // an event at most every 200 ms
		return before(ctx)
	}
	url := started(t, optionsOf(f))
	for _, c := range []struct {
		body        string
		fills, mean bool
	}{
		{`{"template":"the [MASK] [MASK] on the mat"}`, true, false},
		{`{"template":"the [MASK] sat on the [MASK]","sampler":"dmala","steps":2,"samples":2}`, false, true},
		{`{"template":"the [MASK] sat on the [MASK]","sampler":"gibbs","steps":2,"samples":2}`, false, false},
	} {
		code, text := ask(t, url+"/v1/fill", c.body, "Accept", "text/event-stream")
		progress, result, _ := strings.Cut(text, "event: result\n")
		if code != 200 || !strings.HasPrefix(progress, "event: progress\ndata: {\"step\":") ||
			strings.Contains(progress, `"fills":[`) != c.fills || strings.Contains(progress, `"found":"`) != c.fills ||
			strings.Contains(progress, `"mean_log_likelihood":`) != c.mean || !strings.Contains(result, `"fills":[`) {
			t.Errorf("%s: %d %s", c.body, code, text)
		}
	}
}

// TestOwnMaskIsNamed: where the model's own mask alone is a blank, the error names it.
func TestOwnMaskIsNamed(t *testing.T) {
	url := started(t, fakeOptions(t))
	for _, path := range []string{"/", "/models/fake"} {
		code, text := ask(t, url+path,
			`{"inputs": ["the [MASK] sat", "the ___ sat"], "parameters": {"own_mask": true}}`)
		if code != 422 || !strings.Contains(text, "text 2: ") ||
			!strings.Contains(text, "write [MASK] where a word is wanted") || strings.Contains(text, "or ___") {
			t.Errorf("%s: %d %s", path, code, text)
		}
	}
}
