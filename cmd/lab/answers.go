package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"unicode"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"
	"gonum.org/v1/gonum/stat"

	"infill/infill"
)

const answersLong = `Measure how many model rows it takes to prove the likeliest fills of held-out
sentences whose words are masked at random, with the command's default options.`

type answersOptions struct {
	corpora   []string
	blanks    []int
	sentences int
	seed      uint64
	path      string
}

func newAnswers() *cobra.Command {
	o := answersOptions{blanks: []int{2, 3, 4}, sentences: 60, seed: 1}
	cmd := &cobra.Command{Use: "answers [MODEL]", Short: "Measure what a proof costs", Long: answersLong,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, names []string) error {
			if len(o.corpora) == 0 || o.sentences < 4 || slices.Min(o.blanks) < 1 {
				return &usageError{errors.New("give a --corpus NAME=FILE, four --sentences at least, and --blanks from 1")}
			}
			return written(cmd, o.path, func(out io.Writer) error { return measureAnswers(cmd.Context(), out, strings.Join(names, ""), o) })
		}}
	f := cmd.Flags()
	f.SortFlags = false
	f.StringArrayVar(&o.corpora, "corpus", nil, "held-out sentences, a line each; once for each corpus, `NAME=FILE`")
	f.IntSliceVar(&o.blanks, "blanks", o.blanks, "numbers of blanks")
	f.IntVar(&o.sentences, "sentences", o.sentences, "sentences of each corpus and number of blanks")
	f.Uint64Var(&o.seed, "seed", o.seed, "draws the sentences and words")
	f.StringVarP(&o.path, "out", "o", "", "`FILE` to write; standard output when not given")
	return cmd
}

func measureAnswers(ctx context.Context, w io.Writer, name string, o answersOptions) error {
	model, err := openLanguage(ctx, name)
	if err != nil {
		return err
	}
	defer model.Close()
	signature := fmt.Sprintf("lab:answers|model:%s@%.12s|version:%s", model.name(), model.Description().SHA256, infill.Version())
	table(w, []string{"corpus", "blanks", "sentences", "model rows: median", "quartiles", "proven", "left out, of the first fill: median", "quartiles"})
	for _, corpus := range o.corpora {
		name, content, err := readCorpus(corpus)
		if err != nil {
			return err
		}
		signature += fmt.Sprintf("|corpus:%s@%.12x", name, sha256.Sum256(content))
		for _, n := range o.blanks {
			templates := maskedSentences(string(content), n, o.sentences, o.seed)
			if len(templates) < 4 {
				return fmt.Errorf("--corpus %s: %d sentences of 8 to 24 words take %d blanks: four are needed", name, len(templates), n)
			}
			results := make([]*infill.Result, len(templates))
			filler := infill.New(model, model.tokenizer)
			group, ctx := errgroup.WithContext(ctx)
			group.SetLimit(8) // share calls
			for i, text := range templates {
				group.Go(func() (err error) {
					results[i], err = filler.Fill(ctx, text, infill.DefaultOptions(), nil)
					return err
				})
			}
			if err := group.Wait(); err != nil {
				return fmt.Errorf("--corpus %s: %w", name, err)
			}
			var rows, left []float64
			proven := 0
			for _, r := range results {
				rows = append(rows, float64(r.Stats.ModelRows))
				if *r.Proven {
					proven++
				} else {
					left = append(left, *r.LeftOutAtMost / *r.Fills[0].Probability)
				}
			}
			ratio, quartiles := "", ""
			if left != nil {
				ratio, quartiles = fmt.Sprintf("%.2g", quantile(left, 0.5)), fmt.Sprintf("%.2g to %.2g", quantile(left, 0.25), quantile(left, 0.75))
			}
			row(w, []string{name, fmt.Sprint(n), fmt.Sprint(len(templates)), fmt.Sprintf("%.0f", quantile(rows, 0.5)),
				fmt.Sprintf("%.0f to %.0f", quantile(rows, 0.25), quantile(rows, 0.75)), fmt.Sprint(proven), ratio, quartiles})
		}
	}
	fmt.Fprintf(w, "\n(%s|sentences:%d|seed:%d)\n", signature, o.sentences, o.seed)
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
