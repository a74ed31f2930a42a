package serve_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"infill/infill"
	"infill/infill/serve"
)

const name = "small"

var opened = sync.OnceValues(func() (*infill.Filler, error) { return infill.Open(infill.OpenOptions{Device: "cpu"}) })

func options(t testing.TB) serve.Options {
	t.Helper()
	f, err := opened()
	if err != nil {
		t.Fatal(err)
	}
	return serve.Options{Models: map[string]*infill.Filler{name: f}, Default: name, Fill: infill.DefaultOptions(), Limits: serve.DefaultLimits()}
}

// start serves on the loopback.
func start(t testing.TB, change func(*serve.Options)) string {
	t.Helper()
	o := options(t)
	if change != nil {
		change(&o)
	}
	s, err := serve.New(o)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	return server.URL
}

// ask posts JSON and gives status and answer.
func ask(t testing.TB, url, body string, header ...string) (int, string) {
	t.Helper()
	r, err := http.NewRequest(http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(text)
}

func decode[T any](t testing.TB, text string) (v T) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("%v in %.300s", err, text)
	}
	return v
}

// The answers have the forms of Hugging Face's pipeline, and its numbers: the
// probabilities while all blanks are masked.
func TestHuggingFace(t *testing.T) {
	url, f := start(t, nil), options(t).Models[name]
	logp, err := f.LogConditionals(t.Context(), "he had [MASK] me", nil)
	if err != nil {
		t.Fatal(err)
	}
	code, text := ask(t, url+"/", `{"inputs": "he had [MASK] me", "parameters": {"targets": ["told", "never"], "top_k": 3}}`)
	one := decode[[]serve.Candidate](t, text)
	if code != 200 || len(one) != 2 || one[0].Text != "told" || one[0].Sequence != "he had told me" {
		t.Fatalf("%d %s", code, text)
	}
	for _, c := range one {
		if want := math.Exp(float64(logp[0][c.Token])); math.Abs(c.Score-want) > 1e-6 {
			t.Errorf("%s has %g, the model gives %g", c.Text, c.Score, want)
		}
	}
	if _, text = ask(t, url+"/models/"+name, `{"inputs": "the [MASK] was [MASK]"}`); len(decode[[][]serve.Candidate](t, text)) != 2 {
		t.Errorf("two blanks: %s", text)
	}
	_, text = ask(t, url, `{"inputs": ["he had [MASK] me", "the [MASK] was [MASK]"], "parameters": {"top_k": 2}}`)
	both := decode[[]json.RawMessage](t, text)
	if first := decode[[]serve.Candidate](t, string(both[0])); len(first) != 2 || first[0].Score < first[1].Score {
		t.Errorf("the likeliest is not first: %s", both[0])
	}
	if len(decode[[][]serve.Candidate](t, string(both[1]))) != 2 {
		t.Errorf("several texts: %s", text)
	}
}

