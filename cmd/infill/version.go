package main

import (
	"cmp"
	"fmt"
	"runtime"

	"github.com/spf13/cobra"

	"infill/cmd/infill/internal/cli"
	"infill/cmd/infill/internal/terminal"
	"infill/infill"
	"infill/internal/rawjson"
	"infill/lm"
	"infill/models"
)

func newVersionCmd(s *terminal.Streams) *cobra.Command {
	format := "text"
	cite := false
	model := ""
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version of the program",
		Args:  cli.NoArguments,
		RunE: func(*cobra.Command, []string) error {
			library, err := lm.FindLibrary()
			switch {
			case cite && format != "text":
				return cli.Usagef("--format is not for --cite: it prints a sentence")
			case cite && err != nil:
				return err
			case cite:
				return citation(s, model, library)
			case model != "":
				return cli.Usagef("--model is for --cite")
			}
			if format == "json" {
				return rawjson.WriteLine(s.Out, map[string]string{"version": infill.Version(), "go": runtime.Version(),
					"os": runtime.GOOS, "arch": runtime.GOARCH, "onnxruntime": library.Version,
					"library": library.Path, "processor": lm.Processor()})
			}
			found := fmt.Sprintf("onnxruntime %s in %s", versionOf(library), library.Path)
			if err != nil {
				found = "no onnxruntime: " + err.Error()
			}
			kernels := cmp.Or(lm.Processor(), "neither AVX nor NEON")
			_, err = fmt.Fprintln(s.Out, cli.OneLine(versionLine()+"; processor with "+kernels+"; "+found))
			return err
		},
	}
	cmd.Flags().BoolVar(&cite, "cite", false, "print a sentence for the methods of a paper")
	cmd.Flags().StringVarP(&model, "model", "m", "", "`NAME` of the model that --cite names (default: "+
		models.DefaultVariable+", or the built-in "+models.BuiltInName+")")
	cli.AddChoice(cmd, &format, "format", "", []string{"text", "json"}, "form of the result")
	return cmd
}

// citation prints what a paper says of the program that runs and of a model.
func citation(s *terminal.Streams, name string, library lm.Library) error {
	bundle, err := models.Open(name)
	if err != nil {
		return err
	}
	which := ""
	if bundle.Manifest.Revision != "" {
		which = "revision " + bundle.Manifest.Revision + ", "
	}
	const sentence = "We used infill %s (The infill authors, 2026) with the masked language model %s " +
		"(%sSHA-256 %.12s), run by onnxruntime %s on %s/%s."
	text := fmt.Sprintf(sentence, infill.Version(), bundle.Name, which, bundle.SHA256, versionOf(library),
		runtime.GOOS, runtime.GOARCH)
	_, err = fmt.Fprintln(s.Out, cli.OneLine(text))
	return err
}

// versionLine returns what --version prints, and infill version first.
func versionLine() string {
	return fmt.Sprintf("infill %s (%s, %s/%s)", infill.Version(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

// versionOf returns the version of a library, or words that say that it is unknown.
func versionOf(l lm.Library) string { return cmp.Or(l.Version, "of unknown version") }
