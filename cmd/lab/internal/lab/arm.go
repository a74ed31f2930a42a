package lab

import (
	"context"
	"flag"
	"fmt"
	"math"
	"slices"
	"strconv"

	"infill/internal/logmath"
	"infill/internal/targets"
	"infill/samplers"
)

// ARMOptions set fits of independent slots by ARM.
type ARMOptions struct {
	Fits    int // each with random numbers of its own
	Steps   int
	Samples int // pairs of states that a step evaluates
	Rate    float64
	Seed    uint64
	Observe func(Progress)
}

// Flags are the options as flags, with their defaults.
func (o *ARMOptions) Flags() *flag.FlagSet {
	f := flag.NewFlagSet("", flag.ContinueOnError)
	WholeVar(f, &o.Fits, "fits", 1, 1<<20, "fits, each with random numbers of its own")
	WholeVar(f, &o.Steps, "steps", 1, 1<<20, "steps of each fit")
	WholeVar(f, &o.Samples, "samples", 1, 1<<20, "pairs of states that a step evaluates")
	numberVar(f, &o.Rate, "rate", " above 0", "of the gradient ascent")
	return f
}

// DefaultARM is what most of the lab's targets are fitted by in a second.
func DefaultARM() ARMOptions {
	return ARMOptions{Fits: 5, Steps: 500, Samples: 20, Rate: 0.5}
}

// fits are several fits of independent slots to one target.
type fits struct {
	Kind       string      `json:"target"`
	Parameters []parameter `json:"parameters"`
	// Recombined tells that the slots have several categories, so that what is
	// fitted is from which of two states each slot comes.
	Recombined bool   `json:"recombined"`
	Steps      int    `json:"steps"`
	Samples    int    `json:"samples"`
	Seed       uint64 `json:"seed"`
	Fits       []fit  `json:"fits"`
}

// fit is one of them. Exact numbers are absent where there are too many states to list.
type fit struct {
	// Bound is E[U] + entropy, in nats: below LogNormaliser, log Σ exp(U).
	Bound         float64  `json:"bound"`
	LogNormaliser *float64 `json:"log_normaliser,omitempty"`
	// MeansError is the root mean square error of the probability of category 1, over the slots.
	MeansError *float64 `json:"means_error,omitempty"`
	// Energy is U of the likeliest state of a fit without entropy, Best the largest there is.
	Energy float64  `json:"energy"`
	Best   *float64 `json:"best_energy,omitempty"`
}

// maxFitted is the most binary slots whose states are listed.
const maxFitted = 16

// FitARM fits independent slots to a target by ARM, and looks for its best state
// in the same way, without the entropy. Slots of more than two categories are
// recombined: each comes from one of two random states, another pair for each fit.
func FitARM(ctx context.Context, p *Problem, o ARMOptions) (*Report, error) {
	if o.Fits < 1 {
		return nil, refuse("fits", "%d is not a whole number of 1 or more", o.Fits)
	}
	f := &fits{
		Kind: p.Kind, Parameters: p.Parameters, Steps: o.Steps, Samples: o.Samples, Seed: o.Seed,
		Recombined: slices.ContainsFunc(p.Target.Categories(), func(n int) bool { return n != 2 }),
	}
	for i := range o.Fits {
		target := p.Target
		if f.Recombined {
			two := samplers.RandomPositions(target, samplers.Streams(o.Seed, fmt.Sprint("recombined ", i), 2))
			mixed, err := recombine(target, two[:len(two)/2], two[len(two)/2:])
			if err != nil {
				return nil, err
			}
			target = mixed
		}
		one, err := o.fit(ctx, target, fmt.Sprint("fit ", i))
		if err != nil {
			return nil, fmt.Errorf("fit %d: %w", i+1, err)
		}
		f.Fits = append(f.Fits, *one)
		if o.Observe != nil {
			o.Observe(Progress{"arm", i + 1, o.Fits})
		}
	}
	return &Report{Title: "ARM on " + described(p.Kind, p.Parameters), Fits: f, Definitions: map[string]string{
		"bound":          "E[U] + entropy of independent slots, mean over the last tenth of the steps: below log_normaliser, log Σ exp(U)",
		"means_error":    "root mean square over the slots of the fitted probability of category 1 less the exact one",
		"energy":         "U of the likeliest state of a fit without entropy; best_energy is the largest there is",
		"standard_error": "between fits",
	}}, nil
}