// Every refusal is {"error": "..."} with its status, and says what is wrong.
func TestRefusals(t *testing.T) {
	url := start(t, func(o *serve.Options) {
		o.Limits.Body, o.Limits.Texts, o.Limits.Blanks, o.Limits.Rows = 2000, 3, 4, 5000
	})
	for _, c := range []struct {
		path, body, says string
		code             int
	}{
		{"/", `{"inputs": `, "JSON", 400},
		{"/", `{"inputs": "no blank"}`, "no blank", 422},
		{"/", `{"inputs": 5}`, "inputs: expected one, or a list", 422},
		{"/", `{}`, "inputs", 422},
		{"/", `{"inputs": []}`, "no text", 422},
		{"/", `{"inputs": "a [MASK]", "parameters": {"top_k": 0}}`, "top_k", 422},
		{"/", `{"inputs": "a [MASK]", "parameters": {"targets": ["antidisestablishmentarianism"]}}`, "not one token", 422},
		{"/", `{"inputs": ["a [MASK]", "a [MASK]", "a [MASK]", "a [MASK]"]}`, "4 texts", 422},
		{"/", `{"inputs": "a [MASK] [MASK] [MASK] [MASK] [MASK]"}`, "5 slots", 422},
		{"/", `{"inputs": "a [MASK] ` + strings.Repeat("x", 2000) + `"}`, "2000 bytes", 413},
		{"/models/other", `{"inputs": "a [MASK]"}`, `no model "other"`, 404},
		{"/models/../../etc/passwd", `{"inputs": "a [MASK]"}`, "", 404},
		{"/v1/fill", `{"template": "he had [MASK] me", "tops": 2}`, "tops: there is no such option", 422},
		{"/v1/fill", `{"template": "he had [MASK] me", "top": "x"}`, "top", 422},
		{"/v1/fill", `{"template": 5}`, `"template" is not a string`, 422},
		{"/v1/fill", `{"template": "he had [MASK] me", "sampler": "dmala", "steps": 100000}`, "model rows", 422},
		{"/v1/fill", `[]`, "no text", 422},
		{"/v1/score", `{"texts": []}`, "no text", 422},
		{"/v1/score", `{"texts": "a", "method": "x"}`, "method", 422},
		{"/v2/models/other/infer", `{"inputs": [{"name": "text", "datatype": "BYTES", "shape": [1], "data": ["a [MASK]"]}]}`, "no model", 404},
		{"/v2/models/small/infer", `{"inputs": [{"name": "text", "datatype": "BYTES", "shape": [2], "data": ["a [MASK]"]}]}`, "shape", 400},
		{"/v2/models/small/infer", `{"inputs": [{"name": "text", "datatype": "FP32", "shape": [1], "data": [1]}]}`, "datatype", 422},
		{"/nothing", `{}`, "nothing here", 404},
		{"/metrics", `{}`, "GET", 405},
	} {
		code, text := ask(t, url+c.path, c.body)
		problem := decode[map[string]any](t, text)
		if message, ok := problem["error"].(string); code != c.code || !ok || len(problem) != 1 || !strings.Contains(message, c.says) {
			t.Errorf("%s %.80s: %d %s, want %d with %q", c.path, c.body, code, text, c.code, c.says)
		}
	}
	if code, text := ask(t, url, `{"inputs": "a [MASK]"}`, "Content-Type", "text/plain"); code != 415 {
		t.Errorf("plain text: %d %s", code, text)
	}
}

func TestFillAndScore(t *testing.T) {
	url := start(t, nil)
	request := `{"template": "She closed the [MASK] and went to [MASK].", "seed": 7, "top": 3, "candidates": 40}`
	code, text := ask(t, url+"/v1/fill", request)
	alone := decode[infill.Result](t, text)
	if code != 200 || len(alone.Fills) != 3 || alone.Seed != 7 {
		t.Fatalf("%d %.300s", code, text)
	}
	_, text = ask(t, url+"/v1/fill", "["+request+","+request+"]")
	list := decode[[]infill.Result](t, text)
	if len(list) != 2 || list[1].Fills[0].Text != alone.Fills[0].Text {
		t.Errorf("a list gives %.300s", text)
	}
	code, text = ask(t, url+"/v1/fill", request, "Accept", "text/event-stream")
	last := text[strings.LastIndex(text, "event: "):]
	if result := decode[infill.Result](t, strings.TrimPrefix(last, "event: result\ndata: ")); code != 200 || result.Fills[0].Text != alone.Fills[0].Text {
		t.Errorf("events: %d %.300s", code, text)
	}
	code, text = ask(t, url+"/v1/score", `{"texts": ["he had told me", "he had tell me"]}`)
	if scores := decode[[]infill.Score](t, text); code != 200 || scores[0].LogLikelihood < scores[1].LogLikelihood {
		t.Errorf("scores: %d %.300s", code, text)
	}
}

// Variants keep labels, and the same seed gives the same.
func TestAugment(t *testing.T) {
	url := start(t, nil)
	const request = `{"records": [{"label": 1, "text": "The soup was warm and the bread was fresh."}, {"text": "It rained all day."}], "variants": 2, "seed": 7, "distinct": true}`
	code, text := ask(t, url+"/v1/augment", request)
	rows := decode[[]map[string]any](t, text)
	if code != 200 || len(rows) != 4 || rows[0]["label"] != 1.0 || rows[0]["text"] == rows[1]["text"] || rows[0]["original"] == rows[0]["text"] {
		t.Fatalf("%d %s", code, text)
	}
	if _, again := ask(t, url+"/v1/augment", request); again != text {
		t.Errorf("the same seed gives\n%s\nand\n%s", text, again)
	}
	if code, text := ask(t, url+"/v1/augment", `{"records": [{"label": 1}]}`); code != 422 || !strings.Contains(text, "record 1") {
		t.Errorf("no text: %d %s", code, text)
	}
}

