package lm_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"gonum.org/v1/gonum/stat"

	"infill/infill"
	"infill/lm"
	"infill/models"
	"infill/models/modelstest"
	"infill/samplers"
	"infill/tokenize"
)

// A form of the model has the same sessions each time, shares nothing of numbers
// with the others, and lives as long as the model.
func TestIn(t *testing.T) {
	m := open(t)
	same, err := m.In(lm.FP32)
	if err != nil || same != m {
		t.Errorf("its own precision: %p, %v, want %p", same, err, m)
	}
	form, err := m.In(lm.INT8)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := m.In(lm.INT8); err != nil || again != form || form.Precision() != lm.INT8 || form.Device() != m.Device() {
		t.Errorf("a second time: %p, %v, %s on %s; want %p", again, err, form.Precision(), form.Device(), form)
	}
	if _, err := m.In("int4"); err == nil || !strings.Contains(err.Error(), "fp32, fp16, int8") {
		t.Errorf("int4: error %v", err)
	}
	w := newWorkload(3, 20, 2, 50)
	energies := map[*lm.MaskedLM][]float64{}
	for _, m := range []*lm.MaskedLM{m, form} {
		target, err := m.NewTarget(w.ids, w.slots, lm.TargetOptions{Support: w.support})
		if err != nil {
			t.Fatal(err)
		}
		energies[m] = make([]float64, 3)
		if err := target.Energy(t.Context(), w.states, energies[m]); err != nil {
			t.Fatal(err)
		}
	}
	if d := math.Abs(energies[m][0] - energies[form][0]); !(d > 1e-6 && d < 1) {
		t.Errorf("energies %v in fp32, %v in int8", energies[m], energies[form])
	}
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	target, err := form.NewTarget(w.ids, w.slots, lm.TargetOptions{Support: w.support})
	if err == nil {
		err = target.Energy(t.Context(), w.states, make([]float64, 3))
	}
	if err == nil {
		t.Error("the form runs after its model was closed")
	}
}

// BenchmarkProposals measures what proposals in integers are worth: effective draws
// of U per second by single precision alone, by integers alone (another law), and
// by 1 to 8 integer steps for each step of single precision. Every run has a seed
// and fresh targets. With -update it writes the table in docs/models.md.
func BenchmarkProposals(b *testing.B) {
	const chains, warmUp, steps = 25, 40, 240
	one, err := samplers.Power(1)
	if err != nil {
		b.Fatal(err)
	}
	bundle, err := models.Open("")
	if err != nil {
		b.Fatal(err)
	}
	tokenizer, err := tokenize.Load(bundle.FS())
	if err != nil {
		b.Fatal(err)
	}
	m := open(b)
	form, err := m.In(lm.INT8)
	if err != nil {
		b.Fatal(err)
	}
	template, err := tokenizer.Template("he took his [MASK] , opened the [MASK] , and [MASK] out into the [MASK] , without a [MASK] to her .")
	if err != nil {
		b.Fatal(err)
	}
	logp, err := m.MaskedLogProbabilities(b.Context(), template.IDs, template.Slots)
	if err != nil {
		b.Fatal(err)
	}
	support := make([][]int, len(template.Slots))
	for j := range support {
		support[j] = infill.Candidates(tokenizer.Fillable(), logp[j], 250)
	}
	target := func(m *lm.MaskedLM) *lm.Target {
		t, err := m.NewTarget(template.IDs, template.Slots, lm.TargetOptions{Gradient: lm.Local, Support: support})
		if err != nil {
			b.Fatal(err)
		}
		return t
	}
	var table strings.Builder
	for _, sampler := range []string{"dmala", "mlm-mh"} {
		for _, c := range []struct {
			name  string
			steps int // of integers for each of single precision
		}{{"fp32", 0}, {"int8", 0}, {"fp32, proposals of 1 step in int8", 1}, {"of 2", 2}, {"of 4", 4}, {"of 8", 8}} {
			seed := uint64(0)
			var rates, accepted []float64
			b.Run(strings.ReplaceAll(sampler+"/"+c.name, " ", "-"), func(b *testing.B) {
				for b.Loop() {
					seed++
					over, near := target(m), target(form)
					o := samplers.Options{}
					if sampler == "dmala" {
						o = samplers.Options{Balance: one, StepSize: 20}
					}
					from, n := over, steps
					switch {
					case c.name == "int8":
						from = near
					case c.steps > 0:
						o.Surrogate, o.SurrogateSteps = near, c.steps
						n = steps / c.steps
					}
					kernel, err := samplers.New(sampler, from, o)
					if err != nil {
						b.Fatal(err)
					}
					rate, acceptance := effectivePerSecond(b, kernel, from, samplers.Streams(seed, sampler, chains), warmUp/max(1, c.steps), n)
					rates, accepted = append(rates, rate), append(accepted, acceptance)
				}
				mean, deviation := stat.MeanStdDev(rates, nil)
				b.ReportMetric(mean, "draws/s")
				fmt.Fprintf(&table, "| `%s` | %s | %.2f | %.0f ± %.0f |\n", sampler, c.name, stat.Mean(accepted, nil), mean, stat.StdErr(deviation, float64(len(rates))))
			})
		}
	}
	if *update {
		writeTable(b, "proposals", "go test ./lm -run '^$' -bench Proposals -benchtime 8x -update",
			"| sampler | precision | acceptance | effective draws of U per second |\n| --- | --- | ---: | ---: |\n"+table.String())
	}
}

