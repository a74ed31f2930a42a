// Package eval has the command infill eval.
package eval

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"charm.land/lipgloss/v2"
	"github.com/google/renameio/v2/maybe"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"infill/cmd/infill/internal/cli"
	"infill/cmd/infill/internal/terminal"
	"infill/infill"
	"infill/internal/ask"
	"infill/internal/batch"
	"infill/internal/eval"
	"infill/internal/eval/corpus"
	"infill/internal/journal"
	"infill/internal/parallel"
	"infill/metrics"
)

type command struct {
	streams    *terminal.Streams
	preset     string
	corpora    cli.CorpusList
	references cli.CorpusList
	samplers   []string
	table      table

	TBC      string   `option:"tbc" word:"FILE" help:"FILE of the Toronto Book Corpus: --corpus tbc=FILE"`
	WT103    string   `option:"wt103" word:"FILE" help:"FILE of WikiText-103: --corpus wt103=FILE"`
	Models   []string `option:"models" word:"LIST" help:"LIST of models, names or folders of bundles (default: --model)"`
	Fraction float64  `option:"mask-fraction" help:"share of a sentence's words to mask"`
	Slots    int      `option:"slots" help:"words to mask in every sentence, instead of a fraction"`
	Out      string   `option:"out" short:"o" word:"DIR" help:"DIR of the run (default: eval- and the preset)"`
	Judge    string   `option:"judge" word:"NAME" help:"NAME of another model, or a folder with one, that rates the fills of all samples"`
	Jobs     int      `option:"jobs" help:"sentences to work at at once; more than 1 makes the seconds of a sample mean less"`

	base   []ask.Given // options that all samplers share
	config eval.Config
	model  cli.ModelOptions
}

// wikiText is the address at which the first author of WikiText-103 publishes it.
const wikiText = "https://wikitext.smerity.com/wikitext-103-v1.zip"