// A KServe-style exchange: is it ready, what does it take, infer.
func TestInference(t *testing.T) {
	url := start(t, nil)
	for _, path := range []string{"/v2/health/live", "/v2/health/ready", "/v2", "/v2/models/small", "/v2/models/small/ready"} {
		if answer, err := http.Get(url + path); err != nil || answer.StatusCode != 200 {
			t.Errorf("%s: %v %v", path, answer.StatusCode, err)
		}
	}
	code, text := ask(t, url+"/v2/models/small/infer", `{"id": "a", "inputs": [{"name": "text", "datatype": "BYTES", "shape": [2, 1], "data": ["he had [MASK] me", "the [MASK] was cold"]}], "parameters": {"top": 2, "seed": 1}}`)
	type tensor struct {
		Name     string
		Datatype string
		Shape    []int
		Data     []any
	}
	answer := decode[struct {
		ID      string
		Outputs []tensor
	}](t, text)
	if code != 200 || answer.ID != "a" || len(answer.Outputs) != 3 || !slices.Equal(answer.Outputs[0].Shape, []int{2, 2}) || len(answer.Outputs[0].Data) != 4 {
		t.Errorf("%d %.400s", code, text)
	}
}

func TestTokenHostsAndOrigin(t *testing.T) {
	url := start(t, func(o *serve.Options) {
		o.Token = "secret"
		o.Hosts = []string{"127.0.0.1"}
		o.Origin = "https://example.org"
	})
	const body = `{"inputs": "he had [MASK] me"}`
	for header, want := range map[string]int{"": 401, "Bearer wrong": 401, "secret": 401, "Bearer secret": 200} {
		if code, text := ask(t, url, body, "Authorization", header); code != want {
			t.Errorf("%q: %d %s", header, code, text)
		}
	}
	for path, want := range map[string]int{"/": 200, "/docs": 200, "/v2/health/live": 200, "/metrics": 401, "/openapi.json": 401, "/v2": 401} {
		if answer, err := http.Get(url + path); err != nil || answer.StatusCode != want {
			t.Errorf("%s: %v %v", path, answer.StatusCode, err)
		}
	}
	r, _ := http.NewRequest(http.MethodGet, url+"/", nil)
	r.Host = "evil.example"
	if answer, err := http.DefaultClient.Do(r); err != nil || answer.StatusCode != 403 {
		t.Errorf("another host's name: %v %v", answer.StatusCode, err)
	}
	for origin, want := range map[string]string{"https://example.org": "https://example.org", "https://evil.example": ""} {
		r, _ := http.NewRequest(http.MethodOptions, url+"/v1/fill", nil)
		r.Header.Set("Origin", origin)
		answer, err := http.DefaultClient.Do(r)
		if err != nil || answer.Header.Get("Access-Control-Allow-Origin") != want {
			t.Errorf("origin %s: %v %v", origin, answer.Header, err)
		}
	}
}

