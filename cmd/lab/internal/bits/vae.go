package bits

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"

	"infill/cmd/lab/internal/lab"
	"infill/internal/logmath"
	"infill/internal/targets"
	"infill/samplers"
)

// beliefs is a variational autoencoder whose T latent layers are bits, as in
// ARM's slides; b_0 is the image:
//
//	q(b_t | b_t-1) = Bernoulli(sigmoid(up_t(b_t-1))),  p(b_t-1 | b_t) = Bernoulli(sigmoid(down_t(b_t)))
//	f = Σ_t log p(b_t-1 | b_t) - log q(b_t | b_t-1), plus log p(b_T)
//
// E[f] bounds log p(b_0) from below. To predict an image's lower half from its
// upper, f is log p(lower half | b_T).
type beliefs struct {
	up, down []lab.Perceptron
	prior    []float64 // log-odds of b_T
	weights  []float64 // weights of all perceptrons, and the prior
	predicts bool
}

// structures lists the slides' networks, and halves, that of table 4.
func structures() []string { return []string{"linear", "nonlinear", "two-layers", "halves"} }

func newBeliefs(structure string, pixels, bits, hidden int, r *rand.Rand) *beliefs {
	m := &beliefs{predicts: structure == "halves"}
	up := [][]int{{pixels, bits}}
	down := [][]int{{bits, pixels}}
	switch structure {
	case "nonlinear":
		up = [][]int{{pixels, hidden, hidden, bits}}
		down = [][]int{{bits, hidden, hidden, pixels}}
	case "two-layers":
		up = append(up, []int{bits, bits})
		down = append(down, []int{bits, bits})
	case "halves":
		up = [][]int{{pixels / 2, bits}, {bits, bits}}
		down = [][]int{{bits}, {bits, pixels - pixels/2}}
	}
	n := bits
	for _, sizes := range slices.Concat(up, down) {
		n += lab.WeightsOf(sizes)
	}
	m.weights = make([]float64, n)
	left := m.weights
	take := func(all [][]int) (list []lab.Perceptron) {
		for _, sizes := range all {
			p := lab.Perceptron{Sizes: sizes, Weights: left[:lab.WeightsOf(sizes)]}
			left = left[len(p.Weights):]
			for k := range len(sizes) - 1 {
				weights, _ := p.Layer(k, p.Weights)
				copy(weights.Data, targets.Normals(r, len(weights.Data), 1/math.Sqrt(float64(sizes[k]))))
			}
			list = append(list, p)
		}
		return list
	}
	m.up = take(up)
	m.down = take(down)
	m.prior = left
	return m
}

// pass holds a batch of images, its layers' bits, and their noise.
type pass struct {
	goal  blas64.General     // lower halves of the images
	bits  []blas64.General   // b_0 to b_T
	units [][]blas64.General // units of the layers of each network in up
	noise []blas64.General   // log-odds of uniform numbers
}

// begin starts a pass over images; for prediction, over their halves.
func (m *beliefs) begin(images []float64, pixels int) *pass {
	all := lab.Matrix(len(images)/pixels, pixels, images)
	if !m.predicts {
		return &pass{bits: []blas64.General{all}}
	}
	half := m.up[0].Sizes[0]
	seen := lab.NewMatrix(all.Rows, half)
	goal := lab.NewMatrix(all.Rows, pixels-half)
	for i, row := range slices.Collect(slices.Chunk(images, pixels)) {
		copy(seen.Data[i*half:], row[:half])
		copy(goal.Data[i*goal.Cols:], row[half:])
	}
	return &pass{goal: goal, bits: []blas64.General{seen}}
}

func (m *beliefs) climb(p *pass, r *rand.Rand) {
	p.bits = p.bits[:1]
	p.units = nil
	p.noise = nil
	for t, up := range m.up {
		units := up.Forward(p.bits[t])
		logits := units[len(units)-1]
		noise := lab.NewMatrix(logits.Rows, logits.Cols)
		b := lab.NewMatrix(logits.Rows, logits.Cols)
		for i, l := range logits.Data {
			noise.Data[i] = lab.LogOdds(inside(r.Float64()))
			b.Data[i] = float64(logmath.Indicator(l+noise.Data[i] > 0))
		}
		p.bits = append(p.bits, b)
		p.units = append(p.units, units)
		p.noise = append(p.noise, noise)
	}
}

