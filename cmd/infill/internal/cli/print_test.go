package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"

	"infill/cmd/infill/internal/terminal"
	"infill/infill"
)

func TestEmptyArray(t *testing.T) {
	var out bytes.Buffer
	p := &Printer[*infill.Result]{Format: "json", Streams: &terminal.Streams{Out: &out}}
	if err := p.End(); err != nil || out.String() != "[]\n" {
		t.Errorf("got %q, %v", out.String(), err)
	}
}

// What would have a terminal write in another order is shown as an escape, in
// fills, tables and messages; programs get it as it is.
func TestReordering(t *testing.T) {
	const text = "a \u202eb\u2066c \u200f [MASK]"
	const shown = `a \u202eb\u2066c` + " \u200f [MASK]"
	if got := ansi.Strip(Mark(text, [][2]int{{2, 6}})); got != shown {
		t.Errorf("%q, want %q", got, shown)
	}
	if got := OneLine(text); got != shown {
		t.Errorf("%q, want %q", got, shown)
	}
	if got := RenderTable(0, []string{"a", "b"}, [][]string{{text, "1"}}, 0); !strings.Contains(got, shown) {
		t.Errorf("%q, want %q", got, shown)
	}
}

// TestWithFiles: a list may name a file of words.
func TestWithFiles(t *testing.T) {
	file := filepath.Join(t.TempDir(), "texts.txt")
	if err := os.WriteFile(file, []byte("red\n\ndark blue\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if text, err := withFiles(t.Context(), "1=green,@"+file); err != nil || text != "1=green,red,dark blue" {
		t.Errorf("a list with a file: %q, %v", text, err)
	}
}

// Results of one line each stand below a heading; between longer ones is an empty line.
func TestHeading(t *testing.T) {
	for heading, want := range map[string]string{"head\n": "head\na\nb\n", "": "a\n\nb\n"} {
		var out bytes.Buffer
		p := &Printer[string]{Format: "text", Streams: &terminal.Streams{Out: &out},
			Style: Style[string]{Heading: heading,
				Text: func(text string, _ int) string { return text + "\n" }}}
		for _, text := range []string{"a", "b"} {
			if err := p.Print(text); err != nil {
				t.Fatal(err)
			}
		}
		if err := p.End(); err != nil || out.String() != want {
			t.Errorf("%q, %v", out.String(), err)
		}
	}
}
