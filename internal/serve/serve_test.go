package serve_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"infill/infill"
	language "infill/internal/ask"
	"infill/internal/check"
	"infill/internal/lmtest"
	"infill/internal/serve"
	"infill/models"
	"infill/tokenize"
)

const name = "small"

// docs/measured/serving.md tells of a run with 100,000.
var malformedRequests = flag.Int("malformed", 1500, "requests of TestMalformed")

var opened = sync.OnceValues(func() (*infill.Filler, error) { return infill.Open(infill.OpenOptions{Device: "cpu"}) })

func options(t testing.TB) serve.Options {
	t.Helper()
	f, err := opened()
	if err != nil {
		t.Fatal(err)
	}
	return serve.Options{Models: map[string]*infill.Filler{name: f}, Default: name,
		Limits: serve.DefaultLimits()}
}

// start serves on the loopback.
func start(t testing.TB, change func(*serve.Options)) string {
	t.Helper()
	o := options(t)
	if change != nil {
		change(&o)
	}
	return started(t, o)
}

func started(t testing.TB, o serve.Options) string {
	t.Helper()
	s, err := serve.New(o)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	return server.URL
}

// post sends a body, with headers in pairs, and gives the answer and its text.
func post(t testing.TB, url, body string, header ...string) (*http.Response, string) {
	t.Helper()
	r, err := http.NewRequest(http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
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
	return answer, string(text)
}

// ask posts JSON and gives status and answer.
func ask(t testing.TB, url, body string, header ...string) (int, string) {
	t.Helper()
	answer, text := post(t, url, body, append([]string{"Content-Type", "application/json"}, header...)...)
	return answer.StatusCode, text
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
	plan, err := f.Plan(t.Context(), infill.Request{Template: "he had [MASK] me",
		Fit: infill.Fit{Fill: infill.FillAny}})
	if err != nil {
		t.Fatal(err)
	}
	alone, err := plan.Alone(t.Context(), 1<<20, nil)
	if err != nil {
		t.Fatal(err)
	}
	probability := map[int]float64{}
	for _, v := range alone[0] {
		probability[v.TokenID] = v.Probability
	}
	code, text := ask(t, url+"/",
		`{"inputs": "he had [MASK] me", "parameters": {"targets": ["told", "never"], "top_k": 3}}`)
	one := decode[[]serve.Candidate](t, text)
	if code != 200 || len(one) != 2 || one[0].Text != "told" || one[0].Sequence != "he had told me" {
		t.Fatalf("%d %s", code, text)
	}
	for _, c := range one {
		if want := probability[c.Token]; math.Abs(c.Score-want) > 1e-6 {
			t.Errorf("%s has %g, the model gives %g", c.Text, c.Score, want)
		}
	}
	if _, text = ask(t, url+"/models/"+name,
		`{"inputs": "the [MASK] was [MASK]"}`); len(decode[[][]serve.Candidate](t, text)) != 2 {
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

// TestTargets: a target that is no token stands for its first piece, with the
// warning of transformers, by HTTP and by the pipe.
func TestTargets(t *testing.T) {
	url := start(t, nil)
	tokenizer := options(t).Models[name].Tokenizer()
	pieces, err := tokenizer.Encode("toldness")
	if err != nil || len(pieces.IDs) < 4 {
		t.Fatal(pieces, err)
	}
	const body = `{"inputs": "he had [MASK] me", "parameters": {"targets": ["toldness", "never", ""]}}`
	request, err := http.NewRequest(http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	found := decode[[]serve.Candidate](t, string(text))
	own := func(c serve.Candidate) bool { return c.Token == pieces.IDs[1] }
	if len(found) != 2 || !slices.ContainsFunc(found, own) {
		t.Errorf("%s, want %s", text, pieces.Tokens[1])
	}
	first := "The specified target token `toldness` does not exist in the model vocabulary. Replacing with `" +
		pieces.Tokens[1] + "`."
	second := "The specified target token `` does not exist in the model vocabulary. It is ignored."
	want := []string{"299 infill " + strconv.Quote(first), "299 infill " + strconv.Quote(second)}
	if got := answer.Header.Values("Warning"); !slices.Equal(got, want) {
		t.Errorf("headers %q, want %q", got, want)
	}
	s, err := serve.New(options(t))
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := s.Pipe(t.Context(), strings.NewReader(`{"id": 1, "path": "/", "body": `+body+`}`), &out); err != nil {
		t.Fatal(err)
	}
	line := decode[struct{ Warnings []string }](t, out.String())
	if !slices.Equal(line.Warnings, []string{first, second}) {
		t.Errorf("the pipe says %q", line.Warnings)
	}
}

// TestOneTarget: a text is one target, whatever stands in it.
func TestOneTarget(t *testing.T) {
	url := start(t, nil)
	const form = `{"inputs": "he had [MASK] me", "parameters": {"targets": %s}}`
	for _, target := range []string{`"red,blue"`, `","`, `"[told"`, `"\"told\""`} {
		code, one := ask(t, url, fmt.Sprintf(form, target))
		if code != http.StatusOK {
			t.Errorf("%s: %d %s", target, code, one)
		}
		_, list := ask(t, url, fmt.Sprintf(form, "["+target+"]"))
		if one != list {
			t.Errorf("%s: %s, in a list %s", target, one, list)
		}
	}
	_, comma := ask(t, url, fmt.Sprintf(form, `","`))
	found := decode[[]serve.Candidate](t, comma)
	if len(found) != 1 || found[0].Text != "," {
		t.Errorf("the comma is rated as %s", comma)
	}
	_, red := ask(t, url, fmt.Sprintf(form, `"red,blue"`))
	found = decode[[]serve.Candidate](t, red)
	if len(found) != 1 || found[0].Text != "red" {
		t.Errorf("red,blue is rated as %s", red)
	}
}

// TestManyWarnings: an answer has few headers, however many warnings there are, and a
// line of a pipe has all of them, each once.
func TestManyWarnings(t *testing.T) {
	o := fakeOptions(t) // it reads 32 tokens
	var odd []string
	for i := range 60 {
		odd = append(odd, fmt.Sprintf("%q, %[1]q", fmt.Sprintf("toldness%d", i)))
	}
	var texts []string
	for i := range 12 {
		texts = append(texts, fmt.Sprintf("%q", "the [MASK] sat"+strings.Repeat(" on the cat", 30-i)))
	}
	url := started(t, o)
	s, err := serve.New(o)
	if err != nil {
		t.Fatal(err)
	}
	for body, all := range map[string]int{
		`{"inputs": "he had [MASK] me", "parameters": {"targets": [` + strings.Join(odd, ", ") + `]}}`: len(odd),
		`{"inputs": [` + strings.Join(texts, ", ") + `]}`:                                              len(texts),
	} {
		answer, text := post(t, url, body, "Content-Type", "application/json")
		told := answer.Header.Values("Warning")
		last := fmt.Sprintf(`299 infill "and %d more"`, all-8)
		if answer.StatusCode != 200 || len(told) != 9 || told[8] != last || len(strings.Join(told, "")) > 2000 {
			t.Errorf("%d %.80s with %d warnings, the last is %q, want %q", answer.StatusCode, text, len(told),
				told[len(told)-1], last)
		}
		var out strings.Builder
		err := s.Pipe(t.Context(), strings.NewReader(`{"id": 1, "path": "/", "body": `+body+`}`), &out)
		line := decode[struct{ Warnings []string }](t, out.String())
		if err != nil || len(line.Warnings) != all {
			t.Errorf("the pipe says %d of %d warnings, error %v", len(line.Warnings), all, err)
		}
	}
}

// TestShortErrors: no error repeats a long value, by any door.
func TestShortErrors(t *testing.T) {
	o := fakeOptions(t)
	url := started(t, o)
	call := tools(t, o)
	x := strings.Repeat("x", 90_000)
	short := func(body, text string, code int) {
		if len(text) > 2000 || code != 422 && code != 404 {
			t.Errorf("%.60s: %d, %d bytes: %.100s", body, code, len(text), text)
		}
	}
	for _, c := range [][2]string{
		{"/v1/fill", `{"template": "a [MASK]", "slot": ["` + x + `"]}`},
		{"/v1/fill", `{"template": "a [MASK]", "slot": "` + x + `"}`},
		{"/v1/fill", `{"template": "a [MASK]", "sampler": "` + x + `"}`},
		{"/v1/fill", `{"template": "a [MASK]", "sampler": "gibbs:` + x + `"}`},
		{"/v1/fill", `{"template": "a [MASK]", "order": "` + x + `"}`},
		{"/v1/fill", `{"template": "a [MASK]", "model": "` + x + `"}`},
		{"/v1/fill", `{"template": "a [MASK]", "` + x + `": 1}`},
		{"/v1/fill", `{"template": "a [MASK]", "` + x + `": {"a": 1, "a": 2}}`},
		{"/v1/fill", `{"template": "a [MASK]", "blank": "` + x + `"}`},
		{"/v1/fill", `{"template": "a [MASK]", "sampler": "gibbs", "initial": "fill:` + x + `"}`},
		{"/v1/fill", `{"template": "a [` + x + `]"}`},
		{"/v1/fill", `{"template": "a [MASK=` + x + `]"}`},
		{"/v1/fill", `{"template": "a ` + strings.Repeat("[MASK~st..d] ", 16) + x[:30_000] + `", "budget": "` + x + `"}`},
		{"/v1/score", `{"texts": "a", "method": "` + x + `"}`},
		{"/v1/score", `{"texts": "a", "context": "` + x + `"}`},
		{"/v1/gaps", `{"text": "the [gate] was", "pos": "` + x + `"}`},
		{"/", `{"inputs": "a [MASK]", "parameters": {"own_mask": "` + x + `"}}`},
		{"/", `{"inputs": "a ` + strings.Repeat("_", 90_000) + `", "parameters": {"own_mask": true}}`},
	} {
		code, text := ask(t, url+c[0], c[1])
		short(c[1], text, code)
	}
	for _, arguments := range []string{`{"template": "a [MASK]", "slot": ["` + x + `"]}`, `{"` + x + `": 1}`} {
		text, _ := call("fill", json.RawMessage(arguments))
		short(arguments, text, 422)
	}
	_, text := ask(t, url+"/v1/gaps", `{"text": "the [gate] was open", "words": ["gate", "`+x+`"]}`)
	if len(text) > 2000 || !strings.Contains(text, "the text has no word") {
		t.Errorf("a warning: %d bytes: %.300s", len(text), text)
	}
}

// TestDeclaredLength: a request that declares more bytes than it may have is
// refused before they come.
func TestDeclaredLength(t *testing.T) {
	url := start(t, nil)
	c, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	check.OK(t, c.SetDeadline(time.Now().Add(10*time.Second))) // less than the time for a body to come
	fmt.Fprint(c, "POST /v1/fill HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"+
		"Content-Length: 99999999\r\n\r\n{")
	answer, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != 413 || !answer.Close || !strings.Contains(string(text), "1048576 bytes") {
		t.Errorf("%d %s, closed %t, error %v", answer.StatusCode, text, answer.Close, err)
	}
}

// TestTokens: tokens are those of the model's own tokenizer, and cost no row.
func TestTokens(t *testing.T) {
	f, slow := newFaulty(t, func() error { return errors.New("a row") })
	slow.failAt.Store(1)
	url := started(t, optionsOf(f))
	for text, want := range map[string]string{
		"the [MASK] cat sat [SEP]":    `the|[MASK]|cat|sat|[SEP]`,
		"":                            "",
		strings.Repeat("cat ", 10000): strings.Repeat("cat|", 9999) + "cat",
	} {
		code, answer := ask(t, url+"/v1/tokens", fmt.Sprintf(`{"text": %q}`, text))
		got := decode[serve.Tokens](t, answer)
		if code != 200 || strings.Join(got.Tokens, "|") != want || len(got.IDs) != len(got.Tokens) || got.IDs == nil {
			t.Errorf("%.40q: %d %.300s", text, code, answer)
		}
		for i, token := range got.Tokens {
			if f.Tokenizer().Token(got.IDs[i]) != token {
				t.Errorf("%s has number %d", token, got.IDs[i])
			}
		}
	}
}

// TestOwnMask: with own_mask only the model's own mask is a blank.
func TestOwnMask(t *testing.T) {
	url := start(t, nil)
	listed, err := http.Get(url + "/v1/models")
	if err != nil {
		t.Fatal(err)
	}
	defer listed.Body.Close()
	list, err := io.ReadAll(listed.Body)
	if err != nil {
		t.Fatal(err)
	}
	models := decode[[]serve.ServedModel](t, string(list))
	if len(models) != 1 || models[0].Name != name || models[0].Mask != "[MASK]" || !models[0].Default ||
		len(models[0].SHA256) != 64 || models[0].MaskID != 103 {
		t.Errorf("%+v", models)
	}
	for text, want := range map[string]string{
		`he ___ had [MASK] me <mask>`: `he ___ had told me <mask>`,
		`he \had \[MASK] me`:          `he \had \told me`,
		`he had [MASK] me [MASK:2]`:   `he had told me [MASK:2]`,
	} {
		const form = `{"inputs": "%s", "parameters": {"targets": ["told"], "own_mask": true}}`
		code, answer := ask(t, url, fmt.Sprintf(form, strings.ReplaceAll(text, `\`, `\\`)))
		if code != 200 || decode[[]serve.Candidate](t, answer)[0].Sequence != want {
			t.Errorf("%s: %d %s", text, code, answer)
		}
	}
	if code, answer := ask(t, url, `{"inputs": "he had ___ me", "parameters": {"own_mask": true}}`); code != 422 ||
		!strings.Contains(answer, "no blank") {
		t.Errorf("%d %s", code, answer)
	}
}

// TestLongTexts: of a text that is too long, every path answers for a window and says
// so. With truncation the text is cut at the right, as transformers does, and a blank
// that is cut off is an error.
func TestLongTexts(t *testing.T) {
	fake, _ := newFaulty(t, nil) // it reads 32 tokens
	url := start(t, func(o *serve.Options) { o.Models["fake"] = fake })
	f := options(t).Models[name]
	const positions = 512
	blue := func(n int) string { return strings.Repeat(" blue", n) }
	long := "[MASK] house" + blue(700)
	cats := strings.Repeat(" cat", 50)
	for path, body := range map[string]string{
		"/models/fake": `{"inputs": "the [MASK]` + cats + `"}`,
		"/v1/fill":     `{"model": "fake", "template": "the [MASK]` + cats + `"}`,
		"/v1/gaps":     `{"model": "fake", "text": "the [dog]` + cats + `"}`,
		"/v1/score":    `{"model": "fake", "texts": "the dog` + cats + `"}`,
	} {
		answer, text := post(t, url+path, body, "Content-Type", "application/json")
		said := strings.Join(answer.Header.Values("Warning"), "\n") + text
		if answer.StatusCode != 200 || !strings.Contains(said, "of the text's 54 tokens the model sees the 32 around") {
			t.Errorf("%s: %d %.200s, headers %q", path, answer.StatusCode, text, answer.Header)
		}
	}
	for text, cut := range map[string]string{
		long:                           "[MASK] house" + blue(positions-4),
		"a [MASK]" + blue(600):         "a [MASK]" + blue(positions-4),
		"a [MASK] blue":                "a [MASK] blue",
		"a [MASK]" + blue(positions-4): "a [MASK]" + blue(positions-4),
	} {
		code, got := ask(t, url, `{"inputs": "`+text+`", "parameters": {"truncation": true}}`)
		if _, want := ask(t, url, `{"inputs": "`+cut+`"}`); code != 200 || got != want {
			t.Errorf("%.20s: %d %.300s", text, code, got)
		}
	}
	code, text := ask(t, url, `{"inputs": ["a [MASK]", "`+blue(600)+` [MASK]"], "parameters": {"truncation": true}}`)
	if code != 422 || !strings.Contains(text, "text 2: text too long at byte offset 3001: the model reads 512 tokens, "+
		"and the cut takes a blank off") {
		t.Errorf("%d %s", code, text)
	}
	plan, err := f.Plan(t.Context(), infill.Request{Template: long})
	if err != nil || len(plan.TooLong()) != 1 {
		t.Errorf("%v, %v", plan, err)
	}
}

// TestSequences: a sequence is the user's own text, with one blank filled.
func TestSequences(t *testing.T) {
	file, err := os.ReadFile("../../tokenize/testdata/families/roberta.tokenizer.json")
	if err != nil {
		t.Fatal(err)
	}
	tokenizer, err := tokenize.Load(fstest.MapFS{"tokenizer.json": {Data: file}})
	if err != nil {
		t.Fatal(err)
	}
	roberta := infill.New(lmtest.New(tokenizer.VocabularySize(), 32), tokenizer)
	url := start(t, func(o *serve.Options) { o.Models["roberta"] = roberta })
	for _, path := range []string{"/", "/models/roberta"} {
		for text, beside := range map[string][]string{
			"My name is <mask>, she said [MASK] .": {"My name is ", ", she said [MASK] .",
				"My name is <mask>, she said ", " ."},
			"A ___ (very [MASK:2]) one": {"A ", " (very [MASK:2]) one", "A ___ (very", " one", "A ___ (very", " one"},
		} {
			_, answer := ask(t, url+path, `{"inputs": "`+text+`", "parameters": {"top_k": 50}}`)
			for slot, values := range decode[[][]serve.Candidate](t, answer) {
				for _, v := range values {
					left, right := strings.TrimSpace(beside[2*slot]), beside[2*slot+1]
					if !strings.HasPrefix(v.Sequence, left) || !strings.HasSuffix(v.Sequence, right) {
						t.Errorf("%s %s: slot %d has %q", path, text, slot, v.Sequence)
					}
				}
			}
		}
	}
	for body, want := range map[string]string{
		`{"inputs": "a [MASK]", "parameters": {"targets": []}}`: "targets: at least one must be given",
		`{"inputs": ["a [MASK]", "b [MASK]", "c"]}`:             "text 3: no blank",
		`{"inputs": ["[MASK=x] a [MASK=x]", "b [MASK]"]}`:       "text 1: two blanks are called x",
		`{"inputs": ["c"]}`: `{"error":"no blank`,
		`{"inputs": "a [MASK]", "parameters": {"truncation":"x"}}`: `truncation: \"x\" is not one of false, true`,
	} {
		code, answer := ask(t, url, body)
		if code != 422 || !strings.Contains(answer, want) {
			t.Errorf("%s: %d %s, want %q", body, code, answer, want)
		}
	}
}

// TestHuggingFaceBlanks: a blank means at POST / what it means at every other
// door, or is refused with the door that tells it.
func TestHuggingFaceBlanks(t *testing.T) {
	url := start(t, nil)
	for body, want := range map[string]string{
		`{"inputs": "[MASK=x] and [MASK=x]"}`: "two blanks are called x",
		`{"inputs": "they [MASK:1-2] ."}`:     "blank 1 may have several lengths",
		`{"inputs": "they [MASK~zzzq+] ."}`:   "no word of the vocabulary fits",
	} {
		code, text := ask(t, url+"/", body)
		if code != 422 || !strings.Contains(text, want) {
			t.Errorf("%s: %d %s, want %q", body, code, text, want)
		}
	}
	_, text := ask(t, url+"/", `{"inputs": "they [MASK~ha.*] me", "parameters": {"top_k": 50}}`)
	words := decode[[]serve.Candidate](t, text)
	if len(words) < 3 {
		t.Errorf("a pattern: %s", text)
	}
	for _, c := range words {
		if !strings.HasPrefix(strings.TrimPrefix(c.Text, "##"), "ha") {
			t.Errorf("%s does not match ha.*", c.Text)
		}
	}
	_, text = ask(t, url+"/", `{"inputs": "they [MASK:2] me"}`)
	if tokens := decode[[][]serve.Candidate](t, text); len(tokens) != 2 || len(tokens[1]) != 5 {
		t.Errorf("two tokens: %s", text)
	}
	// A text that is longer than the model reads is filled, as by /v1/fill.
	long := strings.Repeat("they went on to the next town . ", 100)
	code, text := ask(t, url+"/", `{"inputs": "`+long+`they [MASK] me"}`)
	if long := decode[[]serve.Candidate](t, text); code != 200 || len(long) != 5 ||
		!strings.HasPrefix(long[0].Sequence, "they went on") {
		t.Errorf("a long text: %d %.300s", code, text)
	}
}

// goNames are what messages of Go's own decoders have, and what no user knows.
var goNames = regexp.MustCompile(`Go value|Go struct|json:|\b(u?int|float)(64|32)?\b|\[\]string|map\[|RawMessage`)

// Every refusal is {"error": "..."} with its status, and says what is wrong.
func TestRefusals(t *testing.T) {
	url := start(t, func(o *serve.Options) {
		o.Limits.Body, o.Limits.Texts, o.Limits.Blanks, o.Limits.Rows, o.Limits.Answer = 2000, 3, 4, 5000, 100000
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
		{"/", `{"inputs": "a [MASK]", "parameters": {"targets": ["", "\u0007"]}}`, "targets: none of them", 422},
		{"/", `{"inputs": ["a [MASK]", "a [MASK]", "a [MASK]", "a [MASK]"]}`, "4 texts", 422},
		{"/", `{"inputs": "a [MASK] [MASK] [MASK] [MASK] [MASK]"}`, "5 tokens to fill in one text", 422},
		{"/", `{"inputs": "a [MASK] ` + strings.Repeat("x", 2000) + `"}`, "2000 bytes", 413},
		{"/models/other", `{"inputs": "a [MASK]"}`, `no model "other"`, 404},
		{"/models/../../etc/passwd", `{"inputs": "a [MASK]"}`, "", 404},
		{"/v1/fill", `{"template": "he had [MASK] me", "tops": 2}`, "tops: there is no such option", 422},
		{"/v1/fill", `{"template": "he had [MASK] me", "top": "x"}`, "top", 422},
		{"/v1/fill", `{"top": 5}`, `no "template"`, 422},
		{"/v1/fill", `{"template": "a [MASK]", "top": 5, "top": 6}`, `two keys "top"`, 422},
		{"/v1/fill", `{"template": "a [MASK]", "slots": {"1": [["x"]]}}`, "slots: ", 422},
		{"/v1/fill", `{"template": 5}`, `"template" is not a string`, 422},
		{"/v1/fill", `{"template": "he had [MASK] me", "sampler": "dmala", "steps": 100000}`, "model rows", 422},
		{"/v1/fill", `{"template": "he had [MASK] me [MASK]", "budget": 5001}`, "5001 model rows", 422},
		{"/v1/fill", `{"template": "he had [MASK] me", "budget": "61s"}`, "a budget of 61s", 422},
		{"/v1/fill", `{"template": "he had [MASK:1-3] me [MASK:2]"}`, "5 tokens to fill in one text", 422},
		{"/v1/fill", `{"template": "he had [MASK:1-3] me [MASK:1-3]"}`, "6 tokens to fill", 422},
		{"/v1/fill", `{"template": "he had [MASK] me", "top": 1000}`,
			"the answer could have 0.519 MB, this server gives 0.1", 422},
		{"/v1/fill", `{"template": "he had [MASK] me", "top": 1001}`, "top: 1001 fills, this server gives 1000", 422},
		{"/v1/fill", `{"template": "he had [MASK] me", "samples": 1001}`, "samples: 1001, this server makes 1000", 422},
		{"/v1/fill", `{"template": "he had [MASK] me [MASK]", "samples": 900, "budget": 5800}`, "up to 5800 model rows",
			422},
		{"/v1/fill", `{"template": "he had [MASK] me", "sampler": "dmala", "candidates": 2001}`,
			"candidates: 2001 of a slot, this server takes 2000", 422},
		{"/v1/fill", `{"template": "he had [MASK] me", "sampler": "dmala", "candidates": 0}`, "the whole vocabulary of",
			422},
		{"/", `{"inputs": ["a [MASK] [MASK]", "a [MASK]"], "parameters": {"top_k": 1000}}`, "the answer could have",
			422},
		{"/v1/fill", `[{"template": "he had [MASK] me"}, {"template": "a [MASK] [MASK] [MASK] [MASK] [MASK]"}]`,
			"text 2: 5 tokens to fill", 422},
		{"/v1/fill", `1`, `a request is an object, {"template": "..."}, or a list of them`, 422},
		{"/v1/fill", `[""]`, `a request is an object`, 422},
		{"/v1/fill", `{"template": `, "JSON", 400},
		{"/v1/fill", "{\"template\": \"caf\xe9 [MASK]\"}", "not valid UTF-8", 400},
		{"/", "{\"inputs\": \"caf\xe9 [MASK]\"}", "not valid UTF-8", 400},
		{"/", `{"inputs": "a \ud83d [MASK]"}`, "the request has half of a surrogate pair", 400},
		{"/", `{"inputs": "a [MASK]", "parameters": {"targets": ["\uDE00"]}}`, "half of a surrogate pair", 400},
		{"/v1/fill", `{"template": "a [MASK]", "ban": ["\ud83d"]}`, "half of a surrogate pair", 400},
		{"/v1/score", `{"texts": "a \ud83d b"}`, "the request has half of a surrogate pair", 400},
		{"/v1/score", "{\"texts\": \"caf\xe9\"}", "not valid UTF-8", 400},
		{"/v1/fill", `{"template": "a \`, "invalid character", 400},
		{"/v1/fill", `[]`, "no text", 422},
		{"/v1/score", `{"texts": []}`, "no text", 422},
		// What is checked is what is used: a key counts once, at any depth, in
		// its own letters.
		{"/", `{"inputs": "a [MASK]", "parameters": {"top_k": 1, "TOP_K": -5}}`,
			"parameters.TOP_K: there is no such key: there are own_mask, targets, top_k", 422},
		{"/models/" + name, `{"inputs": "a [MASK]", "parameters": {"top_K": -5}}`, "parameters.top_K: there is no", 422},
		{"/", `{"inputs": "a [MASK]", "parameters": {"top_\u212a": -5}}`, "parameters.top_\u212a: there is no", 422},
		{"/", `{"inputs": "a [MASK]", "parameters": {"top_k": 1}, "Parameters": {"top_k": -5}}`,
			"Parameters: there is no such key: there are inputs, options, parameters", 422},
		{"/", `{"inputs": "a [MASK]", "parameters": {"top_k": 1}, "parameters": {"top_k": -5}}`,
			`the request has two keys "parameters"`, 422},
		{"/", `{"inputs": "a [MASK]", "parameters": {"top_k": 1, "top_k": -5}}`,
			`the request has two keys "parameters.top_k"`, 422},
		{"/", `{"inputs": "a [MASK]", "options": {"a": [{"b": 1, "b": 1}]}}`, `two keys "options.a.b"`, 422},
		{"/", `{"inputs": "a [MASK]", "options": ` + strings.Repeat("[", 99) + strings.Repeat("]", 99) + `}`,
			"the request is nested more than 64 deep", 422},
		{"/", `{"inputs": "a [MASK]", "parameters": {"top_k": -5}}`,
			`parameters.top_k: "-5" is not a whole number of 1 or more`, 422},
		{"/", `{"inputs": "a [MASK]", "parameters": {"top_k": 1.5}}`,
			`parameters.top_k: "1.5" is not a whole number of 1 or more`, 422},
		{"/", `{"inputs": "a [MASK]", "parameters": {"targets": [["told"]]}}`,
			"parameters.targets: expected a list of texts", 422},
		{"/", `{"inputs": "a [MASK]", "parameters": {"targets": "[\"told\", \"red\"]"}}`,
			"parameters.targets: the text is a JSON list itself: send the list without quotation marks", 422},
		{"/", `{"inputs": "[\"a [MASK]\"]"}`, "inputs: the text is a JSON list itself", 422},
		{"/v1/score", `{"texts": " [\"he had told me\",\"he had told I\"]"}`, "texts: the text is a JSON list itself", 422},
		{"/v1/score", `{"texts": "[]"}`, "texts: the text is a JSON list itself", 422},
		{"/", `{"inputs": "a [MASK]", "parameters": []}`, "parameters: expected an object", 422},
		{"/", `{"inputs": null}`, `no "inputs"`, 422},
		{"/", `["a [MASK]"]`, "the request: expected an object", 422},
		{"/v1/score", `{"texts": "a", "METHOD": "l2r"}`, "METHOD: there is no such key", 422},
		{"/v1/score", `{"texts": ["a", 5]}`, "texts: expected a list of texts", 422},
		{"/v1/score", `{"texts": "a", "model": 5}`, "model: expected a text", 422},
		{"/v1/score", `{"texts": "a"} {}`, "the request is not JSON: invalid character '{' after top-level value", 400},
		{"/v1/tokens", `{"text": ["a"]}`, "text: expected a text", 422},
		{"/v1/tokens", `{"texts": "a"}`, `no "text"`, 422},
		{"/v1/tokens", `{"text": "a", "model": "other"}`, `no model "other"`, 404},
		{"/v1/gaps", `{"text": "a word", "below": 1e999}`, `below: "1e999" is not a number above 0 and at most 1`, 422},
		{"/v1/gaps", `{"text": "the [word]", "model": "other"}`, `no model "other"`, 404},
		{"/v1/gaps", `{"text": "the [word] [MASK]"}`, "blank", 422},
		{"/v1/gaps", `{"text": "the [word] [SEP]"}`, "[SEP]", 422},
		{"/v1/gaps", `{"text": "the word"}`, "which words become gaps?", 422},
		{"/v1/gaps", `{"text": "the [word]", "below": 1.5}`, `below: "1.5" is not a number above 0 and at most 1`, 422},
		{"/v1/gaps", `{"text": "the [word]", "options": 11}`, `options: "11" is not a whole number from 2 to 10`,
			422},
		{"/v1/gaps", `{"text": "the [word]", "options": 1}`, `options: "1" is not a whole number from 2 to 10`, 422},
		{"/v1/gaps", `{"text": "the [word]", "pos": "nouns"}`, "pos", 422},
		{"/v1/gaps", `{"text": "the [word]", "words": []}`, "words: the list is empty", 422},
		{"/v1/score", `{"texts": "a word", "model": "other"}`, `no model "other"`, 404},
		{"/v1/fill", `{"template": "a [MASK]", "model": "other"}`, `no model "other"`, 404},
		{"/v1/fill", `{"template": "a [MASK]", "temperature": 2}`, "temperature: ", 422},
		{"/v1/fill", `{"template": "a [MASK] [MASK]", "samples": 2, "budget": "61s"}`, "a budget of 61s", 422},
		{"/v1/gaps", `{"text": "a word"`, "the request is not JSON: unexpected end of JSON input", 400},
		{"/v1/fill", `[{"template": "a [MASK]"}, {"template": "a [MASK]", "top": 5, "top": 6}]`, `two keys "top"`, 422},
		{"/v1/fill", `{"template": "a [MASK]", "model": 5}`, `"model" is not a string`, 422},
		{"/v1/score", `{"texts": "a", "method": "x"}`, "method", 422},
		{"/nothing", `{}`, "nothing here", 404},
		{"/health", `{}`, `"POST" is not a method of this path: send GET, HEAD`, 405},
	} {
		code, text := ask(t, url+c.path, c.body)
		problem := decode[map[string]any](t, text)
		if message, ok := problem["error"].(string); code != c.code || !ok || len(problem) != 1 ||
			!strings.Contains(message, c.says) || goNames.MatchString(message) {
			t.Errorf("%s %.80s: %d %s, want %d with %q", c.path, c.body, code, text, c.code, c.says)
		}
	}
	if code, text := ask(t, url, `{"inputs": "a [MASK]"}`, "Content-Type", "text/plain"); code != 415 {
		t.Errorf("plain text: %d %s", code, text)
	}
	if code, text := ask(t, url, "\x1f\x8b", "Content-Encoding", "gzip"); code != 415 ||
		!strings.Contains(text, `Content-Encoding \"gzip\" is not read`) {
		t.Errorf("compressed: %d %s", code, text)
	}
}

// TestForgiving: null is as if absent, a whole number may have a point, and a
// byte-order mark is skipped, by each path and by a pipe.
func TestForgiving(t *testing.T) {
	o := options(t)
	s, err := serve.New(o)
	if err != nil {
		t.Fatal(err)
	}
	url := start(t, nil)
	for _, c := range []struct{ path, body, same string }{
		{"/", `{"inputs": "a [MASK]", "parameters": {"top_k": 3.0, "targets": null}, "options": null}`,
			`{"inputs": "a [MASK]", "parameters": {"top_k": 3}}`},
		{"/models/" + name, `{"inputs": "a [MASK]", "parameters": {"top_k": 3e0}, "options": {"x": 1}}`,
			`{"inputs": "a [MASK]", "parameters": {"top_k": 3}}`},
		{"/", `{"inputs": "a [MASK]", "parameters": null}`, `{"inputs": "a [MASK]", "parameters": {"top_k": 5}}`},
		{"/v1/score", `{"texts": "a word", "method": null, "model": null}`, `{"texts": "a word", "method": "l2r"}`},
	} {
		code, want := ask(t, url+c.path, c.same)
		if code != 200 {
			t.Fatalf("%s %s: %d %s", c.path, c.same, code, want)
		}
		for _, body := range []string{c.body, "\ufeff" + c.body, " \n" + c.body + "\r\n"} {
			code, got := ask(t, url+c.path, body)
			if code != 200 || got != want {
				t.Errorf("%s %q: %d %s, want %s", c.path, body, code, got, want)
			}
		}
		var out strings.Builder
		line := "\ufeff" + `{"id": null, "path": "` + c.path + `", "body": ` + c.body + `}`
		err := s.Pipe(t.Context(), strings.NewReader(line), &out)
		if err != nil || out.String() != `{"id":null,"status":200,"body":`+want[:len(want)-1]+"}\n" {
			t.Errorf("pipe, %s: %v %s", line, err, out.String())
		}
	}
}

// TestPipeLines: a line of a pipe counts in its own letters, and its answer has
// its id wherever it can be told.
func TestPipeLines(t *testing.T) {
	s, err := serve.New(options(t))
	if err != nil {
		t.Fatal(err)
	}
	const top = `{"inputs": "a [MASK]", "parameters": {"top_k": 1`
	for line, want := range map[string]string{
		`{"id": 1, "path": "/", "body": ` + top + `, "TOP_K": -5}}}`: `{"id":1,"status":422,"body":{"error":"parameters.TOP_K: `,
		`{"id": 1, "path": "/", "body": ` + top + `, "top_k": -5}}}`: `{"id":1,"status":422,"body":{"error":"the object has two keys \"body.parameters.top_k\"`,
		`{"id": 1, "path": "/", "body": ` + top + `}}, "Body": {}}`:  `{"id":1,"status":422,"body":{"error":"Body: there is no such key: `,
		`{"id": 1, "path": "/", "body": ` + top + `}}, "body": {}}`:  `{"id":1,"status":422,"body":{"error":"the object has two keys \"body\"`,
		`{"id": "a", "PATH": "/", "body": ` + top + `}}}`:            `{"id":"a","status":400,"body":{"error":"the line is no request: `,
		`{"id": 1, "path": null, "body": ` + top + `}}}`:             `{"id":1,"status":400,"body":{"error":"the line is no request: `,
		`{"id": 1, "path": "/", "body": null}`:                       `{"id":1,"status":400,"body":{"error":"request body is required"`,
		`{"id": 1, "path": "/v1/x/../fill", "body": {}}`:             `{"id":1,"status":422,"body":{"error":"path: /v1/x/../fill is another writing of /v1/fill"}}`,
		`{"id": 1, "path": "/health", "method": "GET"}`:              `{"id":1,"status":200,"body":{"at_work":0,"waiting":0}}`,
		`{"id": 1, "path": "/health", "method": "PUT"}`:              `{"id":1,"status":422,"body":{"error":"method: it is not one of GET, POST"}}`,
		`{"id": 1, "path": "/", "body": {`:                           `{"id":null,"status":400,"body":{"error":"the line is not JSON: `,
		`{"id": 1, "path": "/%zz", "body": {}}`:                      `{"id":1,"status":400,"body":{"error":"the line is no request: `,
		`{"id": 1, "path": "/a\u007f", "body": {}}`:                  `{"id":1,"status":400,"body":{"error":"the line is no request: `,
		`[1]`: `{"id":null,"status":400,"body":{"error":"the line is not a JSON object: `,
	} {
		var out strings.Builder
		err := s.Pipe(t.Context(), strings.NewReader(line), &out)
		if err != nil || !strings.HasPrefix(out.String(), want) || goNames.MatchString(out.String()) {
			t.Errorf("%s: %v %s, want %s", line, err, out.String(), want)
		}
	}
}

// TestGaps: an exercise is that of the request's options, and its tokens are
// bounded by the model rows that they may need.
func TestGaps(t *testing.T) {
	const text = `{"text": "he had [told] me", "options": 3, "seed": 4, "clear": false, "model": null}`
	// The text has 8 tokens: [CLS], 4 words, 2 brackets and [SEP].
	url := start(t, func(o *serve.Options) { o.Limits.Rows = 16 })
	code, answer := ask(t, url+"/v1/gaps", text)
	e := decode[infill.Exercise](t, answer)
	if code != 200 || e.Text != "he had told me" || len(e.Gaps) != 1 || e.Gaps[0].Key != "told" ||
		!slices.Contains(e.Gaps[0].Options, "told") || len(e.Gaps[0].Options) > 3 ||
		!strings.Contains(e.Signature, "|options:3|below:1|seed:4|") {
		t.Errorf("%d %s", code, answer)
	}
	url = start(t, func(o *serve.Options) { o.Limits.Rows = 15 })
	code, answer = ask(t, url+"/v1/gaps", text)
	if code != 422 || !strings.Contains(answer, "the text may need 16 model rows, and this server takes 15") {
		t.Errorf("%d %s", code, answer)
	}
}

// TestWrongOptions: a server with wrong options does not start, by any door.
func TestWrongOptions(t *testing.T) {
	for want, change := range map[string]func(o *serve.Options){
		`the default model "other" is not among those served: ` + name: func(o *serve.Options) { o.Default = "other" },
		"max-rows: the bound is too small for any request: give 1":     func(o *serve.Options) { o.Limits.Rows = 0 },
		"the origin: ": func(o *serve.Options) { o.Origin = "nowhere" },
	} {
		o := options(t)
		change(&o)
		s, err := serve.New(o)
		if s != nil || err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
		agents, err := serve.Tools(t.Context(), o)
		if agents != nil || err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("tools: error %v, want %q", err, want)
		}
	}
}

// A text to score needs a row for each of its tokens.
func TestScoreRows(t *testing.T) {
	url := start(t, func(o *serve.Options) { o.Limits.Rows = 4 })
	if code, text := ask(t, url+"/v1/score", `{"texts": ["he had told me", "he had told me so"]}`); code != 422 ||
		!strings.Contains(text, "text 2: 5 tokens") {
		t.Errorf("%d %s", code, text)
	}
}

// deadlines records the write deadlines that the server sets.
type deadlines struct {
	*httptest.ResponseRecorder
	all []time.Time
}

func (d *deadlines) SetWriteDeadline(at time.Time) error {
	d.all = append(d.all, at)
	return nil
}

// The time to read an event does not bound the wait for the next one.
func TestEventDeadlines(t *testing.T) {
	s, err := serve.New(options(t))
	if err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequest(http.MethodPost, "/v1/fill",
		strings.NewReader(`{"template": "he had [MASK] me", "sampler": "gibbs", "samples": 2, "steps": 3}`))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "text/event-stream")
	d := &deadlines{ResponseRecorder: httptest.NewRecorder()}
	s.ServeHTTP(d, r)
	events := strings.Count(d.Body.String(), "event: ")
	if d.Header().Get("X-Accel-Buffering") != "no" { // else nginx keeps events until the end
		t.Errorf("headers %v", d.Header())
	}
	if events < 2 || len(d.all) != 2*events-1 {
		t.Fatalf("%d deadlines in\n%s", len(d.all), d.Body)
	}
	for i, at := range d.all {
		if at.IsZero() != (i%2 == 1) {
			t.Errorf("deadline %d is %v", i, at)
		}
	}
}

func TestFillAndScore(t *testing.T) {
	url := start(t, nil)
	request := `{"template": "She closed the [MASK] and went to [MASK].", "seed": 7, "top": 3}`
	code, text := ask(t, url+"/v1/fill", request)
	alone := decode[serve.Result](t, text)
	if code != 200 || len(alone.Fills) != 3 || alone.Seed != nil || alone.Method != infill.MethodSearch ||
		!*alone.Proven || alone.Found != language.Found(alone.Result) {
		t.Fatalf("%d %.300s", code, text)
	}
	_, text = ask(t, url+"/v1/fill", "["+request+","+request+"]")
	list := decode[[]infill.Result](t, text)
	if len(list) != 2 || list[1].Fills[0].Text != alone.Fills[0].Text {
		t.Errorf("a list gives %.300s", text)
	}
	code, text = ask(t, url+"/v1/fill", request, "Accept", "text/event-stream")
	last := text[strings.LastIndex(text, "event: "):]
	if result := decode[serve.Result](t, strings.TrimPrefix(last, "event: result\ndata: ")); code != 200 ||
		result.Found != alone.Found || result.Fills[0].Text != alone.Fills[0].Text {
		t.Errorf("events: %d %.300s", code, text)
	}
	code, text = ask(t, url+"/v1/score", `{"texts": ["he had told me", "he had tell me"]}`)
	if scores := decode[[]infill.Score](t, text); code != 200 || scores[0].LogLikelihood < scores[1].LogLikelihood {
		t.Errorf("scores: %d %.300s", code, text)
	}
}

// No path of a request or a tool reaches a file: @FILE, which the command reads in lists
// of words, is a word, and a folder is no model.
func TestNoFiles(t *testing.T) {
	file := filepath.Join(t.TempDir(), "words")
	if err := os.WriteFile(file, []byte("told\nleft\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	bundle, err := models.Open("")
	if err != nil {
		t.Fatal(err)
	}
	url, call := start(t, nil), tools(t, options(t))
	// The likeliest fill is "told": it stays where the file is no list, and is
	// not the only one.
	for _, c := range []struct {
		body, text string
		has        bool
	}{
		{`{"template": "he had [MASK] me", "ban": "@FILE"}`, "only the command line reads files", true},
		{`{"template": "he had [MASK] me", "ban": ["given", "@FILE"]}`, "he had told me", true},
		{`{"template": "he had [MASK] me", "ban": "given,@FILE,@FILE"}`, "only the command line reads files", true},
		{`{"template": "he had [MASK] me", "slot": "1=@FILE"}`, "only the command line reads files", true},
		{`{"template": "he had [MASK] me", "slots": {"1": ["x", "@FILE"]}}`, "he had told me", false},
		{`{"template": "@FILE had [MASK] me"}`, "told\\nleft", false},
		{`{"template": "he had [MASK] me", "model": "` + bundle.Dir + `"}`, "no model", true},
		{`{"template": "he had [MASK] me", "model": "file://` + bundle.Dir + `"}`, "no model", true},
		{`{"template": "he had [MASK] me", "model": "../../` + bundle.Dir + `"}`, "no model", true},
	} {
		body := strings.ReplaceAll(c.body, "@FILE", "@"+file)
		if code, text := ask(t, url+"/v1/fill", body); code >= 500 || strings.Contains(text, c.text) != c.has {
			t.Errorf("%s: %d %s", body, code, text)
		}
		if text, _ := call("fill", decode[map[string]any](t, body)); strings.Contains(text, c.text) != c.has {
			t.Errorf("tool: %s: %s", body, text)
		}
	}
	if code, text := ask(t, url, `{"inputs": "he had [MASK] me", "parameters": {"targets": ["@`+file+`"]}}`); code != 200 ||
		strings.Contains(text, "told") {
		t.Errorf("targets: %d %s", code, text)
	}
}

func TestTokenHostsAndOrigin(t *testing.T) {
	url := start(t, func(o *serve.Options) {
		o.Token = "secret"
		o.Hosts = []string{"127.0.0.1", "localhost"}
		o.Origin = "https://example.org"
	})
	const body = `{"inputs": "he had [MASK] me"}`
	for header, want := range map[string]int{"": 401, "Bearer wrong": 401, "secret": 401, "Basic secret": 401,
		"Bearer secret": 200, "bearer secret": 200, "BEARER secret": 200} {
		if code, text := ask(t, url, body, "Authorization", header); code != want {
			t.Errorf("%q: %d %s", header, code, text)
		}
	}
	for path, want := range map[string]int{"/": 200, "/docs": 200, "/health": 200, "/openapi.json": 200} {
		if answer, err := http.Get(url + path); err != nil || answer.StatusCode != want {
			t.Errorf("%s: %v %v", path, answer.StatusCode, err)
		}
	}
	r, _ := http.NewRequest(http.MethodGet, url+"/", nil)
	for _, host := range []string{"localhost", "LOCALHOST", "localhost.", "LocalHost.:80", "127.0.0.1:80"} {
		r.Host = host
		if answer, err := http.DefaultClient.Do(r); err != nil || answer.StatusCode != 200 {
			t.Errorf("%s: %v %v", host, answer, err)
		}
	}
	r.Host = "evil.example"
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	if text, _ := io.ReadAll(answer.Body); answer.StatusCode != 403 || !strings.Contains(string(text), "with a token") {
		t.Errorf("another host's name: %v %s", answer.StatusCode, text)
	}
	for origin, want := range map[string]string{"https://example.org": "https://example.org",
		"https://evil.example": ""} {
		r, _ := http.NewRequest(http.MethodOptions, url+"/v1/fill", nil)
		r.Header.Set("Origin", origin)
		answer, err := http.DefaultClient.Do(r)
		if err != nil || answer.Header.Get("Access-Control-Allow-Origin") != want {
			t.Errorf("origin %s: %v %v", origin, answer.Header, err)
		}
	}
}

// A body that breaks off is the client's fault, and what follows it is no request.
func TestBrokenBodies(t *testing.T) {
	address := strings.TrimPrefix(start(t, nil), "http://")
	for _, path := range []string{"/", "/v1/fill", "/v1/score"} {
		for name, body := range map[string]string{
			"truncated":       "Content-Length: 50\r\n\r\n{\"inputs\":",
			"no end of chunk": "Transfer-Encoding: chunked\r\n\r\n20\r\n{\"inputs\":",
			"no chunk":        "Transfer-Encoding: chunked\r\n\r\nxyz\r\n{}\r\n0\r\n\r\n",
			"a request within": "Transfer-Encoding: chunked\r\n\r\n5\r\n{\"inp\r\nzz\r\n" +
				"GET /health HTTP/1.1\r\nHost: " + address + "\r\n\r\n",
		} {
			connection, err := net.Dial("tcp", address)
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(connection, "POST %s HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\n%s", path,
				address, body)
			connection.(*net.TCPConn).CloseWrite()
			answers := bufio.NewReader(connection)
			answer, err := http.ReadResponse(answers, nil)
			if err != nil {
				t.Fatalf("%s %s: %v", path, name, err)
			}
			text, _ := io.ReadAll(answer.Body)
			if _, err := answers.ReadByte(); err != io.EOF {
				t.Errorf("%s %s: a second answer, %v", path, name, err)
			}
			if connection.Close(); answer.StatusCode != 400 || !strings.Contains(string(text), "send it whole") {
				t.Errorf("%s %s: %d %s", path, name, answer.StatusCode, text)
			}
		}
	}
}

// A server that ends does not wait for a body that still comes, and lets a request
// that runs end.
func TestEndsWhileABodyComes(t *testing.T) {
	release := make(chan struct{})
	f, slow := newFaulty(t, func() error { <-release; return nil })
	slow.failAt.Store(1)
	s, err := serve.New(optionsOf(f))
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := s.HTTPServer()
	heads := make(chan bool, 2) // of requests, which the server has read
	server.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		heads <- true
		s.ServeHTTP(w, r)
	})
	go server.Serve(listener) //nolint:errcheck // it ends by Shutdown
	begin := func(body string, length int) net.Conn {
		connection, err := net.Dial("tcp", listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		check.OK(t, connection.SetReadDeadline(time.Now().Add(10*time.Second))) // less than the time for a body to come
		fmt.Fprintf(connection, "POST /v1/fill HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\n"+
			"Content-Length: %d\r\n\r\n%s", listener.Addr(), length, body)
		return connection
	}
	const whole = `{"template":"the [MASK] sat"}`
	running, coming := begin(whole, len(whole)), begin(`{"template":`, 500)
	<-heads
	<-heads
	for slow.calls.Load() == 0 {
		time.Sleep(time.Millisecond)
	}
	ended := make(chan error)
	go func() { ended <- server.Shutdown(context.Background()) }()
	answered := func(connection net.Conn, want int) {
		answer, err := http.ReadResponse(bufio.NewReader(connection), nil)
		if err != nil || answer.StatusCode != want {
			t.Errorf("%v %v, want %d", answer, err, want)
		}
		connection.Close()
	}
	answered(coming, 503)
	close(release)
	answered(running, 200)
	if err := <-ended; err != nil {
		t.Error(err)
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
		Components struct {
			Schemas map[string]struct{ Properties map[string]any }
		}
	}](t, string(text))
	for _, key := range []string{"id", "found", "fills"} {
		if document.Components.Schemas["Result"].Properties[key] == nil {
			t.Errorf("no %s in the schema of a result", key)
		}
	}
	for _, path := range []string{"/", "/models/{model}", "/v1/fill", "/v1/score"} {
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
		if _, ok := document.Components.Schemas[schema]; !ok {
			t.Errorf("no schema %s", schema)
		}
		rest = after
	}
}

// Of many requests at once one is let in, and the others are refused: those beyond the
// queue at once, and the one that waits when its time is over.
func TestGate(t *testing.T) {
	release := make(chan struct{})
	f, slow := newFaulty(t, func() error { <-release; return nil })
	slow.failAt.Store(1)
	o := optionsOf(f)
	o.Limits.Requests, o.Limits.Queue, o.Limits.Wait, o.Limits.Time = 1, 1, 50*time.Millisecond, 5*time.Minute
	url := started(t, o)
	const clients = 12
	codes := make(chan int)
	for range clients {
		go func() {
			code, _ := ask(t, url+"/v1/fill",
				`{"template": "the [MASK] sat [MASK] the [MASK]", "sampler": "dmala", "steps": 8, "samples": 8}`)
			codes <- code
		}()
	}
	got := map[int]int{}
	for i := range clients {
		if i == clients-1 { // at work since the beginning
			close(release)
		}
		got[<-codes]++
	}
	if got[200] != 1 || got[429] != clients-1 {
		t.Errorf("codes %v: one is let in, others refused", got)
	}
}

// TestOutOfTime: at the end of its time a fill gives what it has found, by every
// method and door. What has found nothing, and what can give no part, gets 503.
func TestOutOfTime(t *testing.T) {
	f, slow := newFaulty(t, func() error { time.Sleep(250 * time.Millisecond); return context.DeadlineExceeded })
	o := optionsOf(f)
	o.Limits.Time = 50 * time.Millisecond
	url := started(t, o)
	const three = `"template": "the [MASK] [MASK] on [MASK]"`
	for _, c := range []struct {
		name, path, body, accept string
		call                     int64 // of the model that takes longer than there is time
		code                     int
		says                     string
	}{
		{"a search", "/v1/fill", `{` + three + `}`, "", 9, 200, "unfinished: interrupted before the proof: nothing left"},
		{"draws", "/v1/fill", `{` + three + `, "samples": 500, "ban": "cat,dog,rug,ran", "budget": 20000}`, "", 5, 200,
			" of 500 draws"},
		{"chains", "/v1/fill", `{` + three + `, "sampler": "gibbs", "samples": 2, "steps": 100}`, "", 30, 200,
			"these are the likeliest fills met by then"},
		{"events", "/v1/fill", `{` + three + `}`, "text/event-stream", 9, 200, `"unfinished":true`},
		{"a list", "/v1/fill", `[{"template": "the [MASK]"}, {` + three + `, "top": 40}]`, "", 10, 200, `"unfinished":true`},
		{"nothing found", "/v1/fill", `{` + three + `}`, "", 1, 503, "longer than this server allows"},
		{"no event before", "/v1/fill", `{` + three + `}`, "text/event-stream", 1, 503, "longer than this server allows"},
		{"masks", "/", `{"inputs": "the [MASK] sat"}`, "", 1, 503, "longer than this server allows"},
		{"scores", "/v1/score", `{"texts": "the cat sat on the mat"}`, "", 1, 503, "longer than this server allows"},
		{"gaps", "/v1/gaps", `{"text": "the [cat] sat on the mat"}`, "", 1, 503, "longer than this server allows"},
	} {
		slow.calls.Store(0)
		slow.failAt.Store(c.call)
		answer, text := post(t, url+c.path, c.body, "Content-Type", "application/json", "Accept", c.accept)
		if answer.StatusCode != c.code || !strings.Contains(text, c.says) || slow.calls.Load() < c.call {
			t.Errorf("%s, after %d calls: %d %s, want %d with %q", c.name, slow.calls.Load(), answer.StatusCode, text,
				c.code, c.says)
		}
		if c.code == 503 && answer.Header.Get("Retry-After") == "" {
			t.Errorf("%s: no Retry-After", c.name)
		}
	}
	text, failed := tools(t, o)("fill", json.RawMessage(`{"template": "the [MASK]"}`))
	if failed {
		t.Errorf("a tool: %s", text)
	}
	slow.calls.Store(0)
	slow.failAt.Store(9)
	text, failed = tools(t, o)("fill", json.RawMessage(`{`+three+`}`))
	if failed || !strings.Contains(text, "unfinished: interrupted") {
		t.Errorf("a tool: %s", text)
	}
}

// malformed mutates requests that are right.
func malformed(random *rand.Rand) (path string, body []byte) {
	seeds := [][2]string{
		{"/", `{"inputs": ["he had [MASK] me", "a [MASK]"], "parameters": {"top_k": 3, "targets": ["told"]}}`},
		{"/models/small", `{"inputs": "he had [MASK] me"}`},
		{"/v1/fill", `{"template": "he had [MASK] me", "top": 3, "seed": 7, "slot": {"1": ["told", "left"]}, "ban": ["given"]}`},
		{"/v1/score", `{"texts": ["he had told me"], "method": "l2r"}`},
	}
	seed := seeds[random.IntN(len(seeds))]
	body = []byte(seed[1])
	junk := []string{"null", "[]", "{}", `"`, "\xff", "[MASK", "[MASK:99999999999]", "-1", "1e999", "[[[[", "\x00",
		"true", strings.Repeat("[", 50), `\ud800`, ",", ":", `"top_k":-5,`, `"TOP_K":-5,`, `"Parameters":{"top_k":-5},`,
		`"top_\u212a":-5,`, "\ufeff", "3.0", "1e2"}
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
	o.Log = func(message string) { t.Error(message) }
	s, err := serve.New(o)
	if err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(1, 2))
	n, codes := *malformedRequests, map[int]int{}
	if testing.Short() {
		n = 100
	}
	left, leave := context.WithCancel(t.Context())
	leave()
	for i := range n {
		path, body := malformed(random)
		ctx := t.Context()
		if i >= 1500 && i%20 > 0 {
			// it is read, checked and let in; the model, which takes most of
			// the time, runs for one of twenty
			ctx = left
		}
		r := httptest.NewRequestWithContext(ctx, http.MethodPost, path, bytes.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		if codes[w.Code]++; !json.Valid(w.Body.Bytes()) || w.Code >= 500 && w.Code != 503 {
			t.Errorf("%s %q: %d %.200s", path, body, w.Code, w.Body)
		}
	}
	t.Logf("%d requests, answers by status: %v", n, codes)
}

// tools connects a client, and returns a function that calls a tool. It gives
// the answer, and whether it is an error.
func tools(t *testing.T, o serve.Options) func(tool string, arguments any) (string, bool) {
	t.Helper()
	server, err := serve.Tools(t.Context(), o)
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
	t.Cleanup(func() { client.Close() })
	listed, err := client.ListTools(ctx, nil)
	if err != nil || len(listed.Tools) != 2 {
		t.Fatalf("%v %v", listed, err)
	}
	takes := map[string][]string{"fill": {"ban", "id", "model", "sampler", "template"},
		"score": {"context", "method", "model", "texts"}}
	for _, tool := range listed.Tools { // every value has one type, which not all clients can do without
		for name, schema := range map[string]any{"input": tool.InputSchema, "output": tool.OutputSchema} {
			checkTypes(t, tool.Name+" "+name, schema.(map[string]any))
		}
		for _, key := range takes[tool.Name] {
			if tool.InputSchema.(map[string]any)["properties"].(map[string]any)[key] == nil {
				t.Errorf("%s: its schema has no %s", tool.Name, key)
			}
		}
	}
	return func(tool string, arguments any) (string, bool) {
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
}

func checkTypes(t *testing.T, at string, schema map[string]any) {
	t.Helper()
	if kind, ok := schema["type"].(string); !ok {
		t.Errorf("%s has the type %v", at, schema["type"])
	} else if kind == "array" {
		checkTypes(t, at+" items", schema["items"].(map[string]any))
	}
	properties, _ := schema["properties"].(map[string]any)
	for name, property := range properties {
		checkTypes(t, at+" "+name, property.(map[string]any))
	}
}

// An agent lists the tools, and calls each.
func TestTools(t *testing.T) {
	call := tools(t, options(t))
	if text, failed := call("fill",
		map[string]any{"template": "he had [MASK] me", "seed": 7,
			"slots": map[string]any{"1": []string{"told", "left"}}}); failed ||
		!strings.Contains(text, `"he had told me"`) || strings.Contains(text, "known") {
		t.Errorf("fill: %s", text)
	}
	if text, failed := call("score", map[string]any{"texts": []string{"he had told me"}}); failed ||
		!strings.Contains(text, "pseudo_perplexity") || strings.Contains(text, "warnings") {
		t.Errorf("score: %s", text)
	}
	if text, failed := call("score", map[string]any{"texts": []string{"he had ___ me"}}); failed ||
		!strings.Contains(text, `"warnings":["\"___\" is scored as it stands`) {
		t.Errorf("score of a blank: %s", text)
	}
	if text, failed := call("fill", map[string]any{"template": "he had [MASK] me", "seed": uint64(1) << 53}); !failed ||
		!strings.Contains(text, "not below 2^53") {
		t.Errorf("a seed that does not come through whole: %s", text)
	}
	if text, failed := call("fill",
		map[string]any{"template": "he had [MASK] me", "seed": 5, "id": "a", "samples": 2}); failed ||
		!strings.Contains(text, `"seed":5`) || !strings.Contains(text, `"id":"a"`) {
		t.Errorf("options or the id are not read: %s", text)
	}
	for tool, arguments := range map[string]string{"fill": `{"template": "a [MASK]", "template": "b [MASK]"}`,
		"score": `{"texts": "a", "texts": "b"}`} {
		text, failed := call(tool, json.RawMessage(arguments))
		if !failed || !strings.Contains(text, "the request has two keys") {
			t.Errorf("%s takes a key twice: %s", tool, text)
		}
	}
	if text, failed := call("score", map[string]any{"texts": `["he had told me"]`}); !failed ||
		!strings.Contains(text, "texts: the text is a JSON list itself") {
		t.Errorf("the brackets of a list are scored: %s", text)
	}
	for tool, want := range map[string]string{"fill": "template", "score": "texts"} {
		text, failed := call(tool, nil)
		if !failed || !strings.Contains(text, want) {
			t.Errorf("%s without arguments: %s", tool, text)
		}
	}
	for tool, arguments := range map[string]string{"fill": `{"template": "a [MASK]", "ban": ["\ud83d"]}`,
		"score": `{"texts": ["a \ud83d b"]}`} {
		if text, failed := call(tool, json.RawMessage(arguments)); !failed ||
			!strings.Contains(text, "the request has half of a surrogate pair") {
			t.Errorf("%s takes half of a surrogate pair: %s", tool, text)
		}
	}
	if text, failed := call("fill", map[string]any{"template": "no blank"}); !failed ||
		!strings.Contains(text, "no blank") {
		t.Errorf("a wrong template: %s", text)
	}
	for tool, c := range map[string]struct{ key, want string }{"fill": {"template", "is not a string"},
		"score": {"texts", "expected one, or a list, of texts"}} {
		text, failed := call(tool, map[string]any{c.key: 3})
		if !failed || !strings.Contains(text, c.want) {
			t.Errorf("%s takes a number for a text: %s", tool, text)
		}
	}
}

// Every path that holds much of what it is asked for is held against the memory
// of the server, before work begins.
func TestMemoryOfEveryPath(t *testing.T) {
	url := start(t, func(o *serve.Options) { o.Limits.Memory = 1 << 20 })
	blanks := strings.Repeat("[MASK] ", 16)
	for path, bodies := range map[string][2]string{
		"/v1/fill": {`{"template": "he had [MASK] me", "budget": 100}`,
			`{"template": "he [MASK] had [MASK] me [MASK]", "budget": 20000, "top": 1000}`},
		"/v1/score": {`{"texts": ["he had told me"]}`,
			`{"texts": ["` + strings.Repeat("he had told me ", 400) + `"]}`},
		"/": {`{"inputs": "he had [MASK] me"}`, `{"inputs": "` + blanks + `."}`},
	} {
		for i, body := range bodies {
			code, text := ask(t, url+path, body)
			if refused := code == 422 && strings.Contains(text, "the request could hold"); refused != (i == 1) ||
				!refused && code != 200 {
				t.Errorf("%s %.200s: %d %.200s", path, body, code, text)
			}
		}
	}
}

// TestAnswerLimit: no answer is longer than the limit, by any path.
func TestAnswerLimit(t *testing.T) {
	o := options(t)
	quotes, letters := strings.Repeat(`\" `, 12), strings.Repeat("a b , ", 5)
	for _, c := range []struct{ path, body string }{
		{"/", `{"inputs": ["he had [MASK] me", "the [MASK] was [MASK]"], "parameters": {"top_k": 50}}`},
		{"/v1/fill", `{"template": "he had [MASK] me", "top": 1}`},
		{"/v1/fill", `[{"template": "the [MASK] was [MASK:1-2]", "top": 20}, {"template": "a [MASK]", "samples": 3}]`},
		{"/v1/fill", `{"template": "he had [MASK] me", "sampler": "gibbs", "samples": 2, "steps": 2}`},
		{"/v1/score", `{"texts": "he had told me"}`},
		{"/v1/score", `{"texts": ["` + quotes + `", "` + letters + `"], "context": "he said"}`},
		{"/v1/gaps", `{"text": "he had [told] me"}`},
		{"/v1/gaps", `{"text": "she closed the door and went to the window of the room", "every": 1, "options": 4}`},
	} {
		o.Limits.Answer = 16 << 20
		code, text := ask(t, started(t, o)+c.path, c.body)
		if code != 200 {
			t.Errorf("%s %.80s: %d %s", c.path, c.body, code, text)
		}
		o.Limits.Answer = int64(len(text)) - 1
		code, text = ask(t, started(t, o)+c.path, c.body)
		if code != 422 || !strings.Contains(text, "the answer could have") {
			t.Errorf("%s %.80s, with a limit of %d bytes: %d", c.path, c.body, o.Limits.Answer, code)
		}
	}
}

// TestExactLimits: what is at a limit is taken, and what is beyond it is refused.
func TestExactLimits(t *testing.T) {
	f, _ := newFaulty(t, func() error { return nil })
	const chains = `{"template":"the [MASK] sat","sampler":"gibbs","samples":3,"steps":4,"candidates":6}`
	for name, c := range map[string]struct {
		limit     func(l *serve.Limits, n int)
		least     int // the limit of a server that takes the body
		path      string
		body      string
		forbidden int // the status of a server with a lower limit
	}{
		// A row to begin with, and five states of each of three chains.
		"rows":       {func(l *serve.Limits, n int) { l.Rows = n }, 16, "/v1/fill", chains, 422},
		"samples":    {func(l *serve.Limits, n int) { l.Samples = n }, 3, "/v1/fill", chains, 422},
		"candidates": {func(l *serve.Limits, n int) { l.Candidates = n }, 6, "/v1/fill", chains, 422},
		"seconds": {func(l *serve.Limits, n int) { l.Time = time.Duration(n) * time.Second }, 7, "/v1/fill",
			`{"template":"the [MASK] sat","budget":"7s"}`, 422},
		"blanks": {func(l *serve.Limits, n int) { l.Blanks = n }, 3, "/v1/fill", `{"template":"the [MASK:3] sat"}`, 422},
		"masks":  {func(l *serve.Limits, n int) { l.Blanks = n }, 3, "/", `{"inputs":"the [MASK:3] sat"}`, 422},
		"top":    {func(l *serve.Limits, n int) { l.Top = n }, 4, "/v1/fill", `{"template":"the [MASK] sat","top":4}`, 422},
		"top_k": {func(l *serve.Limits, n int) { l.Top = n }, 4, "/",
			`{"inputs":"the [MASK] sat","parameters":{"top_k":4}}`, 422},
		"targets": {func(l *serve.Limits, n int) { l.Top = n }, 2, "/",
			`{"inputs":"the [MASK] sat","parameters":{"top_k":9,"targets":["cat","dog","cat"]}}`, 422},
		"texts":  {func(l *serve.Limits, n int) { l.Texts = n }, 2, "/v1/score", `{"texts":["the cat","the dog"]}`, 422},
		"tokens": {func(l *serve.Limits, n int) { l.Rows = n }, 3, "/v1/score", `{"texts":"the cat sat"}`, 422},
		"bytes":  {func(l *serve.Limits, n int) { l.Body = int64(n) }, 23, "/v1/score", `{"texts":"the cat sat"}`, 413},
	} {
		for _, below := range []int{0, 1} {
			o := optionsOf(f)
			c.limit(&o.Limits, c.least-below)
			code, text := ask(t, started(t, o)+c.path, c.body)
			want := []int{200, c.forbidden}[below]
			if code != want {
				t.Errorf("%s, a limit of %d: %d %s, want %d", name, c.least-below, code, text, want)
			}
		}
	}
	// A body whose length is not told beforehand.
	o := optionsOf(f)
	o.Limits.Body = 23
	url := started(t, o)
	for body, want := range map[string]int{`{"texts":"the cat sat"}`: 200, `{"texts":"the cat sat" }`: 413} {
		answer, err := http.Post(url+"/v1/score", "application/json", io.MultiReader(strings.NewReader(body)))
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(answer.Body)
		answer.Body.Close()
		if err != nil || answer.StatusCode != want ||
			want == 413 && !strings.Contains(string(text), "a request may have 23 bytes") {
			t.Errorf("%s: %d %s, want %d (%v)", body, answer.StatusCode, text, want, err)
		}
	}
}
