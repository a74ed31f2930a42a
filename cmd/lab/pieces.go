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
d.m.g.d? Nats are those of the true word where all its letters are known.

How likely words of so many pieces are before a text is seen, against one piece, is
fitted to the same blanks: the greatest likelihood of the true number of pieces, each
number being as likely as that prior times what the model, given as many masks,
believes of such words; numbers of pieces are weighted as all words of the sentences
have them.`

type piecesOptions struct{ words int }

func newPieces() *cobra.Command {
	o := piecesOptions{words: 60}
	return measuring{use: "pieces [MODEL]", short: "Measure fills that are words of several pieces, and their prior",
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
	weight              float64
	ranks               [3][2]int // of the true word, 0 where it is not among five, [letters][up to three pieces]
	rows                [3]int64
	nats                float64
	believes            [mostPieces + 1]float64 // of the last slot: that it goes on with a word; of one that it is one
}

var lettersOnly = regexp.MustCompile(`^\pL+$`)

// maskWords draws one word of each of as many sentences as are wanted, and weighs the words so
// that each number of pieces has the share that it has of all words.
func (l *language) maskWords(text string, o piecesOptions, seed uint64) ([]*maskedWord, error) {
	random := rand.New(rand.NewPCG(seed, 0))
	var all []*maskedWord
	var have, counted [mostPieces + 1]int
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
				counted[len(ids)]++
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
	total := 0
	for n := 1; n <= mostPieces; n++ {
		if total += counted[n]; have[n] < o.words {
			return nil, fmt.Errorf("%d sentences have a word of %d pieces, and --words asks for %d", have[n], n,
				o.words)
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
	every := []rune(w.word)
	for i := 1; i < len(every); i += 2 {
		every[i] = '.'
	}
	for known := range w.ranks {
		for several := range w.ranks[known] {
			o := infill.DefaultOptions()
			o.MinPieces, o.MaxPieces = 1-several, 1-several // 0 is the default
			blank := "[MASK]"
			switch known {
			case 1:
				o.MinCharacters = utf8.RuneCountInString(w.word)
				o.MaxCharacters = o.MinCharacters
			case 2:
				blank = "[MASK~" + string(every) + "]"
				o.Budget.Rows = 300 // the fifth fill is often an invented word, and hard to prove
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

// fitPrior are the logarithms of the prior of 2, 3, ... pieces against one, by Newton's method on a concave likelihood.
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

func (o *piecesOptions) measure(ctx context.Context, s *sheet) error {
	l := s.models[0]
	f := infill.New(l.MaskedLM, l.tokenizer)
	var all []*maskedWord
	s.table("corpus", "letters", "pieces", "words", "one piece: first", "among five", "up to three: first",
		"among five",
		"model rows", "nats")
	for _, c := range s.corpora {
		words, err := l.maskWords(c.text, *o, s.seed)
		if err != nil {
			return fmt.Errorf("--corpus %s: %w", c.name, err)
		}
		for _, w := range words {
			if err := w.measure(ctx, l, f); err != nil {
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
		all = append(all, words...)
	}
	random := rand.New(rand.NewPCG(s.seed, 1))
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
	s.printf("\nPrior against one piece:")
	for n := 2; n <= mostPieces; n++ {
		s.printf(" %d pieces %.2f (log %.2f ± %.2f)", n, math.Exp(fitted[n]), fitted[n], stat.StdDev(again[n], nil))
	}
	s.printf("; ± over 100 bootstraps of the words\n\n%s|words:%d|seed:%d\n", s.signature(), o.words, s.seed)
	return nil
}
