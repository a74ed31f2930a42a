package main

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
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

type answersOptions struct {
	blanks    []int
	sentences int
}

func newAnswers() *cobra.Command {
	o := answersOptions{blanks: []int{2, 3, 4}, sentences: 60}
	return measuring{use: "answers [MODEL]", short: "Measure what a proof costs", long: answersLong, models: 1,
		corpora: true, needed: true,
		register: func(f *flag.FlagSet) {
			lab.WholesVar(f, &o.blanks, "blanks", "numbers of blanks")
			lab.WholeVar(f, &o.sentences, "sentences", 4, 1<<30, "sentences of each corpus and number of blanks")
		},
		measure: o.measure,
	}.newCmd()
}

func (o *answersOptions) measure(ctx context.Context, s *sheet) error {
	filler := infill.New(s.models[0], s.models[0].tokenizer)
	s.table("corpus", "blanks", "sentences", "model rows: median", "quartiles", "proven",
		"left out, of the first fill: median", "quartiles")
	for _, c := range s.corpora {
		for _, n := range o.blanks {
			templates := maskedSentences(c.text, n, o.sentences, s.seed)
			if len(templates) < 4 {
				return fmt.Errorf("--corpus %s: %d sentences of 8 to 24 words take %d blanks: four are needed", c.name,
					len(templates), n)
			}
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
				return fmt.Errorf("--corpus %s: %w", c.name, err)
			}
			var rows, left []float64
			for _, r := range results {
				rows = append(rows, float64(r.Stats.ModelRows))
				if !*r.Proven {
					left = append(left, *r.LeftOutAtMost / *r.Fills[0].Probability)
				}
			}
			ratio, quartiles := "", ""
			if left != nil {
				ratio, quartiles = fmt.Sprintf("%.2g", quantile(left, 0.5)),
					fmt.Sprintf("%.2g to %.2g", quantile(left, 0.25), quantile(left, 0.75))
			}
			s.row(c.name, fmt.Sprint(n), fmt.Sprint(len(templates)), fmt.Sprintf("%.0f", quantile(rows, 0.5)),
				fmt.Sprintf("%.0f to %.0f", quantile(rows, 0.25), quantile(rows, 0.75)),
				fmt.Sprint(len(rows)-len(left)), ratio, quartiles)
		}
	}
	s.printf("\n(%s|version:%s|sentences:%d|seed:%d)\n", s.signature(), infill.Version(), o.sentences, s.seed)
	return nil
}

func quantile(values []float64, p float64) float64 {
	return stat.Quantile(p, stat.LinInterp, slices.Sorted(slices.Values(values)), nil)
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
