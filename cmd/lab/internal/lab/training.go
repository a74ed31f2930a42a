package lab

import (
	"context"
	"flag"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"

	"infill/internal/logmath"
	"infill/internal/targets"
	"infill/samplers"
)

// trainingOptions set contrastive divergence: Hinton, Training Products of Experts by Minimizing Contrastive Divergence
// (2002), with Adam (Kingma and Ba, 2015, with their β₁ = 0.9, β₂ = 0.999) as the papers use it.
//
// By default it takes a second on bars and stripes: divergence steps and batch are those of the papers' RBM, the
// learning rate is twenty times theirs, for fewer updates.
type trainingOptions struct {
	divergenceSteps, updates, batch int
	learningRate                    float64
}

func (o *trainingOptions) register(f *flag.FlagSet) {
	WholeVar(f, &o.divergenceSteps, "divergence-steps", 1, 1<<20, "block Gibbs steps of contrastive divergence")
	WholeVar(f, &o.updates, "updates", 1, 1<<20, "updates of the training")
	WholeVar(f, &o.batch, "batch", 1, 1<<20, "images of each update")
	numberVar(f, &o.learningRate, "learning-rate", " above 0", "of Adam")
}

// training tells how well a machine learnt its data, where it can be summed exactly.
type training struct {
	Patterns int // of the data, each as probable as the others
	// LogLikelihood is the mean over the patterns of log p, in nats; the best any law reaches is -ln(patterns).
	LogLikelihood *float64
	// Mass is the probability of all patterns together.
	Mass *float64
}

// barsAndStripes lists the images of side × side pixels in which each row, or
// each column, is all on or all off: 2^(side+1) - 2 of them.
func barsAndStripes(side int) [][]int {
	var data [][]int
	for choice := range 1 << side {
		rows, columns := make([]int, side*side), make([]int, side*side)
		for i := range rows {
			rows[i] = choice >> (i / side) & 1
			columns[i] = choice >> (i % side) & 1
		}
		data = append(data, rows)
		// All on and all off are both: once is enough.
		if choice != 0 && choice != 1<<side-1 {
			data = append(data, columns)
		}
	}
	return data
}

// pixelMeans is the law of each pixel by itself, kept from 0 and 1 as in the
// papers' code, so that every state can be a start.
func pixelMeans(data [][]int, pixels int) [][]float64 {
	laws := make([][]float64, pixels)
	for j := range laws {
		on := 0
		for _, x := range data {
			on += x[j]
		}
		p := min(max(float64(on)/float64(len(data)), 0.01), 0.99)
		laws[j] = []float64{1 - p, p}
	}
	return laws
}

// adam holds the moments of one parameter vector.
type adam struct{ first, second []float64 }

func newAdam(n int) *adam { return &adam{make([]float64, n), make([]float64, n)} }

// ascend moves the parameters along the gradient; update counts from 1.
func (a *adam) ascend(parameters, gradient []float64, rate float64, update int) {
	const beta1, beta2, epsilon = 0.9, 0.999, 1e-8
	correct1, correct2 := 1-math.Pow(beta1, float64(update)), 1-math.Pow(beta2, float64(update))
	for i, g := range gradient {
		a.first[i] += (1 - beta1) * (g - a.first[i])
		a.second[i] += (1 - beta2) * (g*g - a.second[i])
		parameters[i] += rate * (a.first[i] / correct1) / (math.Sqrt(a.second[i]/correct2) + epsilon)
	}
}

// train fits a machine by contrastive divergence: the gradient is the mean of
// v hᵀ over the data less its mean after k steps of block Gibbs from them.
func train(ctx context.Context, data [][]int, visible, hidden int, o trainingOptions,
	seed uint64) (*machine, *training, error) {
	r := samplers.Streams(seed, "training", 1)[0]
	parameters := append(targets.Normals(r, hidden*visible, 0.01), make([]float64, hidden+visible)...)
	gradient, optimiser := make([]float64, len(parameters)), newAdam(len(parameters))
	// parts are the weights, and the biases of the hidden and of the visible units.
	parts := func(all []float64) *machine {
		n := hidden * visible
		return &machine{all[:n], all[n : n+hidden], all[n+hidden:]}
	}
	m, d := parts(parameters), parts(gradient)
	// The visible biases start at the data's own log-odds (Hinton, A Practical
	// Guide to Training Restricted Boltzmann Machines, 2010, section 8).
	for j, law := range pixelMeans(data, visible) {
		m.visible[j] = math.Log(law[1] / law[0])
	}
	target, err := targets.NewRBM(m.weights, m.hidden, m.visible) // follows the parameters
	if err != nil {
		return nil, nil, err
	}
	v, h := make([]int, visible), make([]float64, hidden)
	on, logits := make([]bool, hidden), make([]float64, visible)
	activate := func() { // writes p(h_i = 1 | v)
		target.LatentLogits(v, h)
		for i, l := range h {
			h[i] = logmath.Sigmoid(l)
		}
	}
	var order []int
	for update := 1; update <= o.updates; update++ {
		if err := ctx.Err(); err != nil {
			return nil, nil, err
		}
		clear(gradient)
		for range o.batch {
			if len(order) == 0 {
				order = r.Perm(len(data))
			}
			copy(v, data[order[0]])
			order = order[1:]
			activate()
			d.accumulate(v, h, 1/float64(o.batch))
			for range o.divergenceSteps {
				for i, p := range h {
					on[i] = r.Float64() < p
				}
				target.SlotLogits(on, logits)
				for j, l := range logits {
					v[j] = bit(r.Float64() < logmath.Sigmoid(l))
				}
				activate()
			}
			d.accumulate(v, h, -1/float64(o.batch))
		}
		optimiser.ascend(parameters, gradient, o.learningRate, update)
	}
	return m, &training{Patterns: len(data)}, nil
}

// accumulate adds scale times v hᵀ, h and v.
func (m *machine) accumulate(v []int, h []float64, scale float64) {
	for i, p := range h {
		m.hidden[i] += scale * p
		row := m.weights[i*len(v) : (i+1)*len(v)]
		for j, x := range v {
			row[j] += scale * p * float64(x)
		}
	}
	for j, x := range v {
		m.visible[j] += scale * float64(x)
	}
}

// judge computes how well the data were learnt.
func (t *training) judge(ctx context.Context, target samplers.Target, exact *solved, data [][]int) error {
	logs := make([]float64, len(data))
	if err := target.Energy(ctx, slices.Concat(data...), logs); err != nil {
		return err
	}
	floats.AddConst(-exact.logNormaliser, logs)
	likelihood, mass := stat.Mean(logs, nil), math.Exp(floats.LogSumExp(logs))
	t.LogLikelihood, t.Mass = &likelihood, &mass
	return nil
}
