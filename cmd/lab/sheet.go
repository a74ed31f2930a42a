package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/google/renameio/v2/maybe"
	"github.com/spf13/cobra"

	"infill/cmd/lab/internal/lab"
)

// A sheet is what a command that measures language models is given, and writes on. It is printed when all of it is
// there.
type sheet struct {
	bytes.Buffer
	command   string
	models    []*language // at least one
	arguments []string    // that are no models
	corpora   []corpus
	seed      uint64
}

// corpus is held-out sentences, a line each.
type corpus struct{ name, text string }

// A measuring is how such a command is called.
type measuring struct {
	use, short, long string
	models           int  // that its arguments name at most; 0: --model names one
	arguments        bool // that are no models
	corpora          bool // it takes --corpus
	needed           bool // and cannot do without
	register         func(f *flag.FlagSet)
	measure          func(ctx context.Context, s *sheet) error
}

func (m measuring) newCmd() *cobra.Command {
	var named, corpora []string
	s, model, path := &sheet{command: strings.Fields(m.use)[0]}, "", ""
	cmd := &cobra.Command{Use: m.use, Short: m.short, Long: m.long,
		RunE: func(cmd *cobra.Command, arguments []string) error {
			switch {
			case m.models == 0:
				named, s.arguments = []string{model}, arguments
			case len(arguments) > m.models:
				return &usageError{fmt.Errorf("more than %s", []string{"", "one model", "two models"}[m.models])}
			default:
				named = append(arguments, []string{""}[min(1, len(arguments)):]...)
			}
			if m.needed && corpora == nil {
				return &usageError{errors.New("no sentences: give --corpus NAME=FILE")}
			}
			for _, argument := range corpora {
				name, path, _ := strings.Cut(argument, "=")
				content, err := os.ReadFile(path)
				if err != nil {
					return fmt.Errorf("--corpus %s: %w; write NAME=FILE", argument, err)
				}
				s.corpora = append(s.corpora, corpus{name, string(content)})
			}
			for _, name := range named {
				model, err := openLanguage(cmd.Context(), name)
				if err != nil {
					return err
				}
				defer model.Close()
				s.models = append(s.models, model)
			}
			if err := m.measure(cmd.Context(), s); err != nil {
				return err
			}
			if path != "" {
				return maybe.WriteFile(path, s.Bytes(), 0o644)
			}
			_, err := s.WriteTo(cmd.OutOrStdout())
			return err
		}}
	if m.models == 0 && !m.arguments {
		cmd.Args = noArguments
	}
	f := cmd.Flags()
	f.SortFlags = false
	if m.models == 0 {
		f.StringVarP(&model, "model", "m", "", "name or folder; the built-in one when not given")
	}
	if m.corpora {
		f.StringArrayVar(&corpora, "corpus", nil, "held-out sentences, a line each; once for each corpus, `NAME=FILE`")
		f.Uint64Var(&s.seed, "seed", 1, "draws the sentences and words")
	}
	own := flag.NewFlagSet("", flag.ContinueOnError)
	m.register(own)
	f.AddGoFlagSet(own)
	f.StringVarP(&path, "out", "o", "", "`FILE` to write; standard output when not given")
	return cmd
}

// newTable makes the command of a page of the documentation.
func newTable(use, short string, write func(ctx context.Context, s *sheet, seeds int) error) *cobra.Command {
	seeds := 3
	return measuring{use: use, short: short,
		register: func(f *flag.FlagSet) { lab.WholeVar(f, &seeds, "seeds", 1, 1<<20, "runs of every cell") },
		measure:  func(ctx context.Context, s *sheet) error { return write(ctx, s, seeds) },
	}.newCmd()
}

func (s *sheet) printf(format string, args ...any) { fmt.Fprintf(s, format, args...) }

// table begins a table.
func (s *sheet) table(head ...string) {
	s.row(head...)
	s.row(slices.Repeat([]string{"---"}, len(head))...)
}

func (s *sheet) row(cells ...string) { s.printf("| %s |\n", strings.Join(cells, " | ")) }

// signature names the command, the models and the corpora.
func (s *sheet) signature() string {
	words := []string{"lab:" + s.command}
	for _, m := range s.models {
		words = append(words, fmt.Sprintf("model:%s@%.12s", m.Description().Name, m.Description().SHA256))
	}
	for _, c := range s.corpora {
		words = append(words, fmt.Sprintf("corpus:%s@%.12x", c.name, sha256.Sum256([]byte(c.text))))
	}
	return strings.Join(words, "|")
}
