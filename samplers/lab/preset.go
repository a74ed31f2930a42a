package lab

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Overrides change a preset. Zero fields leave the preset's own.
type Overrides struct {
	Chains, Steps int
	Seed          uint64
	Version       string
	Observe       func(Progress)
	Clock         func() time.Time
}

// A Report is what an experiment found.
type Report struct {
	Title  string       `json:"title"`
	Preset string       `json:"preset,omitempty"`
	Bias   []*BiasCurve `json:"bias,omitempty"`
	Runs   []*Run       `json:"runs,omitempty"`
	// Definitions say what the numbers are.
	Definitions map[string]string `json:"definitions"`
}

// NewReport holds one comparison.
func NewReport(run *Run) *Report {
	return &Report{Title: "samplers on " + describe(run), Runs: []*Run{run}, Definitions: definitions()}
}

func describe(run *Run) string {
	words := []string{run.Kind}
	for _, p := range run.Parameters {
		words = append(words, p.Name+" "+p.Value)
	}
	return strings.Join(words, ", ")
}

func definitions() map[string]string {
	return map[string]string{
		"log_rmse":       "½ ln of the mean over chains and observables of (mean of the chain so far - exact mean)²",
		"ess":            "effective sample size of one observable in one chain by Geyer's initial positive sequence, mean over observables; still ones count as one draw",
		"paper_median":   "N / (1 + 2 Σ (1 - k/N) ρ_k) up to the first negative ρ_k, median over the observables of the first chain",
		"ess_per_second": "effective sample size of all chains together by second of stepping",
		"seconds":        secondsAre + " in the steps of all chains, one run, noisy",
		"evaluations":    "states given to the target: energies, energies with gradients, single conditionals; they cost differently",
		"standard_error": "between chains; absent for fewer than two chains, where it is unknown",
		"mmd2":           "squared maximum mean discrepancy, V-statistic, kernel exp(-Hamming/slots), of the chains' present states; its error is the jackknife's over chains",
	}
}

// WithoutTimes removes all that depends on the clock.
func (r *Report) WithoutTimes() {
	for _, run := range r.Runs {
		run.WithoutTimes()
	}
	delete(r.Definitions, "ess_per_second")
	delete(r.Definitions, "seconds")
}

// A Preset repeats the settings of a figure.
type Preset struct {
	Name string
	// Title says what it shows, Setting how, and where that is not as in the
	// paper.
	Title, Setting string
	run            func(ctx context.Context, o Overrides) (*Report, error)
}

// Presets lists the presets.
func Presets() []Preset {
	return []Preset{
		{
			"dlp-figure-1", "the bias of DULA against the step size, and against ε",
			"2 × 2 Ising model, coupling 0.1, field 0.2; 1-d example with a = 1, b = 0.1, and with a = b = 0. Exact stationary laws, and what chains visit.",
			figure1,
		},
		{
			"dlp-figure-2", "acceptance against the slots changed, and effective sample size per second",
			"5 × 5 Ising model, coupling 0.1, field 0.2. The paper's α is for 0 and 1: twice as much here. Its Gibbs-1 is gibbs-x:block=1; gibbs knows the conditionals without evaluating energies.",
			figure2,
		},
		{
			"dlp-figure-3", "log RMSE on a 5 × 5 Ising model",
			"Coupling 0.1, field 0.2, 50,000 steps, starts by the field; 10 chains where the paper has 2, for the errors. α of DMALA 0.4 and DULA 0.2 in the paper: 0.8 and 0.4 here.",
			figure3,
		},
		{
			"dlp-figure-4", "an RBM: maximum mean discrepancy from block Gibbs",
			"Bars and stripes in the place of MNIST: 64 visible, 16 hidden units, trained by CD-10; 100 chains, 1,000 steps, 500 states of block Gibbs after 1,000 steps as reference. α of DMALA 0.2 and DULA 0.1 in the paper: 0.4 and 0.2 here.",
			figure4,
		},
		{
			"dlp-figure-7", "log RMSE on 5 × 5 Ising models of several couplings",
			"Couplings 0.1, 0.15, 0.2, 0.25, field 0.2; GWG and DMALA 50,000 steps, Gibbs and DULA 125,000, 4 chains.",
			figure7,
		},
		{
			"dlp-toy", "the categorical toy of the papers' code",
			"A random table of two slots with three categories, 50,000 steps, α of DMALA 0.2 and DULA 0.1.",
			toy,
		},
	}
}

// PresetNames lists the names that [RunPreset] takes.
func PresetNames() []string {
	var names []string
	for _, p := range Presets() {
		names = append(names, p.Name)
	}
	return names
}

// RunPreset runs a preset.
func RunPreset(ctx context.Context, name string, o Overrides) (*Report, error) {
	i := slices.IndexFunc(Presets(), func(p Preset) bool { return p.Name == name })
	if i < 0 {
		return nil, refuse("preset", "%q is not one of %s", name, strings.Join(PresetNames(), ", "))
	}
	if o.Chains < 0 {
		return nil, refuse("chains", "%d is not a whole number of 0 (the preset's own) or more", o.Chains)
	}
	if o.Steps < 0 {
		return nil, refuse("steps", "%d is not a whole number of 0 (the preset's own) or more", o.Steps)
	}
	p := Presets()[i]
	report, err := p.run(ctx, o)
	if err != nil {
		return nil, err
	}
	report.Preset, report.Title, report.Definitions = p.Name, p.Title, definitions()
	return report, nil
}

// or replaces zeros.
func (o Overrides) or(chains, steps int) Overrides {
	if o.Chains == 0 {
		o.Chains = chains
	}
	if o.Steps == 0 {
		o.Steps = steps
	}
	return o
}

