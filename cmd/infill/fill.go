package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"infill/cmd/infill/internal/terminal"
	"infill/infill"
)

// fillOptions are the flags and arguments of filling.
type fillOptions struct {
	streams   *terminal.Streams
	templates []string
	input     string
	format    string
	seedGiven bool
	root      *cobra.Command // knows the names of the commands
	infill.Options
	modelOptions

	// open gives the filler; a test puts a fake in its place.
	open func(o *fillOptions) (filler, error)
}

// filler is what filling needs of an *infill.Filler.
type filler interface {
	Check(template string, o infill.Options) error
	Fill(ctx context.Context, template string, o infill.Options, observe func(infill.Progress)) (*infill.Result, error)
	Close() error
}

var _ filler = (*infill.Filler)(nil)

// formats lists the forms of a result.
func formats() []string { return []string{"text", "json", "jsonl", "csv"} }

// newCmdFill makes the root command. runF, when not nil, takes the place of
// running it.
func newCmdFill(s *terminal.Streams, runF func(context.Context, *fillOptions) error) *cobra.Command {
	o := &fillOptions{
		streams: s, Options: infill.DefaultOptions(), input: inputs()[0], format: formats()[0],
		open: func(o *fillOptions) (filler, error) { return o.modelOptions.open(o.streams) },
	}
	cmd := &cobra.Command{
		SuggestionsMinimumDistance: 2,

		Use:   "infill [TEMPLATE...]",
		Short: "Fill the slots of a text, several of them jointly, with a masked language model",
		Long: `Fill the slots of a text, several of them jointly, with a masked language model.

Each [MASK] of a template is a blank; [MASK:3] takes three pieces, [MASK:1-3] one
to three, every [MASK=name] of one name takes the same fill, and high[MASK] goes
on with the word: see infill help templates. Markov chains move over all blanks
together, and the best distinct fills are printed, the most likely first, with
their log-likelihood in nats and how often the chains were there.

Without a TEMPLATE, templates are read from standard input, one a line, or one
JSON object a line with --input jsonl.`,
		Example: `  # the best five fills
  $ infill "he had [MASK] me"

  # two slots, filled together; the same seed gives the same result
  $ infill --seed 7 "she opened the [MASK] and looked [MASK] ."

  # only these words, and never those
  $ infill --slot "1=dark blue,red" --ban sky,air "the [MASK] house stood under the [MASK] ."

  # one, two or three pieces; a word that goes on
  $ infill "they lived in [MASK:1-3] ."
  $ infill "a high[MASK] bridge"

  # many templates, one JSON object for each
  $ infill --format jsonl < templates.txt

  # the protocol of the papers: the best final states, with a square-root balance
  $ infill --rank final --balance sqrt --gradient full --candidates 0 "he had [MASK] me"`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			o.templates, o.root, o.seedGiven = args, cmd.Root(), cmd.Flags().Changed("seed")
			if err := o.validate(); err != nil {
				return err
			}
			if runF != nil {
				return runF(cmd.Context(), o)
			}
			return fillRun(cmd.Context(), o)
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	addOptions(cmd, &o.Options)
	addChoice(cmd, &o.input, "input", "", inputs(), `form of standard input; jsonl: {"template": "...", "id": ...}`)
	addChoice(cmd, &o.format, "format", "", formats(), "form of the result")
	o.modelOptions.register(cmd)
	return cmd
}

// validate refuses what can be refused before anything is opened.
func (o *fillOptions) validate() error {
	if err := o.modelOptions.validate(); err != nil {
		return err
	}
	if err := o.Options.Validate(); err != nil {
		return optionError(err)
	}
	if len(o.templates) == 0 && o.streams.InTerminal {
		return &usageError{errors.New("no template: give one, or pipe templates to standard input"), `infill "he had [MASK] me", or infill --help`}
	}
	return nil
}

// fillRun fills every template. A wrong template among the arguments ends the
// command before anything is printed; one on standard input, where the lines
// before it may be answered already, is reported with its line and the others
// are filled.
func fillRun(ctx context.Context, o *fillOptions) (err error) {
	if !o.seedGiven {
		if o.Seed, err = infill.NewSeed(); err != nil {
			return err
		}
	}
	f, err := o.open(o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()

	for i, template := range o.templates {
		if err := f.Check(template, o.Options); err != nil {
			err = flagged(err)
			if len(o.templates) > 1 {
				err = fmt.Errorf("template %d: %w", i+1, err)
			}
			return &usageError{err, misspelt(o.root, template)}
		}
	}
	p := newResultPrinter(o.format, o.streams)
	bar := newProgress(o.streams, o.quiet)
	defer bar.clear()
	print := func(e entry) error {
		result, err := f.Fill(ctx, e.text, o.Options, bar.observe)
		bar.clear()
		if err != nil {
			return optionError(err)
		}
		for _, w := range result.Warnings {
			o.warn(o.streams, "%s", w)
		}
		o.note(o.streams, "signature %s", result.Signature)
		return p.print(e.id, result)
	}
	if len(o.templates) > 0 {
		for _, template := range o.templates {
			if err := print(entry{text: template}); err != nil {
				return err
			}
		}
		return p.end()
	}
	err = eachEntry(ctx, o.streams, o.input, "template", print)
	if err != nil && !errors.Is(err, errReported) {
		return err
	}
	return errors.Join(p.end(), err)
}

// eachEntry calls do for every line of standard input. Lines without a text and
// inputs that do refuses are reported and passed over; errReported tells of them
// at the end.
func eachEntry(ctx context.Context, s *terminal.Streams, format, key string, do func(entry) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	entries := make(chan entry)
	go readEntries(ctx, s.In, format, key, entries)
	seen, failed := false, false
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case e, open := <-entries:
			switch {
			case !open && !seen:
				return &usageError{fmt.Errorf("no %s on standard input", key), "give one as an argument, or one a line"}
			case !open && failed:
				return errReported
			case !open:
				return nil
			}
			seen = true
			err := e.err
			if err == nil {
				err = do(e)
				if err != nil && !isInput(err) {
					return err
				}
			}
			if err != nil {
				failed = true
				printError(s.Err, fmt.Errorf("line %d: %w", e.line, err), "")
			}
		}
	}
}

// misspelt gives a hint for a template that is rather a mistyped command.
func misspelt(root *cobra.Command, template string) string {
	if root == nil || template == "" || strings.ContainsAny(template, " []") {
		return ""
	}
	for _, name := range root.SuggestionsFor(template) {
		// "hello" is no mistyped "help".
		if name != "help" {
			return "did you mean infill " + name + "?"
		}
	}
	return ""
}
