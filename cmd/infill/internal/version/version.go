// Package version is infill version.
package version

import (
	"context"
	"fmt"
	"runtime"

	"github.com/spf13/cobra"

	"infill/cmd/infill/internal/cli"
	"infill/cmd/infill/internal/terminal"
	"infill/infill"
	"infill/internal/object"
)

type versionOptions struct {
	streams *terminal.Streams
	format  string
}

// NewCmd makes infill version.
func NewCmd(s *terminal.Streams, run func(context.Context, *versionOptions) error) *cobra.Command {
	o := &versionOptions{streams: s, format: "text"}
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version of the program",
		Long: `Print the version of the program, the Go release that built it and the platform.
The versions of onnxruntime and of the models are infill doctor's to tell.`,
		Args: cli.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return run(cmd.Context(), o) },
	}
	cli.AddChoice(cmd, &o.format, "format", "", []string{"text", "json"}, "form of the result")
	return cmd
}

// Run prints the version.
func Run(_ context.Context, o *versionOptions) error {
	if o.format == "json" {
		return object.WriteLine(o.streams.Out, map[string]string{
			"version": infill.Version(), "go": runtime.Version(), "os": runtime.GOOS, "arch": runtime.GOARCH,
		})
	}
	_, err := fmt.Fprintln(o.streams.Out, Line())
	return err
}

// Line is the answer of infill version and of --version.
func Line() string {
	return fmt.Sprintf("infill %s (%s, %s/%s)", infill.Version(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
}
