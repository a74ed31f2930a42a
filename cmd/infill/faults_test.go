//go:build unix

package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"infill/cmd/infill/internal/cli"
	"infill/cmd/infill/internal/terminal"
	"infill/internal/modelstest"
)

var errFault = errors.New("the device is lost")

// faultyWriter fails at one of its writes, and at no other: an error that is
// dropped leaves an exit code of success.
type faultyWriter struct {
	bytes.Buffer
	writes, failAt int
}

func (w *faultyWriter) Write(p []byte) (int, error) {
	w.writes++
	if w.writes == w.failAt {
		return 0, errFault
	}
	return w.Buffer.Write(p)
}

// TestOutputFaults: whichever write of a result fails, the command says so and
// fails.
func TestOutputFaults(t *testing.T) {
	dir := t.TempDir()
	table := filepath.Join(dir, "in.csv")
	err := os.WriteFile(table, []byte("text\nhe had told me .\nshe told him .\n"), 0o666)
	if err != nil {
		t.Fatal(err)
	}
	const templates = "he had [MASK] me .\n\nshe [MASK] him .\n"
	const texts = "he had told me .\nshe told him .\n"
	const pairs = "he had told me .\the had tell me .\nhe told me .\the me told .\n"
	fill := `{"path":"/v1/fill","body":{"template":"he had [MASK] me ."}}` + "\n"
	call := `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"score","arguments":{"texts":["a b"]}}}`
	hello := `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18",` +
		`"capabilities":{},"clientInfo":{"name":"x","version":"1"}}}` + "\n"
	uses := map[string][]string{
		"metrics": {"metrics", table, "-q"}, "metrics as CSV": {"metrics", table, "-q", "--format", "csv"},
		"metrics as JSON": {"metrics", table, "-q", "--format", "json"},
		"the library":     {"models", "list"}, "version": {"version"}, "help": {"help", "samplers"},
		"usage":  {"run", "-h"},
		"a pipe": {"serve", "--pipe", "-q"}, "an agent": {"mcp"},
		"verdicts": {"score", "--pairs", "-q", "--format", "jsonl"},
		"tokens":   {"score", "--tokens", "-q", "--format", "csv"},
		"ranks":    {"score", "--rank", "sum", "-q"},
	}
	stdin := map[string]string{"a pipe": fill + fill, "an agent": hello + fmt.Sprintf(call, 2) + "\n",
		"verdicts": pairs, "tokens": texts, "ranks": texts}
	for _, format := range append(cli.Formats(), "lines", "words") {
		uses["fills as "+format] = []string{"-q", "--seed", "1", "-k", "2", "--format", format}
		stdin["fills as "+format] = templates
	}
	for _, format := range cli.Formats() {
		uses["scores as "+format] = []string{"score", "-q", "--format", format}
		stdin["scores as "+format] = texts
	}
	for name, args := range uses {
		for n := 1; ; n++ {
			out := &faultyWriter{failAt: n}
			var stderr bytes.Buffer
			code := Main(t.Context(),
				&terminal.Streams{In: strings.NewReader(stdin[name]), Out: out, Err: &stderr}, args)
			if out.writes < n {
				if code != 0 || n == 1 {
					t.Errorf("%s, without a fault in %d writes: code %d, %s", name, out.writes, code, stderr.String())
				}
				break
			}
			if code != cli.ExitFailed || !strings.Contains(stderr.String(), errFault.Error()) {
				t.Errorf("%s, write %d fails: code %d, %s", name, n, code, stderr.String())
			}
		}
	}
}

