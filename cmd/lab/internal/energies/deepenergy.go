package energies

import (
	"context"
	"math/rand/v2"
	"slices"

	"github.com/spf13/pflag"
	"gonum.org/v1/gonum/floats"

	"infill/cmd/lab/internal/chains"
	"infill/cmd/lab/internal/lab"
	"infill/internal/logmath"
	"infill/internal/targets"
	"infill/samplers"
)

type deepOptions struct {
	pcd                           pcdOptions
	samplers, annealer            *[]lab.Spec
	steps, warmUp                 *int
	average                       *float64
	temperatures, chains, repeats *int
}

func deepFlags(f *pflag.FlagSet, pcd pcdOptions, list, annealer string) deepOptions {
	return deepOptions{
		pcd:      pcd,
		samplers: lab.SamplersFlag(f, "samplers", list, "samplers of the chains"),
		annealer: lab.SamplersFlag(f, "ais-sampler", annealer,
			"sampler of annealed importance sampling, an exact one"),
		steps:  lab.WholeFlag(f, "steps", 10, 1, 1<<20, "sampling steps of each update"),
		warmUp: lab.WholeFlag(f, "warm-up", 50, 0, 1<<30, "updates over which the learning rate rises"),
		average: lab.NumberFlag(f, "average", 0.98, " of 0 or more",
			"what the averaged weights, which are evaluated, keep at each update; below 1"),
		temperatures: lab.WholeFlag(f, "ais-steps", 500, 1, 1<<30, "its temperatures"),
		chains:       lab.WholeFlag(f, "ais-chains", 50, 2, lab.MaxChains, "its chains"),
		repeats:      lab.RepeatsFlag(f, 2),
	}
}

func (o *deepOptions) check() error {
	ais := *o.annealer
	if len(ais) != 1 || ais[0].Sampler == nil || !ais[0].Sampler.Describe().Exact {
		return lab.Refuse("ais-sampler", "%s is not one exact sampler", lab.LabelsOf(ais))
	}
	if *o.average >= 1 {
		return lab.Refuse("average", "%v is not below 1", *o.average)
	}
	return o.pcd.check(*o.samplers)
}

// maxListedStates bounds the states listed for the exact likelihood.
const maxListedStates = 1 << 16

type subject struct {
	examples, tests []int // [any number × slots]
	laws            [][]float64
	network         energyNetwork
	// redraw returns the examples of the epoch that begins after an update; nil
	// if all epochs have the same.
	redraw func(update int) []int
	// validation chooses the weights that are tested, if there is any.
	// validations is how often it is asked, and temperatures are those of its
	// annealed importance sampling.
	validation                []int
	validations, temperatures int
	show                      func(name string, states []int) error
}

type energyNetwork interface {
	Energies(ctx context.Context, states []int, energy []float64) error
	// SlotGradient writes f, and its derivatives by the indicators of all
	// categories, [states × slots × categories].
	SlotGradient(ctx context.Context, states []int, energy, gradient []float64) error
	// WeightGradient adds scale times the mean over the states of ∂f/∂weights.
	WeightGradient(ctx context.Context, states []int, scale float64, gradient []float64) error
	// Weights returns how many there are; Initialise draws, and Set sets them.
	Weights() int
	Initialise(r *rand.Rand, weights []float64)
	Set(weights []float64)
}

// deepEnergy adds a network to the log-probability of independent slots:
//
//	U(x) = f_w(x) + log base(x)
type deepEnergy struct {
	network    energyNetwork
	weights    []float64
	base       chains.Base
	categories []int
}

var (
	_ learner                    = (*deepEnergy)(nil)
	_ samplers.GradientTarget    = (*deepEnergy)(nil)
	_ learner                    = conditionalEnergy{}
	_ samplers.ConditionalTarget = conditionalEnergy{}
)

// newDeepEnergy makes the energy of a subject. The cell draws its weights.
func newDeepEnergy(b *lab.Bench, s *subject) *deepEnergy {
	d := &deepEnergy{network: s.network, weights: make([]float64, s.network.Weights()), base: chains.NewBase(s.laws)}
	for _, law := range s.laws {
		d.categories = append(d.categories, len(law))
	}
	d.network.Initialise(b.Stream("weights"), d.weights)
	d.network.Set(d.weights)
	return d
}

func (d *deepEnergy) Categories() []int { return d.categories }

func (d *deepEnergy) addBase(states []int, energy []float64) {
	n := len(d.base)
	for c := range energy {
		energy[c] += d.base.Log(states[c*n : (c+1)*n])
	}
}

func (d *deepEnergy) Energy(ctx context.Context, states []int, energy []float64) error {
	err := d.network.Energies(ctx, states, energy)
	d.addBase(states, energy)
	return err
}

func (d *deepEnergy) EnergyGradient(ctx context.Context, states []int, energy, gradient []float64) error {
	if err := d.network.SlotGradient(ctx, states, energy, gradient); err != nil {
		return err
	}
	for i := range states {
		logs := d.base[i%len(d.base)]
		floats.Add(gradient[i*len(logs):(i+1)*len(logs)], logs)
	}
	d.addBase(states, energy)
	return nil
}

func (d *deepEnergy) Parameters() []float64 { return d.weights }

