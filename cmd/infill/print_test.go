package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"
	"github.com/google/go-cmp/cmp"

	"infill/cmd/infill/internal/terminal"
	"infill/infill"
)

// golden compares with testdata/golden/NAME; -update writes it.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", "golden", name)
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v: go test ./cmd/infill -update writes it", err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s: %s", path, diff)
	}
}

// terminalOf is a terminal of the given width, 0 for a pipe.
func terminalOf(out *bytes.Buffer, width int) *terminal.Streams {
	return &terminal.Streams{Out: out, OutTerminal: width > 0, Width: width, Environment: []string{"TERM=xterm"}}
}

// checkShape holds every output to what is true whatever it shows: goldens are
// easily updated.
func checkShape(t *testing.T, text, format string, width int) {
	t.Helper()
	switch format {
	case "json":
		if !json.Valid([]byte(text)) {
			t.Error("not JSON")
		}
	case "jsonl":
		for line := range strings.Lines(text) {
			if !json.Valid([]byte(line)) {
				t.Errorf("not JSON: %s", line)
			}
		}
	case "text":
		for line := range strings.Lines(text) {
			line = strings.TrimSuffix(line, "\n")
			if w := ansi.StringWidth(line); width > 0 && w > width {
				t.Errorf("%d columns on a terminal of %d: %q", w, width, line)
			}
			if strings.TrimRight(ansi.Strip(line), " ") != ansi.Strip(line) {
				t.Errorf("blanks at the end of %q", line)
			}
			if width == 0 && strings.ContainsRune(line, '\x1b') {
				t.Errorf("an escape sequence in a pipe: %q", line)
			}
		}
	}
}

// failing is a writer on a full disk.
type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, errors.New("no space") }

// goldens compares results in every form with stored ones; id gives that of the
// ith.
func goldens[T any](t *testing.T, command string, f form[T], results []T, id func(i int) json.RawMessage) {
	tests := []struct {
		name, format string
		width        int
	}{
		{"pipe.txt", "text", 0},
		{"terminal-40.txt", "text", 40},
		{"terminal-80.txt", "text", 80},
		{"terminal-200.txt", "text", 200},
		{"array.json", "json", 0},
		{"lines.jsonl", "jsonl", 0},
		{"rows.csv", "csv", 0},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var out bytes.Buffer
			p := &printer[T]{form: f, format: test.format, streams: terminalOf(&out, test.width)}
			for i, r := range results {
				if err := p.print(id(i), r); err != nil {
					t.Fatal(err)
				}
			}
			if err := p.end(); err != nil {
				t.Fatal(err)
			}
			checkShape(t, out.String(), test.format, test.width)
			golden(t, command+"-"+test.name, out.Bytes())
		})
	}
	// No form loses the error of its writer.
	for _, format := range formats() {
		if (&printer[T]{form: f, format: format, streams: &terminal.Streams{Out: failing{}}}).print(nil, results[0]) == nil {
			t.Errorf("%s: no error", format)
		}
	}
}

func TestEmptyArray(t *testing.T) {
	var out bytes.Buffer
	p := &printer[*infill.Result]{format: "json", streams: &terminal.Streams{Out: &out}}
	if err := p.end(); err != nil || out.String() != "[]\n" {
		t.Errorf("got %q, %v", out.String(), err)
	}
}

// What would have a terminal write in another order is shown as an escape, in fills, tables and messages; programs get it as it is.
func TestReordering(t *testing.T) {
	const text = "a \u202eb\u2066c \u200f [MASK]"
	const shown = `a \u202eb\u2066c` + " \u200f [MASK]"
	if got := ansi.Strip(mark(text, [][2]int{{2, 6}})); got != shown {
		t.Errorf("%q, want %q", got, shown)
	}
	if got := oneLine(text); got != shown {
		t.Errorf("%q, want %q", got, shown)
	}
	if got := renderTable(0, nil, [][]string{{text, "1"}}, 0); !strings.Contains(got, shown) {
		t.Errorf("%q, want %q", got, shown)
	}
	for format, want := range map[string]string{"text": `\u202e`, "json": "\u202e", "csv": "\u202e"} {
		code, stdout, stderr := run(t, strings.NewReader(""), "--seed", "1", "-k", "1", "--format", format, "he had \u202e [MASK] me")
		if code != 0 || !strings.Contains(stdout, want) || format == "text" && strings.Contains(stdout, "\u202e") {
			t.Errorf("%s: exit code %d, %q, %q", format, code, stdout, stderr)
		}
	}
}
