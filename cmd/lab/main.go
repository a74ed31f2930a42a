// Lab is the laboratory. It compares samplers on distributions that are known exactly, repeats figures of the papers,
// fits independent slots by ARM, compares language models, and writes the measured tables of the documentation:
//
//	go run ./cmd/lab ising --samplers gibbs,gwg,dmala:step-size=0.8
//	go run ./cmd/lab --preset dlp-figure-3 -o figure-3
//	go run ./cmd/lab arm ising --size 4x4
//	go run ./cmd/lab learn ising -o learnt
//	go run ./cmd/lab model small-uncased testdata/mini-uncased
//	go run ./cmd/lab calibrate --corpus tales=FILE -o docs/measured/calibration.md
//	go run ./cmd/lab coverage
//	go run ./cmd/lab defaults -o docs/measured/defaults.md
//	go run ./cmd/lab samplers -o docs/measured/samplers.md
//
// The tables take minutes. Times in them are of the machine, and of what else it does.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/schollz/progressbar/v3"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"

	"infill/cmd/lab/internal/lab"
	"infill/infill"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// run is the program; it returns the exit code: 2 for a wrong call.
func run(ctx context.Context, args []string, out, messages io.Writer) int {
	root := newRoot(out, messages)
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	var option *lab.OptionError
	var usage *usageError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &option):
		fmt.Fprintf(messages, "lab: --%v\n", option)
		return 2
	case errors.As(err, &usage):
		fmt.Fprintf(messages, "lab: %v: see --help\n", err)
		return 2
	}
	fmt.Fprintf(messages, "lab: %v\n", err)
	return 1
}

// usageError is a wrong call that is no option of the laboratory.
type usageError struct{ error }

// experiment is what its commands have in common.
type experiment struct {
	out, messages                 io.Writer
	seed                          uint64
	folder, plots, format, preset string
	noTimes, quiet                bool
	compare                       lab.Options
}

// formats lists the forms of a report.
func formats() []string { return []string{"text", "json", "csv"} }

func newRoot(out, messages io.Writer) *cobra.Command {
	e := newExperiment(out, messages)
	var presets strings.Builder
	for _, p := range lab.Presets() {
		fmt.Fprintf(&presets, "\n\n  %s: %s\n      %s", p.Name, p.Title, p.Setting)
	}
	root := &cobra.Command{
		Use: "lab", Short: "Compare samplers on distributions that are known exactly",
		Long: long + "\n\nWith --preset instead of a target the settings of a figure are repeated; --chains\nand " +
			"--steps make it shorter or longer. Presets:" + presets.String(),
		Args: noArguments, SilenceErrors: true, SilenceUsage: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if e.preset == "" {
				return &usageError{errors.New("no target: name one, as in lab ising, or give --preset")}
			}
			return e.run(cmd, func() (outcome, error) { return lab.RunPreset(cmd.Context(), e.preset, e.compare) })
		},
	}
	root.SetOut(out)
	root.SetErr(messages)
	root.SetFlagErrorFunc(flagError)
	root.CompletionOptions.DisableDefaultCmd = true
	e.register(root)
	root.Flags().StringVar(&e.preset, "preset", "", "repeat the settings of the figure `NAME`")
	root.Flags().AddGoFlagSet(e.compare.PresetFlags())
	arm := &cobra.Command{Use: "arm TARGET",
		Short: "Fit independent slots by ARM, and compare its estimates of gradients", Args: noArguments,
		RunE: func(*cobra.Command, []string) error {
			return &usageError{errors.New("no target: name one, as in lab arm ising")}
		}}
	root.AddCommand(newModel(), newCalibrate(), newCoverage(), newAnswers(), arm,
		newTable("defaults", "Write what the defaults of samplers on text were chosen by", writeDefaults),
		newTable("samplers", "Write every sampler's target, cost, exactness and effective draws per second",
			writeSamplers))
	addStudies(root, arm, out, messages)
	for _, k := range lab.Kinds() {
		e := newExperiment(out, messages)
		root.AddCommand(e.target(k))
	}
	return root
}

const long = `Compare samplers on distributions that are known exactly: how fast the running means
come to the exact ones (log RMSE), how many independent draws the steps are worth
(effective sample size), how often proposals are accepted, how many slots move, and
what all that costs in evaluations of the target and in seconds.

A sampler is written NAME:SETTING=VALUE,SETTING=VALUE; steps is a setting of all, and
the name all stands for every sampler that suits the target.

Equal steps, equal evaluations and equal seconds are different comparisons; all three
are shown. Every number but the seconds is the same for the same seed.`

func newExperiment(out, messages io.Writer) *experiment {
	return &experiment{out: out, messages: messages, format: formats()[0], plots: lab.PlotFormats()[0],
		compare: lab.DefaultOptions()}
}

// register defines the flags that all experiments share.
func (e *experiment) register(cmd *cobra.Command) {
	f := cmd.Flags()
	f.SortFlags = false
	f.Uint64Var(&e.seed, "seed", 0, "start of all random numbers; drawn and printed when not given")
	f.StringVarP(&e.folder, "output", "o", "", "also write report.json and plots to the folder `DIR`")
	f.StringVar(&e.plots, "plots", e.plots, "form of the plots: "+strings.Join(lab.PlotFormats(), ", "))
	f.StringVar(&e.format, "format", e.format, "form of the result: "+strings.Join(formats(), ", "))
	f.BoolVar(&e.noTimes, "no-times", false,
		"leave out what depends on the clock, so that equal seeds give equal bytes")
	f.BoolVarP(&e.quiet, "quiet", "q", false, "no progress, no warnings")
}

