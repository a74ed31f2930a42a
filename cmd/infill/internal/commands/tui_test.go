package commands

import (
	"strings"
	"testing"

	"infill/cmd/infill/internal/cli"
	"infill/cmd/infill/internal/terminal"
	"infill/cmd/infill/internal/tui"
)

// Options and the argument are checked before the terminal is: what remains to say then
// is that there is none.
func TestScreenArguments(t *testing.T) {
	writeFiles(t, map[string]string{"file": "text"})
	const none = "infill: the screen needs a terminal for standard input and standard error\n" +
		"hint: infill \"he had [MASK] me\" needs none\n"
	const noText = "is no folder, and no text with a [MASK]\n" +
		"hint: give the folder of an evaluation, or a template in quotes\n"
	runCases(t, tui.NewCmd, []callCase{
		{Line: "tui", Code: 1, Err: none},
		{Line: "tui .", Code: 1, Err: none}, // a folder
		{Line: "tui [MASK]", Code: 1, Err: none},
		{Line: "tui ___", Code: 1, Err: none},
		{Line: "tui --blank ??? ???", Code: 1, Err: none},
		{Line: "tui", Texts: []string{"a text without a blank yet"}, Code: 1, Err: none},
		{Line: "tui [mask]", Code: 1, Err: none}, // the screen says what it may mean
		{Line: "tui results", Code: 2, Err: "infill: \"results\" " + noText},
		{Line: "tui file", Code: 2, Err: "infill: \"file\" " + noText},
		{Line: "tui ???", Code: 2, Err: noText},
		{Line: "tui a [MASK]", Code: 2,
			Err: "infill: 2 arguments: give one template, in quotes, or one folder\n"},
		{Line: "tui --top none", Code: 2, Err: "infill: --top: \"none\" is not "},
		{Line: "tui --steps 5", Code: 2, Err: "infill: --steps: "},
		{Line: "tui --sampler dmala --steps 1000000", Code: 2, Err: "infill: --steps: chains × steps is above " +
			"2000000: " +
			"run longer ones with the command\n"},
		{Line: "tui --sampler dmala --steps 80000", Code: 1, Err: none},
		{Line: "tui --theme blue", Code: 2, Err: "infill: --theme: \"blue\" is not one of auto, dark, light\n"},
		{Line: "tui --device tpu", Code: 2, Err: "infill: --device: "},
	})
}

// The screen needs both ends of a terminal, and one that moves its cursor.
func TestScreenTerminal(t *testing.T) {
	for name, s := range map[string]terminal.Streams{
		"no input": {ErrTerminal: true}, "no standard error": {InTerminal: true},
		"a dumb one": {InTerminal: true, ErrTerminal: true, Environment: []string{"TERM=dumb"}},
	} {
		s.In = strings.NewReader("\x03") // which would leave a screen
		r := call(t, tui.NewCmd, s, "tui")
		if r.Code != cli.ExitFailed || !strings.HasPrefix(r.Err, "infill: the screen needs a terminal") {
			t.Errorf("%s: %+v", name, r)
		}
	}
}

// With a terminal the screen comes, on standard error; ctrl+c leaves it without a pick.
func TestScreenScreen(t *testing.T) {
	s := terminal.Streams{InTerminal: true, ErrTerminal: true, In: strings.NewReader("\x03"),
		Environment: []string{"TERM=xterm-256color"}}
	r := call(t, tui.NewCmd, s, "tui")
	if r.Code != cli.ExitInterrupted || r.Out != "" || !strings.Contains(r.Err, "\x1b[?1049h") ||
		!strings.HasSuffix(r.Err, "infill: interrupted\n") {
		t.Errorf("%+v", r)
	}
}
