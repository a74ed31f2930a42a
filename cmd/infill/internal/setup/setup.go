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
	"infill/models/hub"
)

// setupOptions are the flags of setting up.
type setupOptions struct {
	streams *terminal.Streams
	cuda    bool
	force   bool   // fetch for CUDA without a GPU
	model   string // to be the default; "" leaves it
	quiet   bool
}

// NewCmd makes infill setup.
func NewCmd(s *terminal.Streams) *cobra.Command {
	o := &setupOptions{streams: s}
	cmd := &cobra.Command{
		Use:   "setup",
		Short: "Fetch the onnxruntime library, and perhaps a model, ahead of time",
		Args:  cli.NoArguments,
		RunE:  func(cmd *cobra.Command, _ []string) error { return run(cmd.Context(), o) },
	}
	cmd.Flags().StringVar(&o.model, "model", "",
		"`NAME` of a model to fetch and make the default, such as one of infill models recommend")
	cmd.Flags().BoolVar(&o.cuda, "cuda", false, "fetch the library with CUDA")
	cmd.Flags().BoolVar(&o.force, "force", false, "with --cuda: fetch it where no NVIDIA GPU is found, too")
	cmd.Flags().BoolVarP(&o.quiet, "quiet", "q", false, "no progress, no result: the exit code tells")
	return cmd
}

// run fetches the onnxruntime library.
func run(ctx context.Context, o *setupOptions) error {
	if o.force && !o.cuda {
		return cli.Usagef("--force: it goes with --cuda")
	}
	if o.cuda && !o.force {
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
	if o.cuda {
		device = "cuda"
	}
	found, err := lm.EnsureLibrary(ctx, device, cli.FetchProgress(o.streams, o.quiet))
	if err != nil {
		return err
	}
	if !o.quiet {
		if _, err = fmt.Fprintf(o.streams.Out, "onnxruntime %s: %s (%s)\nmodel %s: %s\n",
			cli.VersionOf(found), found.Path, found.Place, bundle.Name, bundle.Dir); err != nil {
			return err
		}
	}
	if o.model == "" {
		return nil
	}
	return cli.UseModel(ctx, o.streams, o.model, hub.DefaultTotal, o.quiet)
}