func NewCmd(s *terminal.Streams) *cobra.Command {
	c := &command{streams: s, preset: eval.Presets()[0], Jobs: 1, table: table{streams: s}}
	var samplers string
	var err error
	c.config, c.base, samplers, err = eval.Preset(c.preset)
	if err != nil {
		panic(err) // never happens, as Presets lists only presets
	}
	c.Fraction = c.config.Select.Mask.Fraction
	cmd := &cobra.Command{
		Use:   "eval --tbc FILE --wt103 FILE",
		Short: "Compare samplers over sentences of corpora: diversity, quality, cost",
		Args:  cli.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := c.settle(cmd.Flags()); err != nil {
				return err
			}
			return c.run(cmd.Context())
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	cmd.AddCommand(newShowCmd(s))
	flags := cmd.Flags()
	flags.SortFlags = false
	cli.AddChoice(cmd, &c.preset, "preset", "", eval.Presets(), "the protocol; the flags below say what dlp has")
	cli.Bind(cmd, c)
	flags.Var(&c.corpora, "corpus", "a corpus to take sentences of and to compare with; may be given several times")
	flags.VarP(&c.references, "reference", "r", "a corpus to compare with alone")
	flags.StringArrayVar(&c.samplers, "samplers", []string{samplers},
		"`LIST` of samplers, see above; may be given several times")
	cli.Bind(cmd, &c.config)
	cli.Bind(cmd, &c.config.Select)
	cli.AddOptions(cmd, &c.base, "steps", "candidates", "energy", "temperature", "initial")
	cli.AddChoice(cmd, (*string)(&c.config.Metrics.Tokenisation), "tokenisation", "",
		cli.Texts(metrics.WhiteSpace.Values()), "how text becomes the tokens that are scored")
	cli.Bind(cmd, &c.config.Metrics)
	c.table.register(cmd)
	c.model.Register(cmd)
	return cmd
}

// preset sets *to to the preset's value, unless the user gave the flag.
func preset[T any](flags *pflag.FlagSet, name string, to *T, from T) {
	if !flags.Changed(name) {
		*to = from
	}
}

// settle takes the preset's values for flags not given, and checks all.
func (c *command) settle(flags *pflag.FlagSet) error {
	if err := c.model.Validate(); err != nil {
		return err
	}
	if flags.Changed("preset") {
		of, base, samplers, err := eval.Preset(c.preset)
		if err != nil {
			return &cli.UsageError{Err: err}
		}
		preset(flags, "min-tokens", &c.config.Select.MinimumTokens, of.Select.MinimumTokens)
		preset(flags, "max-tokens", &c.config.Select.MaximumTokens, of.Select.MaximumTokens)
		preset(flags, "sentences", &c.config.Sentences, of.Sentences)
		preset(flags, "tokenisation", &c.config.Metrics.Tokenisation, of.Metrics.Tokenisation)
		c.base = append(base, c.base...)
		preset(flags, "samplers", &c.samplers, []string{samplers})
		c.config.Preset = c.preset
		c.config.Select.Mask = of.Select.Mask
		c.config.Select.Markers = of.Select.Markers
	}
	for _, pair := range [][2]string{{"slots", "mask-fraction"}, {"models", "model"}} {
		if flags.Changed(pair[0]) && flags.Changed(pair[1]) {
			return cli.Usagef("--%s and --%s exclude each other: give one", pair[0], pair[1])
		}
	}
	mask := &c.config.Select.Mask
	switch {
	case flags.Changed("slots"):
		mask.Count = c.Slots
		mask.Fraction = 0
	case flags.Changed("mask-fraction"):
		mask.Count = 0
		mask.Fraction = c.Fraction
	}
	if err := cli.CheckJobs(c.Jobs); err != nil {
		return err
	}
	if len(c.Models) == 0 {
		c.Models = []string{c.model.Model}
	}
	var err error
	c.config.Samplers, err = eval.ParseVariants(strings.Join(c.samplers, ","), c.base)
	if err != nil {
		return &cli.UsageError{Err: fmt.Errorf("--samplers: %w", err), Hint: "infill help samplers"}
	}
	c.Out = cmp.Or(c.Out, "eval-"+c.preset)
	if err := c.config.Validate(); err != nil {
		return &cli.UsageError{Err: cli.Describe(err)}
	}
	var corpora []cli.Corpus
	for _, of := range []cli.Corpus{{Name: "tbc", File: c.TBC}, {Name: "wt103", File: c.WT103}} {
		if of.File != "" {
			corpora = append(corpora, of)
		}
	}
	c.corpora.List = append(corpora, c.corpora.List...)
	if len(c.corpora.List) == 0 {
		return &cli.UsageError{Err: errors.New(
			"no corpus: give --tbc FILE and --wt103 FILE, or any text as --corpus NAME=FILE"),
			Hint: "WikiText-103 is at " + wikiText + "; the Toronto Book Corpus is your own file"}
	}
	all := append(slices.Clone(c.corpora.List), c.references.List...)
	for i, of := range all {
		if slices.ContainsFunc(all[:i], func(earlier cli.Corpus) bool { return earlier.Name == of.Name }) {
			return cli.Usagef("two corpora are called %q: give each its own name", of.Name)
		}
	}
	return nil
}

// openCorpora reads the corpora, and warns of text that it leaves out.
func (c *command) openCorpora() (list []*corpus.Corpus, err error) {
	for i, of := range append(slices.Clone(c.corpora.List), c.references.List...) {
		read, err := corpus.Read(of.Name, of.File, nil, "")
		if err != nil {
			return nil, &cli.UsageError{Err: err, Hint: "infill eval --help says where the corpora are"}
		}
		for _, line := range read.LeftOut() {
			cli.Warn(c.streams, c.model.Quiet, "corpus %s: %s", read.Name, line)
		}
		read.Path, err = filepath.Abs(of.File)
		if err != nil {
			return nil, err
		}
		read.Reference = i >= len(c.corpora.List)
		list = append(list, read)
	}
	return list, nil
}

func (c *command) run(ctx context.Context) error {
	corpora, err := parallel.Interruptible(ctx, c.openCorpora)
	if err != nil {
		return err
	}
	var fillers []*infill.Filler // each loads its model when it first runs
	for _, name := range c.Models {
		of := c.model
		of.Model = name
		filler, err := of.Open(c.streams)
		if err != nil {
			return err
		}
		fillers = append(fillers, filler)
	}
	var judge *infill.Filler
	if c.Judge != "" {
		of := c.model
		of.Model = c.Judge
		judge, err = of.Open(c.streams)
		if err != nil {
			return err
		}
		own := judge.Model().SHA256
		if slices.ContainsFunc(fillers, func(f *infill.Filler) bool { return f.Model().SHA256 == own }) {
			return cli.Usagef("--judge %s: it makes the samples: name another model", c.Judge)
		}
	}
	bar := cli.NewBar(c.streams, c.model.Quiet, cli.Pause)
	defer bar.Clear()
	results, err := eval.Run(ctx, eval.Options{
		Dir: c.Out, Config: c.config, Models: fillers, Corpora: corpora,
		Device: c.model.Device, Jobs: c.Jobs, Judge: judge,
		Observe: func(step eval.Progress) {
			// A fill is a thousand units: the bar moves during a fill, too.
			const unit = 1000
			done := step.Done*unit + unit*step.Step/max(1, step.Steps)
			bar.Tell(int64(done), int64(step.Total*unit), func() string { return describe(step, len(fillers)) })
		},
		Note: func(text string) { bar.Clear(); cli.Warn(c.streams, c.model.Quiet, "%s", text) },
	})
	bar.Clear()
	var changed *journal.ChangedError
	switch {
	case err != nil && ctx.Err() != nil:
		c.model.Report(c.streams, "what is done stays in %s; the same command goes on with it", c.Out)
		return ctx.Err()
	case errors.As(err, &changed):
		return &cli.UsageError{Err: err}
	case err != nil:
		return cli.Describe(err)
	}
	picture, err := results.Plot(eval.PlotScore)
	if err != nil {
		return err
	}
	err = maybe.WriteFile(filepath.Join(c.Out, "plot.svg"), picture, 0o666)
	if err != nil {
		return err
	}
	return c.table.print(results, c.Out, c.model.Quiet)
}

type table struct {
	streams *terminal.Streams
	format  string
	set     string
	score   string // of a plot
}

func (t *table) register(cmd *cobra.Command) {
	formats := []string{"text", "json", "csv", "svg"}
	t.score = eval.PlotScore
	t.format, t.set = formats[0], eval.Sets()[0]
	cli.AddChoice(cmd, &t.format, "format", "", formats, "form of the table")
	cli.AddChoice(cmd, &t.set, "set", "", eval.Sets(),
		"score the likeliest samples of each sentence, or all of them; the folder holds both")
}

// print prints a table and, below it as text, dir with all results.
func (t *table) print(r *eval.Results, dir string, quiet bool) error {
	for _, w := range r.Warnings {
		cli.Warn(t.streams, quiet, "%s", w)
	}
	of := r.Table(t.set)
	width := t.streams.Width
	var text strings.Builder
	switch t.format {
	case "json":
		return cli.WriteJSON(t.streams.Out, of)
	case "csv":
		return batch.WriteCSV(t.streams.Out, of.Rows()...)
	case "svg":
		picture, err := r.Plot(t.score)
		if err != nil {
			return cli.Usagef("--x: %w", err)
		}
		_, err = t.streams.Out.Write(picture)
		return err
	}
	for _, block := range blocks(of.Grid(), width) {
		text.WriteString(cli.RenderTable(width, block[0], block[1:], 0) + "\n")
	}
	text.WriteString(cli.Notes(width, append(of.Notes, "signature "+r.Signature, "folder "+dir)...))
	_, err := io.WriteString(t.streams.Styled(), text.String())
	return err
}

// blocks cuts a table into blocks that fit width, each with the first column.
// If width is 0, there is one block.
func blocks(grid [][]string, width int) (list [][][]string) {
	widest := func(column int) int {
		const gap = 2
		most := 0
		for _, row := range grid {
			most = max(most, lipgloss.Width(row[column]))
		}
		return gap + most
	}
	columns := len(grid[0])
	for from := 1; from < columns; {
		to := from + 1
		total := widest(0) + widest(from)
		for to < columns && (width == 0 || total+widest(to) <= width) {
			total += widest(to)
			to++
		}
		var block [][]string
		for _, row := range grid {
			block = append(block, append([]string{row[0]}, row[from:to]...))
		}
		list = append(list, block)
		from = to
	}
	return list
}

func newShowCmd(s *terminal.Streams) *cobra.Command {
	quiet := false
	table := table{streams: s}
	var files struct {
		Join []string `option:"join" word:"FILE" help:"FILE in CSV with numbers of samples by the id of samples.csv, each column to join to the table"`
	}
	cmd := &cobra.Command{
		Use:   "show DIR",
		Short: "Print the table of a run that is done",
		Args:  cli.OneArgument("one folder is shown", "infill eval show DIR"),
		RunE: func(_ *cobra.Command, args []string) error {
			results, err := eval.ReadResults(args[0])
			if err != nil {
				return err
			}
			for _, path := range files.Join {
				if err := results.Join(path); err != nil {
					return &cli.Failure{Err: fmt.Errorf("--join: %w", err)}
				}
			}
			return table.print(results, args[0], quiet)
		},
	}
	cmd.Flags().SortFlags = false
	cmd.Flags().BoolVarP(&quiet, "quiet", "q", false, "no warnings")
	table.register(cmd)
	cli.Bind(cmd, &files)
	cmd.Flags().StringVar(&table.score, "x", table.score, "`NAME` of the score that --format svg draws against U")
	return cmd
}

func describe(step eval.Progress, models int) string {
	if step.Scoring {
		text := fmt.Sprintf("all %d chains of %d sentences are done: scoring", step.Total*step.Chains, step.Sentences)
		if step.Steps > 0 {
			text = fmt.Sprintf("%d of %d chains are judged", step.Step*step.Chains, step.Steps*step.Chains)
		}
		return text
	}
	text := fmt.Sprintf("sentence %d of %d, %d of %d chains", step.Sentence+1, step.Sentences, step.Done*step.Chains,
		step.Total*step.Chains)
	if step.ChainsPerSecond > 0 {
		text += fmt.Sprintf(" (%.3g/s)", step.ChainsPerSecond)
	}
	if step.Left > 0 {
		text += ", " + cli.RoundDuration(step.Left) + " left"
	}
	text += ", " + cli.OneLine(step.Method)
	if models > 1 {
		text += " " + cli.OneLine(step.Model)
	}
	return text
}