// share is the part of f that comes from a layer and the layers above, for each
// row. Its derivatives are by the layer's bits, by the bits below, and by the
// logits. They are valid only if the bits are relaxed.
type share struct {
	value               []float64
	bits, below, logits blas64.General
}

// above computes the share of layer t + 1 given its bits b. The noise of the
// pass draws the layers above: as hard bits or, if relaxed is true, as
// sigmoids.
func (m *beliefs) above(p *pass, t int, below, logits, b blas64.General, relaxed bool) *share {
	f := &share{make([]float64, b.Rows), lab.NewMatrix(b.Rows, b.Cols), lab.NewMatrix(below.Rows, below.Cols),
		lab.NewMatrix(b.Rows, b.Cols)}
	top := t+1 == len(m.up)
	if !m.predicts || top {
		goal := below
		if m.predicts {
			goal = p.goal
		}
		units := m.down[t].Forward(b)
		out := units[len(units)-1]
		addBernoulli(f.value, goal.Data, out.Data, 1)
		if relaxed {
			f.bits = m.down[t].Backward(units, residuals(goal, out), nil)
			if !m.predicts {
				f.below = out
			}
		}
	}
	if !m.predicts {
		addBernoulli(f.value, b.Data, logits.Data, -1)
		floats.Sub(f.bits.Data, logits.Data)
		floats.Sub(f.logits.Data, residuals(b, logits).Data)
		if top {
			prior := slices.Repeat(m.prior, b.Rows)
			addBernoulli(f.value, b.Data, prior, 1)
			floats.Add(f.bits.Data, prior)
		}
	}
	if top {
		return f
	}
	units := m.up[t+1].Forward(b)
	z := units[len(units)-1]
	next := lab.NewMatrix(z.Rows, z.Cols)
	for i, l := range z.Data {
		l += p.noise[t+1].Data[i]
		if relaxed {
			next.Data[i] = logmath.Sigmoid(l / temperature)
		} else {
			next.Data[i] = float64(logmath.Indicator(l > 0))
		}
	}
	rest := m.above(p, t+1, b, z, next, relaxed)
	floats.Add(f.value, rest.value)
	if relaxed {
		for i, s := range next.Data {
			rest.logits.Data[i] += rest.bits.Data[i] * s * (1 - s) / temperature
		}
		floats.Add(f.bits.Data, rest.below.Data)
		floats.Add(f.bits.Data, m.up[t+1].Backward(units, rest.logits, nil).Data)
	}
	return f
}

// addBernoulli adds scale times each row's log-probability by log-odds.
func addBernoulli(value, bits, logits []float64, scale float64) {
	columns := len(bits) / len(value)
	for i, l := range logits {
		value[i/columns] += scale * (bits[i]*l - logmath.Softplus(l))
	}
}

func residuals(bits, logits blas64.General) blas64.General {
	d := lab.NewMatrix(bits.Rows, bits.Cols)
	for i, l := range logits.Data {
		d.Data[i] = bits.Data[i] - logmath.Sigmoid(l)
	}
	return d
}

// layer is a target over the bits of a layer. Its energy is f given the layers
// below. Each row of the pass is a state.
type layer struct {
	m    *beliefs
	t    int
	pass *pass
}

var _ samplers.RelaxedTarget = (*layer)(nil)

func (l *layer) Categories() []int {
	sizes := l.m.up[l.t].Sizes
	return slices.Repeat([]int{2}, sizes[len(sizes)-1])
}

func (l *layer) share(bits []float64, relaxed bool) *share {
	units := l.pass.units[l.t]
	logits := units[len(units)-1]
	return l.m.above(l.pass, l.t, l.pass.bits[l.t], logits, lab.Matrix(logits.Rows, logits.Cols, bits), relaxed)
}

func (l *layer) Energy(_ context.Context, states []int, energy []float64) error {
	copy(energy, l.share(targets.Real(states), false).value)
	return nil
}

func (l *layer) RelaxedEnergyGradient(_ context.Context, x []float64, energy, gradient []float64) error {
	f := l.share(x, true)
	copy(energy, f.value)
	copy(gradient, f.bits.Data)
	return nil
}

// training ascends E[f]: p by its gradient, and q by an ascent of its own.
type training struct {
	*beliefs
	ascent ascent
}

