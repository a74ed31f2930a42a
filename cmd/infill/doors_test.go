//go:build unix

package main

import (
	"bytes"
	"encoding/json"
	"io"
	"math"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"infill/infill"
	"infill/internal/object"
	"infill/models"
)

// TestDoors: one template gives the same fills with the same probabilities by every door. TestAnswerOfTheCommand of
// package tui has the terminal UI.
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
	doors := map[string]func(template string) string{
		"command": func(template string) string { return command("", "--format", "jsonl", template) },
		"lines":   func(template string) string { return command(template+"\n", "--format", "jsonl") },
		"json": func(template string) string {
			return command(quoted(map[string]string{"template": template})+"\n", "--input", "jsonl", "--format",
				"jsonl")
		},
		"run": func(template string) string {
			in, out := filepath.Join(t.TempDir(), "in.txt"), filepath.Join(t.TempDir(), "out.jsonl")
			if err := os.WriteFile(in, []byte(template+"\n"), 0o644); err != nil {
				t.Fatal(err)
			}
			command("", "run", in, "-o", out)
			text, err := os.ReadFile(out)
			if err != nil {
				t.Fatal(err)
			}
			return string(text)
		},
		"pipe": func(template string) string {
			out := command(`{"id":1,"path":"/v1/fill","body":`+quoted(map[string]string{"template": template})+"}\n",
				"serve", "--pipe")
			var answer struct{ Body json.RawMessage }
			if err := json.Unmarshal([]byte(out), &answer); err != nil {
				t.Fatal(out, err)
			}
			return string(answer.Body)
		},
		"http": func(template string) string {
			r, err := http.Post(url+"/v1/fill", "application/json",
				strings.NewReader(quoted(map[string]string{"template": template})))
			if err != nil {
				t.Fatal(err)
			}
			defer r.Body.Close()
			text, err := io.ReadAll(r.Body)
			if err != nil {
				t.Fatal(err)
			}
			return string(text)
		},
		"mcp": func(template string) string {
			r, err := client.CallTool(t.Context(),
				&mcp.CallToolParams{Name: "fill", Arguments: map[string]any{"template": template}})
			if err != nil {
				t.Fatal(err)
			}
			return strings.Replace(quoted(r.StructuredContent), `"fills":[{`, `"method":"search","samples":[{`, 1)
		},
	}
	seed := regexp.MustCompile(`"seed"`)
	for _, template := range []string{
		"Paris is the [MASK] of France.", "The [MASK] photographed it.", "Berlin and [MASK] York.",
		"[MASK] sat on the [MASK].",
		"the [MASK:1-2] house", "a [MASK~st.*d] man", "a [MASK~serendip.*] thing",
	} {
		r, err := filler.Fill(t.Context(), template, infill.DefaultOptions(), nil)
		if err != nil {
			t.Fatal(err)
		}
		var text bytes.Buffer
		if err := object.WriteLine(&text, r); err != nil {
			t.Fatal(err)
		}
		type result struct {
			Method  string
			Samples []struct {
				Text        string
				Fills       []string
				Probability float64
			}
		}
		var want result
		if err := json.Unmarshal(text.Bytes(), &want); err != nil || len(want.Samples) == 0 {
			t.Fatal(text.String(), err)
		}
		for door, ask := range doors {
			answer := ask(template)
			var got result
			if err := json.Unmarshal([]byte(answer), &got); err != nil || got.Method != want.Method ||
				len(got.Samples) != len(want.Samples) || seed.MatchString(answer) {
				t.Errorf("%s by %s: %v %.300s", template, door, err, answer)
				continue
			}
			for i, fill := range got.Samples {
				if w := want.Samples[i]; fill.Text != w.Text || math.Abs(fill.Probability/w.Probability-1) > 1e-6 {
					t.Errorf("%s by %s: fill %d is %q %v, want %q %v", template, door, i+1, fill.Text, fill.Probability,
						w.Text, w.Probability)
				}
			}
		}
	}
}
