package main

import (
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"infill/cmd/lab/internal/papers"
)

// newVerdicts makes the command that compares stored results with the papers.
func newVerdicts(out io.Writer) *cobra.Command {
	folder := filepath.Join("docs", "measured", "laboratory")
	cmd := &cobra.Command{Use: "verdicts", Short: "Say which claims of the papers the stored results carry",
		Long: "Compare each claim of the papers with the stored results, and say what follows.\n\n" +
			strings.ReplaceAll(papers.Rule, "*", ""),
		Args: noArguments,
		RunE: func(*cobra.Command, []string) error { return verdicts(out, folder) }}
	cmd.Flags().StringVar(&folder, "results", folder,
		"`FOLDER` of results: the results.csv of each experiment, as learn-ising.csv")
	return cmd
}

func verdicts(out io.Writer, folder string) error {
	all, err := papers.Read(folder)
	if err != nil {
		return err
	}
	for _, row := range papers.Rows() {
		verdict, err := row.Verdict(all)
		if err != nil {
			return fmt.Errorf("%s: %w", row.Of, err)
		}
		fmt.Fprintf(out, "%s, %s: %s\n", row.Of, row.Shows, verdict)
		for _, claim := range row.Claims {
			d, finding, err := claim.Check(all)
			if err != nil {
				return err
			}
			fmt.Fprintf(out, "    %s: %s; %s differs by %.4g (%.4g to %.4g, %d repetitions)\n", claim.Text, finding,
				claim.Number, d.Mean, d.Low, d.High, d.Count)
		}
	}
	return nil
}
