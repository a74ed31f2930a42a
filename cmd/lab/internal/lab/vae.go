package lab

import (
	"context"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/gonum/floats"

	"infill/internal/logmath"
	"infill/internal/targets"
	"infill/samplers"
)

// armVAE trains variational autoencoders of binary images with binary codes, linear
// on both sides: the "linear" columns of tables 2 and 3 of ARM's slides.
type armVAE struct {
	data       string
	variables  names
	estimators names
	codes      int
	updates    int
	batch      int
	rate       float64
	draws      int
	repeats    int
}

func newARMVAE() *Study {
	return newStudy("arm vae", "Train discrete variational autoencoders with each gradient estimator",
		`Train variational autoencoders whose codes are bits, linear on both sides, with each gradient
estimator: the linear columns of tables 2 and 3 of ARM's slides. --data is digits (8 x 8),
bars-and-stripes, an IDX file of MNIST's images or a MATLAB file of Omniglot; the paper has 200 codes.`, &armVAE{
			data: "digits", variables: names{"data", "train_data"}, estimators: estimators(), codes: 20, updates: 1500,
			batch: 50, rate: 0.003, draws: 6, repeats: 2,
		})
}

func (o *armVAE) register(f *flag.FlagSet) {
	f.StringVar(&o.data, "data", o.data, "images: "+strings.Join(imageSets(), ", ")+", or a `FILE`, IDX or MATLAB")
	f.Var(&o.variables, "variables", "names that the images have in a MATLAB file, the first that is there")
	f.Var(&o.estimators, "estimators", "of "+strings.Join(estimators(), ", "))
	WholeVar(f, &o.codes, "codes", 1, 4096, "bits of a code")
	WholeVar(f, &o.updates, "updates", 1, 1<<30, "updates of each training")
	WholeVar(f, &o.batch, "batch", 1, 1<<20, "images of each update")
	numberVar(f, &o.rate, "learning-rate", " above 0", "of Adam")
	WholeVar(f, &o.draws, "evaluations", 6, 1<<20, "evaluations for each image and update, a multiple of 6")
	repeatsVar(f, &o.repeats)
}

func (o *armVAE) plan(context.Context) (*plan, error) {
	if err := checkEstimators(o.estimators, estimators(), o.draws, 6); err != nil {
		return nil, err
	}
	data, err := readPictures(o.data, 4, o.variables)
	if err != nil {
		return nil, refuse("data", "%s: %w", o.data, err)
	}
	if data.count() < 5 {
		return nil, refuse("data", "%d images: at least 5 are needed", data.count())
	}
	p := &plan{
		title: fmt.Sprintf("variational autoencoders of %s, %d bits", o.data, o.codes),
		columns: []column{
			{name: "test-nll", format: "%.2f", definition: fmt.Sprintf("minus log p of a test image by %d draws of "+
				"its codes, nats: an upper bound in the mean", codeDraws)},
			{name: "test-bound", format: "%.2f", definition: "minus the evidence lower bound of a test image, nats"},
			{name: "train-bound", format: "%.2f",
				definition: "the same of training images, over the last tenth of the updates"},
			{name: "deviation", format: "%.3g", definition: "standard deviation of one estimate of the gradient of " +
				"the code's log-odds at the end, by 100 estimates of ten images, root mean square"},
			{name: "seconds", format: "%.1f", definition: secondsAre + " of a training", timed: true},
		},
		curves: []curve{{"test-bound", "update", "minus the evidence lower bound, test"}},
	}
	for _, kind := range o.estimators {
		p.add(o.repeats, func(ctx context.Context, b *bench) error { return o.train(ctx, b, kind, data) }, "estimator",
			kind)
	}
	return p, nil
}

// codeDraws estimate log p of an image.
const codeDraws = 100

// autoencoder is the model, and for one image a target over its code:
//
//	U(b) = log p(x | b) + log p(b),  p(x_i = 1 | b) = sigmoid((V b + d)_i),  p(b_l = 1) = sigmoid(a_l)
//
// Codes are drawn from q(b_l = 1 | x) = sigmoid((W x + c)_l).
type autoencoder struct {
	pixels, codes int
	weights       []float64 // V [pixels × codes], d, a, W [codes × pixels], c
	image         []int
	scratch       []float64
}

var _ samplers.RelaxedTarget = (*autoencoder)(nil)

