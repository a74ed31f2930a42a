package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"gonum.org/v1/gonum/stat"

	"infill/infill"
)

const piecesLong = `Measure words of several pieces: in held-out sentences (--corpus) one word of one, two
or three pieces is masked by a single blank. How often is the true word the first fill,
and among five, where fills have one piece and where they may have up to three; and
how often where the number of its letters is known, too?

How likely words of so many pieces are before a text is seen, against one piece, is
fitted to the same blanks: the greatest likelihood of the true number of pieces, each
number being as likely as that prior times what the model, given as many masks,
believes of such words; numbers of pieces are weighted as all words of the sentences
have them.`

type piecesOptions struct {
	corpusOptions
	words int
}

func newPieces() *cobra.Command {
	o := piecesOptions{words: 60}
	cmd := &cobra.Command{Use: "pieces [MODEL]", Short: "Measure fills that are words of several pieces, and their prior", Long: piecesLong,
		RunE: func(cmd *cobra.Command, names []string) error {
			if o.words < 2 {
				return &usageError{errors.New("--words is at least 2")}
			}
			return onCorpora(cmd, names, o.corpusOptions, func(ctx context.Context, out io.Writer, model *language) error {
				return measurePieces(ctx, out, model, o)
			})
		}}
	f := cmd.Flags()
	o.register(f)
	f.IntVar(&o.words, "words", o.words, "words of each number of pieces and corpus")
	return cmd
}

// mostPieces is how many pieces a masked word has at most.
const mostPieces = 3

// A maskedWord is a word of a sentence with a blank in its place.
type maskedWord struct {
	before, after, word string
	pieces              int
	weight              float64
	ranks               [2][2]int // of the true word, 0 where it is not among five, [letters known][up to three pieces]
	rows                [2]int64
	believes            [mostPieces + 1]float64 // of the last slot: that it goes on with a word; of one that it is one
}

var lettersOnly = regexp.MustCompile(`^\pL+$`)

// maskWords draws one word of each of as many sentences as are wanted, and weighs the words so
// that each number of pieces has the share that it has of all words.
func (l *language) maskWords(text string, o piecesOptions) ([]*maskedWord, error) {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	random := rand.New(rand.NewPCG(o.seed, 0))
	random.Shuffle(len(lines), func(i, j int) { lines[i], lines[j] = lines[j], lines[i] })
	var all []*maskedWord
	var have, counted [mostPieces + 1]int
	for _, line := range lines {
		words := strings.Fields(released.Replace(line))
		if len(words) < 5 || len(words) > mostTokens {
			continue
		}
		var of [mostPieces + 1][]int
		for i, w := range words {
			if !lettersOnly.MatchString(w) {
				continue
			}
			if ids, err := l.tokenizer.Candidate(w); err == nil && len(ids) <= mostPieces {
				of[len(ids)] = append(of[len(ids)], i)
				counted[len(ids)]++
			}
		}
		for n := mostPieces; n > 0; n-- { // the rarest first
			if have[n] < o.words && len(of[n]) > 0 {
				have[n]++
				i := of[n][random.IntN(len(of[n]))]
				all = append(all, &maskedWord{before: strings.Join(words[:i], " "), after: strings.Join(words[i+1:], " "), word: words[i], pieces: n})
				break
			}
		}
	}
	total := 0
	for n := 1; n <= mostPieces; n++ {
		if total += counted[n]; have[n] < o.words {
			return nil, fmt.Errorf("%d sentences have a word of %d pieces, and --words asks for %d", have[n], n, o.words)
		}
	}
	for _, w := range all {
		w.weight = float64(counted[w.pieces]) / float64(total) / float64(o.words)
	}
	return all, nil
}

