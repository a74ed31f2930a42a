package score

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"infill/cmd/infill/internal/cli"
	"infill/infill"
	"infill/infill/batch"
)

// sequences puts what FASTA files hold in the places of their names.
func (o *scoreOptions) sequences() error {
	given := o.Texts
	if err := o.Sequences(); err != nil || len(given) == 0 {
		return err
	}
	o.Texts = nil
	for _, argument := range given {
		if !batch.IsFASTA(argument) {
			o.Texts, o.IDs = append(o.Texts, argument), append(o.IDs, nil)
		} else if err := o.AddFASTA(batch.File{Path: argument}); err != nil {
			return err
		}
	}
	return nil
}

// checkMutants holds the flags of variants together.
func (o *scoreOptions) checkMutants(methodGiven bool) error {
	if !methodGiven && o.mutants != "" {
		o.method = infill.MaskedMarginals
	}
	switch ofMutants := slices.Contains(infill.MutantMethods(), o.method); {
	case o.mutants == "" && ofMutants:
		return cli.Usagef("--method %s rates variants: name their file by --mutants", o.method)
	case o.mutants == "":
		return nil
	case !ofMutants:
		return cli.Usagef("--method %s rates whole texts; with --mutants take one of %v", o.method,
			infill.MutantMethods())
	case o.pairs || o.tokens:
		return cli.Usagef("--mutants has a row for each variant: leave --pairs and --tokens out")
	case len(o.Texts) != 1:
		return cli.Usagef("%s given, --mutants are of one wild type", cli.Counted(len(o.Texts), "text"))
	}
	return nil
}

// rated is a variant with its score.
type rated struct {
	Mutant string             `json:"mutant"`
	Score  float64            `json:"score"` // nats
	Method infill.ScoreMethod `json:"method"`
}

// scoreMutants rates the variants of the file's column.
func scoreMutants(ctx context.Context, o *scoreOptions, f *infill.Filler) error {
	rows, err := batch.Columns(batch.File{Path: o.mutants}, "mutant")
	if err != nil {
		return &cli.UsageError{Err: err, Hint: "the column mutant holds variants like A24G:K30R"}
	}
	names := make([]string, len(rows))
	for i, row := range rows {
		names[i] = row[0]
	}
	scores, err := f.Mutants(ctx, o.Texts[0], names, o.method)
	if err != nil {
		return cli.OptionError(err)
	}
	p := &cli.Printer[rated]{Format: o.Format, Streams: o.Streams, Form: cli.Form[rated]{
		Header: []string{"mutant", "score", "method"},
		Rows: func(_ string, v rated) [][]string {
			return [][]string{{v.Mutant, cli.AllDigits(v.Score), string(v.Method)}}
		},
	}}
	var table [][]string
	for i, name := range names {
		table = append(table, []string{cli.Mark(name, nil), fmt.Sprintf("%.2f", scores[i])})
		if o.Format != "text" {
			if err := p.Print(nil, rated{name, scores[i], o.method}); err != nil {
				return err
			}
		}
	}
	if o.Format == "text" {
		_, err = io.WriteString(o.Streams.Styled(),
			cli.RenderTable(o.Streams.Width, []string{"mutant", "nats"}, table, 0))
	}
	return errors.Join(err, p.End())
}
