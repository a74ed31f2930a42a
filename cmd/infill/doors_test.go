//go:build unix

package main

import (
	"bytes"
	"encoding/json"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"infill/infill"
	"infill/internal/ask"
	"infill/internal/rawjson"
	"infill/models"
)

// TestDoors: one template gives the same fills with the same probabilities by
// every door. TestSearch and TestShares of package tui have the screen;
// Python asks the pipe.
func TestDoors(t *testing.T) {
	t.Setenv(models.CacheVariable, userCache(t))
	filler, err := infill.Open(infill.OpenOptions{Device: "cpu"})
	if err != nil {
		t.Fatal(err)
	}
	defer filler.Close()
	_, url, _ := serving(t, nil)
	cmd := exec.CommandContext(t.Context(), "infill", "mcp", "--device", "cpu")
	cmd.Env = os.Environ()
	client, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil).Connect(t.Context(),
		&mcp.CommandTransport{Command: cmd}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	command := func(stdin string, args ...string) string {
		code, out, told := call(t, strings.NewReader(stdin), append(args, "--device", "cpu", "-q")...)
		if code != 0 {
			t.Fatal(args, code, told)
		}
		return out
	}
	quoted := func(value any) string {
		text, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	type request struct {
		Template string `json:"template"`
		Slot     string `json:"slot,omitempty"`
		Blank    string `json:"blank,omitempty"`
	}
	flags := func(r request) []string { return []string{"--slot", r.Slot, "--blank", r.Blank} }
	doors := map[string]func(r request) string{
		"command": func(r request) string { return command("", append(flags(r), "--format", "jsonl", r.Template)...) },
		"lines": func(r request) string {
			return command(r.Template+"\n", append(flags(r), "--format", "jsonl")...)
		},
		"json": func(r request) string {
			return command(quoted(r)+"\n", "--input", "jsonl", "--format", "jsonl")
		},
		"run": func(r request) string {
			in, out := filepath.Join(t.TempDir(), "in.txt"), filepath.Join(t.TempDir(), "out.jsonl")
			if err := os.WriteFile(in, []byte(r.Template+"\n"), 0o644); err != nil {
				t.Fatal(err)
			}
			command("", append([]string{"run", in, "-o", out}, flags(r)...)...)
			text, err := os.ReadFile(out)
			if err != nil {
				t.Fatal(err)
			}
			return string(text)
		},
		"pipe": func(r request) string {
			out := command(`{"id":1,"path":"/v1/fill","body":`+quoted(r)+"}\n",
				"serve", "--pipe")
			var answer struct{ Body json.RawMessage }
			if err := json.Unmarshal([]byte(out), &answer); err != nil {
				t.Fatal(out, err)
			}
			return string(answer.Body)
		},
		"http": func(r request) string {
			_, text := posted(t, url+"/v1/fill", quoted(r))
			return text
		},
		"mcp": func(r request) string {
			lists := listsOf(t, r.Slot)
			answer, err := client.CallTool(t.Context(), &mcp.CallToolParams{Name: "fill", Arguments: struct {
				request
				Slot map[int][]string `json:"slot,omitempty"` // the one form of a tool
			}{r, lists}})
			if err != nil {
				t.Fatal(err)
			}
			return strings.Replace(quoted(answer.StructuredContent), `"fills":[{`, `"method":"search","fills":[{`, 1)
		},
	}
	for _, q := range []request{
		{Template: "Paris is the [MASK] of France."}, {Template: "The ___ photographed it."},
		{Template: "Berlin and <mask> York."}, {Template: "[MASK] sat on the [MASK]."},
		{Template: "the [MASK:1-2] house"},
		{Template: "a [MASK~st.*d] man"}, {Template: "a {} house under a [MASK] roof", Slot: "1=red,green",
			Blank: "{}"},
		{Template: "the [MASK] was painted [MASK].", Slot: "1=door,New York 2=red,green"},
	} {
		asked := infill.Request{Template: q.Template, Blank: q.Blank}
		asked.Fit.Slots = listsOf(t, q.Slot)
		r, err := filler.Fill(t.Context(), asked, nil)
		if err != nil {
			t.Fatal(q.Template, err)
		}
		var text bytes.Buffer
		if err := rawjson.WriteLine(&text, r); err != nil {
			t.Fatal(err)
		}
		type result struct {
			Method string
			Fills  []struct {
				Text               string
				Values             []string
				Probability, Share float64
			}
		}
		var want result
		if err := json.Unmarshal(text.Bytes(), &want); err != nil || len(want.Fills) == 0 {
			t.Fatal(text.String(), err)
		}
		for door, ask := range doors {
			answer := ask(q)
			var got result
			if err := json.Unmarshal([]byte(answer), &got); err != nil {
				t.Errorf("%v by %s: %v %.300s", q, door, err, answer)
			} else if diff := cmp.Diff(want, got); diff != "" || strings.Contains(answer, `"seed"`) {
				t.Errorf("%v by %s, %s: %.300s", q, door, diff, answer)
			}
		}
		if q.Slot == "" {
			maskDoor(t, url, q.Template, r)
		}
	}
}

// maskDoor compares POST / with what each blank of a result holds by itself. A text that its answer cannot tell is
// refused there.
func maskDoor(t *testing.T, url, template string, r *infill.Result) {
	t.Helper()
	body, err := json.Marshal(map[string]any{"inputs": template, "parameters": map[string]any{"top_k": 1000}})
	if err != nil {
		t.Fatal(err)
	}
	status, text := posted(t, url+"/", string(body))
	if strings.Contains(template, "-") {
		if status != 422 || !strings.Contains(text, "POST /v1/fill") {
			t.Errorf("%s by POST /: %d %.300s", template, status, text)
		}
		return
	}
	type candidate struct {
		Score float64
		Token int
	}
	blanks := make([][]candidate, len(r.Alone))
	if len(blanks) == 1 {
		err = json.Unmarshal([]byte(text), &blanks[0])
	} else {
		err = json.Unmarshal([]byte(text), &blanks)
	}
	if err != nil {
		t.Fatalf("%s by POST /: %v in %.300s", template, err, text)
	}
	for blank, values := range r.Alone {
		for _, v := range values {
			at := slices.IndexFunc(blanks[blank], func(c candidate) bool { return c.Token == v.TokenID })
			if at < 0 || math.Abs(blanks[blank][at].Score-v.Probability) > 1e-9 {
				t.Errorf("%s by POST /: blank %d holds %s with %v", template, blank+1, v.Text, v.Probability)
			}
		}
	}
}

// listsOf reads lists as the command does, and "" as no list.
func listsOf(t *testing.T, text string) infill.Lists {
	t.Helper()
	if text == "" {
		return nil
	}
	return ask.MustGive("slot", text).Value().(infill.Lists)
}