// measure fills the blank in both ways.
func (w *maskedWord) measure(ctx context.Context, l *language, f *infill.Filler) error {
	template := func(blank string) string { return strings.TrimSpace(w.before + " " + blank + " " + w.after) }
	for known := range w.ranks {
		for several := range w.ranks[known] {
			o := infill.DefaultOptions()
			o.MinPieces, o.MaxPieces = 1-several, 1-several // 0 is the default
			if known == 1 {
				o.MinCharacters = utf8.RuneCountInString(w.word)
				o.MaxCharacters = o.MinCharacters
			}
			r, err := f.Fill(ctx, template("[MASK]"), o, nil)
			var none *infill.OptionError
			if errors.As(err, &none) {
				continue // no word of one piece has so many letters
			} else if err != nil {
				return err
			}
			w.ranks[known][several] = 1 + slices.IndexFunc(r.Fills, func(fill infill.Fill) bool { return strings.EqualFold(fill.Values[0], w.word) })
			w.rows[known] = r.Stats.ModelRows
		}
	}
	for n := 1; n <= mostPieces; n++ {
		read, err := f.Template(template(fmt.Sprintf("[MASK:%d]", n)))
		if err != nil {
			return err
		}
		logp, err := f.LogConditionals(ctx, read, nil)
		if err != nil {
			return err
		}
		for _, id := range l.tokenizer.Fillable() {
			if l.tokenizer.Word(id) && l.tokenizer.Continues(id) == (n > 1) {
				w.believes[n] += math.Exp(float64(logp[n-1][id]))
			}
		}
	}
	return nil
}

// fitPrior are the logarithms of the prior of 2, 3, ... pieces against one, by Newton's method
// on a concave likelihood.
func fitPrior(words []*maskedWord) (log [mostPieces + 1]float64) {
	const steps = 40
	for range steps {
		var slope, bend [mostPieces + 1]float64
		for _, w := range words {
			total := 0.0
			var p [mostPieces + 1]float64
			for n := 1; n <= mostPieces; n++ {
				p[n] = w.believes[n] * math.Exp(log[n])
				total += p[n]
			}
			for n := 2; n <= mostPieces; n++ {
				share := p[n] / total
				slope[n] -= w.weight * share
				bend[n] += w.weight * share * (1 - share)
				if w.pieces == n {
					slope[n] += w.weight
				}
			}
		}
		for n := 2; n <= mostPieces; n++ {
			log[n] += max(-1, min(1, slope[n]/bend[n]/2)) // one at a time, so half a step
		}
	}
	return log
}

func measurePieces(ctx context.Context, out io.Writer, l *language, o piecesOptions) error {
	f := infill.New(l.MaskedLM, l.tokenizer)
	var all []*maskedWord
	var rows [][]string
	for _, corpus := range o.corpora {
		name, content, err := readCorpus(corpus)
		if err != nil {
			return err
		}
		words, err := l.maskWords(string(content), o)
		if err != nil {
			return fmt.Errorf("--corpus %s: %w", name, err)
		}
		for _, w := range words {
			if err := w.measure(ctx, l, f); err != nil {
				return err
			}
		}
		for known, letters := range []string{"unknown", "known"} {
			for n := 1; n <= mostPieces; n++ {
				row := []string{name, letters, fmt.Sprint(n), fmt.Sprint(o.words)}
				var cost []float64
				var first, five [2]int
				for _, w := range words {
					if w.pieces != n {
						continue
					}
					cost = append(cost, float64(w.rows[known]))
					for several, rank := range w.ranks[known] {
						if rank == 1 {
							first[several]++
						}
						if rank > 0 {
							five[several]++
						}
					}
				}
				for several := range first {
					row = append(row, fmt.Sprint(first[several]), fmt.Sprint(five[several]))
				}
				rows = append(rows, append(row, fmt.Sprintf("%.1f, at most %.0f", stat.Mean(cost, nil), slices.Max(cost))))
			}
		}
		all = append(all, words...)
	}
	fmt.Fprintf(out, "| corpus | letters | pieces | words | one piece: first | among five | up to three: first | among five | model rows |\n|%s\n", strings.Repeat(" --- |", 9))
	for _, row := range rows {
		fmt.Fprintf(out, "| %s |\n", strings.Join(row, " | "))
	}
	random := rand.New(rand.NewPCG(o.seed, 1))
	fitted := fitPrior(all)
	var again [mostPieces + 1][]float64
	for range 100 {
		drawn := make([]*maskedWord, len(all))
		for i := range drawn {
			drawn[i] = all[random.IntN(len(all))]
		}
		for n, x := range fitPrior(drawn) {
			again[n] = append(again[n], x)
		}
	}
	fmt.Fprintf(out, "\nPrior against one piece:")
	for n := 2; n <= mostPieces; n++ {
		fmt.Fprintf(out, " %d pieces %.2f (log %.2f ± %.2f)", n, math.Exp(fitted[n]), fitted[n], stat.StdDev(again[n], nil))
	}
	d := l.Description()
	_, err := fmt.Fprintf(out, "; ± over 100 bootstraps of the words\n\nlab:pieces|model:%s@%.12s|words:%d|seed:%d\n", l.name(), d.SHA256, o.words, o.seed)
	return err
}