// The document describes every path, and each reference in it leads somewhere.
func TestDocument(t *testing.T) {
	url := start(t, nil)
	answer, err := http.Get(url + "/openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	text, _ := io.ReadAll(answer.Body)
	document := decode[struct {
		Paths      map[string]any
		Components struct{ Schemas map[string]any }
	}](t, string(text))
	for _, path := range []string{"/", "/models/{model}", "/v1/fill", "/v1/score", "/v1/augment", "/v2/models/{model}/infer"} {
		if document.Paths[path] == nil {
			t.Errorf("no %s in %v", path, document.Paths)
		}
	}
	for rest := string(text); ; {
		_, after, found := strings.Cut(rest, `"#/components/schemas/`)
		if !found {
			break
		}
		schema, _, _ := strings.Cut(after, `"`)
		if document.Components.Schemas[schema] == nil {
			t.Errorf("no schema %s", schema)
		}
		rest = after
	}
}

// Too many requests are refused at once, and those that wait too long are told so.
func TestGate(t *testing.T) {
	url := start(t, func(o *serve.Options) {
		o.Limits.Requests, o.Limits.Queue, o.Limits.Wait, o.Limits.Rows = 1, 1, 100*time.Millisecond, 1<<30
	})
	var group sync.WaitGroup
	codes := make([]int, 12)
	for i := range codes {
		group.Add(1)
		go func() {
			defer group.Done()
			codes[i], _ = ask(t, url+"/v1/fill", `{"template": "he [MASK] not [MASK] me [MASK] the [MASK] .", "sampler": "dmala", "steps": 12, "samples": 16}`)
		}()
	}
	group.Wait()
	if !slices.Contains(codes, 200) || !slices.Contains(codes, 429) {
		t.Errorf("codes %v: some are let in, others refused", codes)
	}
	answer, err := http.Get(url + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	text, _ := io.ReadAll(answer.Body)
	for _, line := range []string{"infill_requests_at_work 0", "infill_requests_waiting 0", "infill_model_rows_total", `code="429"`} {
		if !strings.Contains(string(text), line) {
			t.Errorf("no %s in\n%s", line, text)
		}
	}
}

func TestOutOfTime(t *testing.T) {
	url := start(t, func(o *serve.Options) { o.Limits.Time, o.Limits.Rows = 30*time.Millisecond, 1<<30 })
	code, text := ask(t, url+"/v1/fill", `{"template": "he [MASK] not [MASK] me [MASK] the [MASK] .", "sampler": "dmala", "steps": 5000}`)
	if code != 503 || !strings.Contains(text, "longer than this server allows") {
		t.Errorf("%d %s", code, text)
	}
}

// Clients that go away in the middle leave no goroutine behind.
func TestClientsThatLeave(t *testing.T) {
	url := start(t, func(o *serve.Options) { o.Limits.Requests = 16 })
	ask(t, url+"/", `{"inputs": "he had [MASK] me"}`)
	http.DefaultClient.CloseIdleConnections()
	before := runtime.NumGoroutine()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	var group sync.WaitGroup
	for i := range 200 {
		group.Add(1)
		go func() {
			defer group.Done()
			ctx, cancel := context.WithTimeout(t.Context(), time.Duration(1+i%40)*time.Millisecond)
			defer cancel()
			r, _ := http.NewRequestWithContext(ctx, http.MethodPost, url+"/v1/fill", strings.NewReader(`{"template": "the [MASK] crossed the [MASK] before the [MASK] came .", "sampler": "dmala"}`))
			r.Header.Set("Content-Type", "application/json")
			if i%2 == 0 {
				r.Header.Set("Accept", "text/event-stream")
			}
			if answer, err := client.Do(r); err == nil {
				io.Copy(io.Discard, answer.Body) //nolint:errcheck // it is cut off
				answer.Body.Close()
			}
		}()
	}
	group.Wait()
	deadline := time.Now().Add(20 * time.Second)
	for runtime.NumGoroutine() > before+8 && time.Now().Before(deadline) {
		time.Sleep(50 * time.Millisecond)
	}
	if now := runtime.NumGoroutine(); now > before+8 {
		t.Errorf("%d goroutines before, %d after", before, now)
	}
	if code, text := ask(t, url, `{"inputs": "he had [MASK] me"}`); code != 200 {
		t.Errorf("afterwards: %d %s", code, text)
	}
}

// A client that sends half a request is cut off.
func TestHalfOpen(t *testing.T) {
	s, err := serve.New(options(t))
	if err != nil {
		t.Fatal(err)
	}
	server := s.HTTPServer()
	server.ReadHeaderTimeout = 200 * time.Millisecond
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go server.Serve(listener) //nolint:errcheck // it ends with Close
	defer server.Close()
	c, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	fmt.Fprint(c, "POST / HTTP/1.1\r\nHost: x\r\n")
	c.SetReadDeadline(time.Now().Add(10 * time.Second)) //nolint:errcheck // a connection of our own
	if _, err := io.ReadAll(c); err != nil {
		t.Errorf("not cut off: %v", err)
	}
}

// malformed mutates requests that are right.
func malformed(random *rand.Rand) (path string, body []byte) {
	seeds := [][2]string{
		{"/", `{"inputs": ["he had [MASK] me", "a [MASK]"], "parameters": {"top_k": 3, "targets": ["told"]}}`},
		{"/models/small", `{"inputs": "he had [MASK] me"}`},
		{"/v1/fill", `{"template": "he had [MASK] me", "top": 3, "seed": 7, "slot": {"1": ["told", "left"]}, "ban": ["given"]}`},
		{"/v1/score", `{"texts": ["he had told me"], "method": "l2r"}`},
		{"/v2/models/small/infer", `{"id": "a", "inputs": [{"name": "text", "datatype": "BYTES", "shape": [1, 1], "data": ["he had [MASK] me"]}]}`},
	}
	seed := seeds[random.IntN(len(seeds))]
	body = []byte(seed[1])
	junk := []string{"null", "[]", "{}", `"`, "\xff", "[MASK", "[MASK:99999999999]", "-1", "1e999", "[[[[", "\x00", "true", strings.Repeat("[", 50), `\ud800`, ",", ":"}
	for range 1 + random.IntN(4) {
		at := random.IntN(len(body))
		switch random.IntN(4) {
		case 0:
			body = slices.Delete(body, at, min(len(body), at+1+random.IntN(8)))
		case 1:
			body = slices.Insert(body, at, []byte(junk[random.IntN(len(junk))])...)
		case 2:
			body[at] = byte(random.IntN(256))
		default:
			end := min(len(body), at+random.IntN(12))
			body = slices.Replace(body, at, end, []byte(junk[random.IntN(len(junk))])...)
		}
		if len(body) == 0 {
			body = []byte(" ")
		}
	}
	return seed[0], body
}

// Whatever comes, the answer is JSON, and no answer is the server's own failure.
func TestMalformed(t *testing.T) {
	o := options(t)
	o.Limits.Time = 2 * time.Second
	s, err := serve.New(o)
	if err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(1, 2))
	n := 1500
	if testing.Short() {
		n = 100
	}
	for range n {
		path, body := malformed(random)
		tryMalformed(t, s, path, body)
	}
}

func tryMalformed(t testing.TB, s http.Handler, path string, body []byte) {
	r := httptest.NewRequest(http.MethodPost, path, bytes.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	if !json.Valid(w.Body.Bytes()) || w.Code >= 500 && w.Code != 503 {
		t.Errorf("%s %q: %d %.200s", path, body, w.Code, w.Body)
	}
}

func FuzzRequests(f *testing.F) {
	random := rand.New(rand.NewPCG(3, 4))
	for range 20 {
		path, body := malformed(random)
		f.Add(path, body)
	}
	s, err := serve.New(options(f))
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, path string, body []byte) {
		if !strings.HasPrefix(path, "/") || strings.ContainsAny(path, " ?#%\x7f") || strings.ContainsFunc(path, func(r rune) bool { return r <= ' ' || r > '~' }) {
			return
		}
		tryMalformed(t, s, path, body)
	})
}

