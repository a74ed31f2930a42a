package main

import (
	"cmp"
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"infill/cmd/infill/internal/terminal"
	"infill/lm"
	"infill/models"
)

// setupOptions are the flags of setting up.
type setupOptions struct {
	streams *terminal.Streams
	cuda    bool
	quiet   bool
}

func newCmdSetup(s *terminal.Streams, run func(context.Context, *setupOptions) error) *cobra.Command {
	o := &setupOptions{streams: s}
	cmd := &cobra.Command{
		Use:   "setup",
		Short: "Fetch the onnxruntime library ahead of time",
		Long: `Fetch the onnxruntime library ahead of time, and place the built-in model in the
cache folder. Filling does the same when it first needs them; after that nothing
needs a network.

With --cuda the library that runs on NVIDIA GPUs is fetched, a large download.
CUDA and cuDNN themselves are the system's: infill doctor tells what is missing.`,
		Example: "  $ infill setup\n  $ infill setup --cuda",
		Args:    noArguments,
		RunE:    func(cmd *cobra.Command, _ []string) error { return run(cmd.Context(), o) },
	}
	cmd.Flags().BoolVar(&o.cuda, "cuda", false, "fetch the library with CUDA")
	cmd.Flags().BoolVarP(&o.quiet, "quiet", "q", false, "no progress, no result: the exit code tells")
	return cmd
}

func setupRun(ctx context.Context, o *setupOptions) error {
	bundle, err := models.Open(models.DefaultName)
	if err != nil {
		return err
	}
	found, err := lm.EnsureLibrary(ctx, o.cuda, fetchProgress(o.streams, o.quiet))
	if err != nil {
		return err
	}
	if o.quiet {
		return nil
	}
	_, err = fmt.Fprintf(o.streams.Out, "onnxruntime %s: %s (%s)\nmodel %s: %s\n",
		versionOf(found), found.Path, found.Place, bundle.Name, bundle.Dir)
	return err
}

// versionOf is a library's version in words.
func versionOf(l lm.Library) string { return cmp.Or(l.Version, "of unknown version") }

// fetchProgress is where fetching the library tells of itself; nil: nowhere.
func fetchProgress(s *terminal.Streams, quiet bool) io.Writer {
	if quiet {
		return nil
	}
	return s.Err
}
