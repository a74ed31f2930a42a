package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/google/renameio/v2/maybe"
	"github.com/spf13/cobra"
	"gonum.org/v1/gonum/stat"

	"infill/cmd/lab/internal/lab"
	"infill/infill"
	"infill/internal/targets"
	"infill/lm"
	"infill/models"
	"infill/samplers"
	"infill/tokenize"
)

// newSamplers makes the command that writes a page of the documentation.
func newSamplers() *cobra.Command {
	cmd := &cobra.Command{Use: "samplers", Args: noArguments,
		Short: "Write every sampler's target, cost, exactness and effective draws per second"}
	seeds := lab.Whole(cmd.Flags(), "seeds", 3, 1, 1<<20, "runs of every cell")
	name := cmd.Flags().StringP("model", "m", "", "name or folder; the built-in one when not given")
	path := cmd.Flags().StringP("out", "o", "", "`FILE` to write; standard output when not given")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		ctx, s := cmd.Context(), &sheet{}
		model, err := openLanguage(ctx, *name)
		if err != nil {
			return err
		}
		defer model.Close()
		if err := writeSamplers(ctx, s, model, *seeds); err != nil {
			return err
		}
		if err := writeVariation(ctx, s, model); err != nil {
			return err
		}
		if *path != "" {
			return maybe.WriteFile(*path, s.Bytes(), 0o644)
		}
		_, err = s.WriteTo(cmd.OutOrStdout())
		return err
	}
	return cmd
}

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

// sheet is a page, printed when all of it is there.
type sheet struct{ bytes.Buffer }

func (s *sheet) printf(format string, args ...any) { fmt.Fprintf(s, format, args...) }

// table begins a table.
func (s *sheet) table(head ...string) {
	s.row(head...)
	s.row(slices.Repeat([]string{"---"}, len(head))...)
}

func (s *sheet) row(cells ...string) { s.printf("| %s |\n", strings.Join(cells, " | ")) }

// target is a template as samplers take it, with that many of the most probable tokens a slot.
func (l *language) target(ctx context.Context, text string, candidates int) (lm.Target, error) {
	template, err := l.tokenizer.Template(text)
	if err != nil {
		return nil, err
	}
	logp, err := l.MaskedLogProbabilities(ctx, template.IDs, template.Slots)
	if err != nil {
		return nil, err
	}
	o := lm.TargetOptions{Gradient: lm.Local, Distances: true}
	for _, row := range logp {
		o.Support = append(o.Support, infill.Candidates(l.tokenizer.Fillable(), row, candidates))
	}
	return l.NewTarget(template.IDs, template.Slots, o)
}

// place is a target that samplers are measured on.
type place struct {
	name   string
	target samplers.Target
	steps  int
}

const (
	stepsSmall = 2000
	stepsText  = 150
)

// places are the three targets of the table: the paper's lattice, a table of
// random energies, and a template of three slots on the built-in model.
func places(ctx context.Context, model *language) ([]place, error) {
	ising, failed := targets.NewIsing(5, 5, 0.1, 0.2)
	table, err := targets.NewTable([]int{8, 8, 8}, rand.New(rand.NewPCG(1, 1)), targets.TableOptions{})
	failed = errors.Join(failed, err)
	text, err := model.target(ctx, "he took his [MASK] , opened the [MASK] , and [MASK] out into the rain .", 100)
	return []place{{"Ising 5 × 5", ising, stepsSmall}, {"table 8³", table, stepsSmall}, {"text", text, stepsText}},
		errors.Join(failed, err)
}

func writeSamplers(ctx context.Context, w *sheet, model *language, seeds int) error {
	d := model.Description()
	w.printf(`# Samplers, measured

Written by `+"`go run ./cmd/lab samplers -o docs/measured/samplers.md`"+`; do not edit. onnxruntime %s, %s with %d threads, model %s (%s). [Which sampler](../reference/samplers.md) says which to take.

The last four columns are measured. Three of them are effective draws a second on a target:

- **Ising 5 × 5**: the torus of the papers (coupling 0.1, field 0.2).
- **table 8³**: random energies over three slots of eight categories.
- **text**: three slots with 100 candidates each, on the built-in model.

The fourth, **rows**, is model rows per chain and step on the text, where chains share rows.

Effective draws are the least of the effective sample sizes of the energy U and of each slot's "holds its most frequent category" (Geyer's initial positive sequence). %d seeds ±
standard error, 10 chains, 100 steps of warm-up where the sampler adapts, then %d steps (text: %d). "–" means that the sampler does not suit the target. Settings are the
defaults: those of the papers, and on the text β = 1 and α from 5 for dmala and dula. A change of one slot costs 1/α nats in the proposal. Seconds depend on the machine.

`, d.Runtime, d.Device, d.Threads, d.Name, d.SHA256[:12], seeds, stepsSmall, stepsText)
	w.table("sampler", "paper", "draws from", "exact", "cost of a step and chain", "Ising 5 × 5", "table 8³", "text",
		"rows")
	for _, name := range samplers.Names() {
		d := samplers.Describe(name)
		exact, rows := "yes", "–"
		if !d.Exact {
			exact = "no"
		}
		cells := []string{fmt.Sprintf("`%s`: %s", d.Name, d.Title), d.Paper, d.Target, exact, d.Cost}
		// Every sampler meets fresh targets: nothing is remembered for it.
		fresh, err := places(ctx, model)
		if err != nil {
			return err
		}
		for _, p := range fresh {
			cell := "–"
			if _, err := samplers.New(name, p.target); err == nil {
				if cell, rows, err = measureSampler(ctx, name, p, seeds); err != nil {
					return fmt.Errorf("%s on %s: %w", name, p.name, err)
				}
			}
			cells = append(cells, cell)
		}
		w.row(append(cells, rows)...)
		log.Print(name)
	}
	return nil
}

