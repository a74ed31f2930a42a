package main

import (
	"bytes"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/charmbracelet/x/ansi"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"infill/cmd/infill/internal/terminal"
	"infill/infill"
	"infill/samplers"
	"infill/samplers/lab"
)

// labOptions are the flags of every experiment.
type labOptions struct {
	streams   *terminal.Streams
	format    string
	output    string
	plots     string
	noTimes   bool
	quiet     bool
	seedGiven bool
	preset    string
	lab.Options

	// problem makes the target of a comparison; nil for a preset.
	problem func(ctx context.Context, o *labOptions) (*lab.Problem, error)
}

func labFormats() []string { return []string{"text", "json", "csv"} }

const labLong = `Compare samplers on distributions that are known exactly: how fast the running
means come to the exact ones (log RMSE), how many independent draws the steps are
worth (effective sample size), how often proposals are accepted, how many slots
move, and what all that costs in evaluations of the target and in seconds.

--samplers takes a list: a name, with settings behind a colon, as
gibbs,dmala:step-size=0.4,balance=ratio,hamming-ball:block=10,radius=1, or all for
every sampler that suits the target. A sampler's settings are listed where one is
refused; steps is one of all of them.

Equal steps, equal evaluations and equal seconds are different comparisons; all
three are shown. Every number but the seconds is the same for the same seed.`

