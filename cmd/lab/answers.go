package main

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"math"
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
	"infill/lm"
)

const answersLong = `Measure how many model rows it takes to prove the likeliest fills of held-out
sentences whose words are masked at random, with the command's default options.
With --enumerate, compare the proven fills of two blanks with those that an
enumeration finds: a row for every word whose own probability is at least 1e-5, so
that a fill of other words has less than that.`

// answers measures proofs on corpora, held-out sentences, a line each, by their names.
type answers struct {
	blanks    *[]int
	sentences *int
	seed      uint64
	names     []string
	corpora   []string
	model     *language
}

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
	o := answers{
		blanks:    lab.Numbers(own, "blanks", []int{2, 3, 4}, "numbers of blanks"),
		sentences: lab.Whole(own, "sentences", 60, 1, 1<<30, "sentences of each corpus and number of blanks"),
	}
	enumerate := own.Bool("enumerate", false, "compare with an enumeration of two blanks")
	measuring(cmd, own, &name, func(ctx context.Context, model *language, s *sheet) error {
		o.model = model
		for _, argument := range files {
			name, path, _ := strings.Cut(argument, "=")
			content, err := os.ReadFile(path)
			if err != nil {
				return fmt.Errorf("--corpus %s: %w; write NAME=FILE", argument, err)
			}
			o.names, o.corpora = append(o.names, name), append(o.corpora, string(content))
		}
		if *enumerate {
			return o.compare(ctx, s)
		}
		return o.measure(ctx, s)
	})
	cmd.Flags().StringArrayVar(&files, "corpus", nil,
		"held-out sentences, a line each; once for each corpus, `NAME=FILE`")
	cmd.Flags().Uint64Var(&o.seed, "seed", 1, "draws the sentences and words")
	return cmd
}

