package lab

import (
	"context"
	"flag"
	"fmt"
	"slices"
	"strconv"

	"infill/internal/logmath"
	"infill/internal/targets"
	"infill/samplers"
)

// armFit fits independent slots to a target by ARM, and looks for its best state in the same way, without the entropy.
// Slots of more than two categories are recombined: each comes from one of two random states, another pair for each
// fit.
type armFit struct {
	kind                 *Kind
	fits, steps, samples int
	rate                 float64
}

// newARMFit is the study of a kind of targets; its defaults fit most of them in a second.
func newARMFit(k *Kind) *Study {
	return newStudy("arm "+k.Name, "ARM on "+k.Title, k.Help+`

Fit independent binary slots to a target by ARM, which needs energies alone, and look
for its best state in the same way. Slots of several categories are recombined from
two random states.`, &armFit{k, 5, 500, 20, 0.5})
}

func (o *armFit) register(f *flag.FlagSet) {
	WholeVar(f, &o.fits, "fits", 1, 1<<20, "fits, each with random numbers of its own")
	WholeVar(f, &o.steps, "steps", 1, 1<<20, "steps of each fit")
	WholeVar(f, &o.samples, "samples", 1, 1<<20, "pairs of states that a step evaluates")
	numberVar(f, &o.rate, "rate", " above 0", "of the gradient ascent")
	o.kind.register(f)
}

// maxFitted is the most binary slots whose states are listed.
const maxFitted = 16

func (o *armFit) plan(ctx context.Context, _ uint64) (*plan, error) {
	problem, err := o.kind.problem(ctx, 0)
	if err != nil {
		return nil, err
	}
	target := described(problem.Kind, problem.Parameters)
	p := &plan{
		title: "Independent slots by ARM on " + target,
		columns: []column{
			{name: "bound", format: "%.3f", definition: "E[U] + entropy of independent slots, nats, mean over the " +
				"last tenth of the steps: below log_normaliser"},
			{name: "log_normaliser", format: "%.3f", definition: "log Σ exp(U), where the states can be listed"},
			{name: "means_error", format: "%.3f", definition: "root mean square over the slots of the fitted " +
				"probability of category 1 less the exact one"},
			{name: "energy", format: "%.3f", definition: "U of the likeliest state of a fit without entropy"},
			{name: "best_energy", format: "%.3f", definition: "the largest U there is"},
		},
		notes: []string{fmt.Sprintf("%s × %d pairs of states", counted(o.steps, "step"), o.samples)},
	}
	recombined := slices.ContainsFunc(problem.Target.Categories(), func(n int) bool { return n != 2 })
	if recombined {
		p.notes = append(p.notes, "the slots have several categories: each comes from one of two random states, "+
			"another pair for each fit, and the exact numbers are of these recombinations")
	}
	p.add(o.fits, func(ctx context.Context, b *bench) error {
		repeat, err := strconv.Atoi(b.repeat)
		if err != nil {
			return err
		}
		target, number := problem.Target, fmt.Sprint(repeat-1)
		if recombined {
			two := samplers.RandomPositions(target, samplers.Streams(b.seed, "recombined "+number, 2))
			target = recombine(target, two[:len(two)/2], two[len(two)/2:])
		}
		return o.fit(ctx, b, target, "fit "+number)
	}, "target", target)
	return p, nil
}

// fit fits a binary target twice, with entropy and without.
func (o *armFit) fit(ctx context.Context, b *bench, target samplers.Target, label string) error {
	setting := factorisedOptions{Steps: o.steps, Rate: o.rate}
	law, err := fitFactorised(ctx, target, samplers.Streams(b.seed, label, o.samples), setting)
	if err != nil {
		return err
	}
	setting.NoEntropy = true
	mode, err := fitFactorised(ctx, target, samplers.Streams(b.seed, label+" best", o.samples), setting)
	if err != nil {
		return err
	}
	state, energy := make([]int, len(mode.Logits)), make([]float64, 1)
	for j, l := range mode.Logits {
		state[j] = bit(l > 0)
	}
	if err := target.Energy(ctx, state, energy); err != nil {
		return err
	}
	b.number("bound", law.Bound)
	b.number("energy", energy[0])
	if len(state) <= maxFitted {
		e, err := targets.Enumerate(ctx, target)
		if err != nil {
			return err
		}
		var fitted, exact []float64
		for j, l := range law.Logits {
			fitted = append(fitted, logmath.Sigmoid(l))
			exact = append(exact, e.Mean(func(state []int) float64 { return float64(state[j]) }))
		}
		b.number("log_normaliser", e.LogNormaliser)
		b.number("means_error", rootMeanSquare(fitted, exact))
		b.number("best_energy", slices.Max(e.Energy))
	}
	return b.tick(ctx, 1, 1, nil)
}
