package cli

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"

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
			p := NewSteps(&terminal.Streams{Out: &result, Err: &out, ErrTerminal: test.terminal}, test.quiet)
			if !test.hasty {
				p.bar.start = time.Now().Add(-time.Hour)
			}
			p.Observe(infill.Progress{Step: 1, Steps: 4})
			if got := out.Len() > 0; got != test.want {
				t.Errorf("shown: %q", out.String())
			}
			p.Clear()
			// What is left on the line is blanks, for the result to stand on.
			left := out.String()[strings.LastIndex(out.String(), "\r")+1:]
			if test.want && strings.TrimSpace(left) != "" && !strings.HasSuffix(out.String(), "\x1b[2K\r") {
				t.Errorf("left on the terminal: %q", out.String())
			}
			if result.Len() > 0 {
				t.Errorf("on standard output: %q", result.String())
			}
			before := out.Len()
			p.Clear()
			if out.Len() != before {
				t.Error("clearing twice wrote again")
			}
		})
	}
}

// TestBar: a bar that fits its line, or a line now and then where there is no terminal.
func TestBar(t *testing.T) {
	said := "sentence 3 of 20, 750 of 5500 chains (123/s), 2h05m left, dmala:balance=sqrt,step-size=0.3,candidates=500"
	describe := func() string { return said }
	t.Run("terminal", func(t *testing.T) {
		var out bytes.Buffer
		p := NewBar(&terminal.Streams{Err: &out, ErrTerminal: true}, false, true)
		p.start = time.Now().Add(-time.Hour)
		for step := range 3 {
			p.Tell(step, 100, describe)
		}
		shown := false
		for _, line := range strings.FieldsFunc(out.String(), func(r rune) bool { return r == '\r' || r == '\n' }) {
			if width := ansi.StringWidth(line); width > 80 {
				t.Errorf("%d columns: %q", width, line)
			}
			shown = shown || strings.HasPrefix(line, said[:55])
		}
		if !shown {
			t.Errorf("%q never came: %q", said[:55], out.String())
		}
		p.Clear()
	})
	t.Run("log", func(t *testing.T) {
		var out bytes.Buffer
		p := NewBar(&terminal.Streams{Err: &out}, false, true)
		p.Tell(0, 100, describe)
		if out.Len() > 0 {
			t.Errorf("at once: %q", out.String())
		}
		p.told = time.Now().Add(-time.Hour)
		p.Tell(1, 100, describe)
		p.Tell(2, 100, describe)
		if want := "infill: " + said + "\n"; out.String() != want {
			t.Errorf("got %q, want %q", out.String(), want)
		}
	})
	t.Run("quiet", func(t *testing.T) {
		var out bytes.Buffer
		for _, s := range []*terminal.Streams{{Err: &out}, {Err: &out, ErrTerminal: true}} {
			p := NewBar(s, true, true)
			p.start, p.told = time.Now().Add(-time.Hour), time.Now().Add(-time.Hour)
			p.Tell(1, 100, describe)
		}
		if out.Len() > 0 {
			t.Errorf("%q", out.String())
		}
	})
}

// Waits and conversions are reported in lines of their own, on a terminal.
func TestTransferTellsOfWaits(t *testing.T) {
	var out bytes.Buffer
	for _, onTerminal := range []bool{true, false} {
		out.Reset()
		bar := NewTransfer(&terminal.Streams{Err: &out, ErrTerminal: onTerminal}, false)
		bar.Waiting(fmt.Errorf("the hub answers 429\nToo Many Requests"), 2*time.Second)
		bar.Begin(1, 0, 1000)
		bar.File("vocab.txt")
		bar.Waiting(fmt.Errorf("the connection went silent"), 1500*time.Millisecond)
		bar.Converting()
		bar.Clear()
		if !onTerminal {
			if out.Len() != 0 {
				t.Errorf("in a pipe: %q", out.String())
			}
			continue
		}
		for _, want := range []string{"infill: the hub answers 429; Too Many Requests; next try in 2s\n",
			"\rinfill: the connection went silent; next try in 1.5s\n",
			"\rinfill: converting the weights of torch.save to safetensors\n"} {
			if !strings.Contains(out.String(), want) {
				t.Errorf("no %q in %q", want, out.String())
			}
		}
	}
}

func TestBytesText(t *testing.T) {
	for n, want := range map[int64]string{0: "0 B", 999: "999 B", 1000: "1.0 kB", 22_970_996: "23.0 MB",
		1_340_000_000: "1.34 GB"} {
		if got := BytesText(n); got != want {
			t.Errorf("%d: %q, want %q", n, got, want)
		}
	}
}
