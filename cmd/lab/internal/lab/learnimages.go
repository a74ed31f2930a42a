package lab

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"

	"infill/internal/targets"
	"infill/samplers"
)

// A Network is an energy of binary images whose weights can be learnt: *network.Energy of infill/lm/network.
type Network interface {
	Weights() int
	Initialise(r *rand.Rand, weights []float64)
	Set(weights []float64)
	Energies(ctx context.Context, images []int, energy []float64) error
	PixelGradient(ctx context.Context, images []int, energy, gradient []float64) error
	WeightGradient(ctx context.Context, images []int, scale float64, gradient []float64) error
	Close() error
}

// NetworkShape is what a Network is opened with.
type NetworkShape struct{ Rows, Columns, Features, Blocks, Downsampling int }

// learnImages trains deep energies: table 1 of the discrete Langevin paper, section 7.3.2 and appendix I.4.
type learnImages struct {
	open NetworkOpener

	data                           string
	test                           string
	side                           int
	dynamic                        bool
	samplers                       []Spec
	steps                          int
	training                       pcdOptions
	warmUp                         int
	average                        float64
	features, blocks, downsampling int
	ais                            []Spec
	aisSteps, aisChains            int
	repeats                        int
}

func newLearnImages(open NetworkOpener) *Study {
	list, _ := ParseSpecs("gibbs-x:block=1,gwg,dula:step-size=0.2,dmala:step-size=0.3")
	ais, _ := ParseSpecs("dmala:step-size=0.3")
	return newStudy("learn images", "Train deep energies of images",
		`Train a residual network as the energy of binary images, by persistent contrastive divergence
with a replay buffer, and estimate its test log-likelihood by annealed importance sampling: table 1
of the discrete Langevin paper. --data is digits (8 x 8), bars-and-stripes, or an IDX file as
MNIST's; --test is a file of test images, else a fifth of the data. The paper's setting is --steps 40 --updates 50000 --batch 100 --buffer 10000
--learning-rate 0.0001 --warm-up 10000 --average 0.999 --features 64 --blocks 8 --ais-steps 300000
--ais-chains 500.`, &learnImages{
			open: open, data: "digits", side: 4, samplers: list, steps: 10,
			training: pcdOptions{updates: 500, batch: 50, buffer: 500, rate: 0.001}, warmUp: 50, average: 0.98,
			features: 16, blocks: 4, downsampling: 2, ais: ais, aisSteps: 500, aisChains: 50, repeats: 2,
		})
}

func (o *learnImages) register(f *flag.FlagSet) {
	f.StringVar(&o.data, "data", o.data, "images: "+strings.Join(imageSets(), ", ")+", or an IDX `FILE`")
	f.StringVar(&o.test, "test", "",
		"`FILE` of test images; a fifth of the data when not given, and all of bars and stripes")
	WholeVar(f, &o.side, "side", 2, 8, "pixels of a side of bars and stripes")
	f.BoolVar(&o.dynamic, "dynamic", false,
		"draw training pixels by their grey at each update, instead of cutting at a half")
	samplersVar(f, &o.samplers, "samplers", "samplers of the chains")
	WholeVar(f, &o.steps, "steps", 1, 1<<20, "sampling steps of each update")
	o.training.register(f)
	WholeVar(f, &o.warmUp, "warm-up", 0, 1<<30, "updates over which the learning rate rises")
	numberVar(f, &o.average, "average", " of 0 or more",
		"what the averaged weights, which are evaluated, keep at each update; below 1")
	WholeVar(f, &o.features, "features", 1, 512, "features of the network")
	WholeVar(f, &o.blocks, "blocks", 0, 64, "residual blocks")
	WholeVar(f, &o.downsampling, "downsampling", 0, 8, "blocks that halve the sides")
	samplersVar(f, &o.ais, "ais-sampler", "sampler of annealed importance sampling, an exact one")
	WholeVar(f, &o.aisSteps, "ais-steps", 1, 1<<30, "its temperatures")
	WholeVar(f, &o.aisChains, "ais-chains", 2, maxChains, "its chains")
	repeatsVar(f, &o.repeats)
}

// maxListed is the most pixels of which all images are listed for an exact log Z.
const maxListed = 16

