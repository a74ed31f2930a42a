// Package run has infill run and infill augment, which read whole files.
package run

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"infill/cmd/infill/internal/cli"
	"infill/cmd/infill/internal/terminal"
	"infill/infill"
	"infill/internal/ask"
	"infill/internal/batch"
	"infill/internal/journal"
	"infill/internal/phrase"
	"infill/lm"
)

type batchOptions struct {
	streams *terminal.Streams
	job     batch.Job
	column  string
	given   []ask.Given
	told    struct {
		Pause time.Duration `option:"progress" word:"TIME" help:"TIME between two lines about progress, if standard error is no terminal; 0 for none"`
	}
	cli.ModelOptions
}

// command makes a command. When it runs, it calls check, checks its own
// options, opens the model and passes it to take.
func (o *batchOptions) command(use, short string, check func() error,
	take func(*infill.Filler)) *cobra.Command {
	cmd := &cobra.Command{
		Use:               use,
		Short:             short,
		ValidArgsFunction: cli.CompleteFiles,
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if err := cmp.Or(check(), o.validate(args)); err != nil {
				return err
			}
			f, err := o.Open(o.streams)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, f.Close()) }()
			take(f)
			return o.run(cmd.Context())
		},
	}
	// A fixed seed, so that parts and resumed runs agree.
	o.given = []ask.Given{ask.MustGive("seed", "1")}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVarP(&o.job.Output.Path, "out", "o", "", "`FILE` of the result; its ending chooses the format")
	flags.StringVar(&o.column, "column", o.column, "`NAME` of the column, or key, with the "+o.column)
	forms := cli.Texts(batch.Forms())
	cli.AddChoice(cmd, (*string)(&o.job.Input.Form), "from", "", forms, "format of the input, if its name does not say")
	cli.AddChoice(cmd, (*string)(&o.job.Output.Form), "to", "", forms, "format of the result, if its name does not say")
	cli.Bind(cmd, &o.job)
	o.told.Pause = cli.Pause
	cli.Bind(cmd, &o.told)
	o.ModelOptions.Register(cmd)
	return cmd
}

// validate returns an error for wrong options, before the command opens anything.
func (o *batchOptions) validate(args []string) error {
	if err := o.ModelOptions.Validate(); err != nil {
		return err
	}
	if o.job.InFlight == 0 {
		o.job.InFlight = lm.InFlight(o.Threads)
	}
	err := cli.CheckJobs(o.job.InFlight)
	if err != nil {
		return err
	}
	switch {
	case len(args) != 1:
		return &cli.UsageError{Err: fmt.Errorf("%s given, one file is read", phrase.Counted(len(args), "argument")),
			Hint: "see infill run --help"}
	case args[0] == "-" && o.job.Input.Form == "":
		return cli.Usagef("--from: say which form standard input has, as in --from jsonl")
	case o.job.Output.Path == "":
		return cli.Usagef("--out: say which file the result goes to")
	case o.job.Output.Path == "-":
		return cli.Usagef("--out: a run writes a file, to go on with; to standard output writes infill --input jsonl")
	case o.job.Shard.Count > 0 && o.job.Overwrite:
		return cli.Usagef("--shard and --overwrite exclude each other: other parts may be at " +
			"work; remove the folder of parts to start again")
	case o.told.Pause < 0:
		return cli.Usagef("--progress: %s is no time between two lines: give 1s, or 0 for none", o.told.Pause)
	case o.job.Resume && o.job.Overwrite:
		return cli.Usagef("--resume and --overwrite exclude each other: after a break, --resume alone goes on")
	}
	o.job.Input.Path = args[0]
	return nil
}

// run does the job and prints what came of it.
func (o *batchOptions) run(ctx context.Context) (err error) {
	if o.job.Input.Path == "-" {
		path, remove, err := cli.Spool(o.streams.In)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, remove()) }()
		o.job.Input.Path = path
		o.job.Input.Name = "standard input"
	}
	bar := cli.NewBar(o.streams, o.Quiet, o.told.Pause)
	o.job.Observe = func(at batch.Progress) {
		bar.Tell(at.Done, at.Total, func() string { return describe(at) })
	}
	o.job.Note = func(line string) { o.Report(o.streams, "%s", line) }
	summary, err := batch.Run(ctx, o.job)
	bar.Clear()
	if err != nil && ctx.Err() != nil {
		o.Report(o.streams, "what is done stays in %s.parts; the same command with --resume goes on", o.job.Output.Path)
	}
	return tell(ctx, o.streams, o.Quiet, o.job.Shard, summary, err)
}

