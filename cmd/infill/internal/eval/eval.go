// Package eval is infill eval.
package eval

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"charm.land/lipgloss/v2"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"infill/cmd/infill/internal/cli"
	"infill/cmd/infill/internal/terminal"
	"infill/infill"
	"infill/internal/eval"
	"infill/internal/eval/corpus"
	"infill/internal/journal"
	"infill/metrics"
)

// evalOptions are the flags of a batch evaluation.
type evalOptions struct {
	streams    *terminal.Streams
	preset     string
	corpora    cli.CorpusList
	references cli.CorpusList
	samplers   []string
	table      tableOptions

	TBC      string   `flag:"tbc" value:"FILE" help:"FILE of the Toronto Book Corpus: --corpus tbc=FILE"`
	WT103    string   `flag:"wt103" value:"FILE" help:"FILE of WikiText-103: --corpus wt103=FILE"`
	Models   []string `flag:"models" value:"LIST" help:"LIST of models, names or folders of bundles; otherwise --model"`
	Fraction float64  `flag:"mask-fraction" help:"share of a sentence's words to mask"`
	Slots    int      `flag:"slots" help:"words to mask in every sentence, instead of a fraction"`
	Out      string   `flag:"out" short:"o" value:"DIR" help:"DIR of the run; otherwise eval- and the preset"`
	Jobs     int      `flag:"jobs" help:"sentences to work at at once; more than 1 makes the seconds of a sample mean less"`

	base   eval.Settings // the settings that the samplers share
	config eval.Config
	cli.ModelOptions
}

// wikiText is where its first author gives WikiText-103 away.
const wikiText = "https://wikitext.smerity.com/wikitext-103-v1.zip"

// tableOptions say how results are printed.
type tableOptions struct {
	format string
	set    string
}

// tableFormats lists the forms of a table.
func tableFormats() []string { return []string{"text", "json", "csv", "markdown"} }

func (o *tableOptions) register(cmd *cobra.Command) {
	o.format, o.set = tableFormats()[0], eval.Sets()[0]
	cli.AddChoice(cmd, &o.format, "format", "", tableFormats(), "form of the table")
	cli.AddChoice(cmd, &o.set, "set", "", eval.Sets(),
		"score the likeliest samples of each sentence, or all of them; the folder holds both")
}