// TestInputFaults: standard input that breaks off is an error of each command
// that reads it, and what is left of a line is no text.
func TestInputFaults(t *testing.T) {
	dir := t.TempDir()
	for name, c := range map[string]struct {
		args  []string
		input string
	}{
		"fills": {[]string{"-q", "--seed", "1"}, "he had [MASK] me .\nshe [MASK] him secretly"},
		"fills, JSON": {[]string{"-q", "--input", "jsonl"},
			`{"template":"he had [MASK] me ."}` + "\n" + `{"template":"secretly`},
		"scores":  {[]string{"score", "-q"}, "he had told me .\nshe told him secretly"},
		"pairs":   {[]string{"score", "-q", "--pairs"}, "he had told me .\the had tell me .\nshe told\tsecretly"},
		"metrics": {[]string{"metrics", "-", "-q"}, "he had told me .\nshe told him secretly"},
		"a run": {[]string{"run", "-", "--from", "text", "-q", "-o", filepath.Join(dir, "out.txt")},
			"he had [MASK] me .\n"},
		"a list": {[]string{"-q", "--slot", "1=@/dev/stdin-of-nobody", "he had [MASK] me ."}, ""},
		"a pipe": {[]string{"serve", "--pipe", "-q"},
			`{"id":1,"path":"/v1/score","body":{"texts":["a b"]}}` + "\n" + `{"id":"secretly`},
		"an agent":     {[]string{"mcp"}, ""},
		"a reference":  {[]string{"metrics", "/dev/null", "-r", "a=-", "-q"}, "he had told me .\n"},
		"an empty one": {[]string{"-q"}, ""},
	} {
		var stdout, stderr bytes.Buffer
		in := io.MultiReader(strings.NewReader(c.input), iotest.ErrReader(errFault))
		code := Main(t.Context(), &terminal.Streams{In: in, Out: &stdout, Err: &stderr}, c.args)
		if code == 0 || strings.Contains(stdout.String(), "secretly") ||
			!strings.Contains(stderr.String(), errFault.Error()) && name != "a list" && name != "a reference" {
			t.Errorf("%s: code %d, %s%s", name, code, stdout.String(), stderr.String())
		}
	}
	left, _ := filepath.Glob(filepath.Join(dir, "*"))
	if left != nil {
		t.Errorf("%v is left", left)
	}
}

// TestLibraryFaults: a model that cannot be loaded is an error of each command
// that needs it, and no command leaves a result.
func TestLibraryFaults(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("INFILL_ONNXRUNTIME", filepath.Join(dir, "nothing of this name"))
	input := filepath.Join(dir, "in.txt")
	corpus := filepath.Join(dir, "corpus.txt")
	err := errors.Join(os.WriteFile(input, []byte("he had [MASK] me .\nthe old man sat .\n"), 0o666),
		os.WriteFile(corpus, []byte("the old man sat by the fire .\nhe had told me .\nshe left him .\n"), 0o666))
	if err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(dir, "out")
	for _, args := range [][]string{
		{"he had [MASK] me ."}, {"--format", "json", "he had [MASK] me ."}, {"score", "he had told me ."},
		{"run", input, "-o", out + ".jsonl"}, {"augment", input, "-o", out + ".jsonl"},
		{"eval", "--corpus", "a=" + corpus, "--sentences", "1", "--slots", "1", "--min-tokens", "1", "-o", out},
		{"serve", "--pipe"}, {"serve"}, {"mcp"},
	} {
		// A process of its own, because one that has loaded the library keeps it.
		p := start(t, args...)
		p.in.Close()
		stdout, err := io.ReadAll(p.stdout)
		if err != nil {
			t.Fatal(err)
		}
		code, stderr := p.end(t)
		if code != cli.ExitFailed || len(stdout) > 0 || !strings.Contains(stderr, "nothing of this name") {
			t.Errorf("%v: code %d, %s%s", args, code, stdout, stderr)
		}
	}
	left, _ := filepath.Glob(out + ".*")
	if left != nil {
		t.Errorf("%v is left", left)
	}
}

// TestTraceFaults: a trace that the disk has no room for is an error, after the
// result.
func TestTraceFaults(t *testing.T) {
	err := modelstest.InLittleRoom(t, 100, t.TempDir(), func(dir string) error {
		code, stdout, stderr := call(t, strings.NewReader(""), "-q", "--sampler", "dmala", "--steps", "4", "--trace",
			filepath.Join(dir, "trace.csv"), "he had [MASK] me .")
		if code != cli.ExitFailed || !strings.Contains(stdout, "he had ") {
			t.Errorf("code %d, %s%s", code, stdout, stderr)
		}
		return errors.New(strings.TrimSpace(stderr))
	})
	if !strings.Contains(err.Error(), "trace.csv: file too large") {
		t.Error(err)
	}
}
