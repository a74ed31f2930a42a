package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/google/renameio/v2/maybe"
	"github.com/spf13/cobra"

	"infill/cmd/lab/internal/lab"
)

// A sheet is what a command that measures a language model is given, and writes on. It is printed when all of it is
// there.
type sheet struct {
	bytes.Buffer
	name    string   // of the model; "" is the built-in one
	files   []string // NAME=FILE of corpora
	seed    uint64
	model   *language
	corpora []corpus
}

// corpus is held-out sentences, a line each.
type corpus struct{ name, text string }

// newMeasuring makes such a command.
func newMeasuring(use, short, long string, register func(f *flag.FlagSet),
	measure func(ctx context.Context, s *sheet) error) (*cobra.Command, *sheet) {
	s := &sheet{}
	path := ""
	cmd := &cobra.Command{Use: use, Short: short, Long: long, Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			for _, argument := range s.files {
				name, path, _ := strings.Cut(argument, "=")
				content, err := os.ReadFile(path)
				if err != nil {
					return fmt.Errorf("--corpus %s: %w; write NAME=FILE", argument, err)
				}
				s.corpora = append(s.corpora, corpus{name, string(content)})
			}
			if s.model, err = openLanguage(cmd.Context(), s.name); err != nil {
				return err
			}
			defer s.model.Close()
			if err := measure(cmd.Context(), s); err != nil {
				return err
			}
			if path != "" {
				return maybe.WriteFile(path, s.Bytes(), 0o644)
			}
			_, err = s.WriteTo(cmd.OutOrStdout())
			return err
		}}
	f := cmd.Flags()
	f.SortFlags = false
	own := flag.NewFlagSet("", flag.ContinueOnError)
	register(own)
	f.AddGoFlagSet(own)
	f.StringVarP(&path, "out", "o", "", "`FILE` to write; standard output when not given")
	return cmd, s
}

// newTable makes the command of a page of the documentation.
func newTable(use, short string, write func(ctx context.Context, s *sheet, seeds int) error) *cobra.Command {
	seeds := 3
	cmd, s := newMeasuring(use, short, "",
		func(f *flag.FlagSet) { lab.WholeVar(f, &seeds, "seeds", 1, 1<<20, "runs of every cell") },
		func(ctx context.Context, s *sheet) error { return write(ctx, s, seeds) })
	cmd.Flags().StringVarP(&s.name, "model", "m", "", "name or folder; the built-in one when not given")
	return cmd
}

func (s *sheet) printf(format string, args ...any) { fmt.Fprintf(s, format, args...) }

// table begins a table.
func (s *sheet) table(head ...string) {
	s.row(head...)
	s.row(slices.Repeat([]string{"---"}, len(head))...)
}

func (s *sheet) row(cells ...string) { s.printf("| %s |\n", strings.Join(cells, " | ")) }
