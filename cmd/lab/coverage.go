package main

import (
	"cmp"
	"context"
	"encoding/binary"
	"flag"
	"fmt"
	"log"
	"math"
	"slices"

	"github.com/spf13/cobra"
	"gonum.org/v1/gonum/floats"

	"infill/cmd/lab/internal/lab"
	"infill/infill"
	"infill/lm"
	"infill/samplers"
)

const coverageLong = `Measure whether the errors hold that joint pll prints: all fills are enumerated, and many
runs, each with its own seed, are compared with the law. Model rows are remembered
between the runs, and each run counts those that it would have needed alone, so its
budget is that of a user. Without templates those of docs/measured/draws.md are taken.`

// coverageTemplates are those whose law is enumerated. The second has modes in which two blanks copy each other.
var coverageTemplates = []string{
	"he had not [MASK] the [MASK] since the [MASK] .",
	"they were [MASK] and [MASK] at the same [MASK] .",
	"in the early [MASK] century , the [MASK] was [MASK] by the king .",
}

// likeliest is how many fills are compared.
const likeliest = 10

type coverageOptions struct{ candidates, seeds, budget int }

func newCoverage() *cobra.Command {
	o := coverageOptions{candidates: 40, seeds: 200, budget: infill.DefaultOptions().Budget.Rows}
	return measuring{use: "coverage [TEMPLATE ...]", short: "Measure whether the errors of probabilities hold",
		long: coverageLong, arguments: true,
		register: func(f *flag.FlagSet) {
			lab.WholeVar(f, &o.candidates, "candidates", 2, 1<<16, "of each blank")
			lab.WholeVar(f, &o.seeds, "seeds", 2, 1<<30, "runs")
			lab.WholeVar(f, &o.budget, "budget", 1, 1<<30, "model rows of a run")
		},
		measure: func(ctx context.Context, s *sheet) error {
			if len(s.arguments) == 0 {
				s.arguments = coverageTemplates
			}
			s.table("template", "joint", "candidates", "fills", "rows", "holds, %", "without a warning, %",
				"runs with a warning", "unwarned, far off", "unwarned, missing", "standard error, mean %",
				"marginals of 0.1 to 1 %, held %", "of 1 to 10 %", "above 10 %", "marginals, far off")
			for _, text := range s.arguments {
				if err := s.models[0].coverage(ctx, s, text, o); err != nil {
					return fmt.Errorf("%q: %w", text, err)
				}
			}
			return nil
		},
	}.newCmd()
}

// remembering is a model that makes one target, and remembers its rows: those that a
// run needed are there in the next, so that many runs cost little more than one.
type remembering struct {
	*language
	target *enumerated
}

// NewTarget gives back the target that was made first, as if it were new.
func (m *remembering) NewTarget(ids, slots []int, o lm.TargetOptions) (lm.Target, error) {
	if m.target == nil {
		made, err := m.language.NewTarget(ids, slots, o)
		if err != nil {
			return nil, err
		}
		t := &enumerated{support: o.Support}
		t.modelTarget = made.(modelTarget)
		for j := range slots { // the pseudo-log-likelihood
			mask := make([]bool, len(slots))
			mask[j] = true
			t.masks = append(t.masks, mask)
		}
		m.target = t
	}
	m.target.rows = map[string]struct{}{}
	return m.target, nil
}

type modelTarget interface {
	lm.EnumerableTarget
	samplers.MaskedConditionalTarget
}

// enumerated is a model's target with the energies of all fills, which counts the rows
// that a run would have run: [lm.Target] would tell of those that are not remembered.
type enumerated struct {
	modelTarget
	support [][]int
	masks   [][]bool  // of the rows of an energy
	energy  []float64 // of all fills; nil: not yet
	// The law is exp(U/temperature - logZ).
	temperature, logZ float64
	marginals         [][]float64 // of each blank's candidates
	rows              map[string]struct{}
	key               []byte
}

// enumerate finds the energies of all fills.
func (t *enumerated) enumerate(ctx context.Context) error {
	fills := 1
	for _, tokens := range t.support {
		fills *= len(tokens)
	}
	energy := make([]float64, fills)
	if err := t.Enumerate(ctx, energy, nil); err != nil {
		return err
	}
	law := make([]float64, len(energy))
	for i, u := range energy {
		law[i] = u / t.temperature
	}
	t.energy, t.logZ, t.marginals = energy, floats.LogSumExp(law), nil
	for _, tokens := range t.support {
		t.marginals = append(t.marginals, make([]float64, len(tokens)))
	}
	for i, u := range law {
		for j := len(t.support) - 1; j >= 0; j-- {
			n := len(t.support[j])
			t.marginals[j][i%n] += math.Exp(u - t.logZ)
			i /= n
		}
	}
	return nil
}

// marginalRanges bound the marginals that are counted together.
var marginalRanges = [...]float64{0.001, 0.01, 0.1, 1}

// held counts the marginals of which the 95 % interval holds the true one, by how large that
// is, and those more than five errors off.
type held struct {
	held, of [len(marginalRanges) - 1]float64
	far      int
}

func (h *held) count(t *enumerated, r *infill.Result) {
	for blank, values := range r.Marginals {
		for _, v := range values {
			want := t.marginals[blank][slices.Index(t.support[blank], v.TokenIDs[0])]
			at := slices.IndexFunc(marginalRanges[1:], func(most float64) bool { return want <= most })
			if at < 0 || want < marginalRanges[0] {
				continue
			}
			h.of[at]++
			if d := math.Abs(v.Probability - want); d <= 1.96*v.StandardError {
				h.held[at]++
			} else if d > 5*v.StandardError {
				h.far++
			}
		}
	}
}

