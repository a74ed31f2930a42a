package chains

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/floats"

	"infill/cmd/lab/internal/lab"
	"infill/internal/logmath"
	"infill/internal/targets"
	"infill/samplers"
)

// newRBM makes a restricted Boltzmann machine, U(v) = Σ_i softplus(W v + a)_i +
// bᵀv. The observables are the visible units. By default it learns bars and
// stripes, and is small enough for exact sums.
func newRBM(f *pflag.FlagSet) maker {
	data := f.String("data", "bars-and-stripes", "what the machine is trained on: "+strings.Join(lab.ImageSets(), ", ")+
		", a `FILE` in the form IDX, or .amat, or none, for random weights")
	side := lab.WholeFlag(f, "side", 5, 2, 16, "pixels of a side of bars and stripes")
	hidden := lab.WholeFlag(f, "hidden", 12, 1, 4096, "hidden units")
	visible := lab.WholeFlag(f, "visible", 100, 1, 4096, "visible units of random weights")
	scale := lab.NumberFlag(f, "scale", 0.2236, " of 0 or more",
		"standard deviation of random weights, √0.05 as in the GWG repository; biases are N(0, 1)")
	file := f.String("weights", "", "another machine, a safetensors `FILE` with weights [hidden × visible], hidden "+
		"and visible (biases)")
	how := divergenceFlags(f)
	lab.Instead(f, "weights", "data", "side", "hidden", "visible", "scale", "divergence-steps", "updates", "batch",
		"learning-rate")
	own := lab.TargetSeed(f, "seed of the training or of the weights")
	from := lab.ChoiceFlag(f, "reference", []string{"auto", "block-gibbs"},
		"what MMD is measured from; auto is exact draws where possible")
	samples := lab.WholeFlag(f, "reference-samples", 500, 2, 1<<14, "states of the reference")
	steps := lab.WholeFlag(f, "reference-steps", 1000, 1, 1<<20, "block Gibbs steps behind each state of the reference")
	return func(ctx context.Context, in *lab.Inputs) (*distribution, error) {
		d := &distribution{kind: "rbm"}
		var m *targets.RBM
		var err error
		switch {
		case *file != "":
			m, err = lab.ReadAs(in, "weights", *file, nil, "", parseMachine)
			d.parameters = settings(f, "weights")
		case *data == "none":
			m, err = targets.NewRandomRBM(*visible, *hidden, *scale, samplers.Streams(*own, "rbm", 1)[0])
			d.parameters = settings(f, "data", "visible", "hidden", "scale", "target-seed")
		default:
			d.pictures, err = lab.ReadPictures(in, "data", *data, *side)
			if err != nil {
				return nil, err
			}
			images := slices.Collect(slices.Chunk(lab.Binarised(d.pictures.Train, false, nil), d.pictures.Pixels()))
			m, err = how.train(ctx, images, *hidden, samplers.Streams(*own, "training", 1)[0])
			d.independent = pixelMeans(images)
			d.parameters = settings(f, "data", "side", "hidden", "divergence-steps", "updates", "batch",
				"learning-rate", "target-seed")
		}
		if err != nil {
			return nil, err
		}
		d.Target = m
		d.observables = numbered(len(m.Visible), 0, 1)
		var exact *solved
		err = d.settle(func() (string, []float64, error) {
			exact, err = solve(ctx, m)
			if err != nil {
				return "", nil, err
			}
			return fmt.Sprintf("sum over the 2^%d states of one side", len(exact.listed.Visible)), exact.means, nil
		})
		if err != nil {
			return nil, err
		}
		r := &reference{method: "exact", samples: *samples, sample: func(n int, label string) ([]int, error) {
			return exact.draw(n, samplers.Streams(*own, label, 1)[0]), nil
		}}
		spent := 0
		if *from == "block-gibbs" || exact == nil {
			r.method = "block-gibbs"
			spent = *steps
			r.sample = func(n int, label string) ([]int, error) {
				return Ends(ctx, samplers.LatentGibbs{}, m, samplers.Streams(*own, label, n), *steps, nil)
			}
		}
		states, err := r.sample(*samples, "reference")
		if err != nil {
			return nil, err
		}
		r.set = newBinarySet(len(m.Visible), states)
		d.reference = r
		d.parameters = append(d.parameters,
			lab.Label{Name: "reference", Value: fmt.Sprintf("%s,samples:%d,steps:%d", r.method, r.samples, spent)})
		return d, nil
	}
}

