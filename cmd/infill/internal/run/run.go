// Package run is infill run and infill augment, which work through files.
package run

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"runtime"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"infill/cmd/infill/internal/cli"
	"infill/cmd/infill/internal/terminal"
	"infill/infill"
	"infill/infill/batch"
	"infill/internal/journal"
	"infill/lm"
)

// batchOptions are the options of every command that works through a file.
type batchOptions struct {
	streams *terminal.Streams
	job     batch.Job
	column  string
	cli.ModelOptions
}

func (o *batchOptions) register(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVarP(&o.job.Output.Path, "out", "o", "", "`FILE` of the result; its name tells the form")
	flags.StringVar(&o.column, "column", o.column, "`NAME` of the column, or key, with the "+o.column)
	forms := cli.Texts(batch.Forms())
	cli.AddChoice(cmd, (*string)(&o.job.Input.Form), "from", "", forms,
		"form of the input, where its name does not tell it")
	cli.AddChoice(cmd, (*string)(&o.job.Output.Form), "to", "", forms,
		"form of the result, where its name does not tell it")
	o.job.InFlight = lm.InFlight
	cli.Bind(cmd, &o.job)
	flags.TextVar(&o.job.Shard, "shard", batch.Shard{},
		"`I/N`: do part I of N, from 1; infill run merge puts them together")
	o.ModelOptions.Register(cmd)
}

// validate refuses wrong options before anything is opened.
func (o *batchOptions) validate(flags *pflag.FlagSet, args []string, options *infill.Options) error {
	if err := o.ModelOptions.Validate(); err != nil {
		return err
	}
	if err := options.Validate(); err != nil {
		return cli.OptionError(err)
	}
	switch {
	case len(args) != 1:
		return &cli.UsageError{Err: fmt.Errorf("%s given, one file is read", cli.Counted(len(args), "argument")),
			Hint: "see infill run --help"}
	case args[0] == "-" && o.job.Input.Form == "":
		return cli.Usagef("--from: say which form standard input has, as in --from jsonl")
	case o.job.Output.Path == "":
		return cli.Usagef("--out: say which file the result goes to")
	case o.job.InFlight < 1:
		return cli.Usagef("--jobs: %d is not a whole number of 1 or more", o.job.InFlight)
	case o.job.Shard.Count > 0 && o.job.Overwrite:
		return cli.Usagef("--shard and --overwrite exclude each other: other parts may be at " +
			"work; remove the folder of parts to start again")
	}
	if !flags.Changed("seed") {
		// Parts and resumed runs have to agree.
		options.Seed = 1
	}
	o.job.Input.Path = args[0]
	return nil
}

// computing returns the settings that the model's calls depend on, apart from the model.
func (o *batchOptions) computing() map[string]string {
	return map[string]string{"threads": fmt.Sprint(cmp.Or(o.Threads, runtime.GOMAXPROCS(0)))}
}

// run does the job and tells the outcome of it.
func (o *batchOptions) run(ctx context.Context) (err error) {
	if o.job.Input.Path == "-" {
		path, remove, err := cli.Spool(o.streams.In)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, remove()) }()
		o.job.Input.Path = path
	}
	bar := cli.NewBar(o.streams, o.Quiet, true)
	defer bar.Clear()
	o.job.Observe = func(at batch.Progress) {
		bar.Tell(at.Done, at.Total, func() string { return describe(at) })
	}
	summary, err := batch.Run(ctx, o.job)
	bar.Clear()
	if err != nil && ctx.Err() != nil && !o.Quiet {
		fmt.Fprintf(o.streams.Err, "infill: what is done stays in %s; the same command with --resume goes on\n",
			cli.OneLine(o.job.Output.Path+".parts"))
	}
	if err != nil {
		return batchError(ctx, err)
	}
	return tellSummary(o.streams, o.Quiet, o.job.Shard, summary)
}

// batchError sorts the errors of a run: an interrupt, wrong usage, or another.
func batchError(ctx context.Context, err error) error {
	var exists *batch.ExistsError
	var changed *journal.ChangedError
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.As(err, &exists), errors.As(err, &changed):
		return &cli.UsageError{Err: err}
	}
	return cli.OptionError(err)
}

// tellSummary prints the counts of a run.
func tellSummary(s *terminal.Streams, quiet bool, shard batch.Shard, b *batch.Summary) error {
	what := cmp.Or(b.Output, "part "+shard.String()) // after the merge, a part has the name of its output
	if !quiet {
		text := fmt.Sprintf("%s: %s", cli.OneLine(what), cli.Counted(int(b.Records-b.Rejected-b.Blank), "text"))
		if b.Blank > 0 {
			text += fmt.Sprintf(", %s", cli.Counted(int(b.Blank), "blank line"))
		}
		if b.Missing > 0 {
			text += fmt.Sprintf(", %s missing, of which no draw kept to the rules",
				cli.Counted(int(b.Missing), "variant"))
		}
		switch {
		case b.Already:
			text += ", done already"
		case b.Kept > 0:
			text += fmt.Sprintf(", %d of them done before", b.Kept)
		}
		fmt.Fprintf(s.Err, "infill: %s\n", text)
	}
	if b.Rejected == 0 {
		return nil
	}
	// A part has done its work, and a cluster must not do it again: merge tells.
	if shard.Count > 0 {
		cli.Warn(s, quiet, "%s left out; the merge tells which", cli.Counted(int(b.Rejected), "wrong line"))
		return nil
	}
	cli.Warn(s, quiet, "%s left out, each with its reason in %s", cli.Counted(int(b.Rejected), "wrong line"), b.Rejects)
	return cli.ErrRejects
}

