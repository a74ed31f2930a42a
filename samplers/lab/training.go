package lab

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"

	"infill/samplers"
)

// TrainingOptions set contrastive divergence: Hinton, Training Products of
// Experts by Minimizing Contrastive Divergence (2002), with Adam (Kingma and
// Ba, 2015, with their β₁ = 0.9, β₂ = 0.999) as the papers use it.
type TrainingOptions struct {
	DivergenceSteps int // k of CD-k
	Updates         int
	Batch           int
	LearningRate    float64 // of Adam
}

// DefaultTraining takes a second on bars and stripes. Divergence steps and
// batch are those of the papers' RBM; the learning rate is twenty times theirs,
// for fewer updates.
func DefaultTraining() TrainingOptions {
	return TrainingOptions{DivergenceSteps: 10, Updates: 1000, Batch: 100, LearningRate: 0.02}
}

func (o TrainingOptions) check() error {
	for _, s := range []struct {
		option string
		value  int
	}{{"divergence-steps", o.DivergenceSteps}, {"updates", o.Updates}, {"batch", o.Batch}} {
		if s.value < 1 || s.value > 1<<20 {
			return refuse(s.option, "%d is not a whole number from 1 to %d", s.value, 1<<20)
		}
	}
	if !(o.LearningRate > 0) || math.IsInf(o.LearningRate, 1) {
		return refuse("learning-rate", "%v is not a finite number above 0", o.LearningRate)
	}
	return nil
}

// Training tells how well a machine learnt its data, where it can be summed
// exactly.
type Training struct {
	Patterns int `json:"patterns"` // of the data, each as probable as the others
	// LogLikelihood is the mean over the patterns of log p, in nats; the best
	// any law reaches is -ln(patterns).
	LogLikelihood *float64 `json:"log_likelihood,omitempty"`
	// Mass is the probability of all patterns together.
	Mass *float64 `json:"mass,omitempty"`
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
func train(ctx context.Context, data [][]int, visible, hidden int, o TrainingOptions, seed uint64) (*machine, *Training, error) {
	r := samplers.Streams(seed, "training", 1)[0]
	m := &machine{normals(r, hidden*visible, 0.01), make([]float64, hidden), make([]float64, visible)}
	// The visible biases start at the data's own log-odds (Hinton, A Practical
	// Guide to Training Restricted Boltzmann Machines, 2010, section 8).
	for j, law := range pixelMeans(data, visible) {
		m.visible[j] = math.Log(law[1] / law[0])
	}
	weights, a, b := newAdam(len(m.weights)), newAdam(hidden), newAdam(visible)
	dw, da, db := make([]float64, len(m.weights)), make([]float64, hidden), make([]float64, visible)
	v, h := make([]float64, visible), make([]float64, hidden)
	logits := make([]float64, visible)
	var order []int
	for update := 1; update <= o.Updates; update++ {
		if err := ctx.Err(); err != nil {
			return nil, nil, err
		}
		clear(dw)
		clear(da)
		clear(db)
		for range o.Batch {
			if len(order) == 0 {
				order = r.Perm(len(data))
			}
			pattern := data[order[0]]
			order = order[1:]
			for j, x := range pattern {
				v[j] = float64(x)
			}
			m.hiddenProbabilities(v, h)
			accumulate(dw, da, db, v, h, 1/float64(o.Batch))
			for range o.DivergenceSteps {
				m.sampleVisible(h, v, logits, r)
				m.hiddenProbabilities(v, h)
			}
			accumulate(dw, da, db, v, h, -1/float64(o.Batch))
		}
		weights.ascend(m.weights, dw, o.LearningRate, update)
		a.ascend(m.hidden, da, o.LearningRate, update)
		b.ascend(m.visible, db, o.LearningRate, update)
	}
	return m, &Training{Patterns: len(data)}, nil
}

// hiddenProbabilities writes p(h_i = 1 | v).
func (m *machine) hiddenProbabilities(v, h []float64) {
	for i := range h {
		sum := m.hidden[i]
		for j, w := range m.weights[i*len(v) : (i+1)*len(v)] {
			sum += w * v[j]
		}
		h[i] = sigmoid(sum)
	}
}

// sampleVisible draws h from its probabilities and then v given h.
func (m *machine) sampleVisible(h, v, logits []float64, r *rand.Rand) {
	copy(logits, m.visible)
	for i, p := range h {
		if r.Float64() < p {
			for j, w := range m.weights[i*len(v) : (i+1)*len(v)] {
				logits[j] += w
			}
		}
	}
	for j, l := range logits {
		v[j] = 0
		if r.Float64() < sigmoid(l) {
			v[j] = 1
		}
	}
}

func accumulate(dw, da, db, v, h []float64, scale float64) {
	for i, p := range h {
		da[i] += scale * p
		row := dw[i*len(v) : (i+1)*len(v)]
		for j, x := range v {
			row[j] += scale * p * x
		}
	}
	for j, x := range v {
		db[j] += scale * x
	}
}

// judge computes how well the data were learnt.
func (t *Training) judge(m *machine, exact *solved, side int) {
	var logs []float64
	sum := 0.0
	for _, pattern := range barsAndStripes(side) {
		l := -exact.logNormaliser
		for i := range m.hidden {
			input := m.hidden[i]
			for j, x := range pattern {
				input += float64(x) * m.weights[i*len(pattern)+j]
			}
			l += softplus(input)
		}
		for j, x := range pattern {
			l += float64(x) * m.visible[j]
		}
		logs = append(logs, l)
		sum += l
	}
	likelihood, mass := sum/float64(len(logs)), math.Exp(logSum(slices.Clone(logs)))
	t.LogLikelihood, t.Mass = &likelihood, &mass
}