// maxSummed bounds the smaller side over whose states solve sums.
const maxSummed = 18

var _ samplers.LatentTarget = (*targets.RBM)(nil)

// solved holds exact sums of an RBM over the states of its smaller side. Given
// the state of that side, the units of the other side are independent.
type solved struct {
	listed     *targets.RBM // the RBM, with sides exchanged unless the visible side is the smaller
	turned     bool
	all        *targets.Enumeration
	cumulative []float64 // running sum of the probabilities of the states
	means      []float64 // means of the RBM's visible units
}

// solve sums over the states of the smaller side. For more than maxSummed units
// there, it returns errTooLarge.
func solve(ctx context.Context, m *targets.RBM) (s *solved, err error) {
	hidden := len(m.Hidden)
	visible := len(m.Visible)
	if min(hidden, visible) > maxSummed {
		return nil, fmt.Errorf("%w: %d visible and %d hidden units, and one side must have at most %d to be "+
			"summed over", errTooLarge, visible, hidden, maxSummed)
	}
	s = &solved{listed: m, turned: hidden <= visible, means: make([]float64, visible)}
	if s.turned {
		weights := make([]float64, len(m.Weights))
		for i, w := range m.Weights {
			weights[i%visible*hidden+i/visible] = w
		}
		s.listed, err = targets.NewRBM(weights, m.Visible, m.Hidden)
		if err != nil {
			return nil, err
		}
	}
	s.all, err = targets.Enumerate(ctx, s.listed)
	if err != nil {
		return nil, err
	}
	s.cumulative = floats.CumSum(make([]float64, s.all.Len()), s.all.Probability)
	for i, p := range s.all.Probability {
		floats.AddScaled(s.means, p, s.given(i))
	}
	return s, nil
}

// given returns the visible means, given state i of the smaller side.
func (s *solved) given(i int) []float64 {
	means := make([]float64, len(s.means))
	if !s.turned {
		for j, v := range s.all.State(i) {
			means[j] = float64(v)
		}
		return means
	}
	s.listed.LatentLogits(s.all.State(i), means)
	for j, l := range means {
		means[j] = logmath.Sigmoid(l)
	}
	return means
}

// draw returns n exact independent draws of the visible units, [n × visible].
func (s *solved) draw(n int, r *rand.Rand) []int {
	states := make([]int, 0, n*len(s.means))
	for range n {
		for _, p := range s.given(samplers.DrawCumulative(s.cumulative, r)) {
			states = append(states, logmath.Indicator(r.Float64() < p))
		}
	}
	return states
}

// pixelMeans returns the law of each pixel, kept off 0 and 1 as in the papers'
// code, so that any state can be a start.
func pixelMeans(data [][]int) [][]float64 {
	laws := make([][]float64, len(data[0]))
	for j := range laws {
		on := 0
		for _, x := range data {
			on += x[j]
		}
		laws[j] = lab.Bernoulli(min(max(float64(on)/float64(len(data)), 0.01), 0.99))
	}
	return laws
}

// PixelLaws returns the law of each pixel with the given number of levels. Each
// level has a hundredth at least, shared by all, so that any state can be a
// start.
func PixelLaws(data [][]int, levels int) [][]float64 {
	if levels == 2 {
		return pixelMeans(data)
	}
	return CategoryLaws(data, levels)
}

