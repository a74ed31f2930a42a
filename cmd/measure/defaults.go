package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"gonum.org/v1/gonum/stat"

	"infill/infill"
	"infill/lm"
	"infill/samplers"
	"infill/tokenize"
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
	balance    string // "" where the sampler has none
	stepSize   float64
	gradient   lm.Gradient
	candidates int // 0: the whole vocabulary
}

func settings() []setting {
	inf := math.Inf(1)
	return []setting{
		// What the others are compared with: the default.
		{"dmala", "1", 0, lm.Local, 250},
		{sampler: "gibbs", candidates: 250},
		{sampler: "mlm-mh", candidates: 250},
		// The papers' square root.
		{"gwg", "sqrt", 0, lm.Full, 250},
		{"pafs", "sqrt", 0, lm.Local, 250},
		{"dlmc", "sqrt", 0, lm.Local, 250},
		{"dula", "sqrt", 0.3, lm.Full, 250},
		{"dmala", "sqrt", 0.1, lm.Full, 250},
		{"dmala", "sqrt", 0.3, lm.Full, 250},
		// Globally balanced.
		{"dula", "1", 5, lm.Local, 250},
		{"dmala", "1", 1, lm.Local, 250},
		{"dmala", "1", 5, lm.Local, 250},
		{"dmala", "1", 5, lm.Full, 250},
		{"dmala", "1", inf, lm.Local, 250},
		// Other candidate sets.
		{"dmala", "1", 5, lm.Local, 50},
		{"dmala", "1", 5, lm.Local, 1000},
	}
}

// protocol is what every run has in common.
type protocol struct {
	chains, steps, warmUp, seeds int
}

// figures is what one run showed.
type figures struct {
	perRow, perSecond   float64 // effective draws, the least of U's and every slot's
	mean, best          float64 // U, nats
	distinct            float64 // among the chains' final states
	acceptance, changed float64
	rows, seconds       float64
}

// writeDefaults measures every setting on every template.
func writeDefaults(ctx context.Context, w io.Writer, o options) error {
	p := protocol{chains: 16, steps: 60, warmUp: 20, seeds: o.seeds}
	model, tokenizer, err := openModel(ctx)
	if err != nil {
		return err
	}
	defer model.Close()

	var b strings.Builder
	header(&b, p, model)
	var baseline []figures
	for _, s := range settings() {
		var all []figures
		for _, text := range templates {
			template, err := tokenizer.Template(text)
			if err != nil {
				return err
			}
			for seed := range p.seeds {
				f, err := measure(ctx, model, tokenizer, template, s, p, uint64(seed)+1)
				if err != nil {
					return fmt.Errorf("%+v: %w", s, err)
				}
				all = append(all, f)
			}
		}
		if baseline == nil {
			baseline = all
		}
		line(&b, s, all, baseline)
		log.Print(s)
	}
	_, err = io.WriteString(w, b.String())
	return err
}

// measure runs one setting on one template.
func measure(ctx context.Context, model *lm.MaskedLM, tokenizer *tokenize.Tokenizer, template *tokenize.Template, s setting, p protocol, seed uint64) (figures, error) {
	streams := samplers.Streams(seed, template.Text, p.chains)
	logp, err := model.MaskedLogProbabilities(ctx, template.IDs, template.Slots)
	if err != nil {
		return figures{}, err
	}
	support := make([][]int, len(template.Slots))
	for j := range support {
		support[j] = infill.Candidates(tokenizer.Fillable(), logp[j], s.candidates)
	}
	target, err := model.NewTarget(template.IDs, template.Slots, lm.TargetOptions{Gradient: s.gradient, Support: support})
	if err != nil {
		return figures{}, err
	}
	// Energies that only the table asks for are evaluated apart.
	onlooker, err := model.NewTarget(template.IDs, template.Slots, lm.TargetOptions{Support: support})
	if err != nil {
		return figures{}, err
	}
	spec := samplers.Spec{Name: s.sampler}
	if s.stepSize != 0 {
		spec = spec.With("step-size", s.stepSize)
	}
	if s.balance != "" {
		spec = spec.With("balance", s.balance)
	}
	kernel, err := spec.New(target, nil)
	if err != nil {
		return figures{}, err
	}
	start := make([]int, 0, p.chains*len(support))
	for _, stream := range streams {
		for j, tokens := range support {
			start = append(start, draw(stream, tokens, logp[j]))
		}
	}
	m, kept := len(support), p.steps-p.warmUp
	energies := table(p.chains, kept)
	positions := make([][]int, kept)
	var acceptance samplers.Acceptance
	var elapsed time.Duration
	var rows int64
	var began time.Time
	before := int64(0)
	plan := samplers.Plan{Streams: streams, WarmUp: p.warmUp, Steps: kept}
	_, err = samplers.Sample(ctx, kernel, start, plan, func(at samplers.Step) error {
		if at.WarmUp {
			began, before = time.Now(), target.Counts().Rows
			return nil
		}
		elapsed, rows = elapsed+time.Since(began), target.Counts().Rows-before
		acceptance.Observe(at.Info)
		if err := at.State.Evaluate(ctx, onlooker); err != nil {
			return err
		}
		step := at.Number - p.warmUp
		for c, u := range at.State.Energy {
			energies[c][step-1] = u
		}
		positions[step-1] = slices.Clone(at.State.Positions)
		began = time.Now()
		return nil
	})
	if err != nil {
		return figures{}, err
	}
	f := figures{rows: float64(max(rows, 1)), seconds: elapsed.Seconds(), best: math.Inf(-1)}
	f.acceptance, _ = acceptance.Rate()
	f.changed, _ = acceptance.ChangedSlots()
	effective := samplers.EffectiveSampleSize(energies)
	for j := range m {
		effective = min(effective, samplers.EffectiveSampleSize(indicator(positions, p.chains, m, j)))
	}
	if math.IsNaN(effective) {
		effective = 1 // nothing moved: all draws together are worth one
	}
	f.perRow, f.perSecond = effective/f.rows, effective/f.seconds
	for _, chain := range energies {
		f.mean += stat.Mean(chain, nil) / float64(p.chains)
		f.best = max(f.best, slices.Max(chain))
	}
	final := map[string]bool{}
	for c := range p.chains {
		final[fmt.Sprint(positions[kept-1][c*m:(c+1)*m])] = true
	}
	f.distinct = float64(len(final))
	return f, nil
}

