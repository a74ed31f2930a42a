// Package tui has the command infill tui.
package tui

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"infill/cmd/infill/internal/cli"
	"infill/cmd/infill/internal/terminal"
	"infill/infill"
	"infill/internal/ask"
	"infill/lm"
	"infill/models"
	"infill/tokenize"
	"infill/tui"
)

type tuiOptions struct {
	streams *terminal.Streams
	config  tui.Config
	given   []ask.Given
	cli.ModelOptions
}

func NewCmd(s *terminal.Streams) *cobra.Command {
	o := &tuiOptions{streams: s}
	o.config.Theme = "auto"
	o.given = []ask.Given{ask.MustGive("top", "50")} // a screenful or two
	cmd := &cobra.Command{
		Use:   "tui [TEMPLATE | RUN]",
		Short: "Write a text and choose its fills on a screen",
		Args:  cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			cli.DrawSeed(&o.given)
			for _, g := range o.given {
				o.config.Options = append(o.config.Options, g.Option.Name+"="+g.Text())
			}
			err := o.take(args)
			if err != nil {
				return err
			}
			return run(cmd.Context(), o)
		},
	}
	cmd.Flags().SortFlags = false
	cli.AddOptions(cmd, &o.given)
	cli.AddChoice(cmd, &o.config.Theme, "theme", "", []string{"auto", "dark", "light"},
		"background that the colours are for")
	o.ModelOptions.Register(cmd)
	return cmd
}

// take checks the options. A folder is an evaluation, other text a template.
func (o *tuiOptions) take(args []string) error {
	if err := o.ModelOptions.Validate(); err != nil {
		return err
	}
	if err := o.config.Validate(); err != nil {
		return cli.Describe(err)
	}
	switch len(args) {
	case 0:
		return nil
	case 1:
	default:
		return cli.Usagef("%d arguments: give one template, in quotes, or one folder", len(args))
	}
	text := args[0]
	info, err := os.Stat(text)
	if err == nil && info.IsDir() {
		o.config.Folder = text
	} else if len(tokenize.BlankSpans(text, o.blank())) == 0 && !strings.ContainsAny(text, " [<") {
		return &cli.UsageError{Err: fmt.Errorf("%q is no folder, and no text with a [MASK]", text),
			Hint: "give the folder of an evaluation, or a template in quotes"}
	} else {
		o.config.Template = text
	}
	return nil
}

func (o *tuiOptions) blank() string {
	g, ok := ask.Last(o.given, "blank")
	if !ok {
		return ""
	}
	return g.Text()
}

// run shows the screen. Standard output gets the picked fill.
func run(ctx context.Context, o *tuiOptions) error {
	s := o.streams
	c := o.config
	if !s.InTerminal || !s.ErrTerminal || s.Getenv("TERM") == "dumb" {
		return &cli.Failure{Err: errors.New("the screen needs a terminal for standard input and standard error"),
			Hint: `infill "he had [MASK] me" needs none`}
	}
	// A missing library is fetched before the screen hides the progress.
	if _, err := lm.LocateLibrary(ctx, o.Device, cli.FetchProgress(s, o.Quiet)); err != nil {
		return err
	}
	// If the terminal goes away, ctx ends the screen and the model call.
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGHUP)
	defer stop()

	c.Model = o.Model
	if c.Model == "" { // the screen shows the model's name
		c.Model = models.DefaultName()
	}
	c.Models = cli.ModelNames()
	c.Open = func(_ context.Context, name string) (tui.Filler, error) {
		// Without FindLibrary, no progress is written into the screen.
		return infill.Open(infill.OpenOptions{Model: name, Device: o.Device, Threads: o.Threads})
	}
	onTerminal := *s
	onTerminal.OutTerminal = true
	c.Input, c.Output, c.Profile = s.In, s.Err, onTerminal.Colors()
	picked, err := tui.Run(ctx, c)
	if err != nil || picked == "" {
		return err
	}
	_, err = fmt.Fprintln(s.Out, cli.OneLine(picked))
	return err
}
