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
	"infill/internal/option"
	"infill/tokenize"
)

// command holds the flags of infill gaps.
type command struct {
	streams *terminal.Streams
	model   cli.ModelOptions
	given   []infill.Given
	words   string // file with the words that become gaps, or ""
	sheet   sheetOptions
	format  string
}

// writers writes an exercise in each format.
var writers = map[string]func(w io.Writer, e *infill.Exercise, o sheetOptions) error{"text": writeText,
	"markdown": writeMarkdown, "html": writeHTML, "csv": writeCSV, "gift": writeGIFT, "moodle": writeMoodle,
	"json": writeJSON}

var formats = []string{"text", "markdown", "html", "csv", "gift", "moodle", "json"}

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
					infill.Counted(len(args), "argument"))
			}
			return c.run(cmd.Context(), args, cmd.ArgsLenAtDash() == 0)
		},
		ValidArgsFunction: cli.CompleteFiles,
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	cli.AddOptionsOf(cmd, infill.GapsOptions, &c.given, "every", "pos")
	flags.StringVar(&c.words, "words", "", "`FILE` with the words that become gaps, one a line")
	cli.AddOptionsOf(cmd, infill.GapsOptions, &c.given, "options", "below", "bits", "clear", "seed")
	flags.Lookup("seed").Usage += " (default 1)"
	flags.BoolVar(&c.sheet.key, "key", false, "print the right answers, apart")
	flags.StringVar(&c.sheet.title, "title", "Gaps",
		"`TEXT` above the sheet in html, and the name of the question in moodle")
	flags.StringVar(&c.sheet.lang, "lang", "en", "`CODE` of the text's language in html, such as de")
	cli.AddChoice(cmd, &c.format, "format", "", formats, "form of the sheet")
	c.model.Register(cmd)
	return cmd
}

// run makes the exercise and prints it. text says that no argument is a file.
func (c *command) run(ctx context.Context, args []string, text bool) (err error) {
	r := infill.GapsRequest{Seed: 1}
	option.Assign(&r, c.given)
	r.Text, err = c.text(ctx, args, text)
	if err != nil {
		return err
	}
	if c.words != "" {
		r.Words, err = cli.ReadWords(ctx, c.words)
		if err != nil {
			return cli.Usagef("--words: %w", err)
		}
		r.Words = append(infill.Words{}, r.Words...) // an empty file is a list, too
	}
	f, err := c.model.Open(c.streams)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	e, err := f.Gaps(ctx, r)
	if err != nil {
		return describe(err)
	}
	for _, w := range e.Warnings {
		c.model.Warn(c.streams, "%s", w)
	}
	c.model.Note(c.streams, "signature %s", e.Signature)
	return writers[c.format](c.streams.Out, e, c.sheet)
}

// describe is cli.Describe, except that the text is no flag.
func describe(err error) error {
	var wrong *infill.OptionError
	if errors.As(err, &wrong) && wrong.Option == "text" {
		return cli.Usagef("%s", wrong.Reason)
	}
	var input *tokenize.InputError
	if errors.As(err, &input) {
		return &cli.UsageError{Err: err}
	}
	return cli.Describe(err)
}

// text returns the text of the argument, of the file that it names, or of
// standard input.
func (c *command) text(ctx context.Context, args []string, text bool) (string, error) {
	if len(args) == 1 && args[0] != "-" {
		file, err := cli.IsFile(args[0], text)
		if err != nil || !file {
			return args[0], err
		}
		form, err := batch.FormOf(args[0])
		if err == nil && form != "text" {
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
	text := strings.TrimPrefix(string(content), lines.ByteOrderMark)
	text = strings.ReplaceAll(text, "\r\n", "\n")
	if strings.Contains(text, "\r") {
		return "", &cli.UsageError{Err: lines.ErrCarriageReturn}
	}
	return strings.TrimRight(text, "\n"), nil
}
