package main

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"

	"infill/cmd/infill/internal/terminal"
)

func TestReflow(t *testing.T) {
	for _, test := range []struct{ text, want string }{
		{"one two three\nfour five\n", "one two three four\nfive\n"},
		{"  red   the colour of blood\n        and fire\n", "  red   the colour\n        of blood\n        and fire\n"},
		{"Title:\n  $ one\n  $ two\n\nend\n", "Title:\n  $ one\n  $ two\n\nend\n"},
		{"  $ infill a long example\n", "  $ infill a long\n  example\n"},
		{"averyveryverylongwordindeed\n", "averyveryverylongwordindeed\n"},
	} {
		if got := reflow(test.text, 18); got != test.want {
			t.Errorf("%q: got %q, want %q", test.text, got, test.want)
		}
	}
}

// TestHelpFits: on a terminal no line of any help is wider than it, but for the longest flag.
func TestHelpFits(t *testing.T) {
	for _, width := range []int{50, 80, 120} {
		for _, args := range [][]string{{"--help"}, {"--help", "all"}, {"run", "--help", "all"}, {"help", "formats"},
			{"help", "templates"}, {"help", "samplers"}, {"help", "environment"}, {"models", "pull", "--help"}} {
			var out, errs bytes.Buffer
			s := &terminal.Streams{In: strings.NewReader(""), Out: &out, Err: &errs, OutTerminal: true, Width: width}
			if code := Main(t.Context(), s, args); code != 0 {
				t.Fatalf("%q: code %d, %s", args, code, errs.String())
			}
			for line := range strings.Lines(out.String()) {
				line = strings.TrimRight(line, "\n")
				if n := utf8.RuneCountInString(line); n > width && !strings.HasPrefix(line, "      --device {") {
					t.Errorf("%q: %d columns on a terminal of %d: %q", args, n, width, line)
				}
			}
		}
	}
}