func (o *learnImages) plan(context.Context, uint64) (*plan, error) {
	if err := o.training.check(o.samplers); err != nil {
		return nil, err
	}
	switch {
	case len(o.ais) != 1 || !samplers.Describe(o.ais[0].Name).Exact:
		return nil, refuse("ais-sampler", "%s is not one exact sampler", labelsOf(o.ais))
	case o.average >= 1:
		return nil, refuse("average", "%v is not below 1", o.average)
	case o.downsampling > o.blocks:
		return nil, refuse("downsampling", "%d of %d blocks", o.downsampling, o.blocks)
	}
	data, err := readPictures(o.data, o.side)
	if err != nil {
		return nil, refuse("data", "%s: %w", o.data, err)
	}
	test := data
	if o.test != "" {
		if test, err = readPictures(o.test, o.side); err != nil {
			return nil, refuse("test", "%s: %w", o.test, err)
		}
		if test.rows != data.rows || test.columns != data.columns {
			return nil, refuse("test", "images of %d × %d pixels, and those of the data have %d × %d", test.rows,
				test.columns, data.rows, data.columns)
		}
	} else if data.count() < 5 {
		return nil, refuse("data", "%d images: at least 5 are needed", data.count())
	}
	p := &plan{
		title: fmt.Sprintf("deep energies of %s, %d × %d pixels", o.data, data.rows, data.columns),
		columns: []column{
			{name: "test-ll", format: "%.2f", definition: "mean log-likelihood of the test images, nats, with log Z " +
				"by annealed importance sampling, which is on the low side: the likelihood is on the high side"},
			{name: "low", format: "%.2f", definition: "its 95 % interval by the weights of the chains"},
			{name: "high", format: "%.2f"},
			{name: "effective", format: "%.2f", definition: "effective fraction of the chains of annealed importance " +
				"sampling; small where the interval is too short"},
			{name: "exact-ll", format: "%.2f", definition: "the same by listing all images"},
			{name: "independent", format: "%.2f", definition: "log-likelihood of independent pixels, for comparison"},
			{name: "acceptance", format: "%.2f", definition: "of proposals, at the last update"},
			{name: "seconds", format: "%.0f", definition: secondsAre + " of training and evaluation", timed: true},
		},
		curves: []curve{{name: "difference", x: "update", y: "mean U of data less that of chains"}},
	}
	for _, spec := range o.samplers {
		p.add(o.repeats, func(ctx context.Context, b *bench) error { return o.train(ctx, b, spec, data, test) },
			"sampler", spec.Label)
	}
	return p, nil
}

// deepEnergy is a network over a law of independent pixels:
//
//	U(x) = f_w(x) + log base(x)
type deepEnergy struct {
	network    Network
	weights    []float64
	base       base
	categories []int
	scratch    []float64
}

var (
	_ learner                 = (*deepEnergy)(nil)
	_ samplers.GradientTarget = (*deepEnergy)(nil)
)

func newDeepEnergy(network Network, laws [][]float64) *deepEnergy {
	return &deepEnergy{network: network, weights: make([]float64, network.Weights()), base: newBase(laws),
		categories: slices.Repeat([]int{2}, len(laws))}
}

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
		gradient[2*i], gradient[2*i+1] = logs[0], logs[1]+g
	}
	d.addBase(states, energy)
	return nil
}

func (d *deepEnergy) parameters() []float64 { return d.weights }

func (d *deepEnergy) addGradient(ctx context.Context, states []int, scale float64, gradient []float64) error {
	return d.network.WeightGradient(ctx, states, scale, gradient)
}

// averaged is a training with the running mean of its weights.
type averaged struct {
	Training *pcd
	Mean     []float64
}

