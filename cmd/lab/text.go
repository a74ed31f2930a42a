package main

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"gonum.org/v1/gonum/stat"

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
	tokenizer, err := tokenize.Load(bundle.FS())
	if err != nil {
		return nil, err
	}
	model, err := lm.Open(ctx, bundle, lm.Options{Device: "cpu", MaskID: tokenizer.MaskID(),
		SeparatorID: tokenizer.SeparatorID()})
	return &language{model, tokenizer}, err
}

// blanks are the slots of a template with their most probable tokens.
type blanks struct {
	model    *language
	template *tokenize.Template
	logp     [][]float32 // with all slots masked, [slots × vocabulary]
	support  [][]int
}

// blanks finds that many tokens a slot, all for 0.
func (l *language) blanks(ctx context.Context, text string, candidates int) (*blanks, error) {
	b := &blanks{model: l}
	var err error
	if b.template, err = l.tokenizer.Template(text); err != nil {
		return nil, err
	}
	if b.logp, err = l.MaskedLogProbabilities(ctx, b.template.IDs, b.template.Slots); err != nil {
		return nil, err
	}
	for _, row := range b.logp {
		b.support = append(b.support, infill.Candidates(l.tokenizer.Fillable(), row, candidates))
	}
	return b, nil
}

func (b *blanks) target(o lm.TargetOptions) (lm.Target, error) {
	o.Support = b.support
	return b.model.NewTarget(b.template.IDs, b.template.Slots, o)
}

// trial is one sampler on one target.
type trial struct {
	spec          samplers.Spec
	target        samplers.Target
	streams       []*rand.Rand
	starts        []int
	warmUp, steps int
	rows          func() int64    // that a model ran; nil where there is none
	onlooker      samplers.Target // evaluates energies that only the table asks for; nil for none
}

// figures is what a trial showed after its warm-up.
type figures struct {
	effective           float64 // draws: the least of U's and of every slot's
	mean, best          float64 // U, nats
	distinct            float64 // among the chains' final states
	acceptance, changed float64
	rows, seconds       float64
}

func (t trial) run(ctx context.Context) (f figures, err error) {
	kernel, err := t.spec.New(t.target, nil)
	if err != nil {
		return f, err
	}
	chains := len(t.streams)
	slots := len(t.starts) / chains
	energies, positions := make([][]float64, chains), [][]int(nil)
	var acceptance samplers.Acceptance
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
			f.seconds, f.rows = f.seconds+time.Since(start).Seconds(), count()-before
			acceptance.Observe(s.Info)
			if t.onlooker != nil {
				if err := s.State.Evaluate(ctx, t.onlooker); err != nil {
					return err
				}
			}
			for c, u := range s.State.Energy {
				energies[c] = append(energies[c], u)
			}
			positions = append(positions, slices.Clone(s.State.Positions))
		}
		start = time.Now()
		return nil
	})
	if err != nil {
		return f, err
	}
	f.acceptance, _ = acceptance.Rate()
	f.changed, _ = acceptance.ChangedSlots()
	if f.effective = samplers.EffectiveSampleSize(energies); math.IsNaN(f.effective) {
		f.effective = math.Inf(1) // the kernel needs no energies, or nothing moved
	}
	for j := range slots {
		e := samplers.EffectiveSampleSize(indicator(positions, chains, slots, j))
		if math.IsNaN(e) {
			e = 1 // the slot never moved: all draws together are worth one
		}
		f.effective = min(f.effective, e)
	}
	f.best = math.Inf(-1)
	for _, chain := range energies {
		f.mean += stat.Mean(chain, nil) / float64(chains)
		f.best = max(f.best, slices.Max(chain))
	}
	final := map[string]bool{}
	for c := range chains {
		final[fmt.Sprint(positions[len(positions)-1][c*slots:(c+1)*slots])] = true
	}
	f.distinct = float64(len(final))
	return f, nil
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
