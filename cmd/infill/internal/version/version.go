// Package version is infill version.
package version

import (
	"fmt"
	"runtime"

	"github.com/spf13/cobra"

	"infill/cmd/infill/internal/cli"
	"infill/cmd/infill/internal/terminal"
	"infill/infill"
	"infill/internal/object"
	"infill/lm"
)

type versionOptions struct {
	streams *terminal.Streams
	Format  string `flag:"format" choices:"text,json" help:"form of the result"`
}

// NewCmd makes infill version.
func NewCmd(s *terminal.Streams) *cobra.Command {
	o := &versionOptions{streams: s, Format: "text"}
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version of the program",
		Args:  cli.NoArguments,
		RunE:  func(*cobra.Command, []string) error { return run(o) },
	}
	cli.Bind(cmd, o)
	return cmd
}

// run prints the version.
func run(o *versionOptions) error {
	library, err := lm.FindLibrary()
	if o.Format == "json" {
		return object.WriteLine(o.streams.Out, map[string]string{
			"version": infill.Version(), "go": runtime.Version(), "os": runtime.GOOS, "arch": runtime.GOARCH,
			"onnxruntime": library.Version, "library": library.Path,
		})
	}
	found := fmt.Sprintf("onnxruntime %s in %s", cli.VersionOf(library), library.Path)
	if err != nil {
		found = "no onnxruntime: " + err.Error()
	}
	_, err = fmt.Fprintln(o.streams.Out, cli.OneLine(Line()+", "+found))
	return err
}

// Line is the answer of --version, and the beginning of that of infill version.
func Line() string {
	return fmt.Sprintf("infill %s (%s, %s/%s)", infill.Version(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
}
