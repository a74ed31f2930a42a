package cli

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"

	"infill/cmd/infill/internal/terminal"
)

// TestBar: a bar that fits its line, or a line now and then where there is no terminal.
func TestBar(t *testing.T) {
	said := "sentence 3 of 20, 750 of 5500 chains (123/s), 2h05m left, dmala:balance=sqrt,step-size=0.3,candidates=500"
	describe := func() string { return said }
	t.Run("terminal", func(t *testing.T) {
		var out bytes.Buffer
		p := NewBar(&terminal.Streams{Err: &out, ErrTerminal: true}, false, Pause)
		p.start = time.Now().Add(-time.Hour)
		for step := range int64(3) {
			p.Tell(step, 100, describe)
		}
		drawn := out.String()
		shown := false
		for _, line := range strings.FieldsFunc(drawn, func(r rune) bool { return r == '\r' || r == '\n' }) {
			if width := ansi.StringWidth(line); width > 80 {
				t.Errorf("%d columns: %q", width, line)
			}
			shown = shown || strings.HasPrefix(line, said[:55])
		}
		if !shown {
			t.Errorf("%q never came: %q", said[:55], out.String())
		}
		p.Say("a line\nin between")
		if !strings.HasSuffix(out.String(), "infill: a line; in between\n") {
			t.Errorf("no line in between: %q", out.String())
		}
		p.start = time.Now().Add(-time.Hour)
		p.Tell(5, 100, describe)
		// What is left on the line is blanks, for the result to stand on.
		p.Clear()
		left := out.String()[strings.LastIndex(out.String(), "\r")+1:]
		if strings.TrimSpace(left) != "" && !strings.HasSuffix(out.String(), "\x1b[2K\r") {
			t.Errorf("left on the terminal: %q", out.String())
		}
		before := out.Len()
		p.Clear()
		p.Tell(1, 100, describe)
		if out.Len() != before {
			t.Error("clearing twice wrote again, or the next bar came at once")
		}
	})
	t.Run("log", func(t *testing.T) {
		var out bytes.Buffer
		p := NewBar(&terminal.Streams{Err: &out}, false, Pause)
		p.Tell(0, 100, describe)
		if out.Len() > 0 {
			t.Errorf("at once: %q", out.String())
		}
		p.told = time.Now().Add(-time.Hour)
		p.Tell(1, 100, describe)
		p.Tell(2, 100, describe)
		p.Tell(100, 100, describe)
		p.Say("a line")
		if want := strings.Repeat("infill: "+said+"\n", 2); out.String() != want {
			t.Errorf("got %q, want %q", out.String(), want)
		}
	})
	t.Run("quiet", func(t *testing.T) {
		var out bytes.Buffer
		for _, s := range []*terminal.Streams{{Err: &out}, {Err: &out, ErrTerminal: true}} {
			p := NewBar(s, true, Pause)
			p.start, p.told = time.Now().Add(-time.Hour), time.Now().Add(-time.Hour)
			p.Tell(1, 100, describe)
		}
		if out.Len() > 0 {
			t.Errorf("%q", out.String())
		}
	})
}
