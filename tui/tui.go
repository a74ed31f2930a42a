// Package tui is the screen of `infill tui`. It fills a template while the user
// writes it, and returns the fill that the user picks. It shows the fills, the
// likeliest words of each blank by itself, and the moves of chains.
//
// There is one tea.Model. Update only changes state: filling, files and the
// model run in commands that a context cancels, and all commands have ended
// when Run returns. Each view of the screen is a page, which keeps its
// selection and its scroll position, and draws itself for a width and a height.
// Snapshots of a run never change, so the screen reads them without locks.
package tui

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/colorprofile"

	"infill/infill"
	"infill/internal/ask"
	"infill/tokenize"
)

// Config holds the first template, model and options of the screen, and its terminal.
type Config struct {
	// Template is the first one, filled at once; "" if the user writes it.
	Template string
	// Folder is the folder of an evaluation to show, or "".
	Folder string
	// Options are those of the first run, as in infill help options: "top=5".
	Options []string
	// Model names the model to open. Models lists further names to offer.
	Model  string
	Models []string
	// Open opens a model by name. The screen closes every model that Open has returned.
	Open func(ctx context.Context, model string) (Filler, error)
	// Profile says which colours the terminal has. colorprofile.Ascii means
	// none, but bold, underline and reverse (NO_COLOR).
	Profile colorprofile.Profile
	// Theme is the background: "dark", "light", or "auto", for which the screen
	// asks the terminal, and takes dark until it answers.
	Theme string
	// Input and Output are the terminal. Nothing else is written to Output.
	Input  io.Reader
	Output io.Writer
	// Now returns the time. If it is nil, the screen uses time.Now.
	Now func() time.Time
}

// Filler has those methods of infill.Filler that the screen calls.
type Filler interface {
	Fill(ctx context.Context, r infill.Request, observe func(infill.Progress)) (*infill.Result, error)
	Tokenizer() *tokenize.Tokenizer
	Close() error
}

var _ Filler = (*infill.Filler)(nil)

// mostStates bounds a run's states of all chains, which are all kept.
const mostStates = 2_000_000

// requestOf returns a request, or an *infill.OptionError for wrong options and
// for more than mostStates states.
func requestOf(template string, given []ask.Given) (infill.Request, error) {
	r, err := ask.NewRequest(template, given)
	if err != nil {
		return r, err
	}
	err = r.Check()
	if err != nil {
		return r, err
	}
	c, ok := r.Chains()
	if !ok {
		return r, nil
	}
	if c.Steps > mostStates/c.Samples {
		return r, &infill.OptionError{Option: "steps",
			Reason: fmt.Sprintf("chains × steps is above %d: run longer ones with the command", mostStates)}
	}
	return r, nil
}

// Validate returns an *infill.OptionError for wrong options.
func (c Config) Validate() error {
	given, err := c.given()
	if err != nil {
		return err
	}
	_, err = requestOf(c.Template, given)
	return err
}

func (c Config) given() ([]ask.Given, error) {
	var list []ask.Given
	for _, text := range c.Options {
		name, value, _ := strings.Cut(text, "=")
		o, ok := ask.Find(name)
		if !ok {
			return nil, &infill.OptionError{Option: name, Reason: "there is no such option"}
		}
		g, err := o.Given(value)
		if err != nil {
			return nil, &infill.OptionError{Option: name, Reason: fmt.Sprintf("%q is not %v", value, err)}
		}
		list = append(list, g)
	}
	return list, nil
}

// Run shows the screen until the user leaves it, and returns the picked fill,
// or "" if none was picked. Everything that Run has started ends before it
// returns, even a running call of the model. If ctx ended the screen, the error
// is ctx's; if the user pressed ctrl+c, it is context.Canceled.
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

// tidy replaces the error with which the screen ended by a plain one.
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
