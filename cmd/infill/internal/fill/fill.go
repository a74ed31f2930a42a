// Package fill has the root command, which fills templates.
package fill

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"infill/cmd/infill/internal/cli"
	"infill/cmd/infill/internal/terminal"
	"infill/infill"
	"infill/internal/ask"
	"infill/internal/batch"
	"infill/internal/phrase"
	"infill/internal/rawjson"
	"infill/tokenize"
)

type command struct {
	streams *terminal.Streams
	input   cli.InputOptions
	given   []ask.Given
	request infill.Request // of given, without a template
	model   cli.ModelOptions
	work    batch.Fill     // what infill run does with a record
	trace   string         // file for the states of the chains, or ""
	root    *cobra.Command // to suggest commands for a misspelt name
}

func NewCmd(s *terminal.Streams) *cobra.Command {
	c := &command{streams: s, input: cli.InputOptions{Streams: s, Key: "template"}}
	c.input.Reads = c.reads
	c.root = &cobra.Command{
		SuggestionsMinimumDistance: 2,

		Use:   "infill [TEMPLATE...]",
		Short: "Fill the blanks of a text, several of them jointly, with a masked language model",
		Args:  cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			cli.DrawSeed(&c.given)
			err := c.validate(args)
			if err != nil {
				return err
			}
			return c.run(cmd.Context())
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	c.root.Flags().SortFlags = false
	cli.AddOptions(c.root, &c.given)
	c.input.Register(c.root, "lines", "words")
	c.root.Flags().StringVar(&c.trace, "trace", "", "new `FILE` (CSV) for the states of chains: chain, step, U, tokens")
	c.model.Register(c.root)
	return c.root
}

// reads reports whether a key of a line is an option of a fill, or stands in the result.
func (c *command) reads(key string) bool {
	_, option := ask.Find(key)
	return option || slices.Contains([]string{"json", "jsonl", "csv"}, c.input.Format)
}

// validate returns an error for wrong options, before the command opens anything.
func (c *command) validate(args []string) error {
	if err := c.model.Validate(); err != nil {
		return err
	}
	var err error
	c.work = batch.Fill{Given: c.given, Key: c.input.Key}
	c.request, err = ask.NewRequest("", c.given)
	err = cmp.Or(err, c.request.Check())
	if err != nil {
		return cli.Describe(err)
	}
	if c.trace == "-" {
		return cli.Usagef("--trace: the states of chains go to a file, not to standard output: name it")
	}
	traced, chains := c.request.Chains()
	if c.trace != "" && (!chains || len(args) != 1 || args[0] == "-") {
		return cli.Usagef("--trace: it has the chains of one template: give one, and --sampler NAME")
	}
	if c.trace != "" {
		traced.Energies = true
		c.request.Method = traced
	}
	return c.input.Take(args, `infill "he had [MASK] me", or infill --help`)
}

func (c *command) run(ctx context.Context) (err error) {
	f, err := c.model.Open(c.streams)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	p := &cli.Printer[answer]{Style: c.style(), Format: c.input.Format, Streams: c.streams}
	bar := cli.NewBar(c.streams, c.model.Quiet, 0)
	defer bar.Clear()
	observe := func(at infill.Progress) {
		bar.Tell(int64(at.Step), int64(at.Steps), func() string { return ask.Doing(at) })
	}
	return p.Whole(cli.Each(ctx, &c.input, &c.model,
		func(e cli.Entry) (*infill.Plan, error) { return c.plan(ctx, f, e) },
		p.End,
		func(ctx context.Context, e cli.Entry, plan *infill.Plan) (func() error, error) {
			if plan.Slots() > manySlots {
				cli.Warn(c.streams, c.model.Quiet, "%s%s", e.Place(), before(plan))
			}
			result, err := c.fill(ctx, plan.For(e.Caller), observe)
			return func() error {
				bar.Clear()
				if result == nil {
					return cli.Describe(err)
				}
				a := answer{result: result, work: &c.work, copied: c.work.Copied(e.Of, batch.Form(c.input.Format))}
				if err != nil { // print the fills found so far
					return errors.Join(err, p.Print(a), p.End())
				}
				c.model.WarnOf(c.streams, e, result.Warnings, result.Typed)
				c.model.Note(c.streams, "signature %s", result.Signature)
				return p.Print(a)
			}, err
		}))
}

// isObject reports whether a text is JSON with a key, not one in braces.
func isObject(text, key string) bool {
	if !strings.HasPrefix(text, "{") {
		return false
	}
	fields, _ := rawjson.Parse([]byte(text)) // a wrong object is an object, too
	return fields.Given(key) != nil
}

func (c *command) plan(ctx context.Context, f *infill.Filler, e cli.Entry) (*infill.Plan, error) {
	r, err := c.read(e)
	if err != nil {
		return nil, err
	}
	plan, err := f.Plan(ctx, r)
	if err != nil {
		return nil, c.explain(e, r.Template, err)
	}
	plan.Terse = c.model.Quiet && !strings.HasPrefix(c.input.Format, "json")
	return plan, nil
}

// fill fills a plan, and writes the states of its chains if a file is named.
func (c *command) fill(ctx context.Context, plan *infill.Plan, observe func(infill.Progress)) (*infill.Result, error) {
	if c.trace == "" {
		return plan.Fill(ctx, observe)
	}
	t, err := newTrace(c.trace)
	if err != nil {
		return nil, err
	}
	result, err := plan.Fill(ctx, func(at infill.Progress) {
		t.observe(at)
		observe(at)
	})
	return result, errors.Join(err, t.close())
}

// explain adds to the error of a plan what the user may have meant.
func (c *command) explain(e cli.Entry, template string, err error) error {
	meant, _ := tokenize.MeantBlank(template)
	if errors.Is(err, tokenize.ErrNoBlank) && meant != "" && len(tokenize.BlankSpans(meant, "")) == 0 {
		err = fmt.Errorf("%w, or give --blank %q", err, meant)
	}
	switch {
	case e.Line == 0:
		_, line := ask.Describe(err, ask.Flags)
		if unquoted(c.input.Texts) {
			return &cli.UsageError{Err: line, Hint: "to fill one text, put quotes around it"}
		}
		return &cli.UsageError{Err: line, Hint: misspelt(c.root, template)}
	case e.Of != nil: // the line's own options may be wrong
		return cli.DescribeLine(e.Of, err)
	}
	return cli.Describe(err)
}

func (c *command) read(e cli.Entry) (infill.Request, error) {
	r := c.request
	r.Template = e.Text
	if e.Of == nil {
		if isObject(e.Text, c.input.Key) {
			return r, &cli.MisfitError{Err: errors.New("the text is a JSON object: take --input jsonl")}
		}
		return r, nil
	}
	r, err := c.work.Request(e.Of)
	var option *infill.OptionError
	if err != nil && !errors.As(err, &option) {
		return r, &cli.MisfitError{Err: err}
	}
	if err != nil {
		return r, cli.DescribeLine(e.Of, err)
	}
	return r, nil
}

const manySlots = 10 // above this number of slots, a warning says how long a fill may take

// before returns a warning to print before a fill of many slots, which may take long.
func before(p *infill.Plan) string {
	what := fmt.Sprintf("%d tokens to fill: the time grows with the square of their number", p.Slots())
	_, most := p.Cost()
	_, chains := p.Request.Chains()
	if most.Rows > 0 && !chains {
		what = fmt.Sprintf("%d tokens to fill: up to %s", p.Slots(), phrase.Counted(most.Rows, "model row"))
	}
	return what + "; Ctrl-C prints the best so far"
}

// unquoted reports whether several arguments look like the words of one text.
func unquoted(arguments []cli.Entry) bool {
	spaced := func(e cli.Entry) bool { return e.Text == "" || strings.Contains(e.Text, " ") }
	return len(arguments) > 1 && !slices.ContainsFunc(arguments, spaced)
}

// fromFile returns a hint for a file that was given as a template.
func fromFile(name string) string {
	form, err := batch.FormOf(name)
	if err != nil || form == "text" {
		return "to read templates from a file, one a line: infill < " + name
	}
	return fmt.Sprintf("to fill a column of a file: infill run %s -o out.%s --column NAME", name, form)
}

// misspelt returns a hint if a template seems to be a file or a command.
func misspelt(root *cobra.Command, template string) string {
	info, err := os.Stat(template)
	if err == nil && info.Mode().IsRegular() {
		return fromFile(template)
	}
	if template == "" || strings.ContainsAny(template, " []") {
		return ""
	}
	for _, name := range root.SuggestionsFor(template) {
		if name != "help" { // "hello" is similar, but not a mistyped command
			return "did you mean infill " + name + "?"
		}
	}
	return ""
}