// NewCmd makes infill eval.
func NewCmd(s *terminal.Streams) *cobra.Command {
	o := &evalOptions{streams: s, preset: eval.Presets()[0], Jobs: 1}
	var samplers string
	var err error
	if o.config, o.base, samplers, err = eval.Preset(o.preset); err != nil {
		panic(err) // the first of the presets is one
	}
	o.Fraction = o.config.Select.Mask.Fraction
	cmd := &cobra.Command{
		Use:   "eval --tbc FILE --wt103 FILE",
		Short: "Compare samplers over sentences of corpora: diversity, quality, cost",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return &cli.UsageError{Err: fmt.Errorf("unexpected argument %q", args[0]),
					Hint: "corpora are given by --tbc, --wt103 and --corpus NAME=FILE; see infill eval --help"}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.settle(cmd.Flags()); err != nil {
				return err
			}
			return run(cmd.Context(), o)
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	cmd.AddCommand(newCmdEvalShow(s))
	flags := cmd.Flags()
	flags.SortFlags = false
	cli.AddChoice(cmd, &o.preset, "preset", "", eval.Presets(), "the protocol; the flags below say what dlp has")
	cli.Bind(cmd, o)
	flags.Var(&o.corpora, "corpus", "a corpus to take sentences of and to compare with; may be given several times")
	flags.VarP(&o.references, "reference", "r", "a corpus to compare with alone")
	flags.StringArrayVar(&o.samplers, "samplers", []string{samplers},
		"`LIST` of samplers, see above; may be given several times")
	cli.Bind(cmd, &o.config)
	cli.Bind(cmd, &o.config.Select)
	flags.IntVar(&o.base.Chains.Steps, "steps", o.base.Chains.Steps, "steps of each chain, the warm-up included")
	flags.IntVar(&o.base.Chains.Candidates, "candidates", o.base.Chains.Candidates,
		"keep a slot to the model's N most probable tokens; not for NAME:paper")
	cli.AddChoice(cmd, (*string)(&o.base.Chains.Energy), "energy", "", infill.Find("energy").Values,
		"the energy of the chains: the papers' pseudo-log-likelihood, or with the words filled in")
	flags.Float64Var(&o.base.Temperature, "temperature", o.base.Temperature,
		"draw from the distribution to the power 1/T")
	cli.AddChoice(cmd, (*string)(&o.base.Chains.Initial.Kind), "initial", "", infill.Find("initial").Values,
		"where chains start")
	cli.AddChoice(cmd, (*string)(&o.config.Metrics.Tokenisation), "tokenisation", "",
		cli.Texts(metrics.WhiteSpace.Values()), "how text becomes the tokens that are scored")
	cli.Bind(cmd, &o.config.Metrics)
	o.table.register(cmd)
	o.ModelOptions.Register(cmd)
	return cmd
}

// preset sets a value from the preset where its flag was not given.
func preset[T any](flags *pflag.FlagSet, name string, to *T, from T) {
	if !flags.Changed(name) {
		*to = from
	}
}

// settle lays the flags that were given over the preset.
func (o *evalOptions) settle(flags *pflag.FlagSet) error {
	if err := o.ModelOptions.Validate(); err != nil {
		return err
	}
	if flags.Changed("preset") {
		c, base, samplers, err := eval.Preset(o.preset)
		if err != nil {
			return &cli.UsageError{Err: err}
		}
		preset(flags, "min-tokens", &o.config.Select.MinimumTokens, c.Select.MinimumTokens)
		preset(flags, "max-tokens", &o.config.Select.MaximumTokens, c.Select.MaximumTokens)
		preset(flags, "sentences", &o.config.Sentences, c.Sentences)
		preset(flags, "tokenisation", &o.config.Metrics.Tokenisation, c.Metrics.Tokenisation)
		preset(flags, "initial", &o.base.Chains.Initial.Kind, base.Chains.Initial.Kind)
		o.config.Preset, o.config.Select.Mask, o.config.Select.Markers = o.preset, c.Select.Mask, c.Select.Markers
		if !flags.Changed("samplers") {
			o.samplers = []string{samplers}
		}
	}
	mask := &o.config.Select.Mask
	switch {
	case flags.Changed("slots") && flags.Changed("mask-fraction"):
		return cli.Usagef("--slots and --mask-fraction exclude each other: give one")
	case flags.Changed("slots"):
		mask.Count, mask.Fraction = o.Slots, 0
	case flags.Changed("mask-fraction"):
		mask.Count, mask.Fraction = 0, o.Fraction
	}
	if o.Jobs < 1 {
		return cli.Usagef("--jobs: %d is not a whole number of 1 or more", o.Jobs)
	}
	if flags.Changed("models") && flags.Changed("model") {
		return cli.Usagef("--models and --model exclude each other: give one")
	}
	if len(o.Models) == 0 {
		o.Models = []string{o.Model}
	}
	var err error
	if o.config.Samplers, err = eval.ParseVariants(strings.Join(o.samplers, ","), o.base); err != nil {
		return &cli.UsageError{Err: fmt.Errorf("--samplers: %w", err), Hint: "infill help samplers"}
	}
	if o.Out == "" {
		o.Out = "eval-" + o.preset
	}
	o.config = o.config.WithBaselines()
	if err := o.config.Validate(); err != nil {
		return &cli.UsageError{Err: cli.OptionError(err)}
	}
	var corpora []cli.Corpus
	for _, c := range []cli.Corpus{{Name: "tbc", File: o.TBC}, {Name: "wt103", File: o.WT103}} {
		if c.File != "" {
			corpora = append(corpora, c)
		}
	}
	o.corpora.List = append(corpora, o.corpora.List...)
	if len(o.corpora.List) == 0 {
		return &cli.UsageError{Err: errors.New(
			"no corpus: give --tbc FILE and --wt103 FILE, or any text as --corpus NAME=FILE"),
			Hint: "WikiText-103 is at " + wikiText + "; the Toronto Book Corpus is your own file"}
	}
	all := append(slices.Clone(o.corpora.List), o.references.List...)
	for i, c := range all {
		if slices.ContainsFunc(all[:i], func(d cli.Corpus) bool { return d.Name == c.Name }) {
			return cli.Usagef("two corpora are called %q: give each its own name", c.Name)
		}
	}
	return nil
}

// openCorpora reads the texts and warns of lines that they leave out.
func (o *evalOptions) openCorpora() ([]*corpus.Corpus, error) {
	var corpora []*corpus.Corpus
	read := func(list []cli.Corpus, reference bool) error {
		for _, f := range list {
			c, err := corpus.Read(f.Name, f.File, nil)
			if err != nil {
				hint := ""
				switch {
				case errors.Is(err, os.ErrNotExist) && f.Name == "wt103":
					hint = "WikiText-103 is at " + wikiText
				case errors.Is(err, os.ErrNotExist) && f.Name == "tbc":
					hint = "the Toronto Book Corpus is your own file: see infill eval --help"
				}
				return &cli.Failure{Err: err, Hint: hint}
			}
			for _, line := range c.LeftOut() {
				o.Warn(o.streams, "corpus %s: %s", c.Name, line)
			}
			if c.Path, err = filepath.Abs(f.File); err != nil {
				return err
			}
			c.Reference = reference
			corpora = append(corpora, c)
		}
		return nil
	}
	if err := read(o.corpora.List, false); err != nil {
		return nil, err
	}
	return corpora, read(o.references.List, true)
}

// openModels opens the models, which load when they are first run.
func (o *evalOptions) openModels() ([]*infill.Filler, error) {
	var list []*infill.Filler
	for _, name := range o.Models {
		of := o.ModelOptions
		of.Model = name
		filler, err := of.Open(o.streams)
		if err != nil {
			return nil, err
		}
		list = append(list, filler)
	}
	return list, nil
}

func run(ctx context.Context, o *evalOptions) error {
	corpora, err := cli.Interruptible(ctx, o.openCorpora)
	if err != nil {
		return err
	}
	fillers, err := o.openModels()
	if err != nil {
		return err
	}
	threads := o.Threads
	if threads == 0 {
		threads = runtime.GOMAXPROCS(0)
	}
	bar := cli.NewBar(o.streams, o.Quiet, true)
	defer bar.Clear()
	results, err := eval.Run(ctx, eval.Options{
		Dir: o.Out, Config: o.config, Models: fillers, Corpora: corpora, Threads: threads,
		Device: o.Device, Jobs: o.Jobs,
		Observe: func(step eval.Progress) {
			// A fill counts a thousand, so that the bar moves within one.
			const unit = 1000
			done := step.Done*unit + unit*step.Step/max(1, step.Steps)
			bar.Tell(int64(done), int64(step.Total*unit), func() string { return describe(step, len(fillers)) })
		},
		Note: func(text string) { bar.Clear(); o.Warn(o.streams, "%s", text) },
	})
	bar.Clear()
	var changed *journal.ChangedError
	switch {
	case err != nil && ctx.Err() != nil:
		if !o.Quiet {
			fmt.Fprintf(o.streams.Err, "infill: what is done stays in %s; the same command goes on with it\n",
				cli.OneLine(o.Out))
		}
		return ctx.Err()
	case errors.As(err, &changed):
		return &cli.UsageError{Err: err}
	case err != nil:
		return cli.OptionError(err)
	}
	return printEval(o.streams, o.table, o.Out, results, o.Quiet)
}

// printEval prints a table and where the rest is.
func printEval(s *terminal.Streams, o tableOptions, dir string, r *eval.Results, quiet bool) error {
	for _, w := range r.Warnings {
		cli.Warn(s, quiet, "%s", w)
	}
	t := r.Table(o.set)
	var text strings.Builder
	switch o.format {
	case "json":
		return cli.WriteJSON(s.Out, t)
	case "csv":
		return cli.WriteCSV(s.Out, t.Rows())
	case "markdown":
		for _, grid := range t.Grids() {
			text.WriteString(markdown(grid) + "\n")
		}
		text.WriteString(strings.Join(append(t.Notes, "signature `"+t.Signature+"`"), "\n\n") + "\n")
		_, err := io.WriteString(s.Out, text.String())
		return err
	}
	for _, grid := range t.Grids() {
		for _, block := range blocks(grid, s.Width) {
			text.WriteString(cli.RenderTable(s.Width, block[0], block[1:], 0) + "\n")
		}
	}
	text.WriteString(cli.Notes(s.Width, append(t.Notes, "signature "+r.Signature, "folder "+dir)...))
	_, err := io.WriteString(s.Styled(), text.String())
	return err
}

// markdown writes a table for pages.
func markdown(grid [][]string) string {
	var text strings.Builder
	clean := strings.NewReplacer("|", `\|`, "<", "&lt;")
	for i, row := range grid {
		for _, cell := range row {
			if number, interval, ok := strings.Cut(cell, "\n"); ok {
				cell = number + " (" + interval + ")"
			}
			text.WriteString("| " + clean.Replace(cell) + " ")
		}
		text.WriteString("|\n")
		if i == 0 {
			text.WriteString("| --- |" + strings.Repeat(" ---: |", len(row)-1) + "\n")
		}
	}
	return text.String()
}

// blocks cuts a table into several that fit a width, 0 for none, each with the first column.
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
		to, total := from+1, widest(0)+widest(from)
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

func newCmdEvalShow(s *terminal.Streams) *cobra.Command {
	quiet := false
	var table tableOptions
	cmd := &cobra.Command{
		Use:   "show DIR",
		Short: "Print the table of a run that is done",
		Args:  cli.OneArgument("one folder is shown", "infill eval show DIR"),
		RunE: func(_ *cobra.Command, args []string) error {
			results, err := eval.ReadResults(args[0])
			if err != nil {
				return err
			}
			return printEval(s, table, args[0], results, quiet)
		},
	}
	cmd.Flags().SortFlags = false
	cmd.Flags().BoolVarP(&quiet, "quiet", "q", false, "no warnings")
	table.register(cmd)
	return cmd
}

// describe says in one line where a run is.
func describe(step eval.Progress, models int) string {
	if step.Scoring {
		return fmt.Sprintf("all %d chains of %d sentences are done: scoring", step.Total*step.Chains, step.Sentences)
	}
	text := fmt.Sprintf("sentence %d of %d, %d of %d chains", step.Sentence+1, step.Sentences, step.Done*step.Chains,
		step.Total*step.Chains)
	if rate := step.ChainsPerSecond; rate >= 10 {
		text += fmt.Sprintf(" (%.0f/s)", rate)
	} else if rate > 0 {
		text += fmt.Sprintf(" (%.1f/s)", rate)
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
