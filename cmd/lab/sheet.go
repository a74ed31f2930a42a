package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"slices"
	"strings"

	"github.com/google/renameio/v2/maybe"
	"github.com/spf13/cobra"

	"infill/lm"
	"infill/models"
	"infill/tokenize"
)

// language is a model on the CPU.
type language struct {
	*lm.MaskedLM
	tokenizer *tokenize.Tokenizer
}

// openLanguage opens a model by its name or folder; "" is the built-in one.
func openLanguage(ctx context.Context, name string) (*language, error) {
	bundle, err := models.Open(name)
	if err != nil {
		return nil, err
	}
	tokenizer, err := bundle.Tokenizer()
	if err != nil {
		return nil, err
	}
	model, err := lm.Open(ctx, bundle, lm.Options{Device: "cpu", MaskID: tokenizer.MaskID(),
		SeparatorID: tokenizer.SeparatorID()})
	return &language{model, tokenizer}, err
}

// A sheet is the output of a command that measures a language model. It is printed when all of it is there.
type sheet struct{ bytes.Buffer }

// measuring gives a command its flags and its work on a model, whose name is read when it runs.
func measuring(cmd *cobra.Command, own *flag.FlagSet, name *string,
	measure func(ctx context.Context, model *language, s *sheet) error) {
	f := cmd.Flags()
	f.SortFlags = false
	f.AddGoFlagSet(own)
	path := f.StringP("out", "o", "", "`FILE` to write; standard output when not given")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		model, err := openLanguage(cmd.Context(), *name)
		if err != nil {
			return err
		}
		defer model.Close()
		s := &sheet{}
		if err := measure(cmd.Context(), model, s); err != nil {
			return err
		}
		if *path != "" {
			return maybe.WriteFile(*path, s.Bytes(), 0o644)
		}
		_, err = s.WriteTo(cmd.OutOrStdout())
		return err
	}
}

func (s *sheet) printf(format string, args ...any) { fmt.Fprintf(s, format, args...) }

// table begins a table.
func (s *sheet) table(head ...string) {
	s.row(head...)
	s.row(slices.Repeat([]string{"---"}, len(head))...)
}

func (s *sheet) row(cells ...string) { s.printf("| %s |\n", strings.Join(cells, " | ")) }
