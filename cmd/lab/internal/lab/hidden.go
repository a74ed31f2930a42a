package lab

import (
	"context"
	"flag"
	"fmt"
	"math"

	"infill/internal/logmath"
	"infill/samplers"
)

// fhmmOptions set a factorial hidden Markov model, by default that of the code of Gibbs with Gradients.
type fhmmOptions struct {
	times, factors     int
	noise, first, keep float64
	seed               uint64
}

func (o *fhmmOptions) register(f *flag.FlagSet) {
	WholeVar(f, &o.times, "times", 1, 1<<16, "times at which a number is observed")
	WholeVar(f, &o.factors, "factors", 1, 16, "hidden chains")
	numberVar(f, &o.noise, "noise", " above 0", "standard deviation of what is observed")
	numberVar(f, &o.first, "first", " above 0", "probability of 1 at the first time")
	numberVar(f, &o.keep, "keep", " above 0", "probability that a state stays")
	seedVar(f, &o.seed, "seed of weights, states and observations")
}

// problem has every factor at every time as an observable. Chains can start by the
// model before anything was observed, as in the code.
func (o fhmmOptions) problem(context.Context, uint64) (*Problem, error) {
	target, err := newRandomFHMM(o.times, o.factors, o.noise, o.first, o.keep,
		samplers.Streams(o.seed, "fhmm", 1)[0])
	if err != nil {
		return nil, refuse("keep", "%w", err)
	}
	means, _, err := target.Means()
	if err != nil {
		return nil, err
	}
	p := &Problem{
		Kind: "fhmm", Target: target, consistent: true,
		Parameters: parameters(&o, "times", "factors", "noise", "first", "keep", "target-seed"),
		Truth: &truth{Method: fmt.Sprintf("forward and backward recursions over the 2^%d states of a time",
			o.factors), Means: means},
		observables: numbered(o.times*o.factors, 0, 1),
	}
	for time := range o.times {
		on := 0.5 + (o.first-0.5)*math.Pow(2*o.keep-1, float64(time))
		for range o.factors {
			p.independent = append(p.independent, []float64{1 - on, on})
		}
	}
	return p, nil
}

// mixtureOptions set a mixture of independent binary slots.
type mixtureOptions struct {
	slots, components int
	scale             float64
	reference         int
	seed              uint64
}

func (o *mixtureOptions) register(f *flag.FlagSet) {
	WholeVar(f, &o.slots, "slots", 1, 1<<14, "binary slots")
	WholeVar(f, &o.components, "components", 1, 1<<12, "components, equally likely")
	numberVar(f, &o.scale, "scale", " of 0 or more",
		"standard deviation of the log-odds of their slots: the larger, the deeper between modes")
	WholeVar(f, &o.reference, "reference-samples", 2, 1<<14, "exact draws that MMD is measured from")
	seedVar(f, &o.seed, "seed of the components")
}

// problem has the slots as observables, and exact draws as its reference.
func (o mixtureOptions) problem(context.Context, uint64) (*Problem, error) {
	r := samplers.Streams(o.seed, "mixture", 1)[0]
	weights, probabilities := make([]float64, o.components), make([]float64, 0, o.slots*o.components)
	for k := range weights {
		weights[k] = 1
		for range o.slots {
			probabilities = append(probabilities, min(max(logmath.Sigmoid(o.scale*r.NormFloat64()), 1e-6), 1-1e-6))
		}
	}
	target := newMixture(weights, probabilities)
	p := &Problem{
		Kind: "mixture", Target: target, consistent: true,
		Parameters:  parameters(&o, "slots", "components", "scale", "target-seed"),
		Truth:       &truth{Method: "sum over the components", Means: target.Means()},
		observables: numbered(o.slots, 0, 1),
	}
	for _, m := range p.Truth.Means {
		p.independent = append(p.independent, []float64{1 - m, m})
	}
	p.Reference = &reference{Method: "exact", Samples: o.reference,
		sample: func(n int, label string) ([]int, error) {
			return target.Draw(n, samplers.Streams(o.seed, label, 1)[0]), nil
		}}
	return p, p.Reference.draw(o.slots)
}
