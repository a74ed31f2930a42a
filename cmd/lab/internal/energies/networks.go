package energies

import (
	"context"
	"math"
	"slices"
	"strconv"

	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/floats"

	"infill/cmd/lab/internal/lab"
	"infill/internal/logmath"
	"infill/internal/targets"
	"infill/samplers"
)

// newNetworks repeats tables 2 and 4 of the discrete Langevin paper (section
// 7.4, appendix I.5) with its code's energy.
func newNetworks() *lab.Study {
	s := lab.NewStudy("networks")
	f := s.Flags
	data := f.StringSlice("data", lab.Regressions(), "tables, by name or CSV files, with commas between them")
	specs := lab.SamplersFlag(f, "samplers", "gibbs-x:block=1,gwg,dula:step-size=0.2,dmala:step-size=0.2,"+
		"dula:step-size=0.2,terms=10,dula:step-size=0.2,terms=100", "samplers of the weights")
	hidden := lab.WholeFlag(f, "hidden", 100, 1, 1<<14, "hidden units")
	tau := lab.NumberFlag(f, "tau", 100, " above 0",
		"U is minus τ times the mean squared error; the paper's code has 100")
	chains := lab.WholeFlag(f, "chains", 10, 1, lab.MaxChains, "chains, whose predictions are averaged")
	steps := lab.WholeFlag(f, "steps", 200, 1, 1<<30, "steps of each chain")
	scale := lab.ChoiceFlag(f, "inputs", []string{"standard", "unit"},
		"scale of the inputs: mean 0 and standard deviation 1, or from 0 to 1 as in the paper")
	repeats := lab.RepeatsFlag(f, 2)
	s.Plan = func(_ context.Context, in *lab.Inputs, _ uint64) (*lab.Plan, error) {
		p := s.NewPlan("binary Bayesian neural networks")
		p.Notes = []string{"every repetition has another fifth of the examples to test with"}
		for _, name := range *data {
			table, err := lab.ReadRegression(in, name)
			if err != nil {
				return nil, err
			}
			for _, spec := range *specs {
				p.Add(*repeats, func(ctx context.Context, b *lab.Bench) error {
					data := table.Split(b.Stream("split"), *scale)
					target := newBinaryNetwork(data.TrainX, data.TrainY, *hidden, *tau)
					return sampleNetwork(ctx, b, spec, target, data, *chains, *steps)
				}, lab.Label{Name: "sampler", Value: spec.Label}, lab.Label{Name: "data", Value: name})
			}
		}
		return p, lab.CheckedSpecs(*specs)
	}
	return s
}

func sampleNetwork(ctx context.Context, b *lab.Bench, spec lab.Spec, target *binaryNetwork, data lab.Split,
	chains, steps int) error {
	w := &walk{Positions: samplers.RandomPositions(target, b.Streams("start", chains))}
	predict := func(x, y []float64) (likelihood, rmse float64) {
		mean := make([]float64, len(y))
		for state := range slices.Chunk(w.Positions, len(target.categories)) {
			f, _ := target.predict(state, lab.Matrix(len(y), target.inputs.Cols, x))
			likelihood -= math.Pow(lab.RootMeanSquare(f, y), 2) / float64(chains)
			floats.AddScaled(mean, 1/float64(chains), f)
		}
		return likelihood, lab.RootMeanSquare(mean, y)
	}
	for w.Step < steps {
		if err := w.advance(ctx, b, spec, target, min(max(steps/25, 1), steps-w.Step)); err != nil {
			return err
		}
		train, _ := predict(data.TrainX, data.TrainY)
		test, rmse := predict(data.TestX, data.TestY)
		b.Point("train-ll", float64(w.Step), train)
		b.Point("test-rmse", float64(w.Step), rmse)
		b.Number("train-ll", train)
		b.Number("test-ll", test)
		b.Number("test-rmse", rmse)
		b.Number("acceptance", w.Accepted)
		b.Number("seconds", b.Seconds())
		if err := b.Tick(ctx, w.Step, steps); err != nil {
			return err
		}
	}
	return nil
}

// binaryNetwork is the posterior of a binary Bayesian neural network for
// regression, as in the code of the discrete Langevin paper (section 7.4): two
// layers whose weights and biases are -1 or +1,
//
//	f(x) = sigmoid(w₂ᵀ tanh(W₁ᵀx + b₁) + b₂)
//	U(θ) = -(τ/N) Σ_i (f(x_i) - y_i)²
//
// with the code's τ = 100. The paper writes U as the sum, τ = N. Slots are W₁
// [inputs × hidden], b₁, w₂ and b₂; category 0 is -1. Each example is a term of
// the energy.
type binaryNetwork struct {
	inputs     blas64.General // x, [examples × inputs]
	outputs    []float64      // y
	hidden     int
	tau        float64
	categories []int
	weights    []float64
}

