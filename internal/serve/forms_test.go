package serve_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"infill/infill"
	"infill/internal/serve"
)

// TestForms: each JSON form of a value is taken for all options of one kind by all paths
// and doors, or refused by all in the same words.
func TestForms(t *testing.T) {
	fake, _ := newFaulty(t, nil)
	o := serve.Options{Models: map[string]*infill.Filler{"fake": fake}, Default: "fake", Limits: serve.DefaultLimits()}
	url := started(t, o)
	s, err := serve.New(o)
	if err != nil {
		t.Fatal(err)
	}
	call := tools(t, o)
	const fill, gaps, score = `"template": "the [MASK] sat on the [MASK]"`, `"text": "the [cat] sat on the mat"`,
		`"texts": "the cat sat"`
	type place struct{ path, body, option string }
	kinds := map[string]struct {
		places []place
		good   []string
		bad    []string
	}{
		"whole number": {[]place{{"/v1/fill", fill, "top"}, {"/v1/gaps", gaps, "options"}, {"/v1/gaps", `"text": "the cat sat on the mat"`, "every"},
			{"/v1/fill", fill + `, "sampler": "gibbs", "seed": 1`, "steps"}},
			[]string{`3`, `"3"`, `3.0`, `"3.0"`, `3e0`, `""`, `null`}, []string{`[3]`, `{"a": 3}`, `true`, `"x"`, `3.5`, `-2`}},
		"number": {[]place{{"/v1/fill", fill + `, "samples": 2`, "temperature"}, {"/v1/gaps", gaps, "below"}},
			[]string{`0.5`, `"0.5"`, `5e-1`, `""`, `null`}, []string{`[0.5]`, `{"a": 1}`, `true`, `"x"`, `-1`, `"NaN"`, `1e999`}},
		"switch": {[]place{{"/v1/fill", fill, "distinct"}, {"/v1/gaps", gaps, "clear"},
			{"/v1/gaps", gaps, "names"}},
			[]string{`true`, `"true"`, `"false"`, `1`, `"0"`, `""`, `null`}, []string{`[true]`, `{"a": 1}`, `"yes"`, `2`}},
		"seed": {[]place{{"/v1/fill", fill, "seed"}, {"/v1/gaps", gaps, "seed"}},
			[]string{`0`, `"18446744073709551615"`, `7.0`, `""`, `null`}, []string{`-1`, `[1]`, `"18446744073709551616"`, `true`}},
		"text": {[]place{{"/v1/fill", fill, "context"}, {"/v1/score", score, "context"}},
			[]string{`"the dog"`, `""`, `null`}, []string{`["the dog"]`, `{"a": "b"}`}},
		"choice": {[]place{{"/v1/fill", fill, "fill"}, {"/v1/score", score, "method"}, {"/v1/gaps", gaps, "pos"}},
			[]string{`""`, `null`}, []string{`"none of them"`, `["x"]`, `5`}},
		"texts": {[]place{{"/v1/gaps", `"text": "the cat sat on the mat", "every": 1`, "protect"}},
			[]string{`"cat,mat"`, `["cat", "~m.t"]`, `[]`, `""`, `null`}, []string{`{"1": ["cat"]}`}},
		"words": {[]place{{"/v1/fill", fill, "ban"}, {"/v1/gaps", `"text": "the cat sat on the mat"`, "words"}},
			[]string{`"cat,mat"`, `["cat", "mat"]`}, []string{`"cat,,mat"`, `[""]`, `[["cat"]]`, `{"1": ["cat"]}`, `"@cat"`, `"[\"cat\", \"mat\"]"`}},
	}
	for kind, k := range kinds {
		for i, value := range append(k.good, k.bad...) {
			good := i < len(k.good)
			for _, p := range k.places {
				body := fmt.Sprintf("{%s, %q: %s}", p.body, p.option, value)
				code, text := ask(t, url+p.path, body)
				var out strings.Builder
				err := s.Pipe(t.Context(), strings.NewReader(fmt.Sprintf(`{"path": %q, "body": %s}`, p.path, body)), &out)
				if err != nil || !strings.Contains(out.String(), fmt.Sprintf(`"status":%d`, code)) {
					t.Errorf("%s %s: %d, by the pipe %s, %v", p.path, body, code, out.String(), err)
				}
				whole := !strings.Contains(value, "1844") // numbers that the protocol of tools carries
				if p.path != "/v1/gaps" && whole && json.Valid([]byte(value)) {
					tool := strings.TrimPrefix(p.path, "/v1/")
					said, failed := call(tool, json.RawMessage(body))
					if failed != (code != 200) {
						t.Errorf("%s %s: %d, by the tool %s", tool, body, code, said)
					}
				}
				says := fmt.Sprintf(`{"error":"%s: \"`, p.option)
				if good && code != 200 && !strings.Contains(text, "no gap is left") &&
					!strings.Contains(text, "which words become gaps") ||
					!good && (code != 422 || !strings.HasPrefix(text, says) || !strings.Contains(text, `\" is not `)) {
					t.Errorf("%s: %s %s: %d %.200s", kind, p.path, body, code, text)
				}
			}
		}
	}
	// A list is text in JSON as in a string: files are read by the command line alone.
	for _, value := range []string{`"1=@gate,door"`, `{"1": "@gate,door"}`} {
		code, text := ask(t, url+"/v1/fill", fmt.Sprintf(`{%s, "slot": %s}`, fill, value))
		if code != 422 || !strings.Contains(text, "only the command line reads files") {
			t.Errorf("%s: %d %s", value, code, text)
		}
	}
}