// at is the place of a fill.
func (t *enumerated) at(state []int) int {
	at := 0
	for j, v := range state {
		at = at*len(t.support[j]) + v
	}
	return at
}

// place is that of the tokens of a fill.
func (t *enumerated) place(tokens []int) int {
	state := make([]int, len(tokens))
	for j, id := range tokens {
		state[j] = slices.Index(t.support[j], id)
	}
	return t.at(state)
}

func (t *enumerated) ask(state []int, open []bool) {
	t.key = t.key[:0]
	for j, v := range state {
		if open[j] {
			v = -1
		}
		t.key = binary.AppendVarint(t.key, int64(v))
	}
	if _, ok := t.rows[string(t.key)]; !ok {
		t.rows[string(t.key)] = struct{}{}
	}
}

func (t *enumerated) askAll(states []int, open []bool) {
	m := len(t.support)
	for at := 0; at < len(states); at += m {
		t.ask(states[at:at+m], open[at:at+m])
	}
}

// Counts are of this run.
func (t *enumerated) Counts() lm.Counts { return lm.Counts{Rows: int64(len(t.rows))} }

// Energy implements samplers.Target.
func (t *enumerated) Energy(ctx context.Context, states []int, energy []float64) error {
	m := len(t.support)
	for c := range energy {
		for _, mask := range t.masks {
			t.ask(states[c*m:(c+1)*m], mask)
		}
		if t.energy != nil {
			energy[c] = t.energy[t.at(states[c*m:(c+1)*m])]
		}
	}
	if t.energy == nil {
		return t.modelTarget.Energy(ctx, states, energy)
	}
	return nil
}

// LogMaskedConditionals implements samplers.MaskedConditionalTarget.
func (t *enumerated) LogMaskedConditionals(ctx context.Context, states []int, open []bool, logp []float64) error {
	t.askAll(states, open)
	return t.modelTarget.LogMaskedConditionals(ctx, states, open, logp)
}

// coverage writes how often the intervals of auto hold the enumerated probability, and
// whether it lists the likeliest fills.
func (l *language) coverage(ctx context.Context, sheet *sheet, text string, c coverageOptions) error {
	model := &remembering{language: l}
	filler := infill.New(model, l.tokenizer)
	o := infill.DefaultOptions()
	o.Joint, o.Candidates, o.Top, o.Budget = infill.JointPLL, c.candidates, likeliest, infill.Budget{Rows: 1}
	if _, err := filler.Fill(ctx, text, o, nil); err != nil { // makes the target
		return err
	}
	t := model.target
	if t == nil {
		return fmt.Errorf("it is answered without a target: give more blanks")
	}
	t.temperature = cmp.Or(l.Description().Joint.PLLTemperature, 1)
	if err := t.enumerate(ctx); err != nil {
		return err
	}
	// Of fills that are equally likely any may be missing.
	first := slices.Clone(t.energy)
	slices.Sort(first)
	tenth := first[max(0, len(first)-likeliest)]
	o.Budget.Rows = c.budget
	var warned, inAll, quiet, inQuiet, off, missing, spread, rows float64
	var marginals held
	for n := range c.seeds {
		o.Seed = uint64(n) + 1
		r, err := filler.Fill(ctx, text, o, nil)
		if err != nil {
			return err
		}
		if r.Method == infill.MethodExact {
			return fmt.Errorf("it is enumerated: give more blanks or candidates")
		}
		rows += float64(r.Stats.ModelRows) / float64(c.seeds)
		inside, far, listed := 0.0, 0.0, 0
		for _, f := range r.Fills {
			u := t.energy[t.place(f.TokenIDs)]
			d := math.Abs(*f.Probability - math.Exp(u/t.temperature-t.logZ))
			if d <= 1.96**f.ProbabilityError {
				inside += 1 / float64(len(r.Fills))
			}
			if d > 5**f.ProbabilityError {
				far++
			}
			if u >= tenth-1e-9 {
				listed++
			}
			spread += 100 * *f.ProbabilityError / *f.Probability / float64(len(r.Fills)*c.seeds)
		}
		inAll += inside
		marginals.count(t, r)
		if len(r.Warnings) > 0 {
			warned++
			continue
		}
		quiet++
		inQuiet += inside
		off += far
		missing += float64(min(likeliest, len(first)) - listed)
	}
	share := func(sum, n float64) string {
		if n == 0 {
			return "–"
		}
		p := sum / n
		return fmt.Sprintf("%.1f ± %.1f", 100*p, 100*math.Sqrt(p*(1-p)/n))
	}
	cells := []string{text, string(infill.JointPLL), fmt.Sprint(c.candidates), fmt.Sprint(len(t.energy)),
		fmt.Sprintf("%.0f", rows),
		share(inAll, float64(c.seeds)), share(inQuiet, quiet), fmt.Sprintf("%.0f", warned), fmt.Sprintf("%.0f", off),
		fmt.Sprintf("%.0f", missing), fmt.Sprintf("%.1f", spread)}
	for i, n := range marginals.of {
		cells = append(cells, share(marginals.held[i], n))
	}
	cells = append(cells, fmt.Sprintf("%d of %.0f", marginals.far, floats.Sum(marginals.of[:])))
	log.Print(cells)
	sheet.row(cells...)
	return nil
}
