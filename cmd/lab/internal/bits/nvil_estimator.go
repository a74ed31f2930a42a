package bits

import (
	"context"
	"math/rand/v2"

	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"

	"infill/cmd/lab/internal/lab"
	"infill/internal/logmath"
)

// baselineUnits is the number of hidden units of the learned baselines.
const baselineUnits = 20

// outputLayer is a baseline's output, behind its input and hidden units.
const outputLayer = 2

// nvil is neural variational inference and learning (Mnih and Gregor 2014):
// REINFORCE with a baseline that a network computes from the logits, which
// carry the input, plus a running mean,
//
//	(U(b) - C(φ) - c) ∂log p(b)/∂φ
//
// Each call moves C along the squared error, and c to the mean. Its division by
// the running standard deviation is left out: it would change the length of the
// gradient.
type nvil struct {
	batch
	baseline lab.Perceptron
	adam     lab.Adam
	calls    int
	mean     float64 // c
	rate     float64 // of the baselines; 0 keeps them
}

func newNVIL(b batch) estimator {
	sizes := []int{b.slots * (b.categories - 1), baselineUnits, 1}
	return &nvil{batch: b, baseline: newNetwork(sizes, 1), adam: lab.NewAdam(lab.WeightsOf(sizes)), rate: 0.01}
}

// newNetwork makes a perceptron whose last layer is 0, and whose other weights
// are small and drawn with the seed.
func newNetwork(sizes []int, seed uint64) lab.Perceptron {
	p := lab.Perceptron{Sizes: sizes, Weights: make([]float64, lab.WeightsOf(sizes))}
	r := rand.New(rand.NewPCG(seed, 0))
	for i := range sizes[0] * sizes[1] {
		p.Weights[i] = 0.1 * r.NormFloat64()
	}
	return p
}

func (e *nvil) estimate(ctx context.Context, logits []float64, draws int, r *rand.Rand, gradient []float64) error {
	more := e.categories - 1
	width := e.slots * more
	rows := len(logits) / width
	laws := lawsOf(logits, more)
	units := e.baseline.Forward(lab.Matrix(rows, width, logits))
	baselines := units[outputLayer].Data
	mean := make([]float64, rows)
	states := make([]int, len(laws))
	clear(gradient)
	for range draws {
		for i, law := range laws {
			states[i] = drawCategory(law, r.Float64())
		}
		energy, err := e.energies(ctx, states)
		if err != nil {
			return err
		}
		for i, law := range laws {
			row := i / e.slots
			signal := (energy[row] - baselines[row] - e.mean) / float64(draws)
			for c := range more {
				gradient[i*more+c] += signal * (float64(logmath.Indicator(states[i] == c+1)) - law[c+1])
			}
		}
		floats.AddScaled(mean, 1/float64(draws), energy)
	}
	e.learn(units, mean)
	return nil
}

// learn moves the baselines toward the mean energies of the rows: by the gradient
// of half the mean squared error of C(φ) + c. units are the network's layers.
func (e *nvil) learn(units []blas64.General, energy []float64) {
	rows := len(energy)
	missing := lab.NewMatrix(rows, 1) // of each baseline, divided by the number of rows
	for row, u := range energy {
		missing.Data[row] = (u - e.mean - units[outputLayer].Data[row]) / float64(rows)
	}
	slope := make([]float64, len(e.baseline.Weights))
	e.baseline.Backward(units, missing, slope)
	e.calls++
	e.adam.Ascend(e.baseline.Weights, slope, e.rate, e.calls)
	if e.rate > 0 {
		e.mean = 0.8*e.mean + 0.2*stat.Mean(energy, nil) // the paper's decay
	}
}
