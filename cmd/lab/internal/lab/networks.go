package lab

import (
	"context"
	"flag"
	"math"
	"strconv"
	"strings"

	"gonum.org/v1/gonum/floats"

	"infill/samplers"
)

// networks samples the weights of binary Bayesian neural networks: tables 2 and 4 of the discrete Langevin paper,
// section 7.4 and appendix I.5, with the energy of its code. Batches are the samplers' own setting terms.
type networks struct {
	data          []string
	samplers      []Spec
	hidden        int
	tau           float64
	chains, steps int
	repeats       int
}

func newNetworks() *Study {
	list, _ := ParseSpecs(
		"gibbs-x:block=1,gwg,dula:step-size=0.2,dmala:step-size=0.2,dula:step-size=0.2,terms=10,dula:step-size=0.2," +
			"terms=100")
	return newStudy("networks", "Sample binary Bayesian neural networks",
		`Sample the weights of binary Bayesian neural networks for regression, -1 or +1 each: tables
2 and 4 of the discrete Langevin paper. A sampler's setting terms is the batch of its gradient,
as in dula:step-size=0.2,terms=100. --data takes the names of tables that the laboratory carries
(`+strings.Join(regressions(), ", ")+`), and CSV files with a header, numbers, and what
is to be predicted in the last column. The paper's setting is --chains 50 --steps 1000.`, &networks{
			data: regressions(), samplers: list, hidden: 100, tau: 100, chains: 10, steps: 200, repeats: 2,
		})
}

func (o *networks) register(f *flag.FlagSet) {
	listVar(f, &o.data, "data", ",", "tables, by name or CSV files, with commas between them")
	samplersVar(f, &o.samplers, "samplers", "samplers of the weights")
	WholeVar(f, &o.hidden, "hidden", 1, 1<<14, "hidden units")
	numberVar(f, &o.tau, "tau", " above 0", "U is minus τ times the mean squared error; the paper's code has 100")
	WholeVar(f, &o.chains, "chains", 1, maxChains, "chains, whose predictions are averaged")
	WholeVar(f, &o.steps, "steps", 1, 1<<30, "steps of each chain")
	repeatsVar(f, &o.repeats)
}

func (o *networks) plan(context.Context, uint64) (*plan, error) {
	if err := checkedSpecs(o.samplers); err != nil {
		return nil, err
	}
	p := &plan{
		title: "binary Bayesian neural networks",
		columns: []column{
			{name: "train-ll", format: "%.4f", definition: "minus the mean squared error of single chains on the " +
				"training part, which the paper calls log-likelihood"},
			{name: "test-ll", format: "%.4f", definition: "the same on the test part"},
			{name: "test-rmse", format: "%.4f",
				definition: "root mean squared error of the chains' mean prediction on the test part"},
			{name: "acceptance", format: "%.2f", definition: "of proposals"},
			{name: "seconds", format: "%.1f", definition: secondsAre + " of all chains", timed: true},
		},
		curves: []curve{{name: "train-ll", x: "step", y: "training log-likelihood"},
			{name: "test-rmse", x: "step", y: "test RMSE"}},
		notes: []string{"every repetition has another fifth of the examples to test with"},
	}
	for _, name := range o.data {
		table, err := readRegression(name)
		if err != nil {
			return nil, err
		}
		for _, spec := range o.samplers {
			p.add(o.repeats, func(ctx context.Context, b *bench) error { return o.sample(ctx, b, spec, table) },
				"sampler", spec.Label, "data", name)
		}
	}
	return p, nil
}

func (o *networks) sample(ctx context.Context, b *bench, spec Spec, table *regression) error {
	data := table.split(b.streams("split", 1)[0])
	target := newBinaryNetwork(data.trainX, data.trainY, o.hidden, o.tau)
	w := &walk{Positions: samplers.RandomPositions(target, b.streams("start", o.chains))}
	if _, err := b.resume(w); err != nil {
		return err
	}
	n := len(target.Categories())
	predict := func(x, y []float64) (likelihood, rmse float64) {
		mean := make([]float64, len(y))
		for c := range o.chains {
			f := target.Predict(w.Positions[c*n:(c+1)*n], x)
			likelihood -= math.Pow(rootMeanSquare(f, y), 2) / float64(o.chains)
			floats.AddScaled(mean, 1/float64(o.chains), f)
		}
		return likelihood, rootMeanSquare(mean, y)
	}
	for w.Step < o.steps {
		if err := w.advance(ctx, b, spec, target, min(max(o.steps/25, 1), o.steps-w.Step)); err != nil {
			return err
		}
		train, _ := predict(data.trainX, data.trainY)
		test, rmse := predict(data.testX, data.testY)
		b.point("train-ll", float64(w.Step), train)
		b.point("test-rmse", float64(w.Step), rmse)
		b.number("train-ll", train)
		b.number("test-ll", test)
		b.number("test-rmse", rmse)
		b.number("acceptance", w.Accepted)
		b.number("seconds", b.seconds())
		if err := b.tick(ctx, w.Step, o.steps, w); err != nil {
			return err
		}
	}
	return nil
}

// walk is chains that can be stopped and go on. Its exported fields are what a checkpoint keeps.
type walk struct {
	Step      int
	Positions []int   // [chains × slots]
	Accepted  float64 // of proposals since the start
}

// advance makes some steps with a new kernel and streams of their own, so that
// where they lead depends on the positions alone.
func (w *walk) advance(ctx context.Context, b *bench, spec Spec, target samplers.Target, steps int) error {
	label := spec.Label + " from step " + strconv.Itoa(w.Step)
	kernel, err := spec.New(target, b.streams("terms "+label, 1)[0])
	if err != nil {
		return refuse("samplers", "%w", err)
	}
	streams := b.streams(label, len(w.Positions)/len(target.Categories()))
	var acceptance samplers.Acceptance
	run, err := samplers.Sample(ctx, kernel, w.Positions, samplers.Plan{Streams: streams, Steps: steps},
		func(s samplers.Step) error {
			if s.Info != nil {
				acceptance.Observe(s.Info)
			}
			return nil
		})
	if err != nil {
		return err
	}
	rate, _ := acceptance.Rate()
	w.Accepted = (w.Accepted*float64(w.Step) + rate*float64(steps)) / float64(w.Step+steps)
	w.Step += steps
	w.Positions = run.State.Positions
	return nil
}
