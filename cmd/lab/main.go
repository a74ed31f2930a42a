// Lab is the laboratory. It compares samplers on distributions that are known
// exactly, repeats figures of the papers, and learns models with samplers:
//
//	go run ./cmd/lab ising --samplers gibbs,gwg,dmala:step-size=0.8
//	go run ./cmd/lab --preset dlp-figure-3 -o figure-3
//	go run ./cmd/lab text --samplers all
//
// The tables take minutes. Times in them depend on the machine and its load.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/schollz/progressbar/v3"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"

	"infill/cmd/lab/internal/bits"
	"infill/cmd/lab/internal/chains"
	"infill/cmd/lab/internal/energies"
	"infill/cmd/lab/internal/fills"
	"infill/cmd/lab/internal/lab"
	"infill/infill"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// run returns the exit code: 0, 1 for a failure, 2 for a wrong command line.
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

// usageError is for a wrong command line, but not for an option's value.
type usageError struct{ error }

func newRoot(out, messages io.Writer) *cobra.Command {
	root := newExperiment(chains.NewPreset(), "lab", out, messages)
	root.SilenceErrors = true
	root.SilenceUsage = true
	root.PreRunE = func(cmd *cobra.Command, _ []string) error {
		if !cmd.Flags().Changed("preset") {
			return &usageError{errors.New("no target: name one, as in lab ising, or give --preset")}
		}
		return nil
	}
	root.SetOut(out)
	root.SetErr(messages)
	root.SetFlagErrorFunc(flagError)
	root.CompletionOptions.DisableDefaultCmd = true
	parents := map[string]*cobra.Command{
		"arm": newParent("arm EXPERIMENT", "Compare ARM with other estimators of gradients",
			"no experiment: name one, as in lab arm toy"),
		"learn": newParent("learn MODEL", "Learn a model with each sampler",
			"no model: name one, as in lab learn ising"),
	}
	root.AddCommand(parents["arm"], parents["learn"], newVerdicts(out), newVerify(out))
	for _, s := range papersStudies() {
		first, rest, two := strings.Cut(s.Name, " ")
		if two {
			parents[first].AddCommand(newExperiment(s, rest, out, messages))
		} else {
			root.AddCommand(newExperiment(s, s.Name, out, messages))
		}
	}
	const papers = "papers"
	for _, cmd := range root.Commands() {
		cmd.GroupID = papers
	}
	const own = "infill"
	for _, s := range fills.Studies() {
		cmd := newExperiment(s, s.Name, out, messages)
		cmd.GroupID = own
		root.AddCommand(cmd)
	}
	root.AddGroup(&cobra.Group{ID: papers, Title: "Samplers, and the papers:"},
		&cobra.Group{ID: own, Title: "infill itself, which no paper asks for:"})
	return root
}

// papersStudies are the papers' experiments, each of minutes by default.
func papersStudies() []*lab.Study {
	return slices.Concat(chains.Studies(), energies.Studies(), bits.Studies())
}

// newParent makes a command that only groups its subcommands.
func newParent(use, short, alone string) *cobra.Command {
	return &cobra.Command{Use: use, Short: short, Args: noArguments,
		RunE: func(*cobra.Command, []string) error { return &usageError{errors.New(alone)} }}
}

const resumes = `

With -o the folder keeps every cell when it is done: after an interruption the same command goes
on there.`

type experiment struct {
	study          *lab.Study
	out, messages  io.Writer
	seed           uint64
	folder         string
	noTimes, quiet bool
}

func newExperiment(s *lab.Study, use string, out, messages io.Writer) *cobra.Command {
	e := &experiment{study: s, out: out, messages: messages}
	cmd := &cobra.Command{Use: use, Short: s.Short, Long: strings.Join(s.Help, "\n\n") + resumes, Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return e.run(cmd) }}
	f := cmd.Flags()
	f.SortFlags = false
	f.AddFlagSet(s.Flags)
	f.Uint64Var(&e.seed, "seed", 0, "start of all random numbers; drawn and printed when not given")
	f.StringVarP(&e.folder, "output", "o", "", "also write report.json, results.csv and plots to the folder `DIR`")
	f.BoolVar(&e.noTimes, "no-times", false,
		"leave out what depends on the clock, so that equal seeds give equal bytes")
	f.BoolVarP(&e.quiet, "quiet", "q", false, "no progress, no warnings")
	return cmd
}

func (e *experiment) run(cmd *cobra.Command) (err error) {
	if !cmd.Flags().Changed("seed") {
		e.seed = uint64(infill.NewSeed())
	}
	o := lab.StudyOptions{Seed: e.seed, Folder: e.folder, Version: version(cmd.Context())}
	var bar *progressbar.ProgressBar
	if file, ok := e.messages.(*os.File); ok && !e.quiet && term.IsTerminal(int(file.Fd())) {
		bar = progressbar.NewOptions(1, progressbar.OptionSetWriter(file), progressbar.OptionClearOnFinish(),
			progressbar.OptionThrottle(65*time.Millisecond))
		o.Observe = func(cell string, done, of int) {
			bar.ChangeMax(of)
			bar.Describe(cell)
			_ = bar.Set(done) // if the bar cannot be drawn, the run continues
		}
	}
	// All kernels run on one thread, so that seconds can be compared: some
	// would spread large batches over the cores.
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	r, err := e.study.Run(cmd.Context(), o)
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
		paths, err := r.Write(e.folder)
		if err != nil {
			return fmt.Errorf("write to %s: %w", e.folder, err)
		}
		if !e.quiet {
			fmt.Fprintf(e.messages, "lab: wrote %d files to %s\n", len(paths), e.folder)
		}
	}
	_, err = io.WriteString(e.out, r.Text())
	return err
}

// version returns the version of the program with its commit. A build that does
// not know its commit, as by go run, is asked for that of the repository in
// which it was started: its sources are there.
func version(ctx context.Context) string {
	own := infill.Version()
	if strings.Contains(own, "+") {
		return own
	}
	commit, err := exec.CommandContext(ctx, "git", "rev-parse", "--short=12", "HEAD").Output()
	if err != nil {
		return own
	}
	changed, err := exec.CommandContext(ctx, "git", "status", "--porcelain", "--untracked-files=no").Output()
	if err != nil {
		return own
	}
	own += "+" + strings.TrimSpace(string(commit))
	if len(changed) > 0 {
		own += ".dirty"
	}
	return own
}

func noArguments(cmd *cobra.Command, args []string) error {
	if err := cobra.NoArgs(cmd, args); err != nil {
		return &usageError{err}
	}
	return nil
}

// flagError says which values the flag takes.
func flagError(_ *cobra.Command, err error) error {
	var invalid *pflag.InvalidValueError
	if errors.As(err, &invalid) {
		return lab.WrongValue(invalid.GetFlag().Name, invalid.GetValue(), invalid.Unwrap())
	}
	return &usageError{err}
}
