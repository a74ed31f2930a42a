package lab

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
)

// A Preset repeats the settings of a figure.
type Preset struct {
	Name string
	// Title says what it shows, Setting how, and where that is not as in the paper.
	Title, Setting string

	chains, steps int // its own
	bias          bool
	parts         func(steps int) []part
}

// part is one comparison of a preset.
type part struct{ title, problem, samplers, initial string }

// Presets lists the presets.
func Presets() []Preset {
	const paperIsing = "ising:coupling=0.1,field=0.2"
	return []Preset{
		{
			"dlp-figure-1", "the bias of DULA against the step size, and against ε",
			"2 × 2 Ising model, coupling 0.1, field 0.2; 1-d example with a = 1, b = 0.1, and with a = b = 0. Exact " +
				"stationary laws, and what chains visit.",
			16, 20000, true, func(int) []part { return nil },
		},
		{
			"dlp-figure-2", "acceptance against the slots changed, and effective sample size per second",
			"5 × 5 Ising model, coupling 0.1, field 0.2. The paper's α is for 0 and 1: twice as much here. Its " +
				"Gibbs-1 is gibbs-x:block=1; gibbs knows the conditionals without evaluating energies.",
			10, 10000, false, func(int) []part {
				var moves []string
				for i := 1; i <= 10; i++ {
					moves = append(moves, fmt.Sprintf("dmala:step-size=%v", float64(i)/5))
				}
				for x := 1; x <= 8; x++ {
					moves = append(moves, fmt.Sprintf("gwg-x:radius=%d", x))
				}
				return []part{
					{"acceptance against slots changed", paperIsing, strings.Join(moves, ","), "independent"},
					{"effective sample size per second", paperIsing,
						"hamming-ball:block=10,radius=1,gibbs-x:block=1,gibbs,lb-1,gwg,gwg-x:radius=4," +
							"dmala:step-size=0.8", "independent"},
				}
			},
		},
		{
			"dlp-figure-3", "log RMSE on a 5 × 5 Ising model",
			"Coupling 0.1, field 0.2, 50,000 steps, starts by the field; 10 chains where the paper has 2, for the " +
				"errors. α of DMALA 0.4 and DULA 0.2 in the paper: 0.8 and 0.4 here.",
			10, 50000, false, func(int) []part {
				return []part{{"5 × 5 Ising model", paperIsing,
					"hamming-ball:block=10,radius=1,gibbs-x:block=1,gibbs,lb-1,gwg,gwg-x:radius=4,r-mala," +
						"dula:step-size=0.4,dmala:step-size=0.8", "independent"}}
			},
		},
		{
			"dlp-figure-4", "an RBM: maximum mean discrepancy from block Gibbs",
			"Bars and stripes in the place of MNIST: 64 visible, 16 hidden units, trained by CD-10; 100 chains, " +
				"1,000 steps, 500 states of block Gibbs after 1,000 steps as reference. α of DMALA 0.2 and DULA 0.1 " +
				"in the paper: 0.4 and 0.2 here.",
			100, 1000, false, func(int) []part {
				// Trained harder, the machine has modes that block Gibbs does not
				// leave in 1,000 steps, and would be no reference.
				return []part{{"RBM trained on bars and stripes",
					"rbm:side=8,hidden=16,reference=block-gibbs,learning-rate=0.01",
					"rbm-gibbs,gibbs-x:block=1,gwg,dula:step-size=0.2,dmala:step-size=0.4", "independent"}}
			},
		},
		{
			"dlp-figure-7", "log RMSE on 5 × 5 Ising models of several couplings",
			"Couplings 0.1, 0.15, 0.2, 0.25, field 0.2; GWG and DMALA 50,000 steps, Gibbs and DULA 125,000, 4 chains.",
			4, 50000, false, func(steps int) (parts []part) {
				for _, coupling := range []float64{0.1, 0.15, 0.2, 0.25} {
					parts = append(parts, part{
						fmt.Sprintf("coupling %v", coupling), fmt.Sprintf("ising:coupling=%v,field=0.2", coupling),
						fmt.Sprintf("gibbs-x:block=1,steps=%d,gwg,dula:step-size=0.4,steps=%[1]d,dmala:step-size=0.8",
							steps*5/2), "independent",
					})
				}
				return parts
			},
		},
		{
			"dlp-toy", "the categorical toy of the papers' code",
			"A random table of two slots with three categories, 50,000 steps, α of DMALA 0.2 and DULA 0.1.",
			10, 50000, false, func(int) []part {
				return []part{{"table of 3 × 3 states", "table:categories=3/3",
					"gibbs,gwg,dula:step-size=0.1,dmala:step-size=0.2", "uniform"}}
			},
		},
	}
}

// RunPreset runs a preset, with its own numbers of chains and steps where o has
// none. Samplers, warm-up and starts are the preset's.
func RunPreset(ctx context.Context, name string, o Options) (*Report, error) {
	var names []string
	for _, p := range Presets() {
		names = append(names, p.Name)
	}
	i := slices.Index(names, name)
	if i < 0 {
		return nil, refuse("preset", "%q is not one of %s", name, strings.Join(names, ", "))
	}
	p := Presets()[i]
	o.Chains, o.Steps = cmp.Or(o.Chains, p.chains), cmp.Or(o.Steps, p.steps)
	o.WarmUp, o.Discard = 0, 0.1
	report := &Report{Title: p.Title, Preset: p.Name, Definitions: definitions()}
	if p.bias {
		var err error
		report.Bias, err = biases(ctx, o)
		return report, err
	}
	parts := p.parts(o.Steps)
	for i, part := range parts {
		run, err := part.run(ctx, o.part(i, len(parts)))
		if err != nil {
			return nil, err
		}
		report.Runs = append(report.Runs, run)
	}
	return report, nil
}

func (p part) run(ctx context.Context, o Options) (*Run, error) {
	problem, err := NewProblem(ctx, p.problem, 0)
	if err != nil {
		return nil, err
	}
	if o.Samplers, err = ParseSpecs(p.samplers); err != nil {
		return nil, err
	}
	o.Initial = p.initial
	run, err := compare(ctx, problem, o)
	if err != nil {
		return nil, err
	}
	run.Title = p.title
	return run, nil
}

// part makes the progress of one of several parts.
func (o Options) part(i, of int) Options {
	if whole := o.Observe; whole != nil {
		// Parts have different numbers of steps: each counts as a thousand.
		o.Observe = func(p Progress) { whole(Progress{p.Sampler, i*1000 + 1000*p.Step/p.Steps, of * 1000}) }
	}
	return o
}