// An agent lists the tools, and calls each.
func TestTools(t *testing.T) {
	server, err := serve.Tools(options(t))
	if err != nil {
		t.Fatal(err)
	}
	here, there := mcp.NewInMemoryTransports()
	ctx := t.Context()
	go server.Run(ctx, there) //nolint:errcheck // it ends with the context
	client, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil).Connect(ctx, here, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	tools, err := client.ListTools(ctx, nil)
	if err != nil || len(tools.Tools) != 3 {
		t.Fatalf("%v %v", tools, err)
	}
	call := func(tool string, arguments map[string]any) (string, bool) {
		t.Helper()
		r, err := client.CallTool(ctx, &mcp.CallToolParams{Name: tool, Arguments: arguments})
		if err != nil {
			return err.Error(), true
		}
		text, _ := json.Marshal(r.StructuredContent)
		if r.IsError {
			text, _ = json.Marshal(r.Content)
		}
		return string(text), r.IsError
	}
	if text, failed := call("fill", map[string]any{"template": "he had [MASK] me", "seed": 7, "slots": map[string]any{"1": []string{"told", "left"}}}); failed || !strings.Contains(text, `"he had told me"`) || strings.Contains(text, "known") {
		t.Errorf("fill: %s", text)
	}
	if text, failed := call("rank", map[string]any{"texts": []string{"he had tell me", "he had told me"}}); failed || strings.Index(text, "told") > strings.Index(text, "tell") {
		t.Errorf("rank: %s", text)
	}
	if text, failed := call("score", map[string]any{"texts": []string{"he had told me"}}); failed || !strings.Contains(text, "pseudo_perplexity") {
		t.Errorf("score: %s", text)
	}
	if text, failed := call("fill", map[string]any{"template": "no blank"}); !failed || !strings.Contains(text, "no blank") {
		t.Errorf("a wrong template: %s", text)
	}
}