func newAutoencoder(pixels, codes int, laws [][]float64, r *rand.Rand) *autoencoder {
	m := &autoencoder{pixels: pixels, codes: codes, scratch: make([]float64, pixels)}
	m.weights = targets.Normals(r, 2*pixels*codes+pixels+2*codes, 0.05)
	p := m.parts(m.weights)
	for i, law := range laws {
		p.d[i] = logOdds(law[1])
	}
	clear(p.a)
	clear(p.c)
	return m
}

type parts struct{ v, d, a, w, c []float64 }

func (m *autoencoder) parts(x []float64) parts {
	n := m.pixels * m.codes
	return parts{x[:n], x[n : n+m.pixels], x[n+m.pixels : n+m.pixels+m.codes],
		x[n+m.pixels+m.codes : 2*n+m.pixels+m.codes], x[2*n+m.pixels+m.codes:]}
}

func (m *autoencoder) Categories() []int { return slices.Repeat([]int{2}, m.codes) }

func (m *autoencoder) Energy(ctx context.Context, states []int, energy []float64) error {
	x := make([]float64, len(states))
	for i, v := range states {
		x[i] = float64(v)
	}
	return m.RelaxedEnergyGradient(ctx, x, energy, nil)
}

// RelaxedEnergyGradient takes codes between 0 and 1; without a gradient it works out none.
func (m *autoencoder) RelaxedEnergyGradient(_ context.Context, x []float64, energy, gradient []float64) error {
	p := m.parts(m.weights)
	for s := range energy {
		code := x[s*m.codes : (s+1)*m.codes]
		u := m.reconstruct(p, code)
		for l, b := range code {
			u += b*p.a[l] - logmath.Softplus(p.a[l])
		}
		energy[s] = u
		if gradient == nil {
			continue
		}
		out := gradient[s*m.codes : (s+1)*m.codes]
		copy(out, p.a)
		for i, e := range m.scratch {
			floats.AddScaled(out, e, p.v[i*m.codes:(i+1)*m.codes])
		}
	}
	return nil
}

// reconstruct is log p(x | code), and leaves x - sigmoid(V b + d) in the scratch.
func (m *autoencoder) reconstruct(p parts, code []float64) (u float64) {
	for i, v := range m.image {
		logit := p.d[i] + floats.Dot(p.v[i*m.codes:(i+1)*m.codes], code)
		u += float64(v)*logit - logmath.Softplus(logit)
		m.scratch[i] = float64(v) - logmath.Sigmoid(logit)
	}
	return u
}

// encode writes the log-odds of the code of the image.
func (m *autoencoder) encode(logits []float64) {
	p := m.parts(m.weights)
	copy(logits, p.c)
	for l := range logits {
		for i, v := range m.image {
			if v == 1 {
				logits[l] += p.w[l*m.pixels+i]
			}
		}
	}
}

// entropy of independent bits, nats.
func entropy(logits []float64) (h float64) {
	for _, phi := range logits {
		h += phi*logmath.Sigmoid(-phi) + logmath.Softplus(-phi)
	}
	return h
}

// addDecoder adds scale times ∂U/∂V, d and a at a drawn code.
func (m *autoencoder) addDecoder(code []float64, scale float64, gradient []float64) {
	p, g := m.parts(m.weights), m.parts(gradient)
	m.reconstruct(p, code)
	for i, e := range m.scratch {
		g.d[i] += scale * e
		floats.AddScaled(g.v[i*m.codes:(i+1)*m.codes], scale*e, code)
	}
	for l, b := range code {
		g.a[l] += scale * (b - logmath.Sigmoid(p.a[l]))
	}
}

// addEncoder adds scale times ∂/∂W and c, from the gradient over the log-odds.
func (m *autoencoder) addEncoder(ofLogits []float64, scale float64, gradient []float64) {
	g := m.parts(gradient)
	for l, d := range ofLogits {
		g.c[l] += scale * d
		for i, v := range m.image {
			if v == 1 {
				g.w[l*m.pixels+i] += scale * d
			}
		}
	}
}

// vaeTraining is what a checkpoint keeps.
type vaeTraining struct {
	Update                 int
	Weights, First, Second []float64
	Eta, Moment            float64 // of relax
	Bound                  float64 // sum over the last tenth
}