// part makes the progress of one of several parts.
func (o Overrides) part(i, of int) Overrides {
	whole := o.Observe
	if whole != nil {
		// Parts have different numbers of steps: each counts as a thousand.
		o.Observe = func(p Progress) { whole(Progress{p.Sampler, i*1000 + 1000*p.Step/p.Steps, of * 1000}) }
	}
	return o
}

func (o Overrides) compare(ctx context.Context, p *Problem, title, specs, initial string) (*Run, error) {
	list, err := ParseSpecs(specs)
	if err != nil {
		return nil, err
	}
	run, err := Compare(ctx, p, Options{
		Samplers: list, Chains: o.Chains, Steps: o.Steps, Discard: 0.1, Initial: initial,
		Seed: o.Seed, Version: o.Version, Observe: o.Observe, Clock: o.Clock,
	})
	if err != nil {
		return nil, err
	}
	run.Title = title
	return run, nil
}

func figure1(ctx context.Context, o Overrides) (*Report, error) {
	o = o.or(16, 20000)
	ising, err := isingBias(ctx, o.part(0, 1))
	if err != nil {
		return nil, err
	}
	// In the exact law of the example α matters little; a large one lets the
	// chains mix, since the example's quadratic term holds them back.
	near, err := epsilonBias(ctx, 1, 0.1, 2, o)
	if err != nil {
		return nil, err
	}
	counter, err := epsilonBias(ctx, 0, 0, 2, o)
	if err != nil {
		return nil, err
	}
	return &Report{Bias: []*BiasCurve{ising, near, counter}}, nil
}

func paperIsing(ctx context.Context, coupling float64) (*Problem, error) {
	o := DefaultIsing()
	o.Coupling = coupling
	return NewIsing(ctx, o)
}

func figure2(ctx context.Context, o Overrides) (*Report, error) {
	o = o.or(10, 10000)
	p, err := paperIsing(ctx, 0.1)
	if err != nil {
		return nil, err
	}
	var specs []string
	for i := 1; i <= 10; i++ {
		specs = append(specs, "dmala:step-size="+decimal(float64(i)/5))
	}
	for x := 1; x <= 8; x++ {
		specs = append(specs, fmt.Sprintf("gwg-x:radius=%d", x))
	}
	left, err := o.part(0, 2).compare(ctx, p, "acceptance against slots changed", strings.Join(specs, ","), "independent")
	if err != nil {
		return nil, err
	}
	right, err := o.part(1, 2).compare(ctx, p, "effective sample size per second",
		"hamming-ball:block=10,radius=1,gibbs-x:block=1,gibbs,lb-1,gwg,gwg-x:radius=4,dmala:step-size=0.8", "independent")
	if err != nil {
		return nil, err
	}
	return &Report{Runs: []*Run{left, right}}, nil
}

func figure3(ctx context.Context, o Overrides) (*Report, error) {
	o = o.or(10, 50000)
	p, err := paperIsing(ctx, 0.1)
	if err != nil {
		return nil, err
	}
	run, err := o.compare(ctx, p, "5 × 5 Ising model",
		"hamming-ball:block=10,radius=1,gibbs-x:block=1,gibbs,lb-1,gwg,gwg-x:radius=4,r-mala,dula:step-size=0.4,dmala:step-size=0.8", "independent")
	if err != nil {
		return nil, err
	}
	return &Report{Runs: []*Run{run}}, nil
}

func figure4(ctx context.Context, o Overrides) (*Report, error) {
	o = o.or(100, 1000)
	setting := DefaultRBM()
	setting.Side, setting.Hidden, setting.Reference = 8, 16, "block-gibbs"
	// Trained harder, the machine has modes that block Gibbs does not leave
	// in 1,000 steps, and would be no reference.
	setting.Training.LearningRate = 0.01
	p, err := NewRBM(ctx, setting)
	if err != nil {
		return nil, err
	}
	run, err := o.compare(ctx, p, "RBM trained on bars and stripes", "rbm-gibbs,gibbs-x:block=1,gwg,dula:step-size=0.2,dmala:step-size=0.4", "independent")
	if err != nil {
		return nil, err
	}
	return &Report{Runs: []*Run{run}}, nil
}

func figure7(ctx context.Context, o Overrides) (*Report, error) {
	o = o.or(4, 50000)
	report := &Report{}
	couplings := []float64{0.1, 0.15, 0.2, 0.25}
	for i, coupling := range couplings {
		p, err := paperIsing(ctx, coupling)
		if err != nil {
			return nil, err
		}
		long := o.Steps * 5 / 2
		run, err := o.part(i, len(couplings)).compare(ctx, p, fmt.Sprintf("coupling %v", coupling),
			fmt.Sprintf("gibbs-x:block=1,steps=%d,gwg,dula:step-size=0.4,steps=%d,dmala:step-size=0.8", long, long), "independent")
		if err != nil {
			return nil, err
		}
		report.Runs = append(report.Runs, run)
	}
	return report, nil
}

func toy(ctx context.Context, o Overrides) (*Report, error) {
	o = o.or(10, 50000)
	setting := DefaultTable()
	setting.Categories = []int{3, 3}
	p, err := NewTable(ctx, setting)
	if err != nil {
		return nil, err
	}
	run, err := o.compare(ctx, p, "table of 3 × 3 states", "gibbs,gwg,dula:step-size=0.1,dmala:step-size=0.2", "uniform")
	if err != nil {
		return nil, err
	}
	return &Report{Runs: []*Run{run}}, nil
}
