package lab

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"

	"gonum.org/v1/gonum/stat"

	"infill/internal/targets"
	"infill/lm/network"
	"infill/samplers"
)

// learnImages trains deep energies, as table 1 of the discrete Langevin paper
// does (section 7.3.2, appendix I.4).
type learnImages struct {
	pcd                            pcdOptions
	steps, warmUp                  *int
	average                        *float64
	dynamic                        *bool
	features, blocks, downsampling *int
	levels                         *int
	validations, temperatures      *int
	annealing                      annealing
}

func newLearnImages() *Study {
	s := newStudy("learn images", "Train deep energies of images",
		`Train a residual network as the energy of images, by persistent contrastive divergence
with a replay buffer, and estimate its test log-likelihood by annealed importance sampling: table 1
of the discrete Langevin paper. --levels 17 has all greys of the digits, as Gibbs with Gradients
has 256. --data is digits (8 x 8), bars-and-stripes, or an IDX file as
MNIST's, or .amat as static MNIST's; --test is a file of test images, else a fifth of the data. The paper's setting is
--validation FILE --validation-ais-steps 10000 --steps 40 --updates 50000 --batch 100 --buffer 10000
--learning-rate 0.0001 --warm-up 10000 --average 0.999 --features 64 --blocks 8 --ais-steps 300000
--ais-chains 500.`)
	f := s.Flags
	images := validated(f, imageFlags(f))
	list := samplersFlag(f, "samplers", "gibbs-x:block=1,gwg,dula:step-size=0.2,dmala:step-size=0.3",
		"samplers of the chains")
	o := &learnImages{
		pcd:    pcdFlags(f, 500, 50, 500, 0.001, 0),
		steps:  wholeFlag(f, "steps", 10, 1, 1<<20, "sampling steps of each update"),
		warmUp: wholeFlag(f, "warm-up", 50, 0, 1<<30, "updates over which the learning rate rises"),
		average: number(f, "average", 0.98, " of 0 or more",
			"what the averaged weights, which are evaluated, keep at each update; below 1"),
		dynamic: f.Bool("dynamic", false,
			"draw training pixels by their grey at each update, instead of cutting at a half"),
		features:    wholeFlag(f, "features", 16, 1, 512, "features of the network"),
		blocks:      wholeFlag(f, "blocks", 4, 0, 64, "residual blocks"),
		levels:      wholeFlag(f, "levels", 2, 2, maxCategories, "greys of a pixel"),
		validations: wholeFlag(f, "validations", 10, 1, 1<<20, "times that the images of --validation are asked"),
		temperatures: wholeFlag(f, "validation-ais-steps", 200, 1, 1<<30,
			"temperatures of annealed importance sampling for them"),
		downsampling: wholeFlag(f, "downsampling", 2, 0, 8, "blocks that halve the sides"),
	}
	annealer := samplersFlag(f, "ais-sampler", "dmala:step-size=0.3",
		"sampler of annealed importance sampling, an exact one")
	temperatures := wholeFlag(f, "ais-steps", 500, 1, 1<<30, "its temperatures")
	chains := wholeFlag(f, "ais-chains", 50, 2, maxChains, "its chains")
	repeats := repeatsFlag(f, 2)
	s.plan = func(_ context.Context, in *inputs, _ uint64) (*plan, error) {
		ais := *annealer
		switch {
		case len(ais) != 1 || !samplers.Describe(ais[0].Name).Exact:
			return nil, refuse("ais-sampler", "%s is not one exact sampler", labelsOf(ais))
		case *o.dynamic && *o.levels > 2:
			return nil, refuse("dynamic", "pixels of %d levels are not drawn by their grey", *o.levels)
		case *o.average >= 1:
			return nil, refuse("average", "%v is not below 1", *o.average)
		case *o.downsampling > *o.blocks:
			return nil, refuse("downsampling", "%d of %d blocks", *o.downsampling, *o.blocks)
		}
		o.annealing = annealing{ais[0], *temperatures, *chains}
		set, err := images(in)
		if err != nil {
			return nil, err
		}
		p := newPlan(fmt.Sprintf("deep energies of images, %d × %d pixels", set.rows, set.columns), []column{
			{name: "test-ll", format: "%.2f", definition: "mean log-likelihood of the test images, nats, with log Z " +
				"by annealed importance sampling, which is on the low side: the likelihood is on the high side"},
			{name: "low", format: "%.2f", definition: "its 95 % interval by the weights of the chains"},
			{name: "high", format: "%.2f"},
			{name: "effective", format: "%.2f", definition: "effective fraction of the chains of annealed importance " +
				"sampling; small where the interval is too short"},
			{name: "exact-ll", format: "%.2f", definition: "the same by listing all images"},
			{name: "best-update", format: "%.0f", definition: "that the validation images choose"},
			{name: "independent", format: "%.2f", definition: "log-likelihood of independent pixels, for comparison"},
			acceptanceColumn(), secondsColumn("of training and evaluation"),
		}, curve{name: "difference", x: "update", y: "mean U of data less that of chains"})
		p.repeats(discreteLangevin, "table 1")
		for _, spec := range *list {
			p.add(*repeats, func(ctx context.Context, b *bench) error { return o.train(ctx, b, spec, set) },
				parameter{"sampler", spec.Label})
		}
		return p, o.pcd.check(*list)
	}
	return s
}

