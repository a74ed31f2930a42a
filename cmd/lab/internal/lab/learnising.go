package lab

import (
	"context"
	"flag"
	"fmt"
	"image"
	"math"
	"strconv"

	"gonum.org/v1/gonum/floats"

	"infill/internal/targets"
	"infill/samplers"
)

// learnIsing learns the couplings of an Ising model from its states: figure 5 of the discrete Langevin paper, appendix
// I.4. The settings of its code are Adam at 0.001, 256 chains, batches of 256 of 2,000 states, ℓ1 of 0.01.
type learnIsing struct {
	rows, columns int
	coupling      float64
	samplers      []Spec
	steps         []int
	training      pcdOptions
	data, sweeps  int
	repeats       int
}

// pcdOptions are what trainings by persistent contrastive divergence share.
type pcdOptions struct {
	updates, batch, buffer int
	rate, shrink           float64
}

func (o *pcdOptions) register(f *flag.FlagSet) {
	WholeVar(f, &o.updates, "updates", 1, 1<<30, "updates of each training")
	WholeVar(f, &o.batch, "batch", 1, 1<<20, "examples, and chains, of each update")
	WholeVar(f, &o.buffer, "buffer", 1, 1<<20, "chains that are kept from update to update")
	numberVar(f, &o.rate, "learning-rate", " above 0", "of Adam")
	numberVar(f, &o.shrink, "l1", " of 0 or more", "coefficient of the ℓ1 penalty of the couplings")
}

// check refuses a buffer without room for a batch, and what a list of samplers can say of comparisons alone.
func (o *pcdOptions) check(list []Spec) error {
	if err := checkedSpecs(list); err != nil {
		return err
	}
	if o.buffer < o.batch {
		return refuse("buffer", "%d chains, and a batch moves %d of them: take at least as many", o.buffer, o.batch)
	}
	return nil
}

func repeatsVar(f *flag.FlagSet, to *int) {
	WholeVar(f, to, "repeats", 1, 1000, "repetitions with other random numbers, which errors are taken from")
}

func newLearnIsing() *Study {
	list, _ := ParseSpecs("gibbs,gwg,dula:step-size=0.2,dmala:step-size=0.4")
	return newStudy("learn ising", "Learn the couplings of an Ising model",
		`Learn the couplings W of an Ising model on a torus from its states, by persistent
contrastive divergence, with several samplers and numbers of sampling steps an update:
figure 5 of the discrete Langevin paper. The paper's size is 25x25, with 10,000 updates and
1, 5, 25, 50 and 100 steps, in batches of 256 and with as many chains.`, &learnIsing{
			rows: 6, columns: 6, coupling: 0.25, samplers: list, steps: []int{1, 5, 25},
			training: pcdOptions{updates: 1000, batch: 100, buffer: 100, rate: 0.001, shrink: 0.01}, data: 2000,
			sweeps: 200, repeats: 2,
		})
}

func (o *learnIsing) register(f *flag.FlagSet) {
	sizeVar(f, &o.rows, &o.columns, "rows and columns of the lattice")
	numberVar(f, &o.coupling, "coupling", "", "that the data are drawn with; the paper's is 0.25")
	samplersVar(f, &o.samplers, "samplers", "samplers of the chains")
	NumbersVar(f, &o.steps, "steps", "sampling steps of each update")
	o.training.register(f)
	WholeVar(f, &o.data, "data", 1, 1<<20, "states that are learnt from")
	WholeVar(f, &o.sweeps, "data-sweeps", 1, 1<<20, "sweeps of Gibbs behind each of them")
	repeatsVar(f, &o.repeats)
}

// maxLearnt bounds the sites whose couplings are learnt: W has their square.
const maxLearnt = 1 << 11

func (o *learnIsing) plan(ctx context.Context, _ uint64) (*plan, error) {
	if err := o.training.check(o.samplers); err != nil {
		return nil, err
	}
	sites := o.rows * o.columns
	if sites > maxLearnt {
		return nil, refuse("size", "%d sites: couplings of at most %d are learnt", sites, maxLearnt)
	}
	p := &plan{
		title: fmt.Sprintf("learning an Ising model of %d × %d sites", o.rows, o.columns),
		columns: []column{
			{name: "log-rmse", format: "%.3f", definition: "½ ln of the mean square over all entries of the learnt W " +
				"less the true one, after the last update", against: "steps"},
			{name: "acceptance", format: "%.2f", definition: "of proposals, at the last update"},
			{name: "seconds", format: "%.1f", definition: secondsAre + " of a training", timed: true},
		},
		curves: []curve{{name: "log-rmse", x: "update", y: "log RMSE of W (natural)"}},
	}
	truth, err := o.truth()
	if err != nil {
		return nil, err
	}
	zero := floats.Norm(truth, 2) / float64(sites)
	p.notes = append(p.notes, fmt.Sprintf("couplings that are all 0 have a log-rmse of %.3f", math.Log(zero)))
	p.trainings(o.samplers, o.steps, o.repeats, o.states,
		func(ctx context.Context, b *bench, spec Spec, steps int, data []int) error {
			return o.train(ctx, b, spec, steps, data, truth)
		})
	return p, nil
}