// runOptions are the options of infill run.
type runOptions struct {
	batchOptions
	keep []string
	infill.Options
}

// NewCmd makes infill run.
func NewCmd(s *terminal.Streams) *cobra.Command {
	o := &runOptions{batchOptions: batchOptions{streams: s, column: "template"}, Options: infill.DefaultOptions()}
	cmd := &cobra.Command{
		Use:   "run INPUT -o OUTPUT",
		Short: "Fill the templates of a file, on one machine or on many",
		Args:  cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.validate(cmd.Flags(), args, &o.Options); err != nil {
				return err
			}
			return run(cmd.Context(), o)
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	o.batchOptions.register(cmd)
	flags.StringSliceVar(&o.keep, "keep", nil, "`LIST` of columns that have an option's name and are none")
	cli.AddOptions(cmd, &o.Options)
	flags.Lookup("seed").Usage = "start of all random numbers; 1 when not given"
	cmd.AddCommand(newCmdRunMerge(s))
	return cmd
}

// run fills the templates of a file.
func run(ctx context.Context, o *runOptions) (err error) {
	f, err := o.Open(o.streams)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	o.job.Work = &batch.Fill{Filler: f, Options: o.Options, Key: o.column, Keep: o.keep, Computing: o.computing()}
	return o.run(ctx)
}

// augmentOptions are the options of infill augment.
type augmentOptions struct {
	batchOptions
	batch.Augment
	span    string
	pattern string
}

// NewCmdAugment makes infill augment.
func NewCmdAugment(s *terminal.Streams) *cobra.Command {
	o := &augmentOptions{batchOptions: batchOptions{streams: s, column: "text"}, span: "1",
		Augment: batch.Augment{Options: batch.AugmentOptions(), Variants: 4, Rate: 0.15}}
	cmd := &cobra.Command{
		Use:   "augment INPUT -o OUTPUT",
		Short: "Make variants of the texts of a file, labels kept",
		Args:  cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.settle(); err != nil {
				return err
			}
			if err := o.validate(cmd.Flags(), args, &o.Options); err != nil {
				return err
			}
			if cmd.Flags().Changed("rate") && cmd.Flags().Changed("blanks") {
				return cli.Usagef("--rate and --blanks exclude each other: give one")
			}
			return runAugment(cmd.Context(), o)
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	o.batchOptions.register(cmd)
	cli.Bind(cmd, &o.Augment)
	flags.StringVar(&o.span, "span", o.span, "`MIN-MAX` words in a row to mask together")
	flags.StringVar(&o.pattern, "protect-pattern", "", "`REGEXP` of words that are never masked")
	cli.AddChoice(cmd, &o.Context, "context", "", []string{batch.ContextNone, batch.ContextOriginal},
		"what the model reads before the text; original keeps the meaning, and masked words out of the blanks")
	cli.AddOptions(cmd, &o.Options, "temperature", "pos", "ban", "seed")
	flags.Lookup("seed").Usage = "start of all random numbers; 1 when not given"
	return cmd
}

// settle reads the values that are no plain flags.
func (o *augmentOptions) settle() error {
	low, high, ranged := strings.Cut(o.span, "-")
	if !ranged {
		high = low
	}
	var err, err2 error
	o.MinSpan, err = strconv.Atoi(low)
	if o.MaxSpan, err2 = strconv.Atoi(high); cmp.Or(err, err2) != nil {
		return cli.Usagef("--span: %q is not a number or a range, as in 2 or 1-3", o.span)
	}
	if o.pattern != "" {
		if o.Pattern, err = regexp.Compile(o.pattern); err != nil {
			return cli.Usagef("--protect-pattern: %w", err)
		}
	}
	return cli.OptionError(o.Check())
}

// runAugment makes variants of the texts of a file.
func runAugment(ctx context.Context, o *augmentOptions) (err error) {
	f, err := o.Open(o.streams)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	o.Filler, o.Key, o.Computing = f, o.column, o.computing()
	o.job.Work = &o.Augment
	return o.run(ctx)
}

func newCmdRunMerge(s *terminal.Streams) *cobra.Command {
	var output batch.File
	overwrite, quiet := false, false
	cmd := &cobra.Command{
		Use:   "merge OUTPUT",
		Short: "Put the parts of a run together",
		Args:  cli.OneArgument("one output is merged", "infill run merge OUTPUT"),
		RunE: func(cmd *cobra.Command, args []string) error {
			output.Path = args[0]
			summary, err := batch.Merge(cmd.Context(), output, overwrite)
			if err != nil {
				return batchError(cmd.Context(), err)
			}
			return tellSummary(s, quiet, batch.Shard{}, summary)
		},
	}
	flags := cmd.Flags()
	cli.AddChoice(cmd, (*string)(&output.Form), "to", "", cli.Texts(batch.Forms()),
		"form of the result, where its name does not tell it")
	flags.BoolVar(&overwrite, "overwrite", false, "replace an output that is there")
	flags.BoolVarP(&quiet, "quiet", "q", false, "no summary")
	return cmd
}

// describe says in one line where a run is.
func describe(at batch.Progress) string {
	text := fmt.Sprintf("%d of %d", at.Done, at.Total)
	if at.PerSecond > 0 {
		text += fmt.Sprintf(" (%.3g/s), %s left", at.PerSecond, cli.RoundDuration(at.Left))
	}
	if at.Rejected > 0 {
		text += fmt.Sprintf(", %d left out", at.Rejected)
	}
	return text
}