func (o *answers) measure(ctx context.Context, s *sheet) error {
	filler := infill.New(o.model, o.model.tokenizer)
	s.table("corpus", "blanks", "sentences", "model rows: median", "quartiles", "proven",
		"left out, of the first fill: median", "quartiles")
	for i, name := range o.names {
		for _, n := range *o.blanks {
			templates := maskedSentences(o.corpora[i], n, *o.sentences, o.seed)
			if len(templates) < 4 {
				return fmt.Errorf("--corpus %s: %d sentences of 8 to 24 words take %d blanks: four are needed", name,
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
				return fmt.Errorf("--corpus %s: %w", name, err)
			}
			var rows, left []float64
			for _, r := range results {
				rows = append(rows, float64(r.Stats.ModelRows))
				if !*r.Proven {
					left = append(left, *r.LeftOutAtMost / *r.Fills[0].Probability)
				}
			}
			cells := []string{name, fmt.Sprint(n), fmt.Sprint(len(templates))}
			cells = append(append(cells, quartiles("%.0f", rows)...), fmt.Sprint(len(rows)-len(left)))
			s.row(append(cells, quartiles("%.2g", left)...)...)
		}
	}
	o.sign(s, "")
	return nil
}

// quartiles are the median of numbers, and what half of them lie between, empty of none.
func quartiles(format string, values []float64) []string {
	if values == nil {
		return []string{"", ""}
	}
	slices.Sort(values)
	at := func(p float64) string { return fmt.Sprintf(format, stat.Quantile(p, stat.LinInterp, values, nil)) }
	return []string{at(0.5), at(0.25) + " to " + at(0.75)}
}

// sign names all that the table depends on.
func (o *answers) sign(s *sheet, way string) {
	d := o.model.Description()
	s.printf("\n(lab:answers|model:%s@%.12s", d.Name, d.SHA256)
	for i, text := range o.corpora {
		s.printf("|corpus:%s@%.12x", o.names[i], sha256.Sum256([]byte(text)))
	}
	s.printf("%s|version:%s|sentences:%d|seed:%d)\n", way, infill.Version(), *o.sentences, o.seed)
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

// leastEnumerated is the least probability, all blanks masked, of a word that is enumerated.
const leastEnumerated = 1e-5

// compare compares the fills that are proven with those of an enumeration.
func (o *answers) compare(ctx context.Context, s *sheet) error {
	filler := infill.New(o.model, o.model.tokenizer)
	s.table("corpus", "template", "words of the blanks", "rows, enumerated", "rows, search", "same fills",
		"largest relative difference", "least probability")
	for i, name := range o.names {
		for _, text := range maskedSentences(o.corpora[i], 2, *o.sentences, o.seed) {
			result, err := filler.Fill(ctx, text, infill.DefaultOptions(), nil)
			if err != nil {
				return err
			}
			best, words, err := enumerateWords(ctx, o.model, text, len(result.Fills))
			if err != nil {
				return err
			}
			same, difference := 0, 0.0
			for i, fill := range result.Fills {
				if slices.Equal(best[i].tokens[:], fill.TokenIDs) {
					same++
				}
				difference = max(difference, math.Abs(*fill.Probability/best[i].probability-1))
			}
			s.row(name, text, fmt.Sprintf("%d × %d", words[0], words[1]), fmt.Sprint(1+words[0]+words[1]),
				fmt.Sprint(result.Stats.ModelRows),
				fmt.Sprintf("%d of %d", same, len(result.Fills)), fmt.Sprintf("%.1g", difference),
				fmt.Sprintf("%.2g", best[len(best)-1].probability))
		}
	}
	o.sign(s, "|enumerated")
	return nil
}

// enumeratedFill is a fill of two blanks.
type enumeratedFill struct {
	tokens      [2]int
	probability float64
}

// enumerateWords finds the likeliest fills of two blanks from the rows of each word, and how
// many words of each blank that took.
func enumerateWords(ctx context.Context, model *language, text string,
	wanted int) (best []enumeratedFill, number [2]int, err error) {
	template, err := model.tokenizer.Template(text)
	if err != nil {
		return nil, number, err
	}
	first, err := model.MaskedLogProbabilities(ctx, template.IDs, template.Slots)
	if err != nil {
		return nil, number, err
	}
	var words []int
	for id := range first[0] {
		if model.tokenizer.Word(id) && !model.tokenizer.Continues(id) {
			words = append(words, id)
		}
	}
	var rows [2]map[int][]float32 // log p of the other blank, given a word
	ask := func(own int, given []int) error {
		for some := range slices.Chunk(given, 64) {
			var asked []lm.Row
			for _, id := range some {
				ids := slices.Clone(template.IDs)
				ids[template.Slots[own]], ids[template.Slots[1-own]] = id, model.tokenizer.MaskID()
				asked = append(asked, lm.Row{IDs: ids, Position: template.Slots[1-own]})
			}
			then, err := model.LogProbabilities(ctx, asked)
			if err != nil {
				return err
			}
			for i, id := range some {
				rows[own][id] = slices.Clone(then[i])
			}
		}
		return nil
	}
	likely := map[[2]int]bool{}
	for own, logp := range first {
		rows[own] = map[int][]float32{}
		given := slices.DeleteFunc(slices.Clone(words),
			func(id int) bool { return float64(logp[id]) < math.Log(leastEnumerated) })
		if err := ask(own, given); err != nil {
			return nil, number, err
		}
		number[own] = len(given)
		for _, id := range given {
			for _, word := range words {
				if float64(logp[id]+rows[own][id][word]) >= math.Log(leastEnumerated) {
					fill := [2]int{id, word}
					likely[[2]int{fill[own], fill[1-own]}] = true
				}
			}
		}
	}
	for fill := range likely {
		p := 0.0
		for own := range 2 {
			if rows[own][fill[own]] == nil {
				if err := ask(own, fill[own:own+1]); err != nil {
					return nil, number, err
				}
			}
			p += math.Exp(float64(first[own][fill[own]])+float64(rows[own][fill[own]][fill[1-own]])) / 2
		}
		best = append(best, enumeratedFill{fill, p})
	}
	slices.SortFunc(best, func(a, b enumeratedFill) int {
		return cmp.Or(cmp.Compare(b.probability, a.probability), slices.Compare(a.tokens[:], b.tokens[:]))
	})
	if len(best) < wanted || best[wanted-1].probability < leastEnumerated {
		return nil, number,
			fmt.Errorf("%q: words below %g belong to the %d likeliest fills: they are not enumerated", text,
				leastEnumerated, wanted)
	}
	return best[:wanted], number, nil
}