func table(rows, columns int) [][]float64 {
	t := make([][]float64, rows)
	for i := range t {
		t[i] = make([]float64, columns)
	}
	return t
}

// indicator is, for every chain and step, whether slot j holds the category
// that it holds most often over all draws.
func indicator(positions [][]int, chains, slots, j int) [][]float64 {
	counts := map[int]int{}
	for _, state := range positions {
		for c := range chains {
			counts[state[c*slots+j]]++
		}
	}
	top, most := 0, 0
	for category, n := range counts {
		if n > most || n == most && category < top {
			top, most = category, n
		}
	}
	draws := table(chains, len(positions))
	for step, state := range positions {
		for c := range chains {
			if state[c*slots+j] == top {
				draws[c][step] = 1
			}
		}
	}
	return draws
}

// draw is a category drawn from the model's conditional.
func draw(stream *rand.Rand, tokens []int, logp []float32) int {
	total := 0.0
	for _, id := range tokens {
		total += math.Exp(float64(logp[id]))
	}
	u := total * stream.Float64()
	for k, id := range tokens {
		if u -= math.Exp(float64(logp[id])); u < 0 {
			return k
		}
	}
	return len(tokens) - 1
}

func header(w io.Writer, p protocol, model *lm.MaskedLM) {
	d := model.Description()
	fmt.Fprintf(w, `# How the defaults were chosen

Written by `+"`go run ./cmd/measure defaults -o docs/defaults.md`"+`; do not edit. Model %s (%s), onnxruntime %s, %s with %d threads.

%d templates of two to five slots (in the program's source), %d seeds each; %d chains, %d steps of which the first %d are not counted. A cell is the
mean over the %d runs ± its standard error; of the two ratios it is the geometric mean ×÷ its standard error, since templates differ by orders of magnitude: the fewer
slots, the more rows are shared.

- **ESS per row**: effective draws per masked row that ran through the model; the least of the effective sample sizes of U and of "slot j holds its most
  frequent token" for every j. Rows that chains share, or that are still remembered, run once; a row of a full gradient runs forth and back and costs about
  twice as much, which only ESS per second shows. **Relative**: to the first line, run by run.
- **mean U, best U**: pseudo-log-likelihood of the draws in nats. The targets of different candidate sets differ.
- **distinct**: different fills among the %d final states. High diversity with a low mean U is junk.
- Gibbs and DULA do not target exp U: their ESS says how fast they move, not towards what.

| sampler | β | α | candidates | gradient | ESS per row | relative | ESS per second | mean U | best U | distinct | acceptance | slots changed per step | rows | seconds |
| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |
`, d.Name, d.SHA256[:12], d.Runtime, d.Device, d.Threads,
		len(templates), p.seeds, p.chains, p.steps, p.warmUp, len(templates)*p.seeds, p.chains)
}

func line(w io.Writer, s setting, all, baseline []figures) {
	cell := func(format string, get func(figures) float64) string {
		values := make([]float64, len(all))
		for i, f := range all {
			values[i] = get(f)
		}
		mean, deviation := stat.MeanStdDev(values, nil)
		return fmt.Sprintf(format+" ± "+format, mean, stat.StdErr(deviation, float64(len(values))))
	}
	balance, stepSize, gradient, number := s.balance, "", string(s.gradient), "all"
	if balance == "sqrt" {
		balance = "½"
	}
	if s.stepSize != 0 {
		stepSize = strings.Replace(fmt.Sprint(s.stepSize), "+Inf", "∞", 1)
	} else if s.sampler == "dlmc" || s.sampler == "dmala" {
		stepSize = "adapted"
	}
	if s.candidates > 0 {
		number = fmt.Sprint(s.candidates)
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
	if s.sampler == "gibbs" || s.sampler == "dula" {
		acceptance = "–"
	}
	fmt.Fprintf(w, "| %s |\n", strings.Join([]string{
		s.sampler, balance, stepSize, number, gradient,
		geometric("%.3f", func(i int) float64 { return all[i].perRow }),
		geometric("%.2f", func(i int) float64 { return all[i].perRow / baseline[i].perRow }),
		geometric("%.0f", func(i int) float64 { return all[i].perSecond }),
		cell("%.2f", func(f figures) float64 { return f.mean }),
		cell("%.2f", func(f figures) float64 { return f.best }),
		cell("%.1f", func(f figures) float64 { return f.distinct }),
		acceptance,
		cell("%.2f", func(f figures) float64 { return f.changed }),
		cell("%.0f", func(f figures) float64 { return f.rows }),
		cell("%.1f", func(f figures) float64 { return f.seconds }),
	}, " | "))
}
