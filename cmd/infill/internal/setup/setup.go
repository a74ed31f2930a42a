// Package setup is infill setup.
package setup

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"infill/cmd/infill/internal/cli"
	"infill/cmd/infill/internal/terminal"
	"infill/lm"
	"infill/models"
)

// setupOptions are the flags of setting up.
type setupOptions struct {
	streams *terminal.Streams
	CUDA    bool `flag:"cuda" help:"fetch the library with CUDA"`
	Force   bool `flag:"force" help:"with --cuda: fetch it where no NVIDIA GPU is found, too"`
	Quiet   bool `flag:"quiet" short:"q" help:"no progress, no result: the exit code tells"`
}

// NewCmd makes infill setup.
func NewCmd(s *terminal.Streams) *cobra.Command {
	o := &setupOptions{streams: s}
	cmd := &cobra.Command{
		Use:   "setup",
		Short: "Fetch the onnxruntime library ahead of time",
		Args:  cli.NoArguments,
		RunE:  func(cmd *cobra.Command, _ []string) error { return run(cmd.Context(), o) },
	}
	cli.Bind(cmd, o)
	return cmd
}

// run fetches the onnxruntime library.
func run(ctx context.Context, o *setupOptions) error {
	if o.Force && !o.CUDA {
		return cli.Usagef("--force: it goes with --cuda")
	}
	if o.CUDA && !o.Force {
		if err := lm.FindGPU(); err != nil {
			return &cli.Failure{Err: fmt.Errorf("the library with CUDA was not fetched (250 MB): %w", err),
				Hint: "infill setup fetches the one for the CPU; --cuda --force fetches this one all the same"}
		}
	}
	bundle, err := models.Open(models.BuiltInName)
	if err != nil {
		return err
	}
	device := "cpu"
	if o.CUDA {
		device = "cuda"
	}
	found, err := lm.EnsureLibrary(ctx, device, cli.FetchProgress(o.streams, o.Quiet))
	if err != nil {
		return err
	}
	if !o.Quiet {
		_, err = fmt.Fprintf(o.streams.Out, "onnxruntime %s: %s (%s)\nmodel %s: %s\n",
			cli.VersionOf(found), found.Path, found.Place, bundle.Name, bundle.Dir)
	}
	return err
}