// fit fits a binary target twice, with entropy and without.
func (o *ARMOptions) fit(ctx context.Context, target samplers.Target, label string) (*fit, error) {
	setting := factorisedOptions{Steps: o.Steps, Rate: o.Rate}
	law, err := fitFactorised(ctx, target, samplers.Streams(o.Seed, label, o.Samples), setting)
	if err != nil {
		return nil, err
	}
	setting.NoEntropy = true
	mode, err := fitFactorised(ctx, target, samplers.Streams(o.Seed, label+" best", o.Samples), setting)
	if err != nil {
		return nil, err
	}
	state, energy := make([]int, len(mode.Logits)), make([]float64, 1)
	for j, l := range mode.Logits {
		if l > 0 {
			state[j] = 1
		}
	}
	if err := target.Energy(ctx, state, energy); err != nil {
		return nil, err
	}
	one := &fit{Bound: law.Bound, Energy: energy[0]}
	if len(state) > maxFitted {
		return one, nil
	}
	e, err := targets.Enumerate(ctx, target)
	if err != nil {
		return nil, err
	}
	squares, best := 0.0, slices.Max(e.Energy)
	for j, l := range law.Logits {
		d := logmath.Sigmoid(l) - e.Mean(func(state []int) float64 { return float64(state[j]) })
		squares += d * d / float64(len(law.Logits))
	}
	squares = math.Sqrt(squares)
	one.LogNormaliser, one.MeansError, one.Best = &e.LogNormaliser, &squares, &best
	return one, nil
}

// columns are the numbers of the fits by name, in the order they are shown.
func (f *fits) columns() (names []string, values [][]*float64) {
	names = []string{"bound", "log_normaliser", "means_error", "energy", "best_energy"}
	values = make([][]*float64, len(names))
	for _, one := range f.Fits {
		for i, v := range []*float64{&one.Bound, one.LogNormaliser, one.MeansError, &one.Energy, one.Best} {
			values[i] = append(values[i], v)
		}
	}
	return names, values
}

// rows are the fits as CSV.
func (f *fits) rows(optional func(*float64) string) [][]string {
	names, values := f.columns()
	rows := [][]string{append([]string{"fit"}, names...)}
	for i := range f.Fits {
		row := []string{strconv.Itoa(i + 1)}
		for _, column := range values {
			row = append(row, optional(column[i]))
		}
		rows = append(rows, row)
	}
	return rows
}

func (p *printer) fits(f *fits) {
	p.heading("Independent slots by ARM on " + described(f.Kind, f.Parameters))
	names, values := f.columns()
	rows, means := f.rows(func(x *float64) string {
		if x == nil {
			return ""
		}
		return fmt.Sprintf("%.3f", *x)
	}), []string{"mean"}
	for _, column := range values {
		text := ""
		if column[0] != nil {
			numbers := make([]float64, len(column))
			for i, v := range column {
				numbers[i] = *v
			}
			mean, e := meanAndError(numbers)
			text = withError("%.3f", mean, e)
		}
		means = append(means, text)
	}
	headers := []string{"fit", "bound", "log Σ exp(U)", "means ±", "best U found", "best U"}
	p.table(headers[:1+len(names)], append(rows[1:], means))
	if f.Recombined {
		p.rest("the slots have several categories: each comes from one of two random states, another pair for each fit, and the exact numbers are of these recombinations")
	}
	p.rest("bound: E[U] + entropy, below log Σ exp(U); means ±: root mean square error of the probability of category 1; best U: of a fit without entropy, and of all states")
	p.rest("%s × %d pairs of states; ± is a standard error between %s; seed %d", counted(f.Steps, "step"), f.Samples, counted(len(f.Fits), "fit"), f.Seed)
}
