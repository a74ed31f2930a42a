// Package fill is the command itself: it fills templates.
package fill

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"infill/cmd/infill/internal/cli"
	"infill/cmd/infill/internal/terminal"
	"infill/infill"
	"infill/tokenize"
)

// fillOptions are the flags and arguments of filling.
type fillOptions struct {
	cli.InputOptions
	show string         // table, or fills: the words alone
	root *cobra.Command // knows the names of the commands
	infill.Options
	cli.ModelOptions
}

// NewCmd makes the root command.
func NewCmd(s *terminal.Streams) *cobra.Command {
	o := &fillOptions{InputOptions: cli.InputOptions{Streams: s, Key: "template",
		Reads: func(key string) bool { return infill.Find(key).Name != "" }}, Options: infill.DefaultOptions(),
		show: "table"}
	cmd := &cobra.Command{
		SuggestionsMinimumDistance: 2,

		Use:   "infill [TEMPLATE...]",
		Short: "Fill the blanks of a text, several of them jointly, with a masked language model",
		Args:  cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			o.root = cmd.Root()
			if err := o.validate(args); err != nil {
				return err
			}
			if err := cli.DrawSeed(cmd, &o.Options); err != nil {
				return err
			}
			return run(cmd.Context(), o)
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	cli.AddOptions(cmd, &o.Options)
	o.InputOptions.Register(cmd)
	cli.AddChoice(cmd, &o.show, "show", "", []string{"table", "fills"},
		"of --format text: all of it, or the words alone, a fill a line, tabs between blanks")
	o.ModelOptions.Register(cmd)
	return cmd
}

// validate refuses wrong options before anything is opened.
func (o *fillOptions) validate(args []string) error {
	if err := o.ModelOptions.Validate(); err != nil {
		return err
	}
	if err := o.Options.Validate(); err != nil {
		return cli.OptionError(err)
	}
	if o.show == "fills" && o.Format != "text" {
		return cli.Usagef("--show: fills is of --format text, not of %s: leave one out", o.Format)
	}
	return o.InputOptions.Take(args, `infill "he had [MASK] me", or infill --help`)
}

// run fills the templates.
func run(ctx context.Context, o *fillOptions) (err error) {
	f, err := o.Open(o.Streams)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	p := &resultPrinter{cli.Printer[*infill.Result]{Form: o.form(), Format: o.Format, Streams: o.Streams}}
	bar := cli.NewBar(o.Streams, o.Quiet, false)
	defer bar.Clear()
	observe := func(at infill.Progress) {
		bar.Tell(int64(at.Step), int64(at.Steps), func() string {
			return fmt.Sprintf("sampling, step %d of %d", at.Step, at.Steps)
		})
	}
	return p.Whole(cli.Each(ctx, &o.InputOptions, o.Quiet,
		func(e cli.Entry) (*infill.Plan, error) { return o.plan(f, e) },
		// The few rows of one slot share calls; others would only keep those before from coming.
		func(plan *infill.Plan) bool { return plan.Slots() > 1 }, p.End,
		func(ctx context.Context, e cli.Entry, plan *infill.Plan) (func() error, error) {
			if plan.Slots() > manySlots {
				o.Warn(o.Streams, "%s%s", e.Place(), before(plan))
			}
			result, err := plan.Fill(ctx, observe)
			return func() error {
				bar.Clear()
				switch {
				case result == nil:
					return cli.OptionError(err)
				case err != nil: // print the fills found by then
					return errors.Join(err, p.room(result, o.Format), p.Print(e.ID, result), p.End())
				}
				for _, w := range few(result.Warnings) {
					o.Warn(o.Streams, "%s%s", e.Place(), w)
				}
				o.Note(o.Streams, "signature %s", result.Signature)
				if err := p.room(result, o.Format); err != nil {
					return err
				}
				return p.Print(e.ID, result)
			}, err
		}))
}

// few are warnings of which those that say the same of many blanks are counted, but for the first.
func few(warnings []string) (list []string) {
	const alike, most = "the model would rather put ", 3
	more := -most
	for _, w := range warnings {
		if strings.HasPrefix(w, alike) {
			if more++; more > 0 {
				continue
			}
		}
		list = append(list, w)
	}
	if more > 0 {
		list = append(list, fmt.Sprintf("and so in %s; --format json lists all", cli.Counted(more, "more blank")))
	}
	return list
}

// plan reads a template of the user.
func (o *fillOptions) plan(f *infill.Filler, e cli.Entry) (*infill.Plan, error) {
	r := infill.Request{Template: e.Text, Options: o.Options}
	var err error
	switch {
	case e.Of != nil:
		if r, err = infill.ParseRequest(e.Of, o.Key, o.Options); err != nil {
			return nil, &cli.MisfitError{Err: err}
		}
	case isObject(e.Text):
		return nil, &cli.MisfitError{Err: errors.New("the text is a JSON object: take --input jsonl")}
	}
	plan, err := f.Plan(r)
	if meant, _ := tokenize.MeantBlank(r.Template); errors.Is(err, tokenize.ErrNoBlank) && meant != "" {
		err = fmt.Errorf("%w, or give --blank %q", err, meant)
	}
	switch {
	case err == nil:
		return plan, nil
	case e.Line == 0:
		return nil, &cli.UsageError{Err: cli.Flagged(err), Hint: misspelt(o.root, r.Template)}
	case e.Of != nil: // the fault may lie in its own options
		return nil, cli.LineError(e.Of, err)
	}
	return nil, cli.OptionError(err)
}

// form is how results are printed.
func (o *fillOptions) form() cli.Form[*infill.Result] {
	form := resultForm(o.columns(), o.Verbose)
	if o.show == "fills" {
		form.Text = func(r *infill.Result, _ int) string {
			var lines strings.Builder
			for _, fill := range r.Fills {
				lines.WriteString(strings.Join(fill.Values, "\t") + "\n")
			}
			return lines.String()
		}
	}
	return form
}

// before says how long a fill of many slots may take.
func before(p *infill.Plan) string {
	what := fmt.Sprintf("%d slots: the time grows with the square of their number", p.Slots())
	if rows := p.MaxRows(); rows > 0 && p.Options.Chains == nil {
		what = fmt.Sprintf("%d slots: up to %s", p.Slots(), cli.Counted(rows, "model row"))
	}
	return what + "; Ctrl-C prints the best so far"
}

// manySlots is how many slots take so long that it is said before.
const manySlots = 10

// misspelt gives a hint for a template that is rather a file or a mistyped command.
func misspelt(root *cobra.Command, template string) string {
	if info, err := os.Stat(template); err == nil && info.Mode().IsRegular() {
		return "to read templates from a file, one a line: infill < " + template
	}
	if template == "" || strings.ContainsAny(template, " []") {
		return ""
	}
	for _, name := range root.SuggestionsFor(template) {
		if name != "help" { // "hello" is no mistyped "help"
			return "did you mean infill " + name + "?"
		}
	}
	return ""
}

// isObject reports whether a line of standard input is an object of JSONL rather than a template.
func isObject(text string) bool {
	var object struct{ Template *string }
	return strings.HasPrefix(strings.TrimSpace(text), "{") && json.Unmarshal([]byte(text), &object) == nil &&
		object.Template != nil
}

// columns are the blanks that CSV has columns for: the most of the arguments; of standard
// input the first template tells.
func (o *fillOptions) columns() (most int) {
	for _, text := range o.Texts {
		most = max(most, len(tokenize.BlankSpans(text, o.Blank)))
	}
	return most
}