// An ascent moves the networks of q.
type ascent interface {
	// AddGradient adds an estimate, by the weights of the networks in up, to the
	// beginning of gradient, given a pass whose bits are drawn.
	AddGradient(ctx context.Context, p *pass, r *rand.Rand, gradient []float64) error
}

func methods(estimators []string) []string { return append(estimators, wakeSleep) }

func newTraining(m *beliefs, method string, evaluations int) (*training, error) {
	if method != wakeSleep {
		a, err := newEstimates(m, method, evaluations)
		return &training{m, a}, err
	}
	if m.predicts {
		return nil, fmt.Errorf("%s dreams whole images, and this model draws half of one", wakeSleep)
	}
	return &training{m, dreams{m}}, nil
}

// estimates has one estimator of the gradient of E[f] for each layer.
type estimates struct {
	*beliefs
	layers     []*layer
	estimators []estimator
	draws      int
}

func newEstimates(m *beliefs, kind string, evaluations int) (ascent, error) {
	g := &estimates{beliefs: m}
	for t := range m.up {
		l := &layer{m: m, t: t}
		e, err := newEstimator(kind, l)
		if err != nil {
			return nil, err
		}
		g.layers = append(g.layers, l)
		g.estimators = append(g.estimators, e)
		g.draws = max(evaluations/e.evaluations(), 1)
	}
	return g, nil
}

func (g *estimates) AddGradient(ctx context.Context, p *pass, r *rand.Rand, gradient []float64) error {
	left := gradient
	for t, up := range g.up {
		g.layers[t].pass = p
		logits := p.units[t][len(p.units[t])-1]
		seed := lab.NewMatrix(logits.Rows, logits.Cols)
		if err := g.estimators[t].estimate(ctx, logits.Data, g.draws, r, seed.Data); err != nil {
			return err
		}
		left = addMean(up, p.units[t], seed, left)
	}
	return nil
}

// addMean adds the derivatives of the mean over rows of seed · outputs by the
// network's weights to the beginning of gradient. It returns what follows. It
// scales seed.
func addMean(n lab.Perceptron, units []blas64.General, seed blas64.General, gradient []float64) (rest []float64) {
	floats.Scale(1/float64(seed.Rows), seed.Data)
	n.Backward(units, seed, gradient[:len(n.Weights)])
	return gradient[len(n.Weights):]
}

// gradient writes an estimate of the gradient of f's mean over the batch.
func (g *training) gradient(ctx context.Context, p *pass, r *rand.Rand, gradient []float64) error {
	g.climb(p, r)
	clear(gradient)
	if err := g.ascent.AddGradient(ctx, p, r, gradient); err != nil {
		return err
	}
	left := gradient
	for _, up := range g.up {
		left = left[len(up.Weights):]
	}
	for t, down := range g.down {
		if g.predicts && t+1 < len(g.down) {
			left = left[len(down.Weights):]
			continue
		}
		goal := p.bits[t]
		if g.predicts {
			goal = p.goal
		}
		units := down.Forward(p.bits[t+1])
		left = addMean(down, units, residuals(goal, units[len(units)-1]), left)
	}
	for i, v := range p.bits[len(g.up)].Data {
		if j := i % len(g.prior); !g.predicts {
			left[j] += (v - logmath.Sigmoid(g.prior[j])) / float64(p.bits[0].Rows)
		}
	}
	return nil
}

// bounds returns E[f] and the log-likelihood in nats per image: log mean exp f,
// over particles draws for each image.
func (m *beliefs) bounds(p *pass, particles int, r *rand.Rand) (elbo, likelihood float64) {
	logs := make([][]float64, p.bits[0].Rows) // [images][particles]
	for range particles {
		m.climb(p, r)
		values := (&layer{m, 0, p}).share(p.bits[1].Data, false).value
		elbo += stat.Mean(values, nil) / float64(particles)
		for i, f := range values {
			logs[i] = append(logs[i], f)
		}
	}
	for _, of := range logs {
		likelihood += (floats.LogSumExp(of) - math.Log(float64(particles))) / float64(len(logs))
	}
	return elbo, likelihood
}

