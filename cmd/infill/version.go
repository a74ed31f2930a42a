package main

import (
	"cmp"
	"fmt"
	"runtime"

	"github.com/spf13/cobra"

	"infill/cmd/infill/internal/cli"
	"infill/cmd/infill/internal/terminal"
	"infill/infill"
	"infill/internal/object"
	"infill/lm"
)

// newVersionCmd returns the command infill version.
func newVersionCmd(s *terminal.Streams) *cobra.Command {
	format := "text"
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version of the program",
		Args:  cli.NoArguments,
		RunE: func(*cobra.Command, []string) error {
			library, err := lm.FindLibrary()
			if format == "json" {
				return object.WriteLine(s.Out, map[string]string{"version": infill.Version(), "go": runtime.Version(),
					"os": runtime.GOOS, "arch": runtime.GOARCH, "onnxruntime": library.Version,
					"library": library.Path})
			}
			found := fmt.Sprintf("onnxruntime %s in %s", versionOf(library), library.Path)
			if err != nil {
				found = "no onnxruntime: " + err.Error()
			}
			_, err = fmt.Fprintln(s.Out, cli.OneLine(versionLine()+", "+found))
			return err
		},
	}
	cli.AddChoice(cmd, &format, "format", "", []string{"text", "json"}, "form of the result")
	return cmd
}

// versionLine returns the line that --version prints, which is also the first
// line of infill version.
func versionLine() string {
	return fmt.Sprintf("infill %s (%s, %s/%s)", infill.Version(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

// versionOf returns the version of a library, or words that say that it is unknown.
func versionOf(l lm.Library) string { return cmp.Or(l.Version, "of unknown version") }