// target makes the command of a comparison on one kind of target.
func (e *experiment) target(k *lab.Kind) *cobra.Command {
	cmd := &cobra.Command{Use: k.Name, Short: "Samplers on " + k.Title, Long: k.Help + "\n\n" + long, Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return e.run(cmd, func() (outcome, error) {
				p, err := k.Problem(cmd.Context(), e.seed)
				if err != nil {
					return nil, err
				}
				return lab.Compare(cmd.Context(), p, e.compare)
			})
		}}
	cmd.Flags().AddGoFlagSet(e.compare.Flags())
	cmd.Flags().AddGoFlagSet(k.Flags)
	e.register(cmd)
	return cmd
}

// outcome is what an experiment found.
type outcome interface {
	WithoutTimes()
	Warnings() []string
	Write(dir, plots string) ([]string, error)
	Text(width int) string
	JSON() ([]byte, error)
	CSV() ([]byte, error)
}

// run runs an experiment and prints its report.
func (e *experiment) run(cmd *cobra.Command, report func() (outcome, error)) (err error) {
	for _, choice := range []struct {
		flag, value string
		of          []string
	}{{"plots", e.plots, lab.PlotFormats()}, {"format", e.format, formats()}} {
		if !slices.Contains(choice.of, choice.value) {
			return &lab.OptionError{Option: choice.flag,
				Err: fmt.Errorf("%q is not one of %s", choice.value, strings.Join(choice.of, ", "))}
		}
	}
	if !cmd.Flags().Changed("seed") {
		if e.seed, err = infill.NewSeed(); err != nil {
			return err
		}
	}
	e.compare.Seed, e.compare.Version, e.compare.Folder = e.seed, infill.Version(), e.folder
	var bar *progressbar.ProgressBar
	width := 0
	if file, ok := e.out.(*os.File); ok && term.IsTerminal(int(file.Fd())) {
		width, _, _ = term.GetSize(int(file.Fd()))
	}
	if file, ok := e.messages.(*os.File); ok && !e.quiet && term.IsTerminal(int(file.Fd())) {
		bar = progressbar.NewOptions(1, progressbar.OptionSetWriter(file), progressbar.OptionClearOnFinish(),
			progressbar.OptionThrottle(65*time.Millisecond))
		e.compare.Observe = func(p lab.Progress) {
			bar.ChangeMax(p.Steps)
			bar.Describe(p.Sampler)
			_ = bar.Set(p.Step) // a bar that cannot be drawn is no reason to stop
		}
	}
	if e.folder != "" {
		// What cannot be written is better told before the work than after it.
		if err := os.MkdirAll(e.folder, 0o777); err != nil {
			return fmt.Errorf("write to %s: %w", e.folder, err)
		}
	}
	// Seconds are of one thread, so that kernels that spread large batches over
	// the cores are compared with those that do not.
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	r, err := report()
	if bar != nil {
		_ = bar.Clear()
	}
	if err != nil {
		return err
	}
	if e.noTimes {
		r.WithoutTimes()
	}
	if !e.quiet {
		for _, w := range r.Warnings() {
			fmt.Fprintf(e.messages, "lab: warning: %s\n", w)
		}
	}
	if e.folder != "" {
		paths, err := r.Write(e.folder, e.plots)
		if err != nil {
			return fmt.Errorf("write to %s: %w", e.folder, err)
		}
		if !e.quiet {
			fmt.Fprintf(e.messages, "lab: wrote %d files to %s\n", len(paths), e.folder)
		}
	}
	text := []byte(nil)
	switch e.format {
	case "json":
		text, err = r.JSON()
	case "csv":
		text, err = r.CSV()
	default:
		text = []byte(r.Text(width))
	}
	if err != nil {
		return err
	}
	_, err = e.out.Write(text)
	return err
}

func noArguments(cmd *cobra.Command, args []string) error {
	err := cobra.NoArgs(cmd, args)
	if err == nil {
		return nil
	}
	cmd.SuggestionsMinimumDistance = 2
	if meant := cmd.SuggestionsFor(args[0]); len(meant) > 0 {
		err = fmt.Errorf("%w; did you mean %s?", err, strings.Join(meant, " or "))
	}
	return &usageError{err}
}

// flagError says of a flag's value what it should be.
func flagError(_ *cobra.Command, err error) error {
	var invalid *pflag.InvalidValueError
	if errors.As(err, &invalid) {
		wanted := invalid.Unwrap()
		if errors.Is(wanted, strconv.ErrSyntax) || errors.Is(wanted, strconv.ErrRange) {
			wanted = errors.New("a whole number")
		}
		return &lab.OptionError{Option: invalid.GetFlag().Name,
			Err: fmt.Errorf("%q is not %w", invalid.GetValue(), wanted)}
	}
	return &usageError{err}
}
