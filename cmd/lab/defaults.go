package main

import (
	"context"
	"fmt"
	"log"
	"math"
	"strings"

	"gonum.org/v1/gonum/stat"

	"infill/cmd/lab/internal/lab"
	"infill/lm"
	"infill/samplers"
)

// templates are those measured, of two to five slots: with a single slot its
// masked row is all there is, and one row is worth any number of draws.
var templates = []string{
	"the old [MASK] sat by the [MASK] and said nothing .",
	"the [MASK] of the river was [MASK] for many [MASK] after the war .",
	"i had never [MASK] such a [MASK] , and i [MASK] him so [MASK] .",
	"in the [MASK] the [MASK] were [MASK] , but the [MASK] of the [MASK] remained .",
}

// setting is a row of the table.
type setting struct {
	sampler    string
	gradient   lm.Gradient // "" where the sampler uses none
	candidates int
}

func settings() []setting {
	return []setting{
		// What the others are compared with: the default.
		{"dmala:balance=1", lm.Local, 250},
		{"gibbs", "", 250},
		{"mlm-mh", "", 250},
		{"chain-block", "", 250},
		{"independence", "", 250},
		// The papers' square root.
		{"gwg", lm.Full, 250},
		{"pafs", lm.Local, 250},
		{"dlmc", lm.Local, 250},
		{"dula:step-size=0.3", lm.Full, 250},
		{"dmala:step-size=0.1", lm.Full, 250},
		{"dmala:step-size=0.3", lm.Full, 250},
		// Globally balanced.
		{"dula:balance=1,step-size=5", lm.Local, 250},
		{"dmala:balance=1,step-size=1", lm.Local, 250},
		{"dmala:balance=1,step-size=5", lm.Local, 250},
		{"dmala:balance=1,step-size=5", lm.Full, 250},
		{"dmala:balance=1,step-size=inf", lm.Local, 250},
		// Other candidate sets.
		{"dmala:balance=1,step-size=5", lm.Local, 50},
		{"dmala:balance=1,step-size=5", lm.Local, 1000},
	}
}

// writeDefaults measures every setting on every template.
func writeDefaults(ctx context.Context, w *sheet, seeds int) error {
	const chains, steps, warmUp = 16, 60, 20 // the warm-up is one of the steps
	model := w.models[0]
	d := model.Description()
	w.printf(`# How the defaults were chosen

Written by `+"`go run ./cmd/lab defaults -o docs/measured/defaults.md`"+`; do not edit. Model %s (%s), onnxruntime %s, %s with %d threads.

%d templates of two to five slots, %d seeds each; %d chains of %d steps, of which the first %d do not count. A cell is the mean over the %d runs ± its standard error. The
two ratios are the geometric mean ×÷ its standard error.

- **ESS per row**: effective draws per model row; the least of the effective sample sizes of U and of each slot's "holds its most frequent token". Shared rows count once. A row of a
  full gradient costs about twice as much, which only ESS per second shows. **Relative** is to the first line, run by run.
- **mean U, best U**: the pseudo-log-likelihood of the draws in nats. The targets of different candidate sets differ.
- **distinct**: different fills among the %d final states. Many of them with a low mean U are junk.

Gibbs and DULA do not target exp U: their ESS says how fast they move, not towards what.

`, d.Name, d.SHA256[:12], d.Runtime, d.Device, d.Threads,
		len(templates), seeds, chains, steps, warmUp, len(templates)*seeds, chains)
	w.table("sampler", "β", "α", "candidates", "gradient", "ESS per row", "relative", "ESS per second", "mean U",
		"best U", "distinct", "acceptance", "slots changed per step", "rows", "seconds")
	var baseline []figures
	for _, s := range settings() {
		spec, err := samplers.Parse(s.sampler)
		if err != nil {
			return err
		}
		var all []figures
		for _, text := range templates {
			for seed := range seeds {
				f, err := measure(ctx, model, text, s, trial{
					spec: spec, streams: samplers.Streams(uint64(seed)+1, text, chains), warmUp: warmUp,
					steps: steps - warmUp,
				})
				if err != nil {
					return fmt.Errorf("%+v: %w", s, err)
				}
				all = append(all, f)
			}
		}
		if baseline == nil {
			baseline = all
		}
		writeSetting(w, s, spec, all, baseline)
		log.Print(s)
	}
	return nil
}

// measure runs a trial on a template, from draws of the model.
func measure(ctx context.Context, model *language, text string, s setting, t trial) (figures, error) {
	b, err := model.blanks(ctx, text, s.candidates)
	if err != nil {
		return figures{}, err
	}
	target, err := b.target(lm.TargetOptions{Gradient: s.gradient})
	if err != nil {
		return figures{}, err
	}
	if t.onlooker, err = b.target(lm.TargetOptions{}); err != nil {
		return figures{}, err
	}
	t.target, t.starts, t.rows = target, b.starts(t.streams), func() int64 { return target.Counts().Rows }
	f, err := t.run(ctx)
	f.rows = max(f.rows, 1)
	return f, err
}

func writeSetting(w *sheet, s setting, spec samplers.Spec, all, baseline []figures) {
	cell := func(format string, get func(figures) float64) string {
		values := make([]float64, len(all))
		for i, f := range all {
			values[i] = get(f)
		}
		return lab.MeanAndError(format, values)
	}
	balance := strings.Replace(spec.Value("balance"), "sqrt", "½", 1)
	stepSize := ""
	for _, a := range spec.Settings {
		if a.Setting == "step-size" {
			stepSize = strings.Replace(a.Value, "inf", "∞", 1)
		}
	}
	d := samplers.Describe(spec.Name)
	if stepSize == "" && d.Tunes == "step-size" {
		stepSize = "adapted"
	}
	// Ratios differ by orders of magnitude between templates: their geometric
	// mean, and that of the quotients run by run.
	geometric := func(format string, get func(i int) float64) string {
		logs := make([]float64, len(all))
		for i := range all {
			logs[i] = math.Log(get(i))
		}
		mean, deviation := stat.MeanStdDev(logs, nil)
		return fmt.Sprintf(format+" ×÷ %.2f", math.Exp(mean), math.Exp(stat.StdErr(deviation, float64(len(logs)))))
	}
	acceptance := cell("%.2f", func(f figures) float64 { return f.acceptance })
	if !d.Exact {
		acceptance = "–"
	}
	w.row(
		spec.Name, balance, stepSize, fmt.Sprint(s.candidates), string(s.gradient),
		geometric("%.3f", func(i int) float64 { return all[i].effective / all[i].rows }),
		geometric("%.2f", func(i int) float64 {
			return all[i].effective / all[i].rows / (baseline[i].effective / baseline[i].rows)
		}),
		geometric("%.0f", func(i int) float64 { return all[i].effective / all[i].seconds }),
		cell("%.2f", func(f figures) float64 { return f.mean }),
		cell("%.2f", func(f figures) float64 { return f.best }),
		cell("%.1f", func(f figures) float64 { return f.distinct }),
		acceptance,
		cell("%.2f", func(f figures) float64 { return f.changed }),
		cell("%.0f", func(f figures) float64 { return f.rows }),
		cell("%.1f", func(f figures) float64 { return f.seconds }),
	)
}
