// Package gaps has the command infill gaps, which makes an exercise of a text.
package gaps

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"infill/cmd/infill/internal/cli"
	"infill/cmd/infill/internal/terminal"
	"infill/infill"
	"infill/infill/batch"
	"infill/internal/lines"
	"infill/tokenize"
)

// command holds the flags of infill gaps.
type command struct {
	streams *terminal.Streams
	model   cli.ModelOptions
	request infill.GapsRequest
	words   string // file with the words that become gaps, or ""
	key     bool
	format  string
}

// writers writes an exercise in each format.
var writers = map[string]func(w io.Writer, e *infill.Exercise, key bool) error{"text": writeText,
	"markdown": writeMarkdown, "html": writeHTML, "csv": writeCSV, "gift": writeGIFT, "json": writeJSON}

var formats = []string{"text", "markdown", "html", "csv", "gift", "json"}

// NewCmd returns the command infill gaps.
func NewCmd(s *terminal.Streams) *cobra.Command {
	c := &command{streams: s, format: formats[0]}
	cmd := &cobra.Command{
		Use:   "gaps [TEXT | FILE]",
		Short: "Make an exercise of a text: gaps, answers to choose from, and a key",
		RunE: func(cmd *cobra.Command, args []string) error {
			err := c.model.Validate()
			if err != nil {
				return err
			}
			if len(args) > 1 {
				return cli.Usagef("%s given, one text is read: put quotes around it",
					cli.Counted(len(args), "argument"))
			}
			if c.request.Below == 0 {
				return cli.Usagef("--below: 0 is not a probability above 0")
			}
			return c.run(cmd.Context(), args)
		},
		ValidArgsFunction: cli.CompleteFiles,
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	r := &c.request
	r.Below = infill.DefaultBelow
	r.Seed = 1
	flags.IntVar(&r.Every, "every", 0, "`N`: each N-th word is a gap")
	cli.AddChoice(cmd, &r.Part, "pos", "", infill.PartsOfSpeech(), "part of speech of the gaps")
	flags.StringVar(&c.words, "words", "", "`FILE` with the words that become gaps, one a line")
	flags.IntVar(&r.Options, "options", 0, "`N` answers to choose from at each gap, the right one among them")
	flags.Float64Var(&r.Below, "below", r.Below, "the largest probability `P` of a wrong answer")
	flags.BoolVar(&r.Clear, "clear", false, "leave out gaps where another word is nearly as likely as the right one")
	flags.Uint64Var((*uint64)(&r.Seed), "seed", 1, "start of all random numbers")
	flags.BoolVar(&c.key, "key", false, "print the right answers, apart")
	cli.AddChoice(cmd, &c.format, "format", "", formats, "form of the sheet")
	c.model.Register(cmd)
	return cmd
}

// run makes the exercise and prints it.
func (c *command) run(ctx context.Context, args []string) (err error) {
	c.request.Text, err = c.text(ctx, args)
	if err != nil {
		return err
	}
	if c.words != "" {
		c.request.Words, err = cli.ReadWords(ctx, c.words)
		if err != nil {
			return cli.Usagef("--words: %w", err)
		}
		c.request.Words = append([]string{}, c.request.Words...) // an empty file is a list, too
	}
	f, err := c.model.Open(c.streams)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	e, err := f.Gaps(ctx, c.request)
	if err != nil {
		return describe(err)
	}
	for _, w := range e.Warnings {
		c.model.Warn(c.streams, "%s", w)
	}
	c.model.Note(c.streams, "signature %s", e.Signature)
	return writers[c.format](c.streams.Out, e, c.key)
}

// describe is cli.Describe, except that the text is no flag.
func describe(err error) error {
	var option *infill.OptionError
	if errors.As(err, &option) && option.Option == "text" {
		return cli.Usagef("%s", option.Reason)
	}
	var input *tokenize.InputError
	if errors.As(err, &input) {
		return &cli.UsageError{Err: err}
	}
	return cli.Describe(err)
}

// text returns the text of the argument, of the file that it names, or of
// standard input.
func (c *command) text(ctx context.Context, args []string) (string, error) {
	if len(args) == 1 && args[0] != "-" {
		if strings.ContainsAny(args[0], " \t\n") || !batch.IsFile(args[0]) {
			return args[0], nil
		}
		form, _ := batch.FormOf(args[0]) // IsFile says that there is one
		if form != "text" {
			return "", cli.Usagef("%s: a plain text is read: save it as .txt", args[0])
		}
		content, err := cli.ReadText(ctx, args[0])
		if err != nil {
			return "", &cli.UsageError{Err: err}
		}
		return whole(content)
	}
	if c.streams.InTerminal {
		return "", &cli.UsageError{Err: errors.New("no text: give one, or pipe it to standard input"),
			Hint: `infill gaps "the [gate] was open", or infill gaps --help`}
	}
	content, err := cli.Interruptible(ctx, func() ([]byte, error) { return io.ReadAll(c.streams.In) })
	if err != nil {
		return "", fmt.Errorf("read standard input: %w", err)
	}
	return whole(content)
}

// whole returns a text without a byte-order mark and the line breaks at its end.
func whole(content []byte) (string, error) {
	text := strings.TrimPrefix(string(content), "\ufeff")
	text = strings.ReplaceAll(text, "\r\n", "\n")
	if strings.Contains(text, "\r") {
		return "", &cli.UsageError{Err: lines.ErrCarriageReturn}
	}
	return strings.TrimRight(text, "\n"), nil
}