// trainings adds a cell for each sampler, number of sampling steps an update, and repetition. The cells of a repetition
// share the data, whose making is no part of them.
func (p *plan) trainings(list []Spec, steps []int, repeats int, data func(context.Context, *bench) ([]int, error),
	train func(ctx context.Context, b *bench, spec Spec, steps int, data []int) error) {
	known := map[string][]int{}
	for _, spec := range list {
		for _, n := range steps {
			p.add(repeats, func(ctx context.Context, b *bench) (err error) {
				if known[b.repeat] == nil {
					began := clock()
					if known[b.repeat], err = data(ctx, b); err != nil {
						return err
					}
					b.start = b.start.Add(clock().Sub(began))
				}
				return train(ctx, b, spec, n, known[b.repeat])
			}, "sampler", spec.Label, "steps", strconv.Itoa(n))
		}
	}
}

// truth is the true W: the coupling between neighbours, as [targets.Ising] has it.
func (o *learnIsing) truth() ([]float64, error) {
	sites := o.rows * o.columns
	w := make([]float64, sites*sites)
	near, err := targets.Neighbours(o.rows, o.columns)
	for i, list := range near {
		for _, k := range list {
			w[i*sites+k] = o.coupling
		}
	}
	return w, err
}

// states are drawn by Gibbs from uniform starts.
func (o *learnIsing) states(ctx context.Context, b *bench) ([]int, error) {
	target, err := targets.NewIsing(o.rows, o.columns, o.coupling, 0)
	if err != nil {
		return nil, err
	}
	streams := b.streams("data", o.data)
	plan := samplers.Plan{Streams: streams, Steps: o.sweeps * o.rows * o.columns}
	kernel, err := samplers.New("gibbs", target)
	if err != nil {
		return nil, err
	}
	run, err := samplers.Sample(ctx, kernel, samplers.RandomPositions(target, streams), plan,
		func(s samplers.Step) error {
			if s.Number%1000 == 0 {
				b.observe(s.Number, plan.Steps)
			}
			return ctx.Err()
		})
	if err != nil {
		return nil, fmt.Errorf("the data: %w", err)
	}
	return run.State.Positions, nil
}

// isingLearner learns the couplings of an Ising model without a field.
type isingLearner struct {
	*pairwise
	weights []float64
}

func (l *isingLearner) parameters() []float64 { return l.weights }

func (l *isingLearner) addGradient(_ context.Context, states []int, scale float64, gradient []float64) error {
	l.AddMoments(states, scale, gradient)
	return nil
}

// newIsingLearner starts at small random couplings, as the paper's code does.
func newIsingLearner(sites int, b *bench) *isingLearner {
	w := symmetricNormals(sites, 0.01/math.Sqrt2, b.streams("couplings", 1)[0]) // the mean of two draws
	return &isingLearner{newPairwise(w, make([]float64, sites)), w}
}

func (o *learnIsing) train(ctx context.Context, b *bench, spec Spec, steps int, data []int, truth []float64) error {
	model := newIsingLearner(o.rows*o.columns, b)
	kernel, err := spec.New(model, nil)
	if err != nil {
		return err
	}
	logRMSE := func() float64 { return logRoot(model.weights, truth) }
	training := o.training.pcd(model, kernel, steps, b)
	if err := training.run(ctx, b, o.training.updates, data,
		func(at float64) { b.point("log-rmse", at, logRMSE()) }); err != nil {
		return err
	}
	b.number("log-rmse", logRMSE())
	b.number("seconds", b.seconds())
	return b.picture("couplings", matrixImage(model.weights, o.rows*o.columns, 4))
}

// logRoot is ½ ln of the mean square of a less b.
func logRoot(a, b []float64) float64 { return math.Log(rootMeanSquare(a, b)) }

// matrixImage shows a square matrix in greys, its largest value black.
func matrixImage(values []float64, n, pixel int) image.Image {
	m := image.NewGray(image.Rect(0, 0, n*pixel, n*pixel))
	most := math.Max(floats.Max(values), 1e-12)
	for y := range n * pixel {
		for x := range n * pixel {
			v := math.Max(0, values[y/pixel*n+x/pixel]/most)
			m.Pix[y*m.Stride+x] = uint8(math.Round(255 * (1 - v)))
		}
	}
	return m
}
