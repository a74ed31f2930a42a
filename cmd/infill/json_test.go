//go:build unix

package main

import (
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"infill/models"
)

// goNames are what messages of Go's own decoders have, and what no user knows.
var goNames = regexp.MustCompile(`Go value|Go struct|json:|\b(u?int|float)(64|32)?\b|\[\]string|map\[|RawMessage|` +
	`(infill|serve|object)\.[A-Z]`)

// jsonDoors returns a function for each door that takes a request for a fill as
// JSON. The function returns the answer, or the message of a refusal.
func jsonDoors(t *testing.T) map[string]func(body string) (answer string, refused bool) {
	t.Helper()
	_, url, _ := serving(t, nil)
	cmd := exec.CommandContext(t.Context(), "infill", "mcp", "--device", "cpu")
	cmd.Env = os.Environ()
	client, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil).Connect(t.Context(),
		&mcp.CommandTransport{Command: cmd}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	return map[string]func(body string) (string, bool){
		"lines": func(body string) (string, bool) {
			code, out, told := call(t, strings.NewReader(body+"\n"), "--input", "jsonl", "--format", "jsonl",
				"--device", "cpu", "-q")
			return out + told, code != 0
		},
		"run": func(body string) (string, bool) {
			in, out := filepath.Join(t.TempDir(), "in.jsonl"), filepath.Join(t.TempDir(), "out.jsonl")
			err := os.WriteFile(in, []byte(body+"\n"), 0o644)
			if err != nil {
				t.Fatal(err)
			}
			code, _, _ := call(t, strings.NewReader(""), "run", in, "-o", out, "--device", "cpu", "-q")
			if code != 0 {
				out += ".rejects.jsonl"
			}
			text, err := os.ReadFile(out)
			if err != nil {
				t.Fatal(err)
			}
			return string(text), code != 0
		},
		"pipe": func(body string) (string, bool) {
			code, out, told := call(t, strings.NewReader(`{"id":1,"path":"/v1/fill","body":`+body+"}\n"),
				"serve", "--pipe", "--device", "cpu", "-q")
			if code != 0 {
				t.Fatal(code, told)
			}
			var answer struct {
				Status int
				Body   json.RawMessage
			}
			err := json.Unmarshal([]byte(out), &answer)
			if err != nil {
				t.Fatal(out, err)
			}
			return string(answer.Body), answer.Status != http.StatusOK
		},
		"http": func(body string) (string, bool) {
			status, text := posted(t, url+"/v1/fill", body)
			return text, status != http.StatusOK
		},
		"mcp": func(body string) (string, bool) {
			result, err := client.CallTool(t.Context(),
				&mcp.CallToolParams{Name: "fill", Arguments: json.RawMessage(body)})
			if err != nil {
				return err.Error(), true
			}
			return result.Content[0].(*mcp.TextContent).Text, result.IsError
		},
	}
}