func (o *armVAE) train(ctx context.Context, b *bench, kind string, data *pictures) error {
	pixels := data.rows * data.columns
	train, test := dealt(data, data.binary(data.pixels, false, nil), b)
	m := newAutoencoder(pixels, o.codes, pixelMeans(train, pixels), b.streams("weights", 1)[0])
	e, err := newEstimator(kind, m)
	if err != nil {
		return err
	}
	t := &vaeTraining{Weights: m.weights, First: make([]float64, len(m.weights)),
		Second: make([]float64, len(m.weights))}
	if _, err := b.resume(t); err != nil {
		return err
	}
	m.weights = t.Weights
	relax, _ := e.(*relaxEstimator)
	if relax != nil && t.Update > 0 {
		relax.eta, relax.moment, relax.calls = t.Eta, t.Moment, t.Update*o.batch
	}
	gradient, logits, ofLogits, code := make([]float64, len(m.weights)), make([]float64, o.codes),
		make([]float64, o.codes), make([]float64, o.codes)
	reports, last := reportsOf(o.updates, 30), max(1, o.updates/10)
	for t.Update < o.updates {
		t.Update++
		streams := b.streams("update "+strconv.Itoa(t.Update), o.draws/e.evaluations()+1)
		r := streams[0]
		clear(gradient)
		bound := 0.0
		for range o.batch {
			m.image = train[r.IntN(len(train))]
			m.encode(logits)
			u, err := e.estimate(ctx, logits, streams[1:], ofLogits)
			if err != nil {
				return err
			}
			for l, phi := range logits {
				ofLogits[l] -= phi * logmath.Sigmoid(phi) * logmath.Sigmoid(-phi) // of the entropy, exact
				code[l] = float64(bit(r.Float64() < logmath.Sigmoid(phi)))
			}
			bound += (u + entropy(logits)) / float64(o.batch)
			m.addEncoder(ofLogits, 1/float64(o.batch), gradient)
			m.addDecoder(code, 1/float64(o.batch), gradient)
		}
		(&adam{t.First, t.Second}).ascend(m.weights, gradient, o.rate, t.Update)
		if t.Update > o.updates-last {
			t.Bound += bound / float64(last)
		}
		if reports(t.Update) {
			elbo, _, err := m.judge(ctx, test, 1, b.streams("test", 1)[0])
			if err != nil {
				return err
			}
			b.point("test-bound", float64(t.Update), -elbo)
		}
		if relax != nil {
			t.Eta, t.Moment = relax.eta, relax.moment
		}
		if err := b.tick(ctx, t.Update, o.updates, t); err != nil {
			return err
		}
	}
	elbo, likelihood, err := m.judge(ctx, test, codeDraws, b.streams("test", 1)[0])
	if err != nil {
		return err
	}
	b.number("test-nll", -likelihood)
	b.number("test-bound", -elbo)
	b.number("train-bound", -t.Bound)
	b.number("seconds", b.seconds())
	deviation, err := m.deviation(ctx, e, test[:min(10, len(test))], b.streams("deviation", o.draws/e.evaluations()))
	b.number("deviation", deviation)
	return err
}

// judge is the mean bound and the mean log-likelihood of images, by draws of codes.
func (m *autoencoder) judge(ctx context.Context, images [][]int, draws int,
	r *rand.Rand) (elbo, likelihood float64, err error) {
	logits, states, u := make([]float64, m.codes), make([]int, draws*m.codes), make([]float64, draws)
	for _, image := range images {
		m.image = image
		m.encode(logits)
		logq := make([]float64, draws)
		for s := range draws {
			for l, phi := range logits {
				v := bit(r.Float64() < logmath.Sigmoid(phi))
				states[s*m.codes+l] = v
				logq[s] -= logmath.Softplus(phi - 2*phi*float64(v))
			}
		}
		if err := m.Energy(ctx, states, u); err != nil {
			return 0, 0, err
		}
		for s := range u {
			elbo += (u[s] - logq[s]) / float64(draws*len(images))
			u[s] -= logq[s]
		}
		likelihood += (floats.LogSumExp(u) - math.Log(float64(draws))) / float64(len(images))
	}
	return elbo, likelihood, nil
}

// deviation is the standard deviation of one estimate over the log-odds.
func (m *autoencoder) deviation(ctx context.Context, e estimator, images [][]int,
	streams []*rand.Rand) (float64, error) {
	const estimates = 100
	logits, g := make([]float64, m.codes), make([]float64, m.codes)
	sum := 0.0
	for _, image := range images {
		m.image = image
		m.encode(logits)
		mean, square := make([]float64, m.codes), make([]float64, m.codes)
		for range estimates {
			if _, err := e.estimate(ctx, logits, streams, g); err != nil {
				return 0, err
			}
			for l, x := range g {
				mean[l] += x / estimates
				square[l] += x * x / estimates
			}
		}
		for l := range g {
			sum += (square[l] - mean[l]*mean[l]) * estimates / (estimates - 1) / float64(m.codes*len(images))
		}
	}
	return math.Sqrt(max(sum, 0)), nil
}