// newBinaryNetwork makes the posterior given the examples: inputs x [examples ×
// inputs] and outputs y [examples].
func newBinaryNetwork(inputs, outputs []float64, hidden int, tau float64) *binaryNetwork {
	n := len(outputs)
	p := len(inputs) / n
	slots := (p+2)*hidden + 1
	return &binaryNetwork{lab.Matrix(n, p, inputs), outputs, hidden, tau, slices.Repeat([]int{2}, slots),
		make([]float64, slots)}
}

func (t *binaryNetwork) Categories() []int { return t.categories }

func (t *binaryNetwork) Terms() int { return len(t.outputs) }

func (t *binaryNetwork) network(state []int) lab.Perceptron {
	for j, v := range state {
		t.weights[j] = targets.Spin(v)
	}
	return lab.Perceptron{Sizes: []int{t.inputs.Cols, t.hidden, 1}, Weights: t.weights}
}

// predict returns a state's network at inputs, and all its units.
func (t *binaryNetwork) predict(state []int, inputs blas64.General) (f []float64, units []blas64.General) {
	units = t.network(state).Forward(inputs)
	for _, x := range units[2].Data {
		f = append(f, logmath.Sigmoid(x))
	}
	return f, units
}

func (t *binaryNetwork) Energy(_ context.Context, states []int, energy []float64) error {
	n := len(t.categories)
	for c := range energy {
		f, _ := t.predict(states[c*n:(c+1)*n], t.inputs)
		energy[c] = -t.tau * math.Pow(lab.RootMeanSquare(f, t.outputs), 2)
	}
	return nil
}

func (t *binaryNetwork) EnergyGradient(_ context.Context, states []int, energy, gradient []float64) error {
	n := len(t.categories)
	for c := range energy {
		f := t.gradient(states[c*n:(c+1)*n], t.inputs, t.outputs, gradient[2*c*n:2*(c+1)*n])
		energy[c] = -t.tau * math.Pow(lab.RootMeanSquare(f, t.outputs), 2)
	}
	return nil
}

// gradient writes the energy's gradient over some examples, scaled to estimate
// that over all, and returns their f.
func (t *binaryNetwork) gradient(state []int, inputs blas64.General, outputs, gradient []float64) []float64 {
	f, units := t.predict(state, inputs)
	seed := lab.NewMatrix(len(f), 1)
	for i, p := range f {
		seed.Data[i] = -2 * t.tau / float64(len(f)) * (p - outputs[i]) * p * (1 - p)
	}
	derivative := gradient[len(t.categories):]
	clear(derivative)
	t.network(state).Backward(units, seed, derivative)
	targets.BothWays(gradient)
	return f
}

// EnergyGradientOf writes U over all examples, and the gradient over those in
// terms, scaled to estimate that over all.
func (t *binaryNetwork) EnergyGradientOf(ctx context.Context, terms []int, states []int, energy,
	gradient []float64) error {
	p := t.inputs.Cols
	n := len(t.categories)
	inputs := lab.Matrix(len(terms), p, lab.RowsOf(t.inputs.Data, p, terms))
	outputs := lab.RowsOf(t.outputs, 1, terms)
	for c := range energy {
		t.gradient(states[c*n:(c+1)*n], inputs, outputs, gradient[2*c*n:2*(c+1)*n])
	}
	return t.Energy(ctx, states, energy)
}

type walk struct {
	Step      int
	Positions []int   // [chains × slots]
	Accepted  float64 // share of the proposals so far that were accepted
}

// advance makes some steps with a new kernel and new streams. The result
// depends only on the seed, on labels, and on w.Step and w.Positions.
func (w *walk) advance(ctx context.Context, b *lab.Bench, spec lab.Spec, target samplers.Target, steps int) error {
	label := spec.Label + " from step " + strconv.Itoa(w.Step)
	kernel, err := spec.Sampler.Kernel(target, b.Stream("terms "+label))
	if err != nil {
		return lab.Refuse("samplers", "%w", err)
	}
	streams := b.Streams(label, len(w.Positions)/len(target.Categories()))
	var acceptance samplers.Acceptance
	run, err := samplers.Sample(ctx, kernel, w.Positions, samplers.Plan{Streams: streams, Steps: steps},
		func(s samplers.Step) error {
			if s.Info != nil {
				acceptance.Observe(s.Info.Accepted, s.Info.Changed)
			}
			return nil
		})
	if err != nil {
		return err
	}
	rate, _ := samplers.MeanAndError(acceptance.Rates())
	w.Accepted = (w.Accepted*float64(w.Step) + rate*float64(steps)) / float64(w.Step+steps)
	w.Step += steps
	w.Positions = run.State.Positions
	return nil
}
