package lab

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// A figure is a preset: the settings of a figure, repeated.
type figure struct {
	name string
	// title says what it shows, setting how, and where that is not as in the paper.
	title, setting string

	chains, steps int // its own
	parts         []part
}

// part is one comparison of a preset.
type part struct{ title, target, samplers, initial string }

func figures() []figure {
	const paperIsing = "ising:coupling=0.1,field=0.2"
	var moves []string
	for i := 1; i <= 10; i++ {
		moves = append(moves, fmt.Sprintf("dmala:step-size=%v", float64(i)/5))
	}
	for x := 1; x <= 8; x++ {
		moves = append(moves, fmt.Sprintf("gwg-x:radius=%d", x))
	}
	var couplings []part
	for _, coupling := range []float64{0.1, 0.15, 0.2, 0.25} {
		couplings = append(couplings, part{
			fmt.Sprintf("coupling %v", coupling), fmt.Sprintf("ising:coupling=%v,field=0.2", coupling),
			"gibbs-x:block=1,steps=LONGER,gwg,dula:step-size=0.4,steps=LONGER,dmala:step-size=0.8", "independent"})
	}
	return []figure{
		{biasPreset, "the bias of DULA against the step size, and against ε",
			"2 × 2 Ising model, coupling 0.1, field 0.2; 1-d example with a = 1, b = 0.1, and with a = b = 0. Exact " +
				"stationary laws, and what chains visit.", 16, 20000, nil},
		{"dlp-figure-2", "acceptance against the slots changed, and effective sample size per second",
			"5 × 5 Ising model, coupling 0.1, field 0.2. The paper's α is for 0 and 1: twice as much here. Its " +
				"Gibbs-1 is gibbs-x:block=1; gibbs knows the conditionals without evaluating energies.", 10, 10000,
			[]part{
				{"acceptance against slots changed", paperIsing, strings.Join(moves, ","), "independent"},
				{"effective sample size per second", paperIsing, "hamming-ball:block=10,radius=1,gibbs-x:block=1," +
					"gibbs,lb-1,gwg,gwg-x:radius=4,dmala:step-size=0.8", "independent"},
			}},
		{"dlp-figure-3", "log RMSE on a 5 × 5 Ising model",
			"Coupling 0.1, field 0.2, 50,000 steps, starts by the field; 10 chains where the paper has 2, for the " +
				"errors. α of DMALA 0.4 and DULA 0.2 in the paper: 0.8 and 0.4 here.", 10, 50000,
			[]part{{"5 × 5 Ising model", paperIsing, "hamming-ball:block=10,radius=1,gibbs-x:block=1,gibbs,lb-1,gwg," +
				"gwg-x:radius=4,r-mala,dula:step-size=0.4,dmala:step-size=0.8", "independent"}}},
		{"dlp-figure-4", "an RBM: maximum mean discrepancy from block Gibbs",
			"Bars and stripes in the place of MNIST: 64 visible, 16 hidden units, trained by CD-10; 100 chains, " +
				"1,000 steps, 500 states of block Gibbs after 1,000 steps as reference. α of DMALA 0.2 and DULA 0.1 " +
				"in the paper: 0.4 and 0.2 here.", 100, 1000,
			// Trained harder, the machine has modes that block Gibbs does not
			// leave in 1,000 steps, and would be no reference.
			[]part{{"RBM trained on bars and stripes",
				"rbm:side=8,hidden=16,reference=block-gibbs,learning-rate=0.01",
				"rbm-gibbs,gibbs-x:block=1,gwg,dula:step-size=0.2,dmala:step-size=0.4", "independent"}}},
		{"dlp-figure-7", "log RMSE on 5 × 5 Ising models of several couplings",
			"Couplings 0.1, 0.15, 0.2, 0.25, field 0.2; GWG and DMALA 50,000 steps, Gibbs and DULA 125,000, 4 chains.",
			4, 50000, couplings},
		{"dlp-toy", "the categorical toy of the papers' code",
			"A random table of two slots with three categories, 50,000 steps, α of DMALA 0.2 and DULA 0.1.", 10, 50000,
			[]part{{"table of 3 × 3 states", "table:categories=3/3",
				"gibbs,gwg,dula:step-size=0.1,dmala:step-size=0.2", "uniform"}}},
	}
}

// NewPreset returns the study that repeats the figure that its flag --preset names. Samplers, warm-up and starts are
// the figure's.
func NewPreset() *Study {
	var names []string
	var text strings.Builder
	for _, f := range figures() {
		names = append(names, f.name)
		fmt.Fprintf(&text, "\n\n  %s: %s\n      %s", f.name, f.title, f.setting)
	}
	s := newStudy("preset", "Compare samplers on distributions that are known exactly",
		strings.TrimSpace(comparisonHelp)+"\n\nWith --preset instead of a target the settings of a figure are "+
			"repeated; --chains\nand --steps make it shorter or longer. Presets:"+text.String())
	name := s.Flags.String("preset", "", "repeat the settings of the figure `NAME`")
	chains := Whole(s.Flags, "chains", 0, 0, maxChains, "chains of each sampler; 0 is the preset's own")
	steps := Whole(s.Flags, "steps", 0, 0, maxSteps, "steps of each chain; 0 is the preset's own")
	s.plan = func(ctx context.Context, seed uint64) (*plan, error) {
		i := slices.Index(names, *name)
		if i < 0 {
			return nil, refuse("preset", "%q is not one of %s", *name, strings.Join(names, ", "))
		}
		f := figures()[i]
		return f.plan(ctx, cmp.Or(*chains, f.chains), cmp.Or(*steps, f.steps), seed)
	}
	return s
}

func (f figure) plan(ctx context.Context, chains, steps int, seed uint64) (*plan, error) {
	title := f.name + ": " + f.title
	if f.name == biasPreset {
		return biasPlan(ctx, title, chains, steps)
	}
	p := newComparisonPlan(title, chains)
	for _, part := range f.parts {
		d, err := newDistribution(ctx, part.target, 0)
		if err != nil {
			return nil, err
		}
		list, err := ParseSpecs(strings.ReplaceAll(part.samplers, "LONGER", strconv.Itoa(steps*5/2)))
		if err != nil {
			return nil, err
		}
		var of []parameter
		if len(f.parts) > 1 {
			of = []parameter{{"part", part.title}}
		}
		if err := p.compare(d, Options{list, chains, steps, 0, 0.1, part.initial, clock}, seed, of...); err != nil {
			return nil, err
		}
	}
	return p, nil
}