// newCmdLab makes the command with one command for each target below it.
func newCmdLab(s *terminal.Streams, runF func(context.Context, *labOptions) error) *cobra.Command {
	o := newLabOptions(s)
	var presets strings.Builder
	for _, p := range lab.Presets() {
		fmt.Fprintf(&presets, "\n\n  %s: %s\n      %s", p.Name, p.Title, strings.ReplaceAll(ansi.Wrap(p.Setting, 74, ""), "\n", "\n      "))
	}
	cmd := &cobra.Command{
		Use:   "lab [TARGET]",
		Short: "Compare samplers on distributions that are known exactly",
		Long: labLong + `

With --preset instead of a target the settings of a figure are repeated; --chains
and --steps make it shorter or longer. Presets:` + presets.String(),
		Example: `  $ infill lab ising --samplers gibbs,gwg,dula:step-size=0.4,dmala:step-size=0.8

  # every sampler that suits, tuned in a warm-up, with plots
  $ infill lab potts --samplers all --warm-up 500 -o potts

  # a figure of the discrete Langevin paper
  $ infill lab --preset dlp-figure-3 -o figure-3`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.preset == "" {
				return &usageError{errors.New("no target: name one, or give --preset"), "infill lab ising, or infill lab --help"}
			}
			return o.start(cmd, runF)
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	cmd.Flags().SortFlags = false
	addChoice(cmd, &o.preset, "preset", "", lab.PresetNames(), "repeat the settings of a figure")
	o.Chains, o.Steps = 0, 0
	cmd.Flags().Var(whole{&o.Chains}, "chains", "chains of each sampler; 0 is the preset's own")
	cmd.Flags().Var(whole{&o.Steps}, "steps", "steps of each chain; 0 is the preset's own")
	o.register(cmd)
	cmd.AddCommand(newCmdLabIsing(s, runF), newCmdLabPotts(s, runF), newCmdLabRBM(s, runF), newCmdLabTable(s, runF))
	return cmd
}

func newLabOptions(s *terminal.Streams) *labOptions {
	return &labOptions{streams: s, format: labFormats()[0], plots: lab.PlotFormats()[0], Options: lab.DefaultOptions()}
}

// register defines the flags that presets share with comparisons.
func (o *labOptions) register(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.Var(seed{&o.Seed, &o.seedGiven}, "seed", "start of all random numbers; drawn and printed when not given")
	flags.StringVarP(&o.output, "output", "o", "", "also write report.json and plots to the folder `DIR`")
	addChoice(cmd, &o.plots, "plots", "", lab.PlotFormats(), "form of the plots")
	addChoice(cmd, &o.format, "format", "", labFormats(), "form of the result")
	flags.BoolVar(&o.noTimes, "no-times", false, "leave out what depends on the clock, so that equal seeds give equal bytes")
	flags.BoolVarP(&o.quiet, "quiet", "q", false, "no progress, no warnings")
}

// newCmdLabTarget makes the command of one target, whose own flags add defines.
func newCmdLabTarget(s *terminal.Streams, runF func(context.Context, *labOptions) error, name, short, long string,
	add func(cmd *cobra.Command), problem func(ctx context.Context, o *labOptions) (*lab.Problem, error)) *cobra.Command {
	o := newLabOptions(s)
	o.problem = problem
	cmd := &cobra.Command{
		Use:   name,
		Short: short,
		Long:  long + "\n\n" + labLong,
		Args:  noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return o.start(cmd, runF)
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.Var(specs{&o.Samplers}, "samplers", "samplers to compare, or all")
	complete(cmd, "samplers", append([]string{lab.All}, samplers.Names()...))
	flags.Var(whole{&o.Chains}, "chains", "chains of each sampler")
	flags.Var(whole{&o.Steps}, "steps", "measured steps of each chain")
	flags.Var(whole{&o.WarmUp}, "warm-up", "steps before, which tune the samplers without a step size or radius of their own")
	flags.Var(decimal{&o.Discard, "", "X"}, "discard", "first part of the steps that the effective sample size leaves out")
	addChoice(cmd, &o.Initial, "initial", "", lab.Initials(), "where chains start: each slot uniformly, or by the target without interactions")
	add(cmd)
	o.register(cmd)
	return cmd
}

// addTruth defines how exact means are found.
func addTruth(cmd *cobra.Command, t *lab.TruthOptions) {
	t.Method = lab.Truths()[0]
	addChoice(cmd, &t.Method, "truth", "", lab.Truths(), "how the exact means are found: exactly, or by a long run")
	cmd.Flags().Var(whole{&t.Sweeps}, "truth-sweeps", "sweeps of each of the 16 chains of a long run; 0 is 4000")
}

func newCmdLabIsing(s *terminal.Streams, runF func(context.Context, *labOptions) error) *cobra.Command {
	target := lab.DefaultIsing()
	return newCmdLabTarget(s, runF, "ising", "Samplers on an Ising model",
		"Compare samplers on an Ising model on a torus, U = a Σ_i Σ_k s_i s_k + b Σ_i s_i with\ns = ±1, where the double sum counts every edge twice, as in the papers.",
		func(cmd *cobra.Command) {
			cmd.Flags().Var(size{&target.Rows, &target.Columns}, "size", "rows and columns of the lattice")
			cmd.Flags().Var(decimal{&target.Coupling, "", "A"}, "coupling", "a; negative is allowed")
			cmd.Flags().Var(decimal{&target.Field, "", "B"}, "field", "b")
			addTruth(cmd, &target.Truth)
		},
		func(ctx context.Context, o *labOptions) (*lab.Problem, error) {
			target.Truth.Seed = o.Seed
			return lab.NewIsing(ctx, target)
		})
}

func newCmdLabPotts(s *terminal.Streams, runF func(context.Context, *labOptions) error) *cobra.Command {
	target := lab.DefaultPotts()
	states := 0
	var flags *pflag.FlagSet
	return newCmdLabTarget(s, runF, "potts", "Samplers on a Potts model",
		"Compare samplers on a Potts model on a torus, U = J Σ_edges [θ_i = θ_k] + Σ_i h[θ_i],\nevery edge once.",
		func(cmd *cobra.Command) {
			cmd.Flags().Var(size{&target.Rows, &target.Columns}, "size", "rows and columns of the lattice")
			cmd.Flags().Var(decimal{&target.Coupling, "", "J"}, "coupling", "J; negative is allowed")
			cmd.Flags().Var(decimalList{&target.Field}, "field", "h, a value for each state")
			cmd.Flags().Var(whole{&states}, "states", "instead of --field: that many states without a field")
			addTruth(cmd, &target.Truth)
			flags = cmd.Flags()
		},
		func(ctx context.Context, o *labOptions) (*lab.Problem, error) {
			if flags.Changed("states") {
				if flags.Changed("field") {
					return nil, &usageError{errors.New("--field and --states exclude each other: give one"), ""}
				}
				// A number that cannot be is refused with its target.
				target.Field = make([]float64, min(max(states, 0), 1<<10))
			}
			target.Truth.Seed = o.Seed
			return lab.NewPotts(ctx, target)
		})
}

func newCmdLabTable(s *terminal.Streams, runF func(context.Context, *labOptions) error) *cobra.Command {
	target := lab.DefaultTable()
	given := false
	return newCmdLabTarget(s, runF, "table", "Samplers on a random table",
		"Compare samplers on a table of random energies, one for each state. Errors of the\ngradient and of the conditionals make it as unkind as a language model: proposals\nthen see estimates only, and the conditionals belong to no joint distribution.",
		func(cmd *cobra.Command) {
			cmd.Flags().Var(wholeList{&target.Categories}, "categories", "number of categories of each slot")
			cmd.Flags().Var(decimal{&target.Scale, "", "X"}, "scale", "standard deviation of the energies, in nats")
			cmd.Flags().Var(decimal{&target.GradientError, "", "X"}, "gradient-error", "standard deviation of the gradient's error")
			cmd.Flags().Var(decimal{&target.ConditionalError, "", "X"}, "conditional-error", "standard deviation of the conditionals' energies from the others")
			cmd.Flags().Var(whole{&target.Terms}, "terms", "terms of the energy, for stochastic gradients")
			cmd.Flags().Var(seed{&target.Seed, &given}, "target-seed", "seed of the energies; 1 when not given")
		},
		func(ctx context.Context, _ *labOptions) (*lab.Problem, error) { return lab.NewTable(ctx, target) })
}

func newCmdLabRBM(s *terminal.Streams, runF func(context.Context, *labOptions) error) *cobra.Command {
	target := lab.DefaultRBM()
	given := false
	return newCmdLabTarget(s, runF, "rbm", "Samplers on a restricted Boltzmann machine",
		"Compare samplers on a restricted Boltzmann machine, trained here on bars and stripes\nby contrastive divergence, or random. The chains' states are also compared with\nreference draws, by the maximum mean discrepancy (MMD).",
		func(cmd *cobra.Command) {
			addChoice(cmd, &target.Data, "data", "", lab.RBMData(), "what the machine is trained on; none draws random weights")
			flags := cmd.Flags()
			flags.Var(whole{&target.Side}, "side", "the images have N × N pixels, the visible units")
			flags.Var(whole{&target.Hidden}, "hidden", "hidden units")
			flags.Var(whole{&target.Visible}, "visible", "visible units of random weights")
			flags.Var(decimal{&target.Scale, "", "X"}, "scale", "standard deviation of random weights")
			flags.Var(whole{&target.Training.DivergenceSteps}, "divergence-steps", "block Gibbs steps of contrastive divergence")
			flags.Var(whole{&target.Training.Updates}, "updates", "updates of the training")
			flags.Var(whole{&target.Training.Batch}, "batch", "images of each update")
			flags.Var(decimal{&target.Training.LearningRate, "", "X"}, "learning-rate", "of Adam")
			flags.Var(seed{&target.Seed, &given}, "target-seed", "seed of the training or of the weights; 1 when not given")
			addChoice(cmd, &target.Reference, "reference", "", append([]string{auto}, lab.References()...), "what MMD is measured from; auto is exact where possible")
			target.Reference = auto
			flags.Var(whole{&target.ReferenceSamples}, "reference-samples", "states of the reference")
			flags.Var(whole{&target.ReferenceSteps}, "reference-steps", "block Gibbs steps behind each state of the reference")
			addTruth(cmd, &target.Truth)
		},
		func(ctx context.Context, o *labOptions) (*lab.Problem, error) {
			if target.Reference == auto {
				target.Reference = ""
			}
			target.Truth.Seed = o.Seed
			return lab.NewRBM(ctx, target)
		})
}

// specs is a list of samplers.
type specs struct{ value *[]lab.Spec }

var _ pflag.Value = specs{}

func (v specs) Set(text string) error {
	list, err := lab.ParseSpecs(text)
	if err != nil {
		// pflag's own frame would quote the whole list before the reason.
		return labReason{err}
	}
	*v.value = list
	return nil
}

func (v specs) String() string {
	if v.value == nil {
		return ""
	}
	var labels []string
	for _, s := range *v.value {
		labels = append(labels, s.Label)
	}
	return strings.Join(labels, ",")
}

func (v specs) Type() string { return "NAME[:SETTING=X,...],..." }

// labReason completes the sentence `"x" is not ...`.
type labReason struct{ err error }

func (r labReason) Error() string {
	return "a list of samplers: " + strings.TrimPrefix(r.err.Error(), "samplers: ")
}

// size is the two sides of a lattice.
type size struct{ rows, columns *int }

var _ pflag.Value = size{}

func (v size) Set(text string) error {
	first, second, two := strings.Cut(text, "x")
	if !two {
		second = first
	}
	rows, err := strconv.Atoi(first)
	columns, also := strconv.Atoi(second)
	if err != nil || also != nil {
		return errors.New("a size as 5x5, or 5 for both sides")
	}
	*v.rows, *v.columns = rows, columns
	return nil
}

func (v size) String() string {
	if v.rows == nil {
		return ""
	}
	return fmt.Sprintf("%dx%d", *v.rows, *v.columns)
}

func (v size) Type() string { return "ROWSxCOLUMNS" }

// decimalList is numbers with commas between them.
type decimalList struct{ value *[]float64 }

var _ pflag.Value = decimalList{}

func (v decimalList) Set(text string) error {
	var list []float64
	for _, word := range strings.Split(text, ",") {
		x, err := strconv.ParseFloat(strings.TrimSpace(word), 64)
		if err != nil {
			return errors.New("numbers with commas between them")
		}
		list = append(list, x)
	}
	*v.value = list
	return nil
}

func (v decimalList) String() string {
	if v.value == nil {
		return ""
	}
	texts := make([]string, len(*v.value))
	for i, x := range *v.value {
		texts[i] = strconv.FormatFloat(x, 'g', -1, 64)
	}
	return strings.Join(texts, ",")
}

func (v decimalList) Type() string { return "X,X,..." }

// wholeList is whole numbers with commas between them.
type wholeList struct{ value *[]int }

var _ pflag.Value = wholeList{}

func (v wholeList) Set(text string) error {
	var list []int
	for _, word := range strings.Split(text, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(word))
		if err != nil {
			return errors.New("whole numbers with commas between them")
		}
		list = append(list, n)
	}
	*v.value = list
	return nil
}

func (v wholeList) String() string {
	if v.value == nil {
		return ""
	}
	return joinWholes(*v.value)
}

func (v wholeList) Type() string { return "N,N,..." }

// labError gives a refused option the form of a flag's error; other errors pass.
func labError(err error) error {
	var option *lab.OptionError
	if errors.As(err, &option) {
		return &usageError{fmt.Errorf("--%s", option.Error()), ""}
	}
	return err
}

func (o *labOptions) start(cmd *cobra.Command, runF func(context.Context, *labOptions) error) error {
	if runF != nil {
		return runF(cmd.Context(), o)
	}
	return labRun(cmd.Context(), o)
}

// labRun runs an experiment and prints it.
func labRun(ctx context.Context, o *labOptions) (err error) {
	if !o.seedGiven {
		if o.Seed, err = infill.NewSeed(); err != nil {
			return err
		}
	}
	// Seconds are of one thread, so that kernels that spread large batches
	// over the cores are compared with those that do not.
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	bar := newProgress(o.streams, o.quiet)
	defer bar.clear()
	o.Observe = func(p lab.Progress) { bar.observe(infill.Progress{Step: p.Step, Steps: p.Steps}) }
	o.Version = infill.Version()
	report, err := o.report(ctx)
	bar.clear()
	if err != nil {
		return labError(err)
	}
	if o.noTimes {
		report.WithoutTimes()
	}
	if !o.quiet {
		for _, run := range report.Runs {
			for _, w := range run.Warnings() {
				fmt.Fprintf(o.streams.Err, "infill: warning: %s\n", oneLine(w))
			}
		}
	}
	if o.output != "" {
		paths, err := report.Write(o.output, o.plots)
		if err != nil {
			return fmt.Errorf("write to %s: %w", o.output, err)
		}
		if !o.quiet {
			fmt.Fprintf(o.streams.Err, "infill: wrote %s to %s\n", counted(len(paths), "file"), oneLine(o.output))
		}
	}
	return printLab(o.streams, o.format, report)
}

func (o *labOptions) report(ctx context.Context) (*lab.Report, error) {
	if o.preset != "" {
		return lab.RunPreset(ctx, o.preset, lab.Overrides{Chains: o.Chains, Steps: o.Steps, Seed: o.Seed, Version: o.Version, Observe: o.Observe})
	}
	if err := o.Options.Check(); err != nil {
		return nil, err
	}
	p, err := o.problem(ctx, o)
	if err != nil {
		return nil, err
	}
	run, err := lab.Compare(ctx, p, o.Options)
	if err != nil {
		return nil, err
	}
	return lab.NewReport(run), nil
}

func printLab(s *terminal.Streams, format string, r *lab.Report) error {
	switch format {
	case "json":
		text, err := r.JSON()
		if err != nil {
			return err
		}
		_, err = s.Out.Write(text)
		return err
	case "csv":
		return printLabCSV(s.Out, r)
	}
	p := labPrinter{width: s.Width}
	for _, curve := range r.Bias {
		p.bias(curve)
	}
	for _, run := range r.Runs {
		p.run(run)
	}
	_, err := io.WriteString(s.Styled(), p.text.String())
	return err
}

// labPrinter writes for people.
type labPrinter struct {
	text  strings.Builder
	width int
}

func (p *labPrinter) heading(text string) {
	if p.text.Len() > 0 {
		p.text.WriteString("\n")
	}
	p.text.WriteString(p.wrap(text) + "\n\n")
}

func (p *labPrinter) wrap(text string) string {
	if p.width == 0 {
		return text
	}
	return ansi.Wrap(text, p.width, "")
}

func (p *labPrinter) rest(format string, args ...any) {
	for _, line := range strings.Split(p.wrap(fmt.Sprintf(format, args...)), "\n") {
		p.text.WriteString(restStyle().Styled(line) + "\n")
	}
}

func (p *labPrinter) bias(c *lab.BiasCurve) {
	p.heading(c.Title)
	variable, _, _ := strings.Cut(c.Variable, " (")
	headers := []string{variable, "‖π_α - π‖₁", "observed", "± noise", "bound 5.1", "~ e^(-1/2α)"}
	if c.Slope == nil {
		// The theorem and its rate are of step sizes.
		headers = headers[:4]
	}
	var rows [][]string
	for _, b := range c.Points {
		row := []string{strconv.FormatFloat(b.X, 'g', 3, 64), scientific(&b.Exact), scientific(b.Observed), scientific(b.Noise), scientific(b.Bound), scientific(b.Rate)}
		rows = append(rows, row[:len(headers)])
	}
	p.text.WriteString(renderTable(p.width, headers, rows, 0))
	p.text.WriteString("\n")
	if c.Slope != nil {
		p.rest("slope of ln bias against -1/(2α) at small α: %.3f", *c.Slope)
	}
	p.rest("%s, observed over %s × %s", c.Variable, counted(c.Chains, "chain"), counted(c.Steps, "step"))
}

func scientific(x *float64) string {
	switch {
	case x == nil:
		return ""
	case *x < 1e-13:
		return "0" // rounding
	}
	return strconv.FormatFloat(*x, 'g', 3, 64)
}

func (p *labPrinter) run(run *lab.Run) {
	title := run.Title
	if title == "" {
		title = "Samplers on " + run.Kind
	}
	for _, parameter := range run.Parameters {
		title += ", " + parameter.Name + " " + parameter.Value
	}
	p.heading(title)

	var moves, worth [][]string
	timed := run.Comparison.Seconds != nil
	for _, r := range run.Samplers {
		step := ""
		if r.StepSize != nil {
			step = strconv.FormatFloat(*r.StepSize, 'g', 3, 64)
		}
		exact := "no"
		if r.Exact {
			exact = "yes"
		}
		acceptance := "1"
		if r.Acceptance < 1 {
			acceptance = withError("%.3f", r.Acceptance, r.AcceptanceStandardError)
		}
		moves = append(moves, []string{
			r.Sampler, exact, step, acceptance,
			fmt.Sprintf("%.2f", r.Proposed), withError("%.2f", r.Changed, r.ChangedStandardError), fmt.Sprintf("%.1f", r.Evaluations.PerStep),
		})
		row := []string{r.Sampler, "", "", "", ""}
		if r.ESS != nil {
			row[1] = withError("%.1f", 1000*r.ESS.PerStep, times(r.ESS.StandardError, 1000/float64(r.ESS.Kept)))
			row[2] = withError("%.1f", 1000*r.ESS.PerEvaluation, times(r.ESS.StandardError, 1000*r.ESS.PerEvaluation/r.ESS.Mean))
			if r.ESS.RHat != nil {
				row[4] = fmt.Sprintf("%.2f", *r.ESS.RHat)
			}
			row[3] = fmt.Sprintf("%.1f to %.1f", 1000*r.ESS.Min/float64(r.ESS.Kept), 1000*r.ESS.Max/float64(r.ESS.Kept))
		}
		if timed {
			second := ""
			if r.ESS != nil {
				second = withError("%.0f", r.Timing.ESSPerSecond, r.Timing.ESSPerSecondStandardError)
			}
			row = append(row, second, fmt.Sprintf("%.2f s", r.Timing.Seconds))
		}
		worth = append(worth, row)
	}
	headers := []string{"sampler", "ESS/1000 steps", "/1000 evaluations", "of slots", "R-hat"}
	if timed {
		headers = append(headers, "ESS/s", "time")
	}
	narrow := p.width > 0 && p.width < 100
	if narrow {
		headers = slices.Delete(headers, 3, 4)
		for i := range worth {
			worth[i] = slices.Delete(worth[i], 3, 4)
		}
	}
	p.text.WriteString(renderTable(p.width, []string{"sampler", "exact", "step size", "acceptance", "proposed", "changed", "evaluations"}, moves, 0))
	p.text.WriteString("\n")
	p.rest("acceptance: of proposals; proposed, changed, evaluations: slots and states a step of each chain")
	p.text.WriteString("\n")
	p.text.WriteString(renderTable(p.width, headers, worth, 0))
	p.text.WriteString("\n")
	note := "ESS: effective sample size, mean over observables; R-hat: the largest, near 1 where chains agree"
	if !narrow {
		note += "; of slots: lowest to highest per 1000 steps"
	}
	if slices.ContainsFunc(run.Samplers, func(r *lab.Result) bool { return !r.Exact }) {
		note += "; that of a sampler that is not exact is of its own law"
	}
	if timed {
		note += "; seconds: processor time of one thread, one run, noisy"
	}
	p.rest("%s", note)
	p.text.WriteString("\n")

	headers = []string{"log RMSE", fmt.Sprintf("at %s", counted(run.Comparison.Steps, "step")), fmt.Sprintf("at %.4g evaluations", run.Comparison.Evaluations)}
	if timed {
		headers = append(headers, fmt.Sprintf("at %.2g s", *run.Comparison.Seconds))
	}
	p.budgets(run, headers, func(r *lab.Reached) string { return withError("%.2f", float64(r.LogRMSE), r.StandardError) })
	if run.Reference != nil {
		headers[0] = "log MMD²"
		p.budgets(run, headers, func(r *lab.Reached) string {
			return withError("%.2f", math.Log(*r.MMD2), times(r.MMD2StandardError, 1 / *r.MMD2))
		})
	}
	if run.Floor != nil {
		p.rest("log MMD² from %d states by %s; draws of their own law: %.2f ± %.2f between %d sets", run.Reference.Samples, run.Reference.Method,
			math.Log(run.Floor.MMD2), run.Floor.StandardDeviation/run.Floor.MMD2, run.Floor.Sets)
		if a := run.Reference.AgainstExact; a != nil {
			p.rest("the reference itself, from as many exact draws: log MMD² %.2f", math.Log(*a))
		}
	}
	if t := run.Training; t != nil && t.Mass != nil {
		p.rest("training: %.1f %% of the probability on the %d patterns, mean log-likelihood %.2f (best possible %.2f)",
			100**t.Mass, t.Patterns, *t.LogLikelihood, -math.Log(float64(t.Patterns)))
	}
	p.rest("exact means: %s", run.Truth.Method)
	p.rest("± is a standard error between %s; seed %d", counted(run.Chains, "chain"), run.Seed)
	for _, l := range run.LeftOut {
		p.rest("left out: %s", l.Reason)
	}
}

// times scales an error that may be unknown.
func times(x *float64, factor float64) *float64 {
	if x == nil {
		return nil
	}
	scaled := *x * factor
	return &scaled
}

// budgets writes one number at the budgets that the headers name.
func (p *labPrinter) budgets(run *lab.Run, headers []string, number func(*lab.Reached) string) {
	var rows [][]string
	for _, b := range run.Comparison.Rows {
		row := []string{b.Sampler}
		for _, r := range []*lab.Reached{b.AtSteps, b.AtEvaluations, b.AtSeconds}[:len(headers)-1] {
			text := ""
			if r != nil {
				text = number(r)
			}
			row = append(row, text)
		}
		rows = append(rows, row)
	}
	p.text.WriteString(renderTable(p.width, headers, rows, 0))
	p.text.WriteString("\n")
}

// printLabCSV writes a row for each sampler, or for each point of a bias.
func printLabCSV(out io.Writer, r *lab.Report) error {
	var b bytes.Buffer
	w := csv.NewWriter(&b)
	number := func(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) }
	optional := func(x *float64) string {
		if x == nil {
			return ""
		}
		return number(*x)
	}
	var rows [][]string
	if len(r.Bias) > 0 {
		rows = append(rows, []string{"title", "variable", "x", "exact", "bound", "bound_spins", "rate", "observed", "noise"})
	}
	for _, c := range r.Bias {
		for _, p := range c.Points {
			rows = append(rows, []string{c.Title, c.Variable, number(p.X), number(p.Exact), optional(p.Bound), optional(p.BoundSpins), optional(p.Rate), optional(p.Observed), optional(p.Noise)})
		}
	}
	if len(r.Runs) > 0 {
		rows = append(rows, []string{
			"run", "sampler", "name", "exact", "step_size", "chains", "steps", "acceptance_rate", "acceptance_standard_error",
			"proposed_slots_per_step", "changed_slots_per_step", "changed_slots_standard_error", "energies", "gradients", "conditionals",
			"log_rmse", "log_rmse_standard_error", "ess", "ess_standard_error", "ess_kept_steps", "r_hat", "mmd2", "mmd2_standard_error",
			"seconds", "ess_per_second", "ess_per_second_standard_error", "signature",
		})
	}
	for i, run := range r.Runs {
		for _, s := range run.Samplers {
			last := s.Curve[len(s.Curve)-1]
			row := []string{
				strconv.Itoa(i + 1), s.Sampler, s.Name, strconv.FormatBool(s.Exact), optional(s.StepSize), strconv.Itoa(run.Chains), strconv.Itoa(s.Steps),
				number(s.Acceptance), optional(s.AcceptanceStandardError), number(s.Proposed), number(s.Changed), optional(s.ChangedStandardError),
				strconv.FormatInt(s.Evaluations.Energies, 10), strconv.FormatInt(s.Evaluations.Gradients, 10), strconv.FormatInt(s.Evaluations.Conditionals, 10),
				number(float64(s.LogRMSE)), optional(s.LogRMSEStandardError),
			}
			if s.ESS == nil {
				row = append(row, "", "", "", "")
			} else {
				row = append(row, number(s.ESS.Mean), optional(s.ESS.StandardError), strconv.Itoa(s.ESS.Kept), optional(s.ESS.RHat))
			}
			row = append(row, optional(last.MMD2), optional(last.MMD2StandardError))
			if s.Timing == nil {
				row = append(row, "", "", "")
			} else {
				row = append(row, number(s.Timing.Seconds), number(s.Timing.ESSPerSecond), optional(s.Timing.ESSPerSecondStandardError))
			}
			rows = append(rows, append(row, run.Signature))
		}
	}
	if err := w.WriteAll(rows); err != nil {
		return err
	}
	_, err := out.Write(b.Bytes())
	return err
}
