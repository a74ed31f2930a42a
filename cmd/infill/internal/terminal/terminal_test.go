package terminal

import (
	"bytes"
	"testing"

	"github.com/charmbracelet/colorprofile"
)

func TestColors(t *testing.T) {
	tests := []struct {
		name        string
		terminal    bool
		environment []string
		want        colorprofile.Profile
	}{
		{"pipe", false, []string{"TERM=xterm-256color"}, colorprofile.NoTTY},
		{"terminal", true, []string{"TERM=xterm-256color"}, colorprofile.ANSI256},
		{"plain terminal", true, []string{"TERM=xterm"}, colorprofile.ANSI},
		{"dumb terminal", true, []string{"TERM=dumb"}, colorprofile.NoTTY},
		{"NO_COLOR keeps bold", true, []string{"TERM=xterm", "NO_COLOR=1"}, colorprofile.Ascii},
		{"NO_COLOR is a switch, not a boolean", true, []string{"TERM=xterm", "NO_COLOR=yes"}, colorprofile.Ascii},
		{"an empty NO_COLOR is none", true, []string{"TERM=xterm", "NO_COLOR="}, colorprofile.ANSI},
		{"NO_COLOR on a dumb terminal", true, []string{"TERM=dumb", "NO_COLOR=1"}, colorprofile.NoTTY},
		{"forced in a pipe", false, []string{"TERM=xterm", "CLICOLOR_FORCE=1"}, colorprofile.ANSI},
		{"forced without TERM", false, []string{"CLICOLOR_FORCE=yes"}, colorprofile.ANSI},
		{"force 0 is off", false, []string{"TERM=xterm", "CLICOLOR_FORCE=0"}, colorprofile.NoTTY},
		{"NO_COLOR wins over force", false, []string{"TERM=xterm", "CLICOLOR_FORCE=1", "NO_COLOR=1"},
			colorprofile.NoTTY},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s := &Streams{OutTerminal: test.terminal, Environment: test.environment}
			if got := s.Colors(); got != test.want {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}

func TestStyled(t *testing.T) {
	const text = "a \x1b[1;36mword\x1b[m."
	tests := []struct {
		name        string
		environment []string
		want        string
	}{
		{"colour", []string{"TERM=xterm"}, text},
		{"no colour", []string{"TERM=xterm", "NO_COLOR=1"}, "a \x1b[1mword\x1b[m."},
		{"dumb", []string{"TERM=dumb"}, "a word."},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var out bytes.Buffer
			s := &Streams{Out: &out, OutTerminal: true, Environment: test.environment}
			if _, err := s.Styled().Write([]byte(text)); err != nil {
				t.Fatal(err)
			}
			if out.String() != test.want {
				t.Errorf("got %q, want %q", out.String(), test.want)
			}
		})
	}
}

func TestGetenv(t *testing.T) {
	s := &Streams{Environment: []string{"A=1", "B=x=y", "A=2"}}
	for name, want := range map[string]string{"A": "2", "B": "x=y", "C": ""} {
		if got := s.Getenv(name); got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
}