func newARMAutoencoders() *lab.Study {
	s := lab.NewStudy("arm vae")
	f := s.Flags
	images := lab.ImageFlags(f)
	kinds := lab.ChoicesFlag(f, "structures", structures()[:3], structures())
	chosen := lab.ChoicesFlag(f, "estimators", methods(estimators(false)), methods(estimators(true)))
	bits := lab.WholeFlag(f, "bits", 20, 1, 1<<12, "bits of a latent layer")
	hidden := lab.WholeFlag(f, "hidden", 40, 1, 1<<12, "units of a hidden layer of nonlinear")
	updates := lab.WholeFlag(f, "updates", 1500, 1, 1<<30, "updates of each training")
	batch := lab.WholeFlag(f, "batch", 50, 1, 1<<20, "images of each update")
	rate := lab.NumberFlag(f, "learning-rate", 0.003, " above 0", "of Adam")
	evaluations := lab.WholeFlag(f, "evaluations", 2, 2, 1<<20,
		"evaluations of f, for an image and layer; rebar and relax take 3, legrad one more than bits")
	particles := lab.WholeFlag(f, "particles", 100, 1, 1<<20, "draws behind each log-likelihood")
	repeats := lab.RepeatsFlag(f, 2)
	s.Plan = func(_ context.Context, in *lab.Inputs, _ uint64) (*lab.Plan, error) {
		set, err := images(in)
		if err != nil {
			return nil, err
		}
		p := s.NewPlan(fmt.Sprintf("autoencoders of bits, %d × %d pixels", set.Rows, set.Columns), "{particles}",
			strconv.Itoa(*particles))
		for _, kind := range *kinds {
			m := newBeliefs(kind, set.Pixels(), *bits, *hidden, rand.New(rand.NewPCG(0, 0)))
			for _, of := range *chosen {
				if _, err := newTraining(m, of, *evaluations); err != nil {
					p.Notes = append(p.Notes, fmt.Sprintf("left out on %s: %v", kind, err))
					continue
				}
				p.Add(*repeats, func(ctx context.Context, b *lab.Bench) error {
					m := newBeliefs(kind, set.Pixels(), *bits, *hidden, b.Stream("weights"))
					g, err := newTraining(m, of, *evaluations)
					if err != nil {
						return err
					}
					return g.learn(ctx, b, set, *updates, *batch, *particles, *rate)
				}, lab.Label{Name: "estimator", Value: of}, lab.Label{Name: "structure", Value: kind})
			}
		}
		if len(p.Cells) == 0 {
			return nil, lab.Refuse("estimators", "no training remains: %s", strings.Join(p.Notes, "; "))
		}
		return p, nil
	}
	return s
}

func (g *training) learn(ctx context.Context, b *lab.Bench, set *lab.ImageSet, updates, size, particles int,
	rate float64) error {
	greys, tests := set.Split(b)
	examples := lab.Binarised(greys, false, nil)
	draw := &lab.Batches{Data: examples, Slots: set.Pixels(), Size: size}
	r := b.Stream("bits")
	begin := func(states []int) *pass { return g.begin(targets.Real(states), set.Pixels()) }
	measure := func(states []int, particles int) (elbo, likelihood float64) {
		return g.bounds(begin(states), particles, b.Stream("test "+strconv.Itoa(particles)))
	}
	test := lab.Binarised(tests, false, nil)
	validation := lab.Binarised(set.Validation, false, nil)
	var chosen lab.Best
	optimiser := lab.NewAdam(len(g.weights))
	gradient := make([]float64, len(g.weights))
	reports := lab.ReportsOf(updates, 30)
	for update := 1; update <= updates; update++ {
		if err := g.gradient(ctx, begin(draw.At(b, update)), r, gradient); err != nil {
			return err
		}
		optimiser.Ascend(g.weights, gradient, rate, update)
		if reports(update) {
			elbo, _ := measure(test, 1)
			b.Point("negative-elbo", float64(update), -elbo)
		}
		if reports(update) && len(validation) > 0 {
			elbo, _ := measure(validation, 1)
			chosen.Offer(update, elbo, g.weights)
		}
		if err := b.Tick(ctx, update, updates); err != nil {
			return err
		}
	}
	if chosen.Weights != nil {
		copy(g.weights, chosen.Weights)
		b.Number("best-update", float64(chosen.Update))
	}
	elbo, likelihood := measure(test, particles)
	train, _ := measure(examples, 1)
	b.Number("nll", -likelihood)
	b.Number("negative-elbo", -elbo)
	b.Number("train", -train)
	b.Number("seconds", b.Seconds())
	return nil
}