// divergenceOptions set contrastive divergence: Hinton, Training Products of
// Experts by Minimizing Contrastive Divergence (2002), with Adam. The papers'
// RBM has the same steps and batch, and a twentieth of the learning rate.
type divergenceOptions struct {
	steps, updates, batch *int
	rate                  *float64
}

func divergenceFlags(f *pflag.FlagSet) divergenceOptions {
	return divergenceOptions{
		lab.WholeFlag(f, "divergence-steps", 10, 1, 1<<20, "block Gibbs steps of contrastive divergence"),
		lab.WholeFlag(f, "updates", 1000, 1, 1<<20, "updates of the training"),
		lab.WholeFlag(f, "batch", 100, 1, 1<<20, "images of each update"),
		lab.NumberFlag(f, "learning-rate", 0.02, " above 0", "of Adam"),
	}
}

// train fits a machine. The gradient is the data's mean of v hᵀ, h and v less
// their mean after k steps of block Gibbs.
func (o divergenceOptions) train(ctx context.Context, data [][]int, hidden int, r *rand.Rand) (*targets.RBM, error) {
	visible := len(data[0])
	n := hidden * visible
	parameters := append(targets.Normals(r, n, 0.01), make([]float64, hidden+visible)...)
	gradient := make([]float64, len(parameters))
	optimiser := lab.NewAdam(len(parameters))
	m, err := targets.NewRBM(parameters[:n], parameters[n:n+hidden], parameters[n+hidden:]) // m shares the parameters
	if err != nil {
		return nil, err
	}
	// The visible biases start at the data's log-odds (Hinton, A Practical
	// Guide to Training RBMs, 2010, section 8).
	for j, law := range pixelMeans(data) {
		m.Visible[j] = math.Log(law[1] / law[0])
	}
	accumulate := func(states []int, scale float64) {
		h := lab.NewMatrix(len(states)/visible, hidden)
		m.LatentLogits(states, h.Data)
		v := targets.Real(states)
		for i, l := range h.Data {
			h.Data[i] = scale / float64(h.Rows) * logmath.Sigmoid(l)
			gradient[n+i%hidden] += h.Data[i]
		}
		for i, x := range v {
			gradient[n+hidden+i%visible] += scale / float64(h.Rows) * x
		}
		lab.Multiply(blas.Trans, blas.NoTrans, h, lab.Matrix(h.Rows, visible, v), lab.Matrix(hidden, visible,
			gradient[:n]))
	}
	kernel, err := samplers.LatentGibbs{}.Kernel(m, nil)
	if err != nil {
		return nil, err
	}
	streams := samplers.Streams(r.Uint64(), "divergence", *o.batch)
	var info samplers.Info
	var order []int
	for update := 1; update <= *o.updates && ctx.Err() == nil; update++ {
		var batch []int
		for range *o.batch {
			if len(order) == 0 {
				order = r.Perm(len(data))
			}
			batch = append(batch, data[order[0]]...)
			order = order[1:]
		}
		clear(gradient)
		accumulate(batch, 1)
		state, err := kernel.Init(ctx, batch)
		for k := 0; k < *o.steps && err == nil; k++ {
			err = kernel.Step(ctx, state, streams, &info)
		}
		if err != nil {
			return nil, err
		}
		accumulate(state.Positions, -1)
		optimiser.Ascend(parameters, gradient, *o.rate, update)
	}
	return m, ctx.Err()
}

// CategoryLaws returns the law of each slot. A hundredth is shared by all
// categories, so that any state can be a start.
func CategoryLaws(data [][]int, categories int) [][]float64 {
	laws := make([][]float64, len(data[0]))
	for j := range laws {
		laws[j] = slices.Repeat([]float64{0.01 / float64(categories)}, categories)
		for _, x := range data {
			laws[j][x[j]] += 0.99 / float64(len(data))
		}
	}
	return laws
}
