package main

import (
	"fmt"
	"io"
	"math"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"infill/cmd/lab/internal/papers"
)

var stored = filepath.Join("docs", "measured", "laboratory")

func newVerdicts(out io.Writer) *cobra.Command {
	folder := stored
	cmd := &cobra.Command{Use: "verdicts [TEXT]", Short: "Say which claims of the papers the results carry",
		Long: "Compare each claim of the papers with results, and say what follows. With TEXT, only of rows\n" +
			"that have it in their name, as \"DLP figure 3\".\n\nTo judge what you have run yourself, write each " +
			"result to a folder of its name, as\nlab --preset dlp-figure-3 --seed 1 -o DIR/dlp-figure-3, and give " +
			"--results DIR. A row whose\nresults are not all there says which command makes those that are missing, " +
			"and p is adjusted\nover the claims that are there.\n\n" +
			strings.ReplaceAll(papers.Claims().Rule, "*", ""),
		Args: cobra.MaximumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			return verdicts(out, folder, strings.Join(args, ""))
		}}
	cmd.Flags().StringVar(&folder, "results", folder,
		"`FOLDER` of results: the results.csv of each experiment, as learn-ising.csv or learn-ising/results.csv")
	return cmd
}

func verdicts(out io.Writer, folder, text string) error {
	all, err := papers.Read(folder)
	if err != nil {
		return err
	}
	rows := papers.Rows()
	var present []papers.Row
	for _, row := range rows {
		if len(row.Missing(all)) == 0 {
			present = append(present, row)
		}
	}
	judgements, err := papers.Judge(present, all)
	if err != nil {
		return err
	}
	name := ""
	for _, row := range rows {
		if row.Of != "the same" {
			name = row.Of
		}
		if !strings.Contains(name+", "+row.Shows, text) {
			continue
		}
		if missing := row.Missing(all); len(missing) > 0 {
			fmt.Fprintf(out, "%s, %s: not run here\n", name, row.Shows)
			for _, run := range missing {
				fmt.Fprintf(out, "    lab %s --seed 1 -o %s\n", run.Command, filepath.Join(folder, run.Name))
			}
			continue
		}
		verdict, err := row.Verdict(all, judgements)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		fmt.Fprintf(out, "%s, %s: %s\n", name, row.Shows, verdict)
		for _, claim := range row.Claims {
			j := judgements.Of(claim)
			number := claim.High.Number
			if claim.High.Log {
				number = "ln " + number
			}
			fmt.Fprintf(out, "    %s: %s; %s differs by %.4g (%.4g to %.4g, %d repetitions)", claim.Text, j.Finding,
				number, j.Mean, j.Low, j.High, j.Count)
			if !math.IsNaN(j.P) {
				fmt.Fprintf(out, ", p %.2g, adjusted %.2g", j.P, j.Adjusted)
			}
			fmt.Fprintln(out)
		}
	}
	fmt.Fprintln(out, judgements.Count())
	return nil
}