// deepEnergy adds a network to the log-probability of independent pixels:
//
//	U(x) = f_w(x) + log base(x)
type deepEnergy struct {
	network    *network.Energy
	weights    []float64
	base       base
	categories []int
	scratch    []float64
}

var (
	_ learner                 = (*deepEnergy)(nil)
	_ samplers.GradientTarget = (*deepEnergy)(nil)
)

func (d *deepEnergy) Categories() []int { return d.categories }

func (d *deepEnergy) addBase(states []int, energy []float64) {
	n := len(d.base)
	for c := range energy {
		energy[c] += d.base.log(states[c*n : (c+1)*n])
	}
}

func (d *deepEnergy) Energy(ctx context.Context, states []int, energy []float64) error {
	err := d.network.Energies(ctx, states, energy)
	d.addBase(states, energy)
	return err
}

func (d *deepEnergy) EnergyGradient(ctx context.Context, states []int, energy, gradient []float64) error {
	d.scratch = slices.Grow(d.scratch[:0], len(states))[:len(states)]
	if err := d.network.PixelGradient(ctx, states, energy, d.scratch); err != nil {
		return err
	}
	for i, g := range d.scratch {
		logs := d.base[i%len(d.base)]
		levels := len(logs)
		for v, l := range logs {
			gradient[levels*i+v] = l + g*float64(v)/float64(levels-1)
		}
	}
	d.addBase(states, energy)
	return nil
}

func (d *deepEnergy) parameters() []float64 { return d.weights }

func (d *deepEnergy) addGradient(ctx context.Context, states []int, scale float64, gradient []float64) error {
	return d.network.WeightGradient(ctx, states, scale, gradient)
}

