package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"infill/cmd/infill/internal/terminal"
	"infill/infill"
	"infill/lm"
	"infill/models"
)

// modelOptions are the flags of every command that runs a model.
type modelOptions struct {
	model     string
	device    string
	threads   int
	precision string
	quiet     bool
	verbose   bool
}

// completeModel offers the models that are there, and folders.
func completeModel(cmd *cobra.Command) {
	completions := cobra.FixedCompletions([]string{models.DefaultName}, cobra.ShellCompDirectiveDefault)
	if err := cmd.RegisterFlagCompletionFunc("model", completions); err != nil {
		panic(err) // a slip in the program, as in complete
	}
}

// precisions lists the arithmetics that a model can run in.
func precisions() []string {
	var names []string
	for _, p := range lm.FP32.Values() {
		names = append(names, string(p))
	}
	return names
}

func (o *modelOptions) register(cmd *cobra.Command) {
	o.device, o.precision = devices()[0], precisions()[0]
	flags := cmd.Flags()
	flags.StringVarP(&o.model, "model", "m", models.DefaultName, "`NAME` of a model, or the folder of a bundle")
	completeModel(cmd)
	flags.Var(device{&o.device}, "device", "where the model runs; auto is CUDA where it works, else the CPU, by OpenVINO where that is installed and faster")
	complete(cmd, "device", devices())
	flags.Var(whole{&o.threads}, "threads", "threads of a model call on the CPU; 0 is one per core")
	addChoice(cmd, &o.precision, "precision", "", precisions(), "arithmetic of the model; int8 is faster on the CPU and a little off, so is bf16 on OpenVINO")
	flags.BoolVarP(&o.quiet, "quiet", "q", false, "no progress, no warnings")
	flags.BoolVarP(&o.verbose, "verbose", "v", false, "tell more on standard error: model, device, signature")
}

func (o *modelOptions) validate() error {
	switch {
	case o.threads < 0:
		return &usageError{fmt.Errorf("--threads: %d is not a whole number of 0 (one per core) or more", o.threads), ""}
	case o.quiet && o.verbose:
		return &usageError{fmt.Errorf("--quiet and --verbose exclude each other: give one"), ""}
	}
	return nil
}

// open opens the model, which loads onnxruntime when it is first run.
func (o *modelOptions) open(s *terminal.Streams) (*infill.Filler, error) {
	var tell func(string)
	if o.verbose {
		tell = func(line string) { o.note(s, "%s", line) }
	}
	return infill.Open(infill.OpenOptions{
		Model: o.model, Device: o.device, Threads: o.threads, Precision: lm.Precision(o.precision), Tell: tell,
		FindLibrary: func(ctx context.Context) (string, error) {
			path, err := lm.LocateLibrary(ctx, lm.Precision(o.precision).Device(o.device), fetchProgress(s, o.quiet))
			if err == nil {
				o.note(s, "onnxruntime library %s", path)
			}
			return path, err
		},
		Loaded: func(m infill.Model) {
			o.note(s, "model %s, sha256 %s, onnxruntime %s on %s", m.Name, m.SHA256, m.Runtime, m.Device)
			if m.Note != "" {
				o.note(s, "auto took the CPU: %s", m.Note)
			}
		},
	})
}

// note prints a line for those who asked for more.
func (o *modelOptions) note(s *terminal.Streams, format string, args ...any) {
	if o.verbose {
		fmt.Fprintf(s.Err, "infill: %s\n", oneLine(fmt.Sprintf(format, args...)))
	}
}

// warn prints a line for those who did not ask for silence.
func (o *modelOptions) warn(s *terminal.Streams, format string, args ...any) {
	warn(s, o.quiet, format, args...)
}

// fetchProgress is where fetching the library tells of itself; nil: nowhere.
func fetchProgress(s *terminal.Streams, quiet bool) io.Writer {
	if quiet {
		return nil
	}
	return s.Err
}

// versionOf is a library's version in words.
func versionOf(l lm.Library) string { return cmp.Or(l.Version, "of unknown version") }

// completeModels offers the names of the models that are here.
func completeModels(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	var names []string
	if store, err := models.DefaultStore(); err == nil {
		entries, _ := store.List() // a store that cannot be read has nothing to offer
		for _, e := range entries {
			names = append(names, e.Name)
		}
	}
	return slices.Compact(names), cobra.ShellCompDirectiveNoFileComp
}
