package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"math"
	"math/rand/v2"
	"time"

	"gonum.org/v1/gonum/stat"

	"infill/infill"
	"infill/lm"
	"infill/samplers"
	"infill/samplers/targets"
	"infill/tokenize"
)

// place is a target that samplers are measured on.
type place struct {
	name   string
	target samplers.Target
	counts func() lm.Counts // nil where there is no model
}

// spec is the sampler with its own settings, which are the papers'; on text with
// those of the command.
func (p place) spec(name string) samplers.Spec {
	return samplers.Spec{Name: name, OnText: p.counts != nil && samplers.Describe(name).OnText != nil}
}

// places are the three targets of the table: the paper's lattice, a table of
// random energies, and a template of three slots on the built-in model.
func places(model *lm.MaskedLM, tokenizer *tokenize.Tokenizer, ctx context.Context) ([]place, error) {
	ising, err := targets.NewIsing(5, 5, 0.1, 0.2)
	if err != nil {
		return nil, err
	}
	table, err := targets.NewTable([]int{8, 8, 8}, rand.New(rand.NewPCG(1, 1)), targets.TableOptions{})
	if err != nil {
		return nil, err
	}
	metric, err := textTarget(ctx, model, tokenizer, "he took his [MASK] , opened the [MASK] , and [MASK] out into the rain .", 100)
	if err != nil {
		return nil, err
	}
	return []place{{"Ising 5 × 5", ising, nil}, {"table 8³", table, nil}, {"text", metric, metric.Counts}}, nil
}

// textTarget is a template on the model, each slot with its most probable tokens.
func textTarget(ctx context.Context, model *lm.MaskedLM, tokenizer *tokenize.Tokenizer, text string, candidates int) (lm.Target, error) {
	template, err := tokenizer.Template(text)
	if err != nil {
		return nil, err
	}
	logp, err := model.MaskedLogProbabilities(ctx, template.IDs, template.Slots)
	if err != nil {
		return nil, err
	}
	support := make([][]int, len(template.Slots))
	for j := range support {
		support[j] = infill.Candidates(tokenizer.Fillable(), logp[j], candidates)
	}
	return model.NewTarget(template.IDs, template.Slots, lm.TargetOptions{Gradient: lm.Local, Support: support, Distances: true})
}

// cell is what one sampler shows on one target.
type cell struct {
	perSecond, perSecondError float64
	rows                      float64 // per step and chain
	refused                   bool
}

func writeSamplers(ctx context.Context, w io.Writer, o options) error {
	model, tokenizer, err := openModel(ctx)
	if err != nil {
		return err
	}
	defer model.Close()
	d := model.Description()
	fmt.Fprintf(w, `# Samplers

Written by `+"`go run ./cmd/measure samplers -o docs/samplers.md`"+`; do not edit. onnxruntime %s, %s with %d threads, model %s (%s).

The step size α is that of the discrete Langevin paper, one convention for all: changing a slot costs 1/α nats in the proposal's logit. Each sampler's file in
`+"`samplers/`"+` begins with its paper, equations, target, what it leaves out and what its step size means.

Effective draws per second: the least of the effective sample sizes of U and of each slot's "holds its most frequent category" (Geyer's initial positive sequence,
chains combined), by the seconds of the run; %d seeds ± standard error, 10 chains, adapted for 100 steps where the sampler can be, then %d steps (text: %d). Targets:
the 5 × 5 Ising torus of the papers (coupling 0.1, field 0.2), a table of random energies over three slots of eight categories, and a template of three slots with 100
candidates each on the built-in model. Rows are masked rows that really ran, per chain and step, on the text: chains share rows, and rows are remembered. "–": the
sampler does not suit the target (binary only, say). Settings are the samplers' defaults, which are the papers'; on the text dmala and dula take those of the command
(β = 1, α from 5). Seconds hang on the machine; on the small targets they measure the sampler's own arithmetic.

| sampler | paper | draws from | exact | cost of a step and chain | Ising 5 × 5 | table 8³ | text | rows |
| --- | --- | --- | --- | --- | --- | --- | --- | --- |
`, d.Runtime, d.Device, d.Threads, d.Name, d.SHA256[:12], o.seeds, stepsSmall, stepsText)
	for _, name := range samplers.Names() {
		d := samplers.Describe(name)
		cells := make([]cell, 3)
		for i := range cells {
			// Every sampler meets a fresh target: nothing is remembered for it.
			fresh, err := places(model, tokenizer, ctx)
			if err != nil {
				return err
			}
			if cells[i], err = measureSampler(ctx, d.Name, fresh[i], o.seeds); err != nil {
				return fmt.Errorf("%s on %s: %w", d.Name, fresh[i].name, err)
			}
		}
		exact, rows := "yes", "–"
		if !d.Exact {
			exact = "no"
		}
		if !cells[2].refused {
			rows = fmt.Sprintf("%.2f", cells[2].rows)
		}
		fmt.Fprintf(w, "| `%s`: %s | %s | %s | %s | %s | %s | %s | %s | %s |\n",
			d.Name, d.Title, d.Paper, d.Target, exact, d.Cost, cells[0], cells[1], cells[2], rows)
		log.Print(d.Name)
	}
	return writeVariation(ctx, w, model, tokenizer)
}

func (c cell) String() string {
	if c.refused {
		return "–"
	}
	return fmt.Sprintf("%.0f ± %.0f", c.perSecond, c.perSecondError)
}

const (
	stepsSmall = 2000
	stepsText  = 150
)

func measureSampler(ctx context.Context, name string, p place, seeds int) (cell, error) {
	const chains, warmUp = 10, 100
	steps := stepsSmall
	if p.counts != nil {
		steps = stepsText
	}
	var rates []float64
	var rows float64
	for seed := range seeds {
		kernel, err := p.spec(name).New(p.target, nil)
		if err != nil {
			return cell{refused: true}, nil
		}
		streams := samplers.Streams(uint64(seed)+1, name+p.name, chains)
		energies, positions := table(chains, steps), make([][]int, steps)
		count := func() int64 {
			if p.counts == nil {
				return 0
			}
			return p.counts().Rows
		}
		var before int64
		var elapsed time.Duration
		var start time.Time
		plan := samplers.Plan{Streams: streams, WarmUp: warmUp, Steps: steps}
		_, err = samplers.Sample(ctx, kernel, samplers.RandomPositions(p.target, streams), plan, func(s samplers.Step) error {
			if s.WarmUp {
				before = count()
			} else {
				elapsed += time.Since(start)
				step := s.Number - warmUp - 1
				positions[step] = append([]int(nil), s.State.Positions...)
				for c, u := range s.State.Energy {
					energies[c][step] = u
				}
			}
			start = time.Now()
			return nil
		})
		if err != nil {
			return cell{}, err
		}
		if p.counts != nil {
			rows += float64(count()-before) / float64(steps*chains*seeds)
		}
		slots := len(p.target.Categories())
		effective := samplers.EffectiveSampleSize(energies) // NaN where the kernel needs no energies
		for j := range slots {
			if e := samplers.EffectiveSampleSize(indicator(positions, chains, slots, j)); math.IsNaN(effective) || e < effective {
				effective = e
			}
		}
		if math.IsNaN(effective) {
			effective = 0
		}
		rates = append(rates, effective/elapsed.Seconds())
	}
	mean, deviation := stat.MeanStdDev(rates, nil)
	return cell{perSecond: mean, perSecondError: stat.StdErr(deviation, float64(len(rates))), rows: rows}, nil
}
