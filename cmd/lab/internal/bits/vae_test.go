package bits

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/diff/fd"
	"gonum.org/v1/gonum/floats"

	"infill/cmd/lab/internal/lab"
	"infill/cmd/lab/internal/lab/labtest"
	"infill/internal/check"
	"infill/internal/targets"
)

// exactBound is the mean over images of E[f], by listing the bits of all
// layers, written down again from the formula.
func exactBound(m *beliefs, images [][]float64) (mean float64) {
	logp := func(bits, logits []float64) (sum float64) {
		for i, l := range logits {
			p := 1 / (1 + math.Exp(-l))
			sum += math.Log(bits[i]*p + (1-bits[i])*(1-p))
		}
		return sum
	}
	out := func(p lab.Perceptron, x []float64) []float64 {
		units := p.Forward(lab.Matrix(1, len(x), x))
		return units[len(units)-1].Data
	}
	for _, image := range images {
		below, goal := image, image
		if m.predicts {
			below, goal = image[:len(image)/2], image[len(image)/2:]
		}
		var climb func(t int, below []float64, q, f float64)
		climb = func(t int, below []float64, q, f float64) {
			if t == len(m.up) {
				if m.predicts {
					f += logp(goal, out(m.down[t-1], below))
				} else {
					f += logp(below, m.prior)
				}
				mean += q * f / float64(len(images))
				return
			}
			logits := out(m.up[t], below)
			for state := range 1 << len(logits) {
				b := make([]float64, len(logits))
				for j := range b {
					b[j] = float64(state >> j & 1)
				}
				here := logp(b, logits)
				change := 0.0
				if !m.predicts {
					change = logp(below, out(m.down[t], b)) - here
				}
				climb(t+1, b, q*math.Exp(here), f+change)
			}
		}
		climb(0, below, 1, 0)
	}
	return mean
}

// TestAutoencoderGradients: on every structure, the gradients by all weights of
// every estimator but the biased ones have those of the exact bound as their
// means, by finite differences, to 4.5 standard errors; and so has the bound.
func TestAutoencoderGradients(t *testing.T) {
	images := [][]float64{{1, 0, 1, 1}, {0, 0, 1, 0}}
	flat := slices.Concat(images...)
	const copies = 8 // a call on many images costs little more than one on two
	calls := 375
	if testing.Short() {
		calls = 63
	}
	for _, structure := range structures() {
		m := newBeliefs(structure, 4, 2, 3, rand.New(rand.NewPCG(1, 1)))
		copy(m.weights, targets.Normals(rand.New(rand.NewPCG(2, 2)), len(m.weights), 0.8))
		own := append([]float64{}, m.weights...)
		want := fd.Gradient(nil, func(w []float64) float64 {
			copy(m.weights, w)
			return exactBound(m, images)
		}, own, &fd.Settings{Formula: fd.Central})
		copy(m.weights, own)
		for _, kind := range estimators(true) {
			g := check.Must(newTraining(m, kind, 4))(t)
			r := rand.New(rand.NewPCG(3, 3))
			n := calls
			if kind == "darn" && structure == "linear" { // f is nearly quadratic, and so DARN's bias is small
				n *= 24
			}
			known := make([][]float64, n)
			for i := range known {
				known[i] = make([]float64, len(want))
				check.OK(t, g.gradient(t.Context(), g.begin(slices.Repeat(flat, copies), 4), r, known[i]))
			}
			deviation, _ := deviations(known, want)
			biased := biased(kind)
			if !(deviation < 4.5) && !biased ||
				!(deviation > 4.5) && biased && !testing.Short() {
				t.Errorf("%s, %s: %.1f standard errors", structure, kind, deviation)
			}
		}
		exact := exactBound(m, images)
		elbo, likelihood := m.bounds(m.begin(flat, 4), 20000, rand.New(rand.NewPCG(4, 4)))
		labtest.Near(t, structure+": bound", elbo, exact, 0.05)
		if !(likelihood > exact) {
			t.Errorf("%s: log-likelihood %v, the bound is %v", structure, likelihood, exact)
		}
	}
}

