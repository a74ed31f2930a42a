package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"gonum.org/v1/gonum/stat"

	"infill/cmd/lab/internal/lab"
	"infill/infill"
)

const piecesLong = `Measure words of several pieces: in held-out sentences (--corpus) one word of one, two
or three pieces is masked by a single blank. How often is the true word the first fill,
and among five, where fills have one piece and where they may have up to three; and
how often where the number of its letters is known, too, or every other letter, as in
d.m.g.d? Nats are those of the true word where all its letters are known.`

type piecesOptions struct{ words int }

func newPieces() *cobra.Command {
	o := piecesOptions{words: 60}
	return measuring{use: "pieces [MODEL]", short: "Measure fills that are words of several pieces",
		long: piecesLong, models: 1, corpora: true, needed: true,
		register: func(f *flag.FlagSet) {
			lab.WholeVar(f, &o.words, "words", 2, 1<<30, "words of each number of pieces and corpus")
		},
		measure: o.measure,
	}.newCmd()
}

// mostPieces is how many pieces a masked word has at most.
const mostPieces = 3

// A maskedWord is a word of a sentence with a blank in its place.
type maskedWord struct {
	before, after, word string
	pieces              int
	ranks               [3][2]int // of the true word, 0 where it is not among five, [letters][up to three pieces]
	rows                [3]int64
	nats                float64
}

var lettersOnly = regexp.MustCompile(`^\pL+$`)

// maskWords draws one word of each of as many sentences as are wanted.
func (l *language) maskWords(text string, o piecesOptions, seed uint64) ([]*maskedWord, error) {
	random := rand.New(rand.NewPCG(seed, 0))
	var all []*maskedWord
	var have [mostPieces + 1]int
	for _, line := range shuffledLines(text, random) {
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
			}
		}
		for n := mostPieces; n > 0; n-- { // the rarest first
			if have[n] < o.words && len(of[n]) > 0 {
				have[n]++
				i := of[n][random.IntN(len(of[n]))]
				all = append(all,
					&maskedWord{before: strings.Join(words[:i], " "), after: strings.Join(words[i+1:], " "),
						word: words[i], pieces: n})
				break
			}
		}
	}
	for n := 1; n <= mostPieces; n++ {
		if have[n] < o.words {
			return nil, fmt.Errorf("%d sentences have a word of %d pieces, and --words asks for %d", have[n], n,
				o.words)
		}
	}
	return all, nil
}

// measure fills the blank in both ways.
func (w *maskedWord) measure(ctx context.Context, f *infill.Filler) error {
	template := func(blank string) string { return strings.TrimSpace(w.before + " " + blank + " " + w.after) }
	every := []rune(w.word)
	for i := 1; i < len(every); i += 2 {
		every[i] = '.'
	}
	for known := range w.ranks {
		for several := range w.ranks[known] {
			o := infill.DefaultOptions()
			o.MinPieces, o.MaxPieces = 1-several, 1-several // 0 is the default
			o.Budget.Rows = 300                             // invented words are hard to prove
			blank := "[MASK]"
			switch known {
			case 1:
				o.MinCharacters = utf8.RuneCountInString(w.word)
				o.MaxCharacters = o.MinCharacters
			case 2:
				blank = "[MASK~" + string(every) + "]"
			}
			r, err := f.Fill(ctx, template(blank), o, nil)
			var none *infill.OptionError
			if errors.As(err, &none) {
				continue // no word of one piece has such letters
			} else if err != nil {
				return err
			}
			w.ranks[known][several] = 1 + slices.IndexFunc(r.Fills,
				func(fill infill.Fill) bool { return strings.EqualFold(fill.Values[0], w.word) })
			w.rows[known] = r.Stats.ModelRows
		}
	}
	r, err := f.Fill(ctx, template("[MASK:1-3~"+w.word+"]"), infill.DefaultOptions(), nil)
	if err != nil {
		return err
	}
	w.nats = -math.Log(*r.Fills[0].Probability)
	return nil
}

func (o *piecesOptions) measure(ctx context.Context, s *sheet) error {
	l := s.models[0]
	f := infill.New(l.MaskedLM, l.tokenizer)
	s.table("corpus", "letters", "pieces", "words", "one piece: first", "among five", "up to three: first",
		"among five",
		"model rows", "nats")
	for _, c := range s.corpora {
		words, err := l.maskWords(c.text, *o, s.seed)
		if err != nil {
			return fmt.Errorf("--corpus %s: %w", c.name, err)
		}
		for _, w := range words {
			if err := w.measure(ctx, f); err != nil {
				return err
			}
		}
		for known, letters := range []string{"unknown", "their number", "every other"} {
			for n := 1; n <= mostPieces; n++ {
				row := []string{c.name, letters, fmt.Sprint(n), fmt.Sprint(o.words)}
				var cost, nats []float64
				var first, five [2]int
				for _, w := range words {
					if w.pieces != n {
						continue
					}
					cost, nats = append(cost, float64(w.rows[known])), append(nats, w.nats)
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
				mean, sd := stat.MeanStdDev(nats, nil)
				s.row(append(row, fmt.Sprintf("%.1f, at most %.0f", stat.Mean(cost, nil), slices.Max(cost)),
					fmt.Sprintf("%.2f ± %.2f", mean, sd/math.Sqrt(float64(len(nats)))))...)
			}
		}
	}
	s.printf("\n(%s|version:%s|words:%d|seed:%d)\n", s.signature(), infill.Version(), o.words, s.seed)
	return nil
}