func (o *learnImages) train(ctx context.Context, b *bench, spec Spec, images *imageSet) error {
	greys, testGreys := images.split(b)
	examples := o.states(greys, b.stream("pixels"))
	tests := o.states(testGreys, b.stream("test pixels"))
	pixels := images.pixels()
	laws := pixelLaws(slices.Collect(slices.Chunk(examples, pixels)), *o.levels)

	energy, err := network.Open(ctx,
		network.Shape{Rows: images.rows, Columns: images.columns, Features: *o.features, Blocks: *o.blocks,
			Downsampling: *o.downsampling, Levels: *o.levels}, 1) // one thread, as everywhere in the laboratory
	if err != nil {
		return err
	}
	defer energy.Close()
	model := &deepEnergy{network: energy, weights: make([]float64, energy.Weights()), base: newBase(laws),
		categories: slices.Repeat([]int{*o.levels}, pixels)}
	energy.Initialise(b.stream("weights"), model.weights)
	energy.Set(model.weights)
	// One stream draws the starts of all chains, one after another.
	buffer := drawFrom(laws, slices.Repeat(b.streams("buffer", 1), *o.pcd.buffer))
	p, err := o.pcd.newPCD(b, model, spec, *o.steps, buffer)
	if err != nil {
		return err
	}
	p.warmUp = *o.warmUp
	p.average = *o.average
	energy.Set(model.weights)
	draw := &batches{data: examples, slots: pixels, size: *o.pcd.batch}
	var chosen best
	validates := reportsOf(*o.pcd.updates, *o.validations)
	validation := o.states(images.validation, b.stream("validation pixels"))
	err = p.run(ctx, b, func() []int {
		if *o.dynamic && p.Update%(max(len(examples)/pixels / *o.pcd.batch, 1)) == 0 {
			draw.data = o.states(greys, b.stream("pixels "+strconv.Itoa(p.Update)))
		}
		return draw.at(b, p.Update+1)
	}, func(batch []int, due bool) error {
		if validates(p.Update) && len(validation) > 0 {
			energy.Set(p.Mean)
			score, err := o.validate(ctx, b, model, laws, validation)
			if err != nil {
				return err
			}
			chosen.offer(p.Update, score, p.Mean)
		}
		energy.Set(model.weights)
		if !due {
			return nil
		}
		ofData, err := meanEnergy(ctx, model, batch)
		if err != nil {
			return err
		}
		ofChains, err := meanEnergy(ctx, model, p.Buffer[:min(len(p.Buffer), len(batch))])
		b.point("difference", float64(p.Update), ofData-ofChains)
		return err
	})
	if err != nil {
		return err
	}
	if err := b.picture("samples", images.grid(p.Buffer, *o.levels)); err != nil {
		return err
	}
	if err := b.picture("data", images.grid(examples, *o.levels)); err != nil {
		return err
	}
	energy.Set(p.Mean)
	if chosen.weights != nil {
		energy.Set(chosen.weights)
		b.number("best-update", float64(chosen.update))
	}
	return o.judge(ctx, b, model, laws, tests)
}

// states gives the pixels their levels.
func (o *learnImages) states(greys []float64, r *rand.Rand) []int {
	if *o.levels == 2 {
		return binarised(greys, *o.dynamic, r)
	}
	return quantised(greys, *o.levels)
}

func meanEnergy(ctx context.Context, target samplers.Target, states []int) (float64, error) {
	energy := make([]float64, len(states)/len(target.Categories()))
	err := target.Energy(ctx, states, energy)
	return stat.Mean(energy, nil), err
}

// validate estimates the log-likelihood of the validation images.
func (o *learnImages) validate(ctx context.Context, b *bench, model *deepEnergy, laws [][]float64,
	images []int) (float64, error) {
	a := o.annealing
	a.steps = *o.temperatures
	z, err := a.normaliser(ctx, model, laws, b, "validation")
	if err != nil {
		return 0, err
	}
	mean, err := meanEnergy(ctx, model, images)
	return mean - z.value, err
}

// judge estimates the log-likelihood of the test images.
func (o *learnImages) judge(ctx context.Context, b *bench, model *deepEnergy, laws [][]float64, tests []int) error {
	z, err := o.annealing.normaliser(ctx, model, laws, b, "annealing")
	if err != nil {
		return err
	}
	mean, err := meanEnergy(ctx, model, tests)
	if err != nil {
		return err
	}
	fraction := z.effective / float64(o.annealing.chains)
	if fraction < fewWeights {
		b.warn("%.0f %% of the chains of annealed importance sampling count: the interval is too short; take more "+
			"--ais-steps", 100*fraction)
	}
	b.number("test-ll", mean-z.value)
	b.number("low", mean-z.high)
	b.number("high", mean-z.low)
	b.number("effective", fraction)
	if math.Pow(float64(*o.levels), float64(len(laws))) <= 1<<16 {
		e, err := targets.Enumerate(ctx, model)
		if err != nil {
			return err
		}
		b.number("exact-ll", mean-e.LogNormaliser)
	}
	independent := 0.0
	for state := range slices.Chunk(tests, len(laws)) {
		independent += model.base.log(state)
	}
	b.number("independent", independent/float64(len(tests)/len(laws)))
	b.number("seconds", b.seconds())
	return nil
}
