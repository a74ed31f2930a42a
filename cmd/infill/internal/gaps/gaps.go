// Package gaps has the command infill gaps, which makes an exercise of a text.
package gaps

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"infill/cmd/infill/internal/cli"
	"infill/cmd/infill/internal/terminal"
	"infill/infill"
	"infill/internal/ask"
	"infill/internal/batch"
	"infill/internal/lines"
	"infill/internal/option"
	"infill/internal/parallel"
	"infill/internal/phrase"
	"infill/tokenize"
)

type command struct {
	streams *terminal.Streams
	model   cli.ModelOptions
	given   []ask.Given
	words   string // file with the words that become gaps, or ""
	from    string // file with a sheet, or ""
	sheet   sheetOptions
	format  string
	out     output
}

var writers = map[string]func(w io.Writer, e *infill.Exercise, o sheetOptions) error{"text": plain.write,
	"markdown": markdown.write, "html": writeHTML, "csv": writeCSV, "gift": writeGIFT, "moodle": writeMoodle,
	"anki": writeAnki, "json": writeJSON}

var formats = []string{"text", "markdown", "html", "csv", "gift", "moodle", "anki", "json"}

// unordered says of formats without versions why.
var unordered = map[string]string{"gift": "Moodle shuffles the answers of its questions itself",
	"moodle": "Moodle shuffles the answers of its questions itself", "anki": "Anki asks each card by itself",
	"csv": "a table has the sheet once", "json": "--from makes the versions of a sheet"}

func NewCmd(s *terminal.Streams) *cobra.Command {
	c := &command{streams: s, format: formats[0], sheet: sheetOptions{Title: "Gaps", Lang: "en"}}
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
					phrase.Counted(len(args), "argument"))
			}
			err = c.check(cmd.Flags(), args)
			if err != nil {
				return err
			}
			return c.run(cmd.Context(), args, cmd.ArgsLenAtDash() == 0)
		},
		ValidArgsFunction: cli.CompleteFiles,
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	cli.AddOptionsOf(cmd, ask.GapsOptions, &c.given, "every", "pos")
	flags.StringVar(&c.words, "words", "", "`FILE` with the words that become gaps, one a line")
	cli.AddOptionsOf(cmd, ask.GapsOptions, &c.given, "names", "protect", "options", "below", "apart", "bits", "clear",
		"seed")
	flags.Lookup("seed").Usage += " (default 1)"
	flags.StringVar(&c.from, "from", "", "`FILE` with a sheet in json, which is written in another form")
	cli.Bind(cmd, &c.sheet)
	cli.AddChoice(cmd, &c.format, "format", "", formats, "form of the sheet")
	cli.Bind(cmd, &c.out)
	c.model.Register(cmd)
	return cmd
}

// check returns an error for flags that exclude each other, and lets the ending of the
// output choose the format.
func (c *command) check(flags *pflag.FlagSet, args []string) (err error) {
	if c.from != "" && len(args) > 0 {
		return cli.Usagef("--from: the sheet has its text: give no other")
	}
	flags.Visit(func(f *pflag.Flag) {
		if c.from != "" && !slices.Contains(shown, f.Name) {
			err = cli.Usagef("--%s: a sheet of --from is written as it is: edit it, or make one of the text", f.Name)
		}
	})
	if err == nil && c.out.Path != "" && !flags.Changed("format") {
		c.format, err = c.out.format()
	}
	if err != nil {
		return err
	}
	reason, once := unordered[c.format]
	if once && c.sheet.Versions > 0 {
		return cli.Usagef("--versions: not in %s, as %s: print text, markdown or html", c.format, reason)
	}
	return c.out.check(append(args, c.from, c.words)...)
}

// shown are the flags that make no gap and no answer.
var shown = []string{"from", "key", "title", "versions", "lang", "format", "out", "overwrite", "quiet", "verbose"}

// run makes or reads the exercise and writes it. text says that no argument is a file.
func (c *command) run(ctx context.Context, args []string, text bool) (err error) {
	var e *infill.Exercise
	if c.from != "" {
		e, err = c.read(ctx)
	} else {
		e, err = c.make(ctx, args, text)
	}
	if err == nil {
		err = c.sheet.check(e)
	}
	if err != nil {
		return err
	}
	return c.out.write(c.streams.Out, func(w io.Writer) error { return writers[c.format](w, e, c.sheet) })
}

func (c *command) make(ctx context.Context, args []string, text bool) (e *infill.Exercise, err error) {
	r := infill.GapsRequest{Seed: 1}
	option.Assign(&r, c.given)
	r.Text, err = c.text(ctx, args, text)
	if err != nil {
		return nil, err
	}
	if c.words != "" {
		r.Words, err = cli.ReadWords(ctx, c.words)
		if err != nil {
			return nil, cli.Usagef("--words: %w", err)
		}
		r.Words = append(infill.Words{}, r.Words...) // an empty file is a list, too
	}
	f, err := c.model.Open(c.streams)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	e, err = f.Gaps(ctx, r)
	if err != nil {
		return nil, describe(err)
	}
	for _, w := range e.Warnings {
		cli.Warn(c.streams, c.model.Quiet, "%s", w)
	}
	c.model.Note(c.streams, "signature %s", e.Signature)
	return e, nil
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

// text returns the argument, the text of its file, or standard input.
func (c *command) text(ctx context.Context, args []string, text bool) (string, error) {
	if len(args) == 0 || args[0] == "-" {
		content, err := c.input(ctx)
		if err != nil {
			return "", err
		}
		return whole(content)
	}
	file, err := cli.IsFile(args[0], text)
	if err != nil || !file {
		return args[0], err
	}
	if strings.HasSuffix(args[0], ".json") {
		return "", cli.Usagef("%s: a plain text is read; --from reads a sheet", args[0])
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

func (c *command) input(ctx context.Context) ([]byte, error) {
	if c.streams.InTerminal {
		return nil, &cli.UsageError{Err: errors.New("no text: give one, or pipe it to standard input"),
			Hint: `infill gaps "the [gate] was open", or infill gaps --help`}
	}
	content, err := parallel.Interruptible(ctx, func() ([]byte, error) { return io.ReadAll(lines.Text(c.streams.In)) })
	if err != nil {
		return nil, fmt.Errorf("read standard input: %w", err)
	}
	return content, nil
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
