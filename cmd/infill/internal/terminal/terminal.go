// Package terminal holds the streams of a command and the properties of their
// terminals. Commands use no others, so that tests can replace a terminal.
package terminal

import (
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/charmbracelet/colorprofile"
	"golang.org/x/term"
)

// Streams are the input and outputs of a command. If all fields after the first
// three are zero, the streams are not terminals.
type Streams struct {
	In  io.Reader
	Out io.Writer // for the result and nothing else
	Err io.Writer // for errors, warnings and progress

	InTerminal, OutTerminal, ErrTerminal bool

	// Width is the number of columns of Out, or 0 if it is no terminal.
	Width int
	// Environment holds KEY=VALUE pairs, like os.Environ.
	Environment []string
}

func System() *Streams {
	s := &Streams{
		In: os.Stdin, Out: os.Stdout, Err: os.Stderr,
		InTerminal:  term.IsTerminal(int(os.Stdin.Fd())),
		OutTerminal: term.IsTerminal(int(os.Stdout.Fd())),
		ErrTerminal: term.IsTerminal(int(os.Stderr.Fd())),
		Environment: os.Environ(),
	}
	if s.OutTerminal {
		// If the width is unknown, lines are never wrapped.
		width, _, err := term.GetSize(int(os.Stdout.Fd()))
		if err == nil {
			s.Width = width
		}
	}
	return s
}

// Getenv returns the value of a variable in Environment, or "" if it is not set.
func (s *Streams) Getenv(name string) string {
	for i := len(s.Environment) - 1; i >= 0; i-- {
		key, value, _ := strings.Cut(s.Environment[i], "=")
		if key == name {
			return value
		}
	}
	return ""
}

// Colors returns the colours that Out can show. NO_COLOR (any value) removes
// colours and keeps bold on a terminal. CLICOLOR_FORCE (any value except 0)
// keeps colours in a pipe; NO_COLOR overrides it.
func (s *Streams) Colors() colorprofile.Profile {
	noColor := s.Getenv("NO_COLOR") != ""
	force := s.Getenv("CLICOLOR_FORCE")
	forced := force != "" && force != "0"
	if noColor {
		if s.OutTerminal && s.Getenv("TERM") != "dumb" {
			return colorprofile.Ascii
		}
		return colorprofile.NoTTY
	}
	if !s.OutTerminal && !forced {
		return colorprofile.NoTTY
	}
	// Any value except 0 forces colours. colorprofile expects a Boolean, and
	// would overlook one such as "yes".
	return colorprofile.Env(append(s.Environment[:len(s.Environment):len(s.Environment)],
		"NO_COLOR=", "CLICOLOR_FORCE="+strconv.FormatBool(forced)))
}

// Styled returns a writer to Out that removes escape sequences for colours beyond Colors.
func (s *Streams) Styled() io.Writer {
	return &colorprofile.Writer{Forward: s.Out, Profile: s.Colors()}
}