func (o *learnImages) train(ctx context.Context, b *bench, spec Spec, data, test *pictures) error {
	pixels := data.rows * data.columns
	trainGreys, testGreys := data.pixels, test.pixels
	if data == test && o.data != "bars-and-stripes" {
		train, test := dealt(data, data.pixels, b)
		trainGreys, testGreys = slices.Concat(train...), slices.Concat(test...)
	}
	examples := data.binary(trainGreys, o.dynamic, b.streams("pixels", 1)[0])
	tests := test.binary(testGreys, o.dynamic, b.streams("test pixels", 1)[0])
	laws := pixelMeans(slices.Collect(slices.Chunk(examples, pixels)), pixels)

	network, err := o.open(ctx, NetworkShape{data.rows, data.columns, o.features, o.blocks, o.downsampling})
	if err != nil {
		return err
	}
	defer network.Close()
	model := newDeepEnergy(network, laws)
	network.Initialise(b.streams("weights", 1)[0], model.weights)
	network.Set(model.weights)
	kernel, err := spec.New(model, b.streams("terms", 1)[0])
	if err != nil {
		return refuse("samplers", "%w", err)
	}
	training := &pcd{model: model, kernel: kernel, steps: o.steps, batch: o.training.batch, rate: o.training.rate,
		shrink: o.training.shrink, warmUp: o.warmUp}
	r := b.streams("buffer", 1)[0]
	for range o.training.buffer {
		for _, law := range laws {
			training.Buffer = append(training.Buffer, drawFrom(law, r))
		}
	}
	state := &averaged{training, slices.Clone(model.weights)}
	if err := o.learn(ctx, b, state, model, trainGreys, examples, data); err != nil {
		return err
	}
	if err := b.picture("samples", grid(training.Buffer, data.rows, data.columns, 10, 4)); err != nil {
		return err
	}
	if err := b.picture("data", grid(examples, data.rows, data.columns, 10, 4)); err != nil {
		return err
	}
	network.Set(state.Mean)
	ended, err := o.judge(ctx, b, model, laws, tests)
	if err != nil {
		return err
	}
	return b.picture("annealed", grid(ended, data.rows, data.columns, 10, 4))
}

// learn runs the training.
func (o *learnImages) learn(ctx context.Context, b *bench, state *averaged, model *deepEnergy, greys []float64,
	examples []int, data *pictures) error {
	training, network := state.Training, model.network
	if err := training.begin(b, state); err != nil {
		return err
	}
	network.Set(model.weights)
	pixels := len(model.base)
	draw := &batches{data: examples, slots: pixels, size: o.training.batch}
	next := func() []int {
		if o.dynamic && training.Update%(max(len(examples)/pixels/o.training.batch, 1)) == 0 {
			draw.data = data.binary(greys, true, b.streams("pixels "+strconv.Itoa(training.Update), 1)[0])
		}
		return draw.at(b, training.Update+1)
	}
	return training.updates(ctx, b, state, o.training.updates, next, func(batch []int, due bool) error {
		network.Set(model.weights)
		floats.Scale(o.average, state.Mean)
		floats.AddScaled(state.Mean, 1-o.average, model.weights)
		if !due {
			return nil
		}
		ofData, err := meanEnergy(ctx, model, batch)
		if err != nil {
			return err
		}
		ofChains, err := meanEnergy(ctx, model, training.Buffer[:min(len(training.Buffer), len(batch))])
		b.point("difference", float64(training.Update), ofData-ofChains)
		return err
	})
}

func meanEnergy(ctx context.Context, target samplers.Target, states []int) (float64, error) {
	energy := make([]float64, len(states)/len(target.Categories()))
	err := target.Energy(ctx, states, energy)
	return stat.Mean(energy, nil), err
}

// judge estimates the log-likelihood of the test images, and returns where the chains
// of annealed importance sampling ended.
func (o *learnImages) judge(ctx context.Context, b *bench, model *deepEnergy, laws [][]float64,
	tests []int) ([]int, error) {
	z, err := annealedImportance(ctx, model, laws, aisOptions{o.ais[0], o.aisSteps, o.aisChains}, b.seed,
		b.repeat+" annealing", func(step int) error {
			return b.tick(ctx, step, o.aisSteps, nil)
		})
	if err != nil {
		return nil, err
	}
	mean, err := meanEnergy(ctx, model, tests)
	if err != nil {
		return nil, err
	}
	if fraction := z.effective / float64(o.aisChains); fraction < fewWeights {
		b.warn("%.0f %% of the chains of annealed importance sampling count: the interval is too short; take more "+
			"--ais-steps", 100*fraction)
	}
	b.number("test-ll", mean-z.value)
	b.number("low", mean-z.high)
	b.number("high", mean-z.low)
	b.number("effective", z.effective/float64(o.aisChains))
	if len(laws) <= maxListed {
		e, err := targets.Enumerate(ctx, model)
		if err != nil {
			return nil, err
		}
		b.number("exact-ll", mean-e.LogNormaliser)
	}
	independent, n := 0.0, len(laws)
	for c := range len(tests) / n {
		independent += model.base.log(tests[c*n : (c+1)*n])
	}
	b.number("independent", independent/float64(len(tests)/n))
	b.number("seconds", b.seconds())
	return z.states, nil
}
