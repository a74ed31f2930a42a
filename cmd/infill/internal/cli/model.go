package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"runtime"
	"slices"

	"github.com/spf13/cobra"

	"infill/cmd/infill/internal/terminal"
	"infill/infill"
	"infill/lm"
	"infill/models"
)

// ModelOptions are the flags of every command that runs a model.
type ModelOptions struct {
	Model     string
	Device    string
	Threads   int
	Precision string
	Lexicon   string
	Quiet     bool
	Verbose   bool
}

// CompleteModel offers the models that are there, and folders.
func CompleteModel(cmd *cobra.Command) {
	completions := cobra.FixedCompletions([]string{models.DefaultName}, cobra.ShellCompDirectiveDefault)
	if err := cmd.RegisterFlagCompletionFunc("model", completions); err != nil {
		panic(err) // a slip in the program, as in complete
	}
}

// Precisions lists the arithmetics that a model can run in.
func Precisions() []string {
	var names []string
	for _, p := range lm.FP32.Values() {
		names = append(names, string(p))
	}
	return names
}

// Register defines the flags.
func (o *ModelOptions) Register(cmd *cobra.Command) {
	o.Device, o.Precision = Devices()[0], Precisions()[0]
	flags := cmd.Flags()
	flags.StringVarP(&o.Model, "model", "m", models.DefaultName, "`NAME` of a model, or the folder of a bundle")
	CompleteModel(cmd)
	flags.Var(device{&o.Device}, "device", "where the model runs; auto is CUDA where it works, else the CPU, by OpenVINO where that is installed and faster")
	Complete(cmd, "device", Devices())
	flags.Var(Whole{&o.Threads}, "threads", "threads of a model call on the CPU; 0 is one per core")
	AddChoice(cmd, &o.Precision, "precision", "", Precisions(), "arithmetic of the model; int8 is faster on the CPU and a little off, so is bf16 on OpenVINO")
	flags.StringVar(&o.Lexicon, "lexicon", "", "`FILE` of the words that exist, one a line, english, or none: fills of several pieces "+
		"that are no such words come later; english for the built-in model, else none")
	flags.BoolVarP(&o.Quiet, "quiet", "q", false, "no progress, no warnings")
	flags.BoolVarP(&o.Verbose, "verbose", "v", false, "tell more on standard error: model, device, signature")
}

// Validate refuses what can be refused before a model is opened.
func (o *ModelOptions) Validate() error {
	switch {
	case o.Threads < 0:
		return &UsageError{fmt.Errorf("--threads: %d is not a whole number of 0 (one per core) or more", o.Threads), ""}
	case o.Threads > lm.MaxThreads():
		return &UsageError{fmt.Errorf("--threads: %d is more than four times the %d processors: give %d or fewer", o.Threads, runtime.NumCPU(), lm.MaxThreads()), ""}
	case o.Quiet && o.Verbose:
		return &UsageError{fmt.Errorf("--quiet and --verbose exclude each other: give one"), ""}
	}
	return nil
}

// Open opens the model, which loads onnxruntime when it is first run.
func (o *ModelOptions) Open(s *terminal.Streams) (*infill.Filler, error) {
	var tell func(string)
	if o.Verbose {
		tell = func(line string) { o.Note(s, "%s", line) }
	}
	return infill.Open(infill.OpenOptions{
		Model: o.Model, Device: o.Device, Threads: o.Threads, Precision: lm.Precision(o.Precision), Lexicon: o.Lexicon,
		Tell: tell,
		FindLibrary: func(ctx context.Context) (string, error) {
			path, err := lm.LocateLibrary(ctx, lm.Precision(o.Precision).Device(o.Device), FetchProgress(s, o.Quiet))
			if err == nil {
				o.Note(s, "onnxruntime library %s", path)
			}
			return path, err
		},
		Loaded: func(m infill.Model) {
			o.Note(s, "model %s, sha256 %s, onnxruntime %s on %s", m.Name, m.SHA256, m.Runtime, m.Device)
			if m.Note != "" {
				o.Note(s, "auto took the CPU: %s", m.Note)
			}
		},
	})
}

// Note prints a line for those who asked for more.
func (o *ModelOptions) Note(s *terminal.Streams, format string, args ...any) {
	if o.Verbose {
		fmt.Fprintf(s.Err, "infill: %s\n", OneLine(fmt.Sprintf(format, args...)))
	}
}

// Warn prints a line for those who did not ask for silence.
func (o *ModelOptions) Warn(s *terminal.Streams, format string, args ...any) {
	Warn(s, o.Quiet, format, args...)
}

// FetchProgress is where fetching the library tells of itself; nil: nowhere.
func FetchProgress(s *terminal.Streams, quiet bool) io.Writer {
	if quiet {
		return nil
	}
	return s.Err
}

// VersionOf is a library's version in words.
func VersionOf(l lm.Library) string { return cmp.Or(l.Version, "of unknown version") }

// CompleteModels offers the names of the models that are here.
func CompleteModels(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	var names []string
	if store, err := models.DefaultStore(); err == nil {
		entries, _ := store.List() // a store that cannot be read has nothing to offer
		for _, e := range entries {
			names = append(names, e.Name)
		}
	}
	return slices.Compact(names), cobra.ShellCompDirectiveNoFileComp
}