// TestWakeSleep: the mean of the gradients by q's weights is the gradient of
// the mean of log q over the model's own images and bits, which is listed, and
// not that of the bound. The gradients by p's weights have the bound's.
func TestWakeSleep(t *testing.T) {
	images := []float64{1, 0, 1, 1, 0, 0, 1, 0}
	for _, structure := range []string{"linear", "nonlinear", "two-layers"} {
		m := newBeliefs(structure, 4, 2, 3, rand.New(rand.NewPCG(1, 1)))
		copy(m.weights, targets.Normals(rand.New(rand.NewPCG(2, 2)), len(m.weights), 0.8))
		own := slices.Clone(m.weights)
		asleep := listedDreams(m)
		slopes := func(of func() float64) []float64 {
			defer copy(m.weights, own)
			return fd.Gradient(nil, func(w []float64) float64 {
				copy(m.weights, w)
				return of()
			}, own, &fd.Settings{Formula: fd.Central})
		}
		bound := slopes(func() float64 { return exactBound(m, [][]float64{images[:4], images[4:]}) })
		encoder := 0
		for _, up := range m.up {
			encoder += len(up.Weights)
		}
		want := slices.Clone(bound)
		copy(want[:encoder], slopes(asleep)[:encoder])

		g := check.Must(newTraining(m, wakeSleep, 2))(t)
		r := rand.New(rand.NewPCG(3, 3))
		known := make([][]float64, 6000)
		for i := range known {
			known[i] = make([]float64, len(want))
			check.OK(t, g.gradient(t.Context(), g.begin(images, 4), r, known[i]))
		}
		if deviation, _ := deviations(known, want); !(deviation < 4.5) {
			t.Errorf("%s: %.1f standard errors", structure, deviation)
		}
		if deviation, _ := deviations(known, bound); !(deviation > 20) {
			t.Errorf("%s: only %.1f standard errors from the gradient of the bound", structure, deviation)
		}
	}
	_, err := newTraining(newBeliefs("halves", 4, 2, 3, rand.New(rand.NewPCG(1, 1))), wakeSleep, 2)
	if err == nil {
		t.Error("halves have no whole images to dream, and are taken")
	}
}

// listedDreams returns the mean of log q over the images and bits that m draws
// with its present weights: a sum over all of them.
func listedDreams(m *beliefs) func() float64 {
	type dream struct {
		p    float64
		bits [][]float64
	}
	logits := func(n lab.Perceptron, b []float64) []float64 {
		units := n.Forward(lab.Matrix(1, len(b), b))
		return units[len(units)-1].Data
	}
	logp := func(b, logits []float64) (sum float64) {
		for i, l := range logits {
			sum += b[i]*l - math.Log1p(math.Exp(l))
		}
		return sum
	}
	var all []dream
	var fall func(log float64, logits []float64, t int, above [][]float64)
	fall = func(log float64, of []float64, t int, above [][]float64) {
		for state := range 1 << len(of) {
			b := make([]float64, len(of))
			for j := range b {
				b[j] = float64(state >> j & 1)
			}
			here := log + logp(b, of)
			bits := append([][]float64{b}, above...)
			if t == 0 {
				all = append(all, dream{math.Exp(here), bits})
				continue
			}
			fall(here, logits(m.down[t-1], b), t-1, bits)
		}
	}
	fall(0, m.prior, len(m.down), nil)
	return func() (mean float64) {
		for _, d := range all {
			for t, up := range m.up {
				mean += d.p * logp(d.bits[t+1], logits(up, d.bits[t]))
			}
		}
		return mean
	}
}

// TestRelaxedLayers: the slopes of a layer's relaxed bits, through the layers
// above, against finite differences.
func TestRelaxedLayers(t *testing.T) {
	for _, structure := range structures() {
		r := rand.New(rand.NewPCG(5, 5))
		m := newBeliefs(structure, 4, 3, 3, r)
		p := m.begin([]float64{1, 0, 1, 1, 0, 1, 1, 0}, 4)
		m.climb(p, r)
		for at := range m.up {
			l, x, energy := &layer{m, at, p}, make([]float64, 6), make([]float64, 2)
			for i := range x {
				x[i] = r.Float64()
			}
			sum := func(x []float64) float64 {
				check.OK(t, l.RelaxedEnergyGradient(t.Context(), x, energy, make([]float64, 6)))
				return floats.Sum(energy)
			}
			got := make([]float64, 6)
			check.OK(t, l.RelaxedEnergyGradient(t.Context(), x, energy, got))
			for i, want := range fd.Gradient(nil, sum, x, &fd.Settings{Formula: fd.Central}) {
				labtest.Near(t, structure, got[i], want, 1e-6)
			}
		}
	}
}

func TestAutoencoderStudy(t *testing.T) {
	r := labtest.Studied(t, study(t, "arm vae", "data", "bars-and-stripes", "side", "3", "structures", "linear,halves",
		"estimators", "arm,leave-one-out", "updates", "2000", "bits", "6", "repeats", "1", "learning-rate", "0.01"),
		lab.StudyOptions{Seed: 1})
	for _, c := range r.Cells {
		// Independent pixels have 9 ln 2 nats, or 6 for the lower half; the
		// patterns ln 14 at least.
		most := 9 * math.Ln2
		if c.Labels.Value("structure") == "halves" {
			most = 5 * math.Ln2
		}
		n := c.Numbers
		if !(n["nll"] < 0.85*most && n["nll"] < n["negative-elbo"]) {
			t.Errorf("%v: %v, independent pixels have %v", c.Labels, n, most)
		}
	}
}
