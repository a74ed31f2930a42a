package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"infill/cmd/infill/internal/terminal"
	"infill/infill"
)

func TestProgress(t *testing.T) {
	tests := []struct {
		name                   string
		terminal, quiet, hasty bool
		want                   bool // something is shown
	}{
		{name: "terminal", terminal: true, want: true},
		{name: "no terminal"},
		{name: "quiet", terminal: true, quiet: true},
		{name: "a run that is over soon", terminal: true, hasty: true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var out, result bytes.Buffer
			p := newProgress(&terminal.Streams{Out: &result, Err: &out, ErrTerminal: test.terminal}, test.quiet)
			if !test.hasty {
				p.start = time.Now().Add(-time.Hour)
			}
			p.observe(infill.Progress{Step: 1, Steps: 4})
			if got := out.Len() > 0; got != test.want {
				t.Errorf("shown: %q", out.String())
			}
			p.clear()
			// What is left on the line is blanks, for the result to stand on.
			left := out.String()[strings.LastIndex(out.String(), "\r")+1:]
			if test.want && strings.TrimSpace(left) != "" && !strings.HasSuffix(out.String(), "\x1b[2K\r") {
				t.Errorf("left on the terminal: %q", out.String())
			}
			if result.Len() > 0 {
				t.Errorf("on standard output: %q", result.String())
			}
			before := out.Len()
			p.clear()
			if out.Len() != before {
				t.Error("clearing twice wrote again")
			}
		})
	}
}