// effectivePerSecond runs chains from uniform states.
func effectivePerSecond(b *testing.B, kernel samplers.Kernel, target samplers.Target, streams []*rand.Rand, warmUp, steps int) (rate, acceptance float64) {
	ctx := b.Context()
	state, err := kernel.Init(ctx, samplers.RandomPositions(target, streams))
	if err == nil {
		err = samplers.Run(ctx, kernel, state, streams, warmUp, nil)
	}
	if err != nil {
		b.Fatal(err)
	}
	draws := make([][]float64, len(streams))
	var accepted samplers.Acceptance
	start := time.Now()
	err = samplers.Run(ctx, kernel, state, streams, steps, func(_ int, state *samplers.State, info *samplers.Info) error {
		accepted.Observe(info)
		for c, u := range state.Energy {
			draws[c] = append(draws[c], u)
		}
		return nil
	})
	seconds := time.Since(start).Seconds()
	if err != nil {
		b.Fatal(err)
	}
	acceptance, _ = accepted.Rate()
	return samplers.EffectiveSampleSize(draws) / seconds, acceptance
}

// BenchmarkPrecisions measures rows per second of energies in single precision and
// in integers, of the built-in model and of one of BERT-base's shape: 25 chains, 5
// slots in 24 tokens, 250 candidates. With -update it writes the table in
// docs/models.md.
func BenchmarkPrecisions(b *testing.B) {
	base := b.TempDir()
	if err := modelstest.WriteJSON(base, []byte(published[0].config), modelstest.Options{}); err != nil {
		b.Fatal(err)
	}
	var table strings.Builder
	for _, c := range []struct {
		name, model string
		mask        int
	}{{"mini-uncased (built in)", "", maskID}, {"bert-base, random weights", base, publishedMask}} {
		bundle, err := models.Open(c.model)
		if err != nil {
			b.Fatal(err)
		}
		m := openBundle(b, bundle, c.mask)
		fmt.Fprintf(&table, "| %s |", c.name)
		var means []float64
		for _, precision := range []string{lm.FP32, lm.INT8} {
			form, err := m.In(precision)
			if err != nil {
				b.Fatal(err)
			}
			b.Run(strings.Fields(c.name)[0]+"/"+precision, func(b *testing.B) {
				const chains, slots = 25, 5
				w := newWorkload(chains, 24, slots, 250)
				if err := w.run(b.Context(), form, false); err != nil { // makes the session
					b.Fatal(err)
				}
				var rates []float64
				for b.Loop() {
					start := time.Now()
					if err := w.run(b.Context(), form, false); err != nil {
						b.Fatal(err)
					}
					rates = append(rates, chains*slots/time.Since(start).Seconds())
				}
				mean, deviation := stat.MeanStdDev(rates, nil)
				b.ReportMetric(mean, "rows/s")
				means = append(means, mean)
				fmt.Fprintf(&table, " %.0f ± %.0f |", mean, stat.StdErr(deviation, float64(len(rates))))
			})
		}
		if len(means) == 2 {
			fmt.Fprintf(&table, " %.2f |\n", means[1]/means[0])
		}
	}
	if *update {
		writeTable(b, "integers", "go test ./lm -run '^$' -bench Precisions -benchtime 20x -update",
			"| model | fp32, rows/s | int8, rows/s | ratio |\n| --- | ---: | ---: | ---: |\n"+table.String())
	}
}
