// Package tui is infill tui.
package tui

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/charmbracelet/colorprofile"
	"github.com/spf13/cobra"
	"golang.org/x/term"

	"infill/cmd/infill/internal/cli"
	"infill/cmd/infill/internal/terminal"
	"infill/infill"
	"infill/internal/object"
	"infill/lm"
	"infill/models"
	"infill/tokenize"
	"infill/tui"
)

// tuiOptions are the flags and the argument of the terminal UI.
type tuiOptions struct {
	streams   *terminal.Streams
	template  string
	folder    string
	format    string
	theme     string
	seedGiven bool
	infill.Options
	cli.ModelOptions

	// prepare fetches missing files, with progress, before the screen is there.
	prepare func(context.Context, *tuiOptions) error
	// show runs the screen; a test puts a fake in its place.
	show func(context.Context, tui.Config) (*tui.Picked, error)
	// console gives the terminal to read from and to draw on.
	console func(s *terminal.Streams) (in io.Reader, out io.Writer, done func(), err error)
}

// listed is how many fills the screen lists if nothing else is said: a screenful or two.
const listed = 50

// NewCmd makes infill tui.
func NewCmd(s *terminal.Streams) *cobra.Command {
	o := &tuiOptions{streams: s, Options: infill.DefaultOptions(), format: "text", theme: "auto", show: tui.Run,
		console: console,
		prepare: func(ctx context.Context, o *tuiOptions) error {
			_, err := lm.LocateLibrary(ctx, o.Device,
				cli.FetchProgress(o.streams, o.Quiet))
			return err
		}}
	o.Top = listed
	cmd := &cobra.Command{
		Use:   "tui [TEMPLATE | RUN]",
		Short: "Write a text and choose its fills on a screen",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return cli.Usagef("%d arguments: give one template, in quotes, or one folder", len(args))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			o.seedGiven = cmd.Flags().Changed("seed")
			if err := o.take(args); err != nil {
				return err
			}
			if len(args) == 0 {
				if err := o.piped(cmd.Context()); err != nil {
					return err
				}
			}
			return run(cmd.Context(), o)
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	cli.AddOptions(cmd, &o.Options)
	cli.AddChoice(cmd, &o.format, "format", "", []string{"text", "jsonl"}, "form of the fill that is picked")
	cli.AddChoice(cmd, &o.theme, "theme", "", []string{"auto", "dark", "light"}, "background that the colours are for")
	o.ModelOptions.Register(cmd)
	return cmd
}

// take reads the argument: a folder is a run, anything else a template.
func (o *tuiOptions) take(args []string) error {
	if err := o.ModelOptions.Validate(); err != nil {
		return err
	}
	if err := (tui.Config{Options: o.Options}).Validate(); err != nil {
		return cli.OptionError(err)
	}
	if len(args) == 0 {
		return nil
	}
	if info, err := os.Stat(args[0]); err == nil && info.IsDir() {
		o.folder = args[0]
	} else if text := args[0]; len(tokenize.BlankSpans(text, o.Blank)) == 0 && !strings.ContainsAny(text, " [<") {
		return &cli.UsageError{Err: fmt.Errorf("no folder %s, and no [MASK] in it", text),
			Hint: "give the folder of an evaluation, or a template in quotes"}
	} else {
		o.template = text
	}
	return nil
}

// piped takes the template from standard input where that is no terminal; nothing
// there is no template.
func (o *tuiOptions) piped(ctx context.Context) error {
	if o.streams.In == nil || o.streams.InTerminal {
		return nil
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	next := cli.Entries(ctx, o.streams.In, cli.Inputs()[0], "template")
	for {
		switch e, err := next(); {
		case err == io.EOF:
			return nil
		case err != nil:
			return err
		case e.Err != nil:
			return &cli.Failure{Err: fmt.Errorf("line %d: %w", e.Line, e.Err)}
		case e.Blank:
		case o.template != "":
			return &cli.UsageError{Err: fmt.Errorf("line %d: the screen takes one template", e.Line),
				Hint: "infill without tui fills one a line"}
		default:
			o.template = e.Text
		}
	}
}

// run shows the screen.
func run(ctx context.Context, o *tuiOptions) (err error) {
	if !o.seedGiven {
		if o.Seed, err = infill.NewSeed(); err != nil {
			return err
		}
	}
	in, out, done, err := o.console(o.streams)
	if err != nil {
		return err
	}
	defer done()
	if err := o.prepare(ctx, o); err != nil {
		return err
	}
	// A terminal that goes away takes the screen with it, and the model call.
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGHUP)
	defer stop()

	if o.Model == "" { // the screen shows its name
		o.Model = models.DefaultName()
	}
	names, _ := cli.CompleteModels(nil, nil, "")
	picked, err := o.show(ctx, tui.Config{
		Template: o.template, Folder: o.folder, Options: o.Options, Model: o.Model, Models: names,
		Open: func(_ context.Context, name string) (tui.Filler, error) {
			// The search for the library reports no progress: it would write into the screen.
			return infill.Open(infill.OpenOptions{Model: name, Device: o.Device, Threads: o.Threads})
		},
		Profile: o.profile(), Theme: o.theme, Input: in, Output: out,
	})
	if err != nil || picked == nil {
		return err
	}
	if o.format == "jsonl" {
		if err := object.WriteLine(o.streams.Out, picked.Result); err != nil {
			var written *cli.OutputError
			if errors.As(err, &written) {
				return err
			}
			return &cli.Failure{Err: errors.New("the fill was picked before its log-likelihood was known"),
				Hint: "pick it when the run is over, or use --format text"}
		}
		return nil
	}
	_, err = fmt.Fprintln(o.streams.Out, cli.OneLine(picked.Text))
	return err
}

// console takes standard input and error where they are a terminal, and else the
// terminal that the process belongs to, so that the screen works in a pipe.
func console(s *terminal.Streams) (in io.Reader, out io.Writer, done func(), err error) {
	done = func() {}
	inFile, inOK := s.In.(*os.File)
	errFile, errOK := s.Err.(*os.File)
	inOK = inOK && s.InTerminal
	errOK = errOK && s.ErrTerminal
	if s.Getenv("TERM") == "dumb" {
		return nil, nil, done,
			&cli.Failure{Err: errors.New("a dumb terminal (TERM=dumb) cannot show the terminal UI"),
				Hint: `infill "he had [MASK] me" needs no screen`}
	}
	if inOK && errOK {
		return inFile, errFile, done, nil
	}
	tty, err := os.OpenFile("/dev/tty", os.O_RDWR, 0)
	if err != nil || !term.IsTerminal(int(tty.Fd())) {
		return nil, nil, done,
			&cli.Failure{Err: errors.New("no terminal to draw on"), Hint: `infill "he had [MASK] me" needs none`}
	}
	done = func() { tty.Close() }
	in, out = tty, tty
	if inOK {
		in = inFile
	}
	if errOK {
		out = errFile
	}
	return in, out, done, nil
}

// profile is of the colours that the terminal shows.
func (o *tuiOptions) profile() colorprofile.Profile {
	// The streams know the variables; that they are terminals was found out.
	s := *o.streams
	s.OutTerminal = true
	return s.Colors()
}
