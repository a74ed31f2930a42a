// Package data is infill data.
package data

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"infill/cmd/infill/internal/cli"
	"infill/cmd/infill/internal/terminal"
	"infill/internal/eval/corpus"
	"infill/models/hub"
)

// NewCmd makes the commands that fetch evaluation text.
func NewCmd(s *terminal.Streams) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "data",
		Short: "Fetch text for evaluation",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return &cli.UsageError{Err: fmt.Errorf("unknown command %q of infill data", args[0]),
					Hint: "see infill data --help"}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newCmdDataPull(s))
	return cmd
}

// dataSets lists the corpora that can be pulled.
func dataSets() []string { return []string{"wikitext-103"} }

func newCmdDataPull(s *terminal.Streams) *cobra.Command {
	splits, variants := corpus.WikiSplits(), corpus.WikiVariants()
	split, variant, out, maxTime, quiet := splits[0], variants[0], ".", hub.DefaultTotal, false
	cmd := &cobra.Command{
		Use:   "pull wikitext-103",
		Short: "Fetch WikiText-103",
		Args: func(_ *cobra.Command, args []string) error {
			switch {
			case len(args) != 1:
				return &cli.UsageError{Err: fmt.Errorf("%s given, one data set is fetched",
					cli.Counted(len(args), "argument")), Hint: "infill data pull wikitext-103"}
			case args[0] == "tbc":
				return &cli.UsageError{Err: fmt.Errorf(
					"the Toronto Book Corpus cannot be fetched: it is your own file"),
					Hint: "infill eval --tbc FILE; see infill data --help"}
			case args[0] != dataSets()[0]:
				return &cli.UsageError{Err: fmt.Errorf("data set %q is not known: wikitext-103 is", args[0]),
					Hint: "see infill data --help"}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			bar := cli.NewTransfer(s, quiet)
			path, err := corpus.PullWikiText(cmd.Context(), out, split, variant, cli.FetchOptions(bar, maxTime))
			bar.Clear()
			if err != nil {
				return err
			}
			info, err := os.Stat(path)
			if err != nil || quiet {
				return err
			}
			_, err = fmt.Fprintf(s.Out, "%s: %s\n", cli.OneLine(path), cli.BytesText(info.Size()))
			return err
		},
		ValidArgs: dataSets(),
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	cli.AddChoice(cmd, &split, "split", "", splits, "which part of the corpus")
	cli.AddChoice(cmd, &variant, "variant", "", variants, "cut into words with <unk> for rare ones, or raw")
	flags.StringVarP(&out, "out", "o", out, "`DIR` that the file goes to")
	cli.AddMaxTime(cmd, &maxTime)
	flags.BoolVarP(&quiet, "quiet", "q", false, "no progress, no result: the exit code tells")
	return cmd
}
