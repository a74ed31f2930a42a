// Package tui is the screen of `infill tui`. It fills a template while the user writes it, and returns the fill that
// the user picks. It shows the fills, the likeliest words of each blank by itself, and the moves of chains.
//
// There is one tea.Model. Update only changes state: filling, files and the model run in commands that a context
// cancels, and all commands have ended when Run returns. Each view of the screen is a page, which keeps its selection
// and its scroll position, and draws itself for a width and a height. Snapshots of a run never change, so the screen
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

// Config holds the first template, model and options of the screen, and its terminal.
type Config struct {
	// Template is filled at once; "" waits for the user to write one.
	Template string
	// Folder is an evaluation run to show, "" for none.
	Folder string
	// Options are the options of the first run.
	Options infill.Options
	// Model names the model to open; Models are further names to offer.
	Model  string
	Models []string
	// Open opens a model by name. The screen closes every model that it opened.
	Open func(ctx context.Context, model string) (Filler, error)
	// Profile is the range of colours of the terminal; colorprofile.Ascii has none, but bold, underline and reverse
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

// mostStates is the largest number of states of all chains in a run, because the screen keeps all of them.
const mostStates = 2_000_000

// Validate returns an *infill.OptionError for wrong options, and for a run with more states than the screen keeps.
func (c Config) Validate() error {
	if err := c.Options.Validate(); err != nil || c.Options.Chains == nil {
		return err
	}
	const chains = 25 // the default
	if o := c.Options; o.Chains.Steps > mostStates/cmp.Or(o.Samples, chains) {
		return &infill.OptionError{Option: "steps",
			Reason: fmt.Sprintf("chains × steps is above %d: run longer ones with the command", mostStates)}
	}
	return nil
}

// Run shows the screen until the user leaves it, and returns the picked fill, "" for none. When it returns, everything
// that it started has ended, also a running call of the model. The error is ctx's if that ended the screen, and
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

// tidy returns a plain reason why the program ended.
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