// sampled runs a sampler's chains from uniform starts.
func sampled(ctx context.Context, spec samplers.Spec, target samplers.Target, streams []*rand.Rand, warmUp, steps int,
	observe func(samplers.Step)) error {
	kernel, err := spec.New(target, nil)
	if err != nil {
		return err
	}
	_, err = samplers.Sample(ctx, kernel, samplers.RandomPositions(target, streams),
		samplers.Plan{Streams: streams, WarmUp: warmUp, Steps: steps}, func(s samplers.Step) error {
			observe(s)
			return nil
		})
	return err
}

// measureSampler gives effective draws per second, the least of U's and of every slot's, and model rows per step and
// chain, "–" where there is no model. On text the settings are those of the command.
func measureSampler(ctx context.Context, name string, p place, seeds int) (perSecond, rows string, err error) {
	text, ofModel := p.target.(lm.Target)
	spec := samplers.Spec{Name: name, OnText: ofModel && samplers.Describe(name).OnText != nil}
	ran := func() int64 {
		if ofModel {
			return text.Counts().Rows
		}
		return 0
	}
	var rates, perStep []float64
	for seed := range seeds {
		streams := samplers.Streams(uint64(seed)+1, name+p.name, 10)
		draws := make([][][]float64, 1+len(p.target.Categories())) // U, and every slot, [chains][steps]
		for i := range draws {
			draws[i] = make([][]float64, len(streams))
		}
		before, seconds, start := int64(0), 0.0, time.Now()
		err := sampled(ctx, spec, p.target, streams, 100, p.steps, func(s samplers.Step) {
			if s.WarmUp {
				before = ran()
			} else {
				seconds += time.Since(start).Seconds()
				for c, u := range s.State.Energy {
					draws[0][c] = append(draws[0][c], u)
					for j, v := range s.State.Position(c) {
						draws[1+j][c] = append(draws[1+j][c], float64(v))
					}
				}
			}
			start = time.Now()
		})
		if err != nil {
			return "", "", err
		}
		effective := samplers.EffectiveSampleSize(draws[0])
		if math.IsNaN(effective) {
			effective = math.Inf(1) // the kernel needs no energies, or nothing moved
		}
		for _, slot := range draws[1:] {
			held(slot)
			e := samplers.EffectiveSampleSize(slot)
			if math.IsNaN(e) {
				e = 1 // the slot never moved: all draws together are worth one
			}
			effective = min(effective, e)
		}
		rates = append(rates, effective/seconds)
		perStep = append(perStep, float64(ran()-before)/float64(p.steps*len(streams)))
	}
	if rows = "–"; ofModel {
		rows = fmt.Sprintf("%.2f", stat.Mean(perStep, nil))
	}
	return lab.MeanAndError("%.0f", rates), rows, nil
}

// held turns the categories of a slot into whether it holds the one that it holds most often over all draws.
func held(draws [][]float64) {
	counts := map[float64]int{}
	for _, v := range slices.Concat(draws...) {
		counts[v]++
	}
	top := math.Inf(1)
	for v, n := range counts {
		if n > counts[top] || n == counts[top] && v < top {
			top = v
		}
	}
	for _, chain := range draws {
		for i, v := range chain {
			if chain[i] = 0; v == top {
				chain[i] = 1
			}
		}
	}
}

// The total variation between a sampler's draws and an enumerated law of two slots.
const (
	variationText = "the old [MASK] sat by the [MASK] and said nothing ."
	variationSide = 40
)

func writeVariation(ctx context.Context, w *sheet, model *language) error {
	target, err := model.target(ctx, variationText, variationSide)
	if err != nil {
		return err
	}
	e, err := targets.Enumerate(ctx, target)
	if err != nil {
		return err
	}
	w.printf(`
## Draws against the enumerated law

Total variation between the draws and exp(U) on the built-in model, "%s", %d candidates a slot, all %d fills enumerated; 50 chains from uniform
starts, 200 steps before the first draw. The last line is what independent draws show on average. Gibbs and DULA do not target exp U and stay away from it.

`, variationText, variationSide, e.Len())
	w.table("sampler", "1,000 draws", "10,000", "100,000")
	for _, name := range samplers.NamesFor(target) {
		marks, err := variations(ctx, target, name, e)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		w.row(append([]string{"`" + name + "`"}, marks...)...)
	}
	cells := []string{"independent"}
	for _, n := range []float64{1e3, 1e4, 1e5} {
		// Each frequency is off by √(p(1−p)/n), of which a normal deviate is √(2/π) on average.
		sum := 0.0
		for _, p := range e.Probability {
			sum += math.Sqrt(2/math.Pi*p*(1-p)/n) / 2
		}
		cells = append(cells, fmt.Sprintf("%.3f", sum))
	}
	w.row(cells...)
	return nil
}

// variations is the total variation after 1,000, 10,000 and 100,000 draws.
func variations(ctx context.Context, target samplers.Target, name string,
	e *targets.Enumeration) (marks []string, err error) {
	const chains, warmUp, steps = 50, 200, 2000
	counts := make([]float64, e.Len())
	err = sampled(ctx, samplers.Spec{Name: name}, target, samplers.Streams(1, name, chains), warmUp, steps,
		func(s samplers.Step) {
			if s.WarmUp {
				return
			}
			for c := range chains {
				counts[e.Index(s.State.Position(c))]++
			}
			if step := s.Number - warmUp; step == 20 || step == 200 || step == 2000 {
				distance := 0.0
				for i, p := range e.Probability {
					distance += math.Abs(counts[i]/float64(step*chains)-p) / 2
				}
				marks = append(marks, fmt.Sprintf("%.3f", distance))
			}
		})
	return marks, err
}
