// Package tui is the screen of `infill tui`: it fills a template while it is written, lists the fills, shows what each
// blank holds by itself and how chains move, and gives back the fill that is picked.
//
// There is one tea.Model. Update only changes state: filling, files and the model run in commands that a context
// cancels, and nothing of them is left when Run returns. Each view of the screen is a page, which owns its selection
// and its place of scrolling, and draws itself for a width and a height. Snapshots of a run never change, so the screen
// reads them without locks.
package tui

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/colorprofile"

	"infill/infill"
	"infill/tokenize"
)

// Config says what the screen starts with, and its terminal.
type Config struct {
	// Template is filled at once; "" waits for one to be written.
	Template string
	// Folder is an evaluation run to show, "" for none.
	Folder string
	// Options are those of the first run.
	Options infill.Options
	// Model names the model to open; Models are the names offered beside it.
	Model  string
	Models []string
	// Open opens a model by name. The screen closes what it opened.
	Open func(ctx context.Context, model string) (Filler, error)
	// Profile is how many colours the terminal shows; colorprofile.Ascii shows none, but bold, underline and reverse
	// (NO_COLOR).
	Profile colorprofile.Profile
	// Theme is the background that the colours are for: "dark", "light", or "auto", which asks the terminal, and is
	// dark until it answers.
	Theme string
	// Input and Output are the terminal. Nothing else is written to Output.
	Input  io.Reader
	Output io.Writer
	// Now returns the time; nil is the clock.
	Now func() time.Time
}

// Filler has the methods of infill.Filler that the screen calls.
type Filler interface {
	Fill(ctx context.Context, template string, o infill.Options, observe func(infill.Progress)) (*infill.Result, error)
	Tokenizer() *tokenize.Tokenizer
	Close() error
}

var _ Filler = (*infill.Filler)(nil)

// mostStates is how many states of chains a run may have here: the screen keeps all of them.
const mostStates = 2_000_000

// Validate returns an *infill.OptionError for wrong options, and for those of a run with more states than the screen
// keeps.
func (c Config) Validate() error {
	if err := c.Options.Validate(); err != nil || c.Options.Chains == nil {
		return err
	}
	const chains = 25 // where no number is said
	if o := c.Options; o.Chains.Steps > mostStates/cmp.Or(o.Samples, chains) {
		return &infill.OptionError{Option: "steps",
			Reason: fmt.Sprintf("chains × steps is above %d: run longer ones with the command", mostStates)}
	}
	return nil
}

// Run shows the screen until the user leaves it, and returns the fill picked, "" for none. Everything that it started
// has ended when it returns, also a running call of the model. The error is ctx's if that ended the screen, and
// context.Canceled if the user pressed ctrl+c.
func Run(ctx context.Context, c Config) (string, error) {
	m := newModel(ctx, c)
	program := tea.NewProgram(m, tea.WithContext(ctx), tea.WithInput(c.Input), tea.WithOutput(c.Output),
		tea.WithColorProfile(c.Profile), tea.WithoutSignalHandler())
	_, err := program.Run()
	err = errors.Join(tidy(ctx, err), m.close())
	switch {
	case err != nil:
		return "", err
	case m.interrupted:
		return "", context.Canceled
	}
	return m.picked, nil
}

// tidy gives the plain reason why the program ended.
func tidy(ctx context.Context, err error) error {
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, tea.ErrProgramPanic):
		return errors.New("the terminal UI failed: please report what was on the screen")
	}
	return fmt.Errorf("the terminal is gone: %w", err)
}
