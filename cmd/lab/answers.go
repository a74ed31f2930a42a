package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"unicode"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"
	"gonum.org/v1/gonum/stat"

	"infill/cmd/lab/internal/lab"
	"infill/infill"
)

const answersLong = `Measure how many model rows it takes to prove the likeliest fills of held-out
sentences whose words are masked at random, with the command's default options.`

func newAnswers() *cobra.Command {
	name := ""
	var files []string
	cmd := &cobra.Command{Use: "answers [MODEL]", Short: "Measure what a proof costs", Long: answersLong,
		Args: func(_ *cobra.Command, arguments []string) error {
			switch {
			case len(arguments) > 1:
				return &usageError{errors.New("more than one model")}
			case files == nil:
				return &usageError{errors.New("no sentences: give --corpus NAME=FILE")}
			}
			name = strings.Join(arguments, "")
			return nil
		}}
	own := flag.NewFlagSet("", flag.ContinueOnError)
	blanks := lab.Numbers(own, "blanks", []int{2, 3, 4}, "numbers of blanks")
	sentences := lab.Whole(own, "sentences", 60, 1, 1<<30, "sentences of each corpus and number of blanks")
	var seed uint64
	measuring(cmd, own, &name, func(ctx context.Context, model *language, s *sheet) error {
		s.table("corpus", "blanks", "sentences", "model rows: median", "quartiles", "proven",
			"left out, of the first fill: median", "quartiles")
		d, corpora := model.Description(), ""
		for _, argument := range files {
			name, path, _ := strings.Cut(argument, "=")
			text, err := os.ReadFile(path)
			if err != nil {
				return fmt.Errorf("--corpus %s: %w; write NAME=FILE", argument, err)
			}
			for _, n := range *blanks {
				cells, err := proofs(ctx, model, maskedSentences(string(text), n, *sentences, seed))
				if err != nil {
					return fmt.Errorf("--corpus %s: %d blanks: %w", name, n, err)
				}
				s.row(append([]string{name, fmt.Sprint(n)}, cells...)...)
			}
			corpora += fmt.Sprintf("|corpus:%s@%.12x", name, sha256.Sum256(text))
		}
		s.printf("\n(lab:answers|model:%s@%.12s%s|version:%s|sentences:%d|seed:%d)\n", d.Name, d.SHA256, corpora,
			infill.Version(), *sentences, seed)
		return nil
	})
	cmd.Flags().StringArrayVar(&files, "corpus", nil,
		"held-out sentences, a line each; once for each corpus, `NAME=FILE`")
	cmd.Flags().Uint64Var(&seed, "seed", 1, "draws the sentences and words")
	return cmd
}

// proofs fills templates. It returns the cells of a row: how many templates, the model rows that the fills cost, how
// many are proven, and the probability left out by the others.
func proofs(ctx context.Context, model *language, templates []string) ([]string, error) {
	if len(templates) < 4 {
		return nil, fmt.Errorf("%d sentences of 8 to 24 words take them: four are needed", len(templates))
	}
	filler := infill.New(model, model.tokenizer)
	results := make([]*infill.Result, len(templates))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(8) // share calls
	for i, text := range templates {
		group.Go(func() (err error) {
			results[i], err = filler.Fill(ctx, text, infill.DefaultOptions(), nil)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	var rows, left []float64
	for _, r := range results {
		rows = append(rows, float64(r.Stats.ModelRows))
		if !*r.Proven {
			left = append(left, *r.LeftOutAtMost / *r.Fills[0].Probability)
		}
	}
	return slices.Concat([]string{fmt.Sprint(len(templates))}, quartiles("%.0f", rows),
		[]string{fmt.Sprint(len(rows) - len(left))}, quartiles("%.2g", left)), nil
}

// quartiles returns the median of numbers and the range of their middle half, empty of none.
func quartiles(format string, values []float64) []string {
	if values == nil {
		return []string{"", ""}
	}
	slices.Sort(values)
	at := func(p float64) string { return fmt.Sprintf(format, stat.Quantile(p, stat.LinInterp, values, nil)) }
	return []string{at(0.5), at(0.25) + " to " + at(0.75)}
}

// maskedSentences are sentences of 8 to 24 words of which n are blanks.
func maskedSentences(text string, n, number int, seed uint64) (templates []string) {
	random := rand.New(rand.NewPCG(seed, uint64(n)))
	lines := strings.Split(text, "\n")
	for _, i := range random.Perm(len(lines)) {
		words := strings.Fields(lines[i])
		var places []int
		for j, word := range words {
			if !strings.ContainsFunc(word, func(r rune) bool { return !unicode.IsLetter(r) }) {
				places = append(places, j)
			}
		}
		if len(words) < 8 || len(words) > 24 || len(places) < n+3 || strings.ContainsAny(lines[i], "[]@<>_") {
			continue
		}
		for _, j := range random.Perm(len(places))[:n] {
			words[places[j]] = "[MASK]"
		}
		if templates = append(templates, strings.Join(words, " ")); len(templates) == number {
			break
		}
	}
	return templates
}