// TestJSON: every door reads JSON alike: what one takes, all take, with the
// same fills, and what one refuses, all refuse.
func TestJSON(t *testing.T) {
	t.Setenv(models.CacheVariable, userCache(t))
	doors := jsonDoors(t)
	const template = `"template":"She closed the [MASK] and went to [MASK]."`
	for body, want := range map[string]string{
		// null is as if absent, and an error for a key that is needed.
		`{` + template + `,"seed":null,"budget":null,"slot":null,"ban":null,"top":null,"id":null,"order":null}`: `{` + template + `}`,
		`{` + template + `,"slot":{"1":["door","window"],"2":null}}`:                                            `{` + template + `,"slot":"1=door,window"}`,
		`{"template":null}`: `"template" is not a string`,
		// Empty lists are empty.
		`{` + template + `,"ban":[],"slot":{},"pos":{}}`: `{` + template + `}`,
		`{` + template + `,"slots":[]}`:                  `{` + template + `}`,
		`{` + template + `,"context":[]}`:                `"[]" is not a text`,
		`{` + template + `,"ban":{}}`:                    `"{}" is not a list of words`,
		`{` + template + `,"slot":{"1":[]}}`:             `is not a list of all words that each blank, or that one may take`,
		// A whole number may have a point; a value may have any form that its option has.
		`{` + template + `,"top":3.0,"seed":7.0,"budget":300.0,"order":[2.0,1]}`: `{` + template + `,"top":3,"budget":"300","order":"2,1"}`,
		`{` + template + `,"top":2.5}`:                                           `"2.5" is not a whole number`,
		`{` + template + `,"budget":300}`:                                        `{` + template + `,"budget":"300"}`,
		`{` + template + `,"pos":{"2":"noun"}}`:                                  `{` + template + `,"pos":{"2":["noun"]}}`,
		`{` + template + `,"ban":"door,bed"}`:                                    `{` + template + `,"ban":["door","bed"]}`,
		`{` + template + `,"slot":{"1":[3.0,"door"]}}`:                           `{` + template + `,"slot":"1=3.0,door"}`,
		`{` + template + `,"step_size":0.5}`:                                     "it is an option of samplers",
		// A key counts once, in its own letters, at any depth.
		`{` + template + `,"top":1,"top":1}`:                                                 `two keys "`,
		`{` + template + `,"slot":{"1":"door","1":"door"}}`:                                  `two keys "`,
		`{` + template + `,"t\u006fp":1,"top":1}`:                                            `two keys "`,
		`{` + template + `,"slot":"1=door","slots":"1=bed"}`:                                 `it is the same as slot: give one of them`,
		`{` + template + `,"ban":["\ud83d"]}`:                                                `half of a surrogate pair`,
		`{` + template + `,"ban":` + strings.Repeat("[", 80) + strings.Repeat("]", 80) + `}`: `nested more than 64 deep`,
	} {
		reference := ""
		if strings.HasPrefix(want, "{") {
			answer, refused := doors["lines"](want)
			if refused {
				t.Fatalf("%s: %s", want, answer)
			}
			reference = fillsOf(t, answer)
		}
		for door, ask := range doors {
			answer, refused := ask(body)
			switch {
			case reference == "" && (!refused || !strings.Contains(strings.ReplaceAll(answer, `\"`, `"`), want)):
				t.Errorf("%s by %s: %.300s, want a refusal with %q", body, door, answer, want)
			case reference == "" && goNames.MatchString(answer):
				t.Errorf("%s by %s: a message for programmers of Go: %s", body, door, answer)
			case reference != "" && refused:
				t.Errorf("%s by %s: refused: %s", body, door, answer)
			case reference != "" && fillsOf(t, answer) != reference:
				t.Errorf("%s by %s:\n%s\nwant\n%s", body, door, fillsOf(t, answer), reference)
			}
		}
	}
}

// TestUnknownKeys: a key in other letters is no key. A line keeps it, or warns;
// a request of a program has no place for it.
func TestUnknownKeys(t *testing.T) {
	t.Setenv(models.CacheVariable, userCache(t))
	doors := jsonDoors(t)
	const plain = `{"template":"he had [MASK] me"}`
	lines, _ := doors["lines"](plain)
	for _, key := range []string{"TOP", "Top", "top ", "ſeed", "to\u212a"} {
		body := `{"template":"he had [MASK] me",` + string(quote(t, key)) + `:2}`
		for door, ask := range doors {
			answer, refused := ask(body)
			if door == "lines" || door == "run" {
				if refused || fillsOf(t, answer) != fillsOf(t, lines) {
					t.Errorf("%s by %s: %v %.200s", body, door, refused, answer)
				}
				continue
			}
			if !refused || !strings.Contains(answer, key+": there is no such option") {
				t.Errorf("%s by %s: %v %.200s", body, door, refused, answer)
			}
		}
	}
}

func quote(t *testing.T, text string) []byte {
	t.Helper()
	quoted, err := json.Marshal(text)
	if err != nil {
		t.Fatal(err)
	}
	return quoted
}

// fillsOf returns the fills of an answer, with their probabilities.
func fillsOf(t *testing.T, answer string) string {
	t.Helper()
	type fill struct {
		Text        string
		Probability float64
	}
	var result struct{ Fills []fill }
	err := json.Unmarshal([]byte(answer), &result)
	if err != nil || len(result.Fills) == 0 {
		t.Fatalf("%v in %.300s", err, answer)
	}
	text, err := json.Marshal(result.Fills)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
