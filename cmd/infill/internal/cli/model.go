package cli

import (
	"cmp"
	"context"
	"fmt"
	"runtime"
	"slices"

	"github.com/spf13/cobra"

	"infill/cmd/infill/internal/terminal"
	"infill/infill"
	"infill/lm"
	"infill/models"
	"infill/tokenize"
)

type ModelOptions struct {
	Model   string `option:"model" short:"m" word:"NAME" help:"NAME of a model, or a folder with one"`
	Device  string `option:"device" word:"DEVICE" examples:"auto,cpu,cuda" help:"DEVICE that the model runs on: auto, cpu, cuda or cuda:N; auto is CUDA where it works, else the CPU"`
	Threads int    `option:"threads" help:"cores to use on the CPU, each for a model call; 0 is all"`
	Quiet   bool   `option:"quiet" short:"q" help:"no progress, no warnings"`
	Verbose bool   `option:"verbose" short:"v" help:"tell more on standard error: model, device, signature"`

	typed bool // whether the user was warned of the typing of texts
}

func (o *ModelOptions) Register(cmd *cobra.Command) {
	o.Device = "auto"
	Bind(cmd, o)
	cmd.Flags().Lookup("model").Usage += " (default: " + models.DefaultVariable + ", or the built-in " +
		models.BuiltInName + ")"
	complete(cmd, "model", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return ModelNames(), cobra.ShellCompDirectiveDefault // also offer folders
	})
}

func ModelNames() (names []string) {
	store, err := models.DefaultStore()
	if err != nil {
		return nil
	}
	entries, _ := store.List() // if the store cannot be read, offer nothing
	for _, e := range entries {
		names = append(names, e.Name)
	}
	return slices.Compact(names)
}

// Validate returns an error for a wrong flag. Call it before Open.
func (o *ModelOptions) Validate() error {
	err := lm.ValidDevice(o.Device)
	switch {
	case err != nil:
		return Usagef("--device: %w", err)
	case o.Threads < 0:
		return Usagef("--threads: %d is not a whole number of 0 (one per core) or more", o.Threads)
	case o.Threads > lm.MaxThreads():
		return Usagef("--threads: %d is more than four times the %d processors: give %d or fewer",
			o.Threads, runtime.NumCPU(), lm.MaxThreads())
	case o.Quiet && o.Verbose:
		return Usagef("--quiet and --verbose exclude each other: give one")
	}
	return nil
}

// OpenModel opens a model. Tests replace it, so that commands share one.
var OpenModel = infill.Open

// Open opens the model, and warns if the files of its tokenizer contradict each
// other. onnxruntime is loaded when the model first runs.
func (o *ModelOptions) Open(s *terminal.Streams) (*infill.Filler, error) {
	f, err := OpenModel(infill.OpenOptions{
		Model: o.Model, Device: o.Device, Threads: o.Threads,
		FindLibrary: func(ctx context.Context) (string, error) {
			path, err := lm.LocateLibrary(ctx, o.Device, FetchProgress(s, o.Quiet))
			if err != nil {
				return "", err
			}
			o.Note(s, "onnxruntime library %s", path)
			return path, nil
		},
		Loaded: func(m infill.Model) {
			kernels := cmp.Or(lm.Processor(), "neither AVX nor NEON")
			o.Note(s, "model %s, sha256 %s, onnxruntime %s on %s, processor with %s", m.Name, m.SHA256, m.Runtime,
				m.Device, kernels)
			if m.Note != "" {
				o.Note(s, "auto took the CPU: %s", m.Note)
			}
		},
	})
	if err != nil {
		return nil, err
	}
	WarnOfTokenizer(s, o.Quiet, f.Model().Name, f.Tokenizer())
	return f, nil
}

// WarnOfTokenizer prints what a tokenizer's files say differently.
func WarnOfTokenizer(s *terminal.Streams, quiet bool, model string, t *tokenize.Tokenizer) {
	warning := t.Warning()
	if warning != "" {
		Warn(s, quiet, "model %s: %s", model, warning)
	}
}

func (o *ModelOptions) Note(s *terminal.Streams, format string, args ...any) {
	if o.Verbose {
		fmt.Fprintf(s.Err, "infill: %s\n", OneLine(fmt.Sprintf(format, args...)))
	}
}

func (o *ModelOptions) Report(s *terminal.Streams, format string, args ...any) {
	if !o.Quiet {
		fmt.Fprintf(s.Err, "infill: %s\n", OneLine(fmt.Sprintf(format, args...)))
	}
}

const manyWarnings = 5 // most warnings printed of a text

// WarnOf prints the warnings of a text, at most manyWarnings; typed, which is one of
// them or empty, only of the first text that has it.
func (o *ModelOptions) WarnOf(s *terminal.Streams, e Entry, warnings []string, typed string) {
	for i, w := range warnings {
		if w == typed {
			if o.typed {
				continue
			}
			o.typed = true
		}
		if i == manyWarnings {
			Warn(s, o.Quiet, "%sand %d more; --format json lists all", e.Place(), len(warnings)-i)
			return
		}
		Warn(s, o.Quiet, "%s%s", e.Place(), w)
	}
}
