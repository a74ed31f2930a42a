package main

import (
	"context"
	"fmt"
	"io"
	"math"

	"infill/lm"
	"infill/samplers"
	"infill/tokenize"
)

// variation follows the total variation between a sampler's draws and an
// enumerated law of two slots.
const (
	variationText = "the old [MASK] sat by the [MASK] and said nothing ."
	variationSide = 40
)

func writeVariation(ctx context.Context, w io.Writer, model *lm.MaskedLM, tokenizer *tokenize.Tokenizer) error {
	target, err := textTarget(ctx, model, tokenizer, variationText, variationSide)
	if err != nil {
		return err
	}
	var states []int
	for a := range variationSide {
		for b := range variationSide {
			states = append(states, a, b)
		}
	}
	law := make([]float64, variationSide*variationSide)
	if err := target.Energy(ctx, states, law); err != nil {
		return err
	}
	total := 0.0
	for _, u := range law {
		total += math.Exp(u)
	}
	for i, u := range law {
		law[i] = math.Exp(u) / total
	}
	fmt.Fprintf(w, `
## Draws against the enumerated law

Total variation between the draws and exp(U) on the built-in model, "%s", %d candidates a slot, all %d fills enumerated; 50 chains from uniform
starts, 200 steps before the first draw. The last line is what independent draws show on average. Gibbs and DULA do not target exp U and stay away from it.

| sampler | 1,000 draws | 10,000 | 100,000 |
| --- | --- | --- | --- |
`, variationText, variationSide, len(law))
	for _, name := range samplers.NamesFor(target) {
		marks, err := variations(ctx, target, name, law)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		fmt.Fprintf(w, "| `%s` | %.3f | %.3f | %.3f |\n", name, marks[0], marks[1], marks[2])
	}
	fmt.Fprint(w, "| independent |")
	for _, n := range []float64{1e3, 1e4, 1e5} {
		fmt.Fprintf(w, " %.3f |", independentVariation(law, n))
	}
	fmt.Fprintln(w)
	return nil
}

// variations is the total variation after 1,000, 10,000 and 100,000 draws.
func variations(ctx context.Context, target samplers.Target, name string, law []float64) (marks []float64, err error) {
	const chains, warmUp, steps = 50, 200, 2000
	kernel, err := samplers.New(name, target)
	if err != nil {
		return nil, err
	}
	streams := samplers.Streams(1, name, chains)
	counts := make([]float64, len(law))
	plan := samplers.Plan{Streams: streams, WarmUp: warmUp, Steps: steps}
	_, err = samplers.Sample(ctx, kernel, samplers.RandomPositions(target, streams), plan, func(s samplers.Step) error {
		if s.WarmUp {
			return nil
		}
		for c := range chains {
			counts[s.State.Positions[2*c]*variationSide+s.State.Positions[2*c+1]]++
		}
		step := s.Number - warmUp
		if step == 20 || step == 200 || step == 2000 {
			distance := 0.0
			for i, p := range law {
				distance += math.Abs(counts[i]/float64(step*chains)-p) / 2
			}
			marks = append(marks, distance)
		}
		return nil
	})
	return marks, err
}

// independentVariation is about what n independent draws show: each frequency
// is off by √(p(1−p)/n), of which a normal deviate is √(2/π) on average.
func independentVariation(law []float64, n float64) float64 {
	sum := 0.0
	for _, p := range law {
		sum += math.Sqrt(2/math.Pi*p*(1-p)/n) / 2
	}
	return sum
}
