package main

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"infill/infill"
	"infill/lm"
	"infill/models"
	"infill/samplers"
	"infill/tokenize"
)

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

// trial is one sampler on one target.
type trial struct {
	spec          samplers.Spec
	target        samplers.Target
	streams       []*rand.Rand
	starts        []int
	warmUp, steps int
	rows          func() int64 // that a model ran; nil where there is none
}

// run is the effective draws after the warm-up, the least of U's and of every slot's, and what they cost.
func (t trial) run(ctx context.Context) (effective, seconds, rows float64, err error) {
	kernel, err := t.spec.New(t.target, nil)
	if err != nil {
		return 0, 0, 0, err
	}
	chains := len(t.streams)
	slots := len(t.starts) / chains
	energies, positions := make([][]float64, chains), [][]int(nil)
	count := func() float64 {
		if t.rows == nil {
			return 0
		}
		return float64(t.rows())
	}
	var start time.Time
	before := 0.0
	plan := samplers.Plan{Streams: t.streams, WarmUp: t.warmUp, Steps: t.steps}
	_, err = samplers.Sample(ctx, kernel, t.starts, plan, func(s samplers.Step) error {
		if s.WarmUp {
			before = count()
		} else {
			seconds, rows = seconds+time.Since(start).Seconds(), count()-before
			for c, u := range s.State.Energy {
				energies[c] = append(energies[c], u)
			}
			positions = append(positions, slices.Clone(s.State.Positions))
		}
		start = time.Now()
		return nil
	})
	if err != nil {
		return 0, 0, 0, err
	}
	if effective = samplers.EffectiveSampleSize(energies); math.IsNaN(effective) {
		effective = math.Inf(1) // the kernel needs no energies, or nothing moved
	}
	for j := range slots {
		e := samplers.EffectiveSampleSize(indicator(positions, chains, slots, j))
		if math.IsNaN(e) {
			e = 1 // the slot never moved: all draws together are worth one
		}
		effective = min(effective, e)
	}
	return effective, seconds, rows, nil
}

// indicator is, for every chain and step, whether slot j holds the category that it holds most often over all draws.
func indicator(positions [][]int, chains, slots, j int) [][]float64 {
	counts := map[int]int{}
	top := math.MaxInt
	for _, state := range positions {
		for c := range chains {
			counts[state[c*slots+j]]++
		}
	}
	for category, n := range counts {
		if n > counts[top] || n == counts[top] && category < top {
			top = category
		}
	}
	draws := make([][]float64, chains)
	for _, state := range positions {
		for c := range chains {
			held := 0.0
			if state[c*slots+j] == top {
				held = 1
			}
			draws[c] = append(draws[c], held)
		}
	}
	return draws
}