func (d *deepEnergy) AddGradient(ctx context.Context, states []int, scale float64, gradient []float64) error {
	return d.network.WeightGradient(ctx, states, scale, gradient)
}

// conditionalEnergy is a deep energy that knows a slot's categories at once.
type conditionalEnergy struct {
	*deepEnergy
	slotwise slotNetwork
}

// slotNetwork computes f for a slot's categories, but a constant of each state.
type slotNetwork interface {
	SlotEnergies(ctx context.Context, states []int, slots []int, energy []float64) error
}

func (d conditionalEnergy) LogConditionals(ctx context.Context, states []int, slots []int, logp []float64) error {
	if err := d.slotwise.SlotEnergies(ctx, states, slots, logp); err != nil {
		return err
	}
	wide := len(logp) / len(slots)
	for c, i := range slots {
		row := logp[c*wide : (c+1)*wide]
		floats.Add(row, d.base[i])
		logmath.Normalise(row)
	}
	return nil
}

type gradientLearner interface {
	learner
	samplers.GradientTarget
}

// train learns a deep energy by persistent divergence, and judges it.
func (o *deepOptions) train(ctx context.Context, b *lab.Bench, spec lab.Spec, s *subject) error {
	deep := newDeepEnergy(b, s)
	var model gradientLearner = deep
	if of, ok := s.network.(slotNetwork); ok {
		model = conditionalEnergy{deep, of}
	}
	// One stream draws the starts of all chains, one after another.
	buffer := lab.DrawFrom(s.laws, slices.Repeat(b.Streams("buffer", 1), *o.pcd.buffer))
	p, err := o.pcd.newPCD(b, model, spec, *o.steps, buffer)
	if err != nil {
		return err
	}
	p.warmUp = *o.warmUp
	p.average = *o.average
	slots := len(s.laws)
	draw := &lab.Batches{Data: s.examples, Slots: slots, Size: *o.pcd.batch}
	epoch := max(len(s.examples)/slots / *o.pcd.batch, 1)
	var chosen lab.Best
	validates := lab.ReportsOf(*o.pcd.updates, max(s.validations, 1))
	err = p.run(ctx, b, func() []int {
		if s.redraw != nil && p.Update%epoch == 0 {
			draw.Data = s.redraw(p.Update)
		}
		return draw.At(b, p.Update+1)
	}, func(batch []int, due bool) error {
		if validates(p.Update) && len(s.validation) > 0 {
			s.network.Set(p.Mean)
			z, mean, err := o.likelihood(ctx, b, model, s, "validation", s.temperatures, s.validation)
			if err != nil {
				return err
			}
			chosen.Offer(p.Update, mean-z.Value, p.Mean)
		}
		s.network.Set(deep.weights)
		if !due {
			return nil
		}
		ofData, err := chains.MeanEnergy(ctx, model, batch)
		if err != nil {
			return err
		}
		ofChains, err := chains.MeanEnergy(ctx, model, p.Buffer[:min(len(p.Buffer), len(batch))])
		b.Point("difference", float64(p.Update), ofData-ofChains)
		return err
	})
	if err != nil {
		return err
	}
	if err := s.show("samples", p.Buffer); err != nil {
		return err
	}
	if err := s.show("data", s.examples); err != nil {
		return err
	}
	s.network.Set(p.Mean)
	if chosen.Weights != nil {
		s.network.Set(chosen.Weights)
		b.Number("best-update", float64(chosen.Update))
	}
	return o.judge(ctx, b, model, s)
}

// likelihood estimates log Z, and returns it with the mean energy of examples.
func (o *deepOptions) likelihood(ctx context.Context, b *lab.Bench, model gradientLearner, s *subject, label string,
	temperatures int, examples []int) (z *chains.LogNormaliser, mean float64, err error) {
	a := chains.Annealing{Sampler: (*o.annealer)[0], Steps: temperatures, Chains: *o.chains}
	z, err = a.Normaliser(ctx, model, s.laws, b, label)
	if err != nil {
		return z, 0, err
	}
	mean, err = chains.MeanEnergy(ctx, model, examples)
	return z, mean, err
}

func (o *deepOptions) judge(ctx context.Context, b *lab.Bench, model gradientLearner, s *subject) error {
	z, mean, err := o.likelihood(ctx, b, model, s, "annealing", *o.temperatures, s.tests)
	if err != nil {
		return err
	}
	fraction := z.Effective / float64(*o.chains)
	if fraction < chains.FewWeights {
		b.Warn("%.0f %% of the chains of annealed importance sampling count: the interval is too short; take more "+
			"--ais-steps", 100*fraction)
	}
	b.Number("test-ll", mean-z.Value)
	b.Number("low", mean-z.High)
	b.Number("high", mean-z.Low)
	b.Number("effective", fraction)
	if lab.StatesOf(model.Categories()) <= maxListedStates {
		e, err := targets.Enumerate(ctx, model)
		if err != nil {
			return err
		}
		b.Number("exact-ll", mean-e.LogNormaliser)
	}
	b.Number("independent", chains.MeanLog(s.tests, len(s.laws), chains.NewBase(s.laws).Log))
	b.Number("seconds", b.Seconds())
	return nil
}
