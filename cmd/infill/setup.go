package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"infill/cmd/infill/internal/cli"
	"infill/cmd/infill/internal/terminal"
	"infill/lm"
	"infill/models"
)

func newSetupCmd(s *terminal.Streams) *cobra.Command {
	cuda := false
	force := false
	quiet := false
	cmd := &cobra.Command{
		Use:   "setup",
		Short: "Fetch the onnxruntime library ahead of time",
		Args:  cli.NoArguments,
		RunE:  func(cmd *cobra.Command, _ []string) error { return setUp(cmd.Context(), s, cuda, force, quiet) },
	}
	flags := cmd.Flags()
	flags.BoolVar(&cuda, "cuda", false, "fetch the library with CUDA")
	flags.BoolVar(&force, "force", false, "with --cuda: fetch it where no NVIDIA GPU is found, too")
	flags.BoolVarP(&quiet, "quiet", "q", false, "no progress, no result: the exit code tells")
	return cmd
}

func setUp(ctx context.Context, s *terminal.Streams, cuda, force, quiet bool) error {
	device := "cpu"
	switch {
	case force && !cuda:
		return cli.Usagef("--force: it goes with --cuda")
	case cuda:
		device = "cuda"
		if err := lm.FindGPU(); err != nil && !force {
			return &cli.Failure{Err: fmt.Errorf("the library with CUDA was not fetched (250 MB): %w", err),
				Hint: "infill setup fetches the one for the CPU; --cuda --force fetches this one all the same"}
		}
	}
	bundle, err := models.Open(models.BuiltInName)
	if err != nil {
		return err
	}
	found, err := lm.EnsureLibrary(ctx, device, cli.FetchProgress(s, quiet))
	if err != nil || quiet {
		return err
	}
	_, err = fmt.Fprintf(s.Out, "onnxruntime %s: %s (%s)\nmodel %s: %s\n", versionOf(found), found.Path, found.Place,
		bundle.Name, bundle.Dir)
	return err
}
