package fills

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"gonum.org/v1/gonum/stat"

	"infill/cmd/lab/internal/lab"
	"infill/infill"
	"infill/internal/eval/corpus"
	"infill/lm"
	"infill/samplers"
)

func newProofs() *lab.Study {
	s := lab.NewStudy("proofs")
	f := s.Flags
	paths := textsFlag(f)
	sentences := lab.WholeFlag(f, "sentences", 100, 2, 1<<30, "sentences of each file, for each number of blanks")
	blanks := lab.NumbersFlag(f, "blanks", []int{2, 3, 4, 5},
		"numbers of blanks in a sentence, with commas between them")
	tops := lab.NumbersFlag(f, "k", []int{1, 5}, "numbers of fills to prove, with commas between them")
	budget := lab.WholeFlag(f, "budget", infill.DefaultRows, 1, 1<<20, "largest number of model rows of a sentence")
	model := f.String("model", "", "`NAME` of a model, or a folder with one (default: the built-in)")
	s.Plan = func(ctx context.Context, in *lab.Inputs, seed uint64) (*lab.Plan, error) {
		texts, err := readTexts(in, *paths)
		if err != nil {
			return nil, err
		}
		opened, err := openLanguage(ctx, *model, in)
		if err != nil {
			return nil, lab.Refuse("model", "%w", err)
		}
		defer opened.Close()
		p := s.NewPlan("what a proof of " + opened.name + " costs")
		p.Between = "sentences"
		for _, text := range texts {
			for _, n := range *blanks {
				prompts, err := maskWords(ctx, infill.New(opened, opened.tokenizer), text, *sentences, n, seed)
				if err != nil {
					return nil, err
				}
				for _, k := range *tops {
					run := &proofs{model: *model, prompts: prompts, top: k, budget: *budget}
					p.Add(1, run.measure, lab.Label{Name: "texts", Value: text.Name},
						lab.Label{Name: "blanks", Value: strconv.Itoa(n)}, lab.Label{Name: "k", Value: strconv.Itoa(k)})
				}
			}
		}
		return p, nil
	}
	return s
}

type proofs struct {
	model       string
	prompts     []corpus.Prompt
	top, budget int
}

// measure proves the likeliest fills of each sentence. One sentence is proven
// at a time, because the rows of one may take half a gigabyte.
func (p *proofs) measure(ctx context.Context, b *lab.Bench) error {
	model, err := openLanguage(ctx, p.model, &lab.Inputs{})
	if err != nil {
		return err
	}
	defer model.Close()
	var rows, least []float64
	for i, prompt := range p.prompts {
		own, fewest, err := p.prove(ctx, model, prompt.Template)
		if err != nil {
			return fmt.Errorf("line %d: %w", prompt.Line, err)
		}
		if fewest > 0 {
			rows = append(rows, float64(own))
			least = append(least, float64(fewest))
		}
		err = b.Tick(ctx, i+1, len(p.prompts))
		if err != nil {
			return err
		}
	}
	b.Number("sentences", float64(len(p.prompts)))
	b.Number("proven", float64(len(rows)))
	if len(rows) == 0 {
		return nil
	}
	b.Estimate("rows")(samplers.MeanAndError(rows))
	b.Estimate("least")(samplers.MeanAndError(least))
	share, standardError := ratio(rows, least)
	b.Estimate("more")(100*(share-1), 100*standardError)
	for name, values := range map[string][]float64{"rows": rows, "least": least} {
		slices.Sort(values)
		for _, percent := range []int{25, 50, 75} {
			quantile := stat.Quantile(float64(percent)/100, stat.Empirical, values, nil)
			b.Number(fmt.Sprintf("%s-%d", name, percent), quantile)
		}
	}
	return nil
}

// prove proves the likeliest fills of a template. It returns the model rows,
// and the least rows of a proof: 0 if the budget ended first.
func (p *proofs) prove(ctx context.Context, model *language, template string) (rows, least int, err error) {
	seen := &witness{language: model}
	result, err := infill.New(seen, model.tokenizer).Fill(ctx, infill.Request{Template: template,
		Top: p.top, Method: infill.Search{Budget: infill.Budget{Rows: p.budget}}}, nil)
	if err != nil {
		return 0, 0, err
	}
	// A search may ask for a row again, where it has forgotten unlikely tokens.
	if len(seen.beginnings) > int(result.Stats.ModelRows) {
		return 0, 0, fmt.Errorf("%d model rows, and %d were seen", result.Stats.ModelRows, len(seen.beginnings))
	}
	if !*result.Proven {
		return int(result.Stats.ModelRows), 0, nil
	}
	return int(result.Stats.ModelRows), seen.likelier(result.Fills[len(result.Fills)-1].LogLikelihood), nil
}

// A witness is a model that remembers which beginnings it was asked about.
type witness struct {
	*language
	slots      []int // positions in the ids
	beginnings map[string]beginning
}

// beginning is a row with some first slots filled, which asks for the next.
type beginning struct {
	mass float64   // log P of the filled slots, by the chain rule
	next []float32 // log p of every token in the next slot
}

func (w *witness) For(*lm.Caller) lm.Asker { return w }

// LogProbabilities implements lm.Asker. Its first row is the empty
// beginning, which asks for all slots.
func (w *witness) LogProbabilities(ctx context.Context, rows []lm.Row) ([][][]float32, error) {
	found, err := w.language.LogProbabilities(ctx, rows)
	if err != nil {
		return nil, err
	}
	for i, row := range rows {
		next := slices.Clone(found[i][0])
		if w.slots == nil {
			w.slots = row.Positions
			lab.Put(&w.beginnings, keyOf(row.IDs), beginning{0, next})
			continue
		}
		last := w.slots[slices.Index(w.slots, row.Positions[0])-1]
		shorter := slices.Clone(row.IDs)
		shorter[last] = w.tokenizer.MaskID()
		before, known := w.beginnings[keyOf(shorter)]
		if !known {
			return nil, errors.New("a row was asked for before the row that it follows from")
		}
		w.beginnings[keyOf(row.IDs)] = beginning{before.mass + float64(before.next[row.IDs[last]]), next}
	}
	return found, nil
}

func keyOf(ids []int) string { return string(samplers.AppendKey(nil, ids...)) }

// likelier counts the beginnings that are at least as likely as the last of the
// proven fills: each could become a likelier one, or that one. A search that
// ended with a proof has asked for all of them.
func (w *witness) likelier(last float64) (count int) {
	const rounding = 1e-9 // log P of a fill is a sum in another order
	for _, b := range w.beginnings {
		if b.mass >= last-rounding {
			count++
		}
	}
	return count
}