// tell prints the counts of a run, and gives err the right exit code.
func tell(ctx context.Context, s *terminal.Streams, quiet bool, shard batch.Shard, b *batch.Summary, err error) error {
	var changed *journal.ChangedError
	var input *batch.InputError
	switch {
	case err != nil && ctx.Err() != nil:
		return ctx.Err()
	case errors.As(err, &changed), errors.As(err, &input):
		return &cli.UsageError{Err: err}
	case err != nil:
		return cli.Describe(err)
	case b.Done && !quiet:
		fmt.Fprintf(s.Err, "infill: %s is there already, and done\n", cli.OneLine(b.Output))
	}
	if b.Done {
		return verdict(s, quiet, shard, b)
	}
	if !quiet {
		text := cli.OneLine(cmp.Or(b.Output, "part "+shard.String())) + ": " +
			phrase.Counted(int(b.Records-b.Rejected-b.Blank), "text")
		if b.Blank > 0 {
			text += ", " + phrase.Counted(int(b.Blank), "blank line")
		}
		if b.Lines != b.Records-b.Rejected-b.Blank {
			text += ", " + phrase.Counted(int(b.Lines), "line")
		}
		if b.Unproven > 0 {
			text += fmt.Sprintf(", %d unproven", b.Unproven)
		}
		if b.Excluded > 0 {
			text += fmt.Sprintf(" (%d with a blank where the model would rather put what --fill leaves out)",
				b.Excluded)
		}
		if b.Kept > 0 {
			text += fmt.Sprintf(", %d done before", b.Kept)
		}
		if b.Signature != "" {
			text += "\ninfill: signature " + cli.OneLine(b.Signature)
		}
		fmt.Fprintf(s.Err, "infill: %s\n", text)
	}
	if b.Missing > 0 {
		verb := "are"
		if b.Missing == 1 {
			verb = "is"
		}
		cli.Warn(s, quiet, "%s %s missing: the draws for --distinct only repeated texts; mask more words, or raise "+
			"--temperature", phrase.Counted(b.Missing, "variant"), verb)
	}
	for _, w := range b.Warnings {
		cli.Warn(s, quiet, "%s", w)
	}
	for _, name := range b.Options {
		cli.Warn(s, quiet, "the column %s is read as an option, and the option refuses some of its values; --keep "+
			"%[1]s copies it", name)
	}
	return verdict(s, quiet, shard, b)
}

// verdict tells of rejected records, with one exit code whenever it is done.
func verdict(s *terminal.Streams, quiet bool, shard batch.Shard, b *batch.Summary) error {
	switch {
	case b.Rejected == 0:
		return nil
	case shard.Count > 0: // the part is done: an error would make a cluster run it again
		cli.Warn(s, quiet, "%s left out; the merge tells which", phrase.Counted(int(b.Rejected), "wrong line"))
		return nil
	}
	cli.Warn(s, quiet, "%s left out, each with its reason in %s", phrase.Counted(int(b.Rejected), "wrong line"),
		cli.OneLine(b.Output+".rejects.jsonl"))
	return cli.ErrRejects
}

func NewCmd(s *terminal.Streams) *cobra.Command {
	o := &batchOptions{streams: s, column: "template"}
	var keep []string
	cmd := o.command("run INPUT -o OUTPUT", "Fill the templates of a file, on one machine or on many",
		func() error {
			r, err := ask.NewRequest("", o.given)
			return cli.Describe(cmp.Or(err, r.Check()))
		},
		func(f *infill.Filler) {
			o.job.Work = &batch.Fill{Filler: f, Given: o.given, Key: o.column, Keep: keep}
		})
	cmd.Flags().Var((*cli.List)(&keep), "keep", "`LIST` of columns to copy, though they have an option's name")
	cli.AddOptions(cmd, &o.given)
	cmd.Flags().Lookup("seed").Usage = "start of all random numbers"
	cmd.AddCommand(newCmdMerge(s))
	return cmd
}

func NewCmdAugment(s *terminal.Streams) *cobra.Command {
	o := &batchOptions{streams: s, column: "text"}
	work := &batch.Augment{}
	work.Settle()
	var cmd *cobra.Command
	cmd = o.command("augment INPUT -o OUTPUT", "Make variants of the texts of a file, labels kept",
		func() error {
			if cmd.Flags().Changed("rate") && cmd.Flags().Changed("blanks") {
				return cli.Usagef("--rate and --blanks exclude each other: give one")
			}
			work.Given = o.given
			return cli.Describe(work.Check())
		},
		func(f *infill.Filler) {
			work.Filler = f
			work.Key = o.column
			o.job.Work = work
		})
	cli.Bind(cmd, work)
	cli.AddOptions(cmd, &o.given, "temperature", "pos", "ban", "budget", "seed")
	cmd.Flags().Lookup("seed").Usage = "start of all random numbers"
	return cmd
}

func newCmdMerge(s *terminal.Streams) *cobra.Command {
	quiet := false
	remove := false
	cmd := &cobra.Command{
		Use:   "merge OUTPUT",
		Short: "Put the parts of a run together",
		Args:  cli.OneArgument("one output is merged", "infill run merge OUTPUT"),
		RunE: func(cmd *cobra.Command, args []string) error {
			summary, err := batch.Merge(cmd.Context(), args[0], remove)
			return tell(cmd.Context(), s, quiet, batch.Shard{}, summary, err)
		},
	}
	cmd.Flags().BoolVar(&remove, "remove-parts", false, "remove the parts afterwards; without them OUTPUT cannot be "+
		"made again")
	cmd.Flags().BoolVarP(&quiet, "quiet", "q", false, "no summary")
	return cmd
}

func describe(at batch.Progress) string {
	text := fmt.Sprintf("%d of %d", at.Done, at.Total)
	if at.PerSecond > 0 {
		left := time.Duration(float64(at.Total-at.Done) / at.PerSecond * float64(time.Second))
		text += fmt.Sprintf(" (%.3g/s), %s left", at.PerSecond, cli.RoundDuration(left))
	}
	if at.Rejected > 0 {
		text += fmt.Sprintf(", %d left out", at.Rejected)
	}
	return text
}
