package lab

import (
	"context"
	"flag"
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"
	"sort"
	"strconv"
	"strings"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"

	"infill/samplers"
	"infill/samplers/targets"
)

// machine is an RBM's parameters.
type machine struct {
	weights []float64 // W, [hidden × visible]
	hidden  []float64 // a
	visible []float64 // b
}

// maxSummed is the most units of the smaller side whose states are summed over.
const maxSummed = 20

// side is what a sum over the states of one side of an RBM needs: the units
// that are listed, and the others, which are independent given them.
type side struct {
	weights         []float64 // [listed × others]
	listed, others  []float64 // biases
	listedAreHidden bool
}

// smaller lists the smaller side.
func (m *machine) smaller() (side, error) {
	if min(len(m.hidden), len(m.visible)) > maxSummed {
		return side{}, fmt.Errorf("%w: %d visible and %d hidden units, and one side must have at most %d to be summed over", errTooLarge, len(m.visible), len(m.hidden), maxSummed)
	}
	if len(m.hidden) <= len(m.visible) {
		return side{m.weights, m.hidden, m.visible, true}, nil
	}
	turned := make([]float64, len(m.weights))
	for i := range m.hidden {
		for j := range m.visible {
			turned[j*len(m.hidden)+i] = m.weights[i*len(m.visible)+j]
		}
	}
	return side{turned, m.visible, m.hidden, false}, nil
}

// each calls visit for every state of the listed side, in Gray code order,
// with the state, its log weight summed over the others, and the log-odds of
// the others given it.
func (s *side) each(visit func(state uint32, logWeight float64, logits []float64)) {
	n := len(s.others)
	logits := slices.Clone(s.others)
	own := 0.0
	state := uint32(0)
	for i := uint64(0); ; {
		logWeight := own
		for _, l := range logits {
			logWeight += softplus(l)
		}
		visit(state, logWeight, logits)
		if i++; i == 1<<len(s.listed) {
			return
		}
		unit := bits.TrailingZeros64(i)
		state ^= 1 << unit
		sign := -1.0
		if state>>unit&1 == 1 {
			sign = 1
		}
		own += sign * s.listed[unit]
		for j, w := range s.weights[unit*n : (unit+1)*n] {
			logits[j] += sign * w
		}
	}
}

func softplus(x float64) float64 {
	if x > 0 {
		return x + math.Log1p(math.Exp(-x))
	}
	return math.Log1p(math.Exp(x))
}

func sigmoid(x float64) float64 { return 1 / (1 + math.Exp(-x)) }

// solved is an RBM summed exactly.
type solved struct {
	side
	logNormaliser float64
	cumulative    []float64 // of the listed states in the order of each
	states        []uint32
	means         []float64 // of the visible units
}

// solve sums over the smaller side.
func (m *machine) solve() (*solved, error) {
	s, err := m.smaller()
	if err != nil {
		return nil, err
	}
	r := &solved{side: s, means: make([]float64, len(m.visible))}
	r.cumulative = make([]float64, 0, 1<<len(s.listed))
	s.each(func(state uint32, logWeight float64, _ []float64) {
		r.states = append(r.states, state)
		r.cumulative = append(r.cumulative, logWeight)
	})
	r.logNormaliser = floats.LogSumExp(r.cumulative)
	total, i := 0.0, 0
	s.each(func(state uint32, logWeight float64, logits []float64) {
		p := math.Exp(logWeight - r.logNormaliser)
		total += p
		r.cumulative[i] = total
		i++
		for j := range r.means {
			switch {
			case s.listedAreHidden:
				r.means[j] += p * sigmoid(logits[j])
			case state>>j&1 == 1:
				r.means[j] += p
			}
		}
	})
	return r, nil
}

// draw returns independent exact draws of the visible units, [n × visible].
func (s *solved) draw(n int, r *rand.Rand) []int {
	states := make([]int, 0, n*len(s.means))
	for range n {
		u := r.Float64() * s.cumulative[len(s.cumulative)-1]
		at := min(sort.SearchFloat64s(s.cumulative, u), len(s.states)-1)
		for j := range s.means {
			v := 0
			if s.listedAreHidden {
				logit := s.others[j]
				for i := range s.listed {
					if s.states[at]>>i&1 == 1 {
						logit += s.weights[i*len(s.others)+j]
					}
				}
				if r.Float64() < sigmoid(logit) {
					v = 1
				}
			} else {
				v = int(s.states[at] >> j & 1)
			}
			states = append(states, v)
		}
	}
	return states
}

// rbmData lists the data sets an RBM can be trained on: bars and stripes, or
// none, which draws random weights instead.
func rbmData() []string { return []string{"bars-and-stripes", "none"} }

// references lists what the maximum mean discrepancy is measured from: exact
// draws where there are any and else the states of block Gibbs chains, as in the
// papers; or one of the two.
func references() []string { return []string{"auto", "exact", "block-gibbs"} }

// rbmOptions set a restricted Boltzmann machine over binary visible units,
// U(v) = Σ_i softplus(W v + a)_i + bᵀv.
type rbmOptions struct {
	// Data is one of rbmData. Bars and stripes are the images of Side × Side
	// pixels whose rows, or columns, are each all on or all off.
	Data string
	Side int
	// Visible units of random weights; trained machines have Side².
	Visible int
	Hidden  int
	// Scale is the standard deviation of random weights; biases are N(0, 1).
	Scale    float64
	Training trainingOptions
	// Seed of the training, or of the random weights.
	Seed uint64

	Truth truthOptions
	// reference is one of references, "" for auto.
	Reference        string
	ReferenceSamples int // 0 for 500
	ReferenceSteps   int // of block Gibbs, 0 for 1,000
}

// defaultRBM is a machine for bars and stripes that can be summed exactly.
func defaultRBM() rbmOptions {
	return rbmOptions{Data: rbmData()[0], Side: 5, Visible: 100, Hidden: 12, Scale: 0.05, Training: defaultTraining(), Seed: 1, ReferenceSamples: 500, ReferenceSteps: 1000}
}

func (o *rbmOptions) check() error {
	if !slices.Contains(rbmData(), o.Data) {
		return refuse("data", "%q is not one of %s", o.Data, strings.Join(rbmData(), ", "))
	}
	if o.Reference != "" && !slices.Contains(references(), o.Reference) {
		return refuse("reference", "%q is not one of %s", o.Reference, strings.Join(references(), ", "))
	}
	if o.Hidden < 1 || o.Hidden > 4096 {
		return refuse("hidden", "%d is not a whole number from 1 to 4096", o.Hidden)
	}
	if o.Data == "none" && (o.Visible < 1 || o.Visible > 4096) {
		return refuse("visible", "%d is not a whole number from 1 to 4096", o.Visible)
	}
	if o.Data != "none" && (o.Side < 2 || o.Side > 16) {
		return refuse("side", "%d is not a whole number from 2 to 16", o.Side)
	}
	if o.Data == "none" && (!(o.Scale >= 0) || math.IsInf(o.Scale, 1)) {
		return refuse("scale", "%v is not a finite number of 0 or more", o.Scale)
	}
	if o.ReferenceSamples < 0 || o.ReferenceSamples == 1 || o.ReferenceSamples > 1<<14 {
		return refuse("reference-samples", "%d is not a whole number from 2 to %d, or 0 for 500", o.ReferenceSamples, 1<<14)
	}
	if o.ReferenceSteps < 0 {
		return refuse("reference-steps", "%d is not a whole number of 0 (for 1000) or more", o.ReferenceSteps)
	}
	if o.Data != "none" {
		return o.Training.check()
	}
	return nil
}

func (o *rbmOptions) register(f *flag.FlagSet) {
	choiceVar(f, &o.Data, "data", rbmData(), "what the machine is trained on; none draws random weights")
	wholeVar(f, &o.Side, "side", "the images have this number of pixels squared, the visible units")
	wholeVar(f, &o.Hidden, "hidden", "hidden units")
	wholeVar(f, &o.Visible, "visible", "visible units of random weights")
	numberVar(f, &o.Scale, "scale", "standard deviation of random weights")
	wholeVar(f, &o.Training.DivergenceSteps, "divergence-steps", "block Gibbs steps of contrastive divergence")
	wholeVar(f, &o.Training.Updates, "updates", "updates of the training")
	wholeVar(f, &o.Training.Batch, "batch", "images of each update")
	numberVar(f, &o.Training.LearningRate, "learning-rate", "of Adam")
	f.Var((*seed)(&o.Seed), "target-seed", "seed of the training or of the weights")
	choiceVar(f, &o.Reference, "reference", references(), "what MMD is measured from; auto is exact where possible")
	wholeVar(f, &o.ReferenceSamples, "reference-samples", "states of the reference")
	wholeVar(f, &o.ReferenceSteps, "reference-steps", "block Gibbs steps behind each state of the reference")
	o.Truth.register(f)
}

// problem trains or draws a machine. Its observables are the visible units.
func (o rbmOptions) problem(ctx context.Context, seed uint64) (*Problem, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	p := &Problem{Kind: "rbm", consistent: true}
	m := &machine{}
	if o.Data == "none" {
		r := samplers.Streams(o.Seed, "rbm", 1)[0]
		m.weights, m.hidden, m.visible = normals(r, o.Hidden*o.Visible, o.Scale), normals(r, o.Hidden, 1), normals(r, o.Visible, 1)
		p.Parameters = []parameter{
			{"data", o.Data}, {"visible", strconv.Itoa(o.Visible)}, {"hidden", strconv.Itoa(o.Hidden)}, {"scale", decimal(o.Scale)},
		}
	} else {
		data := barsAndStripes(o.Side)
		var err error
		if m, p.Training, err = train(ctx, data, o.Side*o.Side, o.Hidden, o.Training, o.Seed); err != nil {
			return nil, err
		}
		p.independent = pixelMeans(data, o.Side*o.Side)
		p.Parameters = []parameter{
			{"data", o.Data}, {"side", strconv.Itoa(o.Side)}, {"hidden", strconv.Itoa(o.Hidden)},
			{"divergence-steps", strconv.Itoa(o.Training.DivergenceSteps)}, {"updates", strconv.Itoa(o.Training.Updates)},
			{"batch", strconv.Itoa(o.Training.Batch)}, {"learning-rate", decimal(o.Training.LearningRate)},
		}
	}
	p.Parameters = append(p.Parameters, parameter{"target-seed", strconv.FormatUint(o.Seed, 10)})
	target, err := targets.NewRBM(m.weights, m.hidden, m.visible)
	if err != nil {
		return nil, err
	}
	p.Target = target
	p.observables = numbered(len(m.visible), 0, 1)
	var exact *solved
	err = p.settle(ctx, o.Truth.seeded(seed), func() (string, []float64, error) {
		if exact, err = m.solve(); err != nil {
			return "", nil, err
		}
		return fmt.Sprintf("sum over the 2^%d states of one side", len(exact.listed)), exact.means, nil
	}, "rbm-gibbs", 1, false)
	if err != nil {
		return nil, err
	}
	if p.Training != nil && exact != nil {
		if err := p.Training.judge(ctx, target, exact, barsAndStripes(o.Side)); err != nil {
			return nil, err
		}
	}
	return p, p.refer(ctx, o, exact)
}

func normals(r *rand.Rand, n int, scale float64) []float64 {
	x := make([]float64, n)
	for i := range x {
		x[i] = scale * r.NormFloat64()
	}
	return x
}

// reference is what the maximum mean discrepancy is measured from.
type reference struct {
	Method  string `json:"method"`
	Samples int    `json:"samples"`
	// Steps of block Gibbs behind each sample; 0 for exact draws.
	Steps int `json:"steps,omitempty"`
	// AgainstExact is the squared discrepancy of a block Gibbs reference from
	// as many exact draws, where they can be had.
	AgainstExact *float64 `json:"against_exact,omitempty"`

	set    *binarySet
	self   float64                           // mean kernel within the set
	sample func(n, label int) ([]int, error) // independent draws of the reference's own law
}

// floor is the squared discrepancy that chains would show if they drew from
// the reference's own law: the mean of several sets of as many draws.
type floor struct {
	MMD2              float64 `json:"mmd2"`
	StandardDeviation float64 `json:"standard_deviation"` // between sets of draws
	Sets              int     `json:"sets"`
}

const floorSets = 20

func (r *reference) floor(n int) (*floor, error) {
	values := make([]float64, floorSets)
	for i := range values {
		states, err := r.sample(n, i)
		if err != nil {
			return nil, err
		}
		set := newBinarySet(r.set.slots)
		set.add(states)
		values[i], _ = squaredDiscrepancy(set, r.set, r.self)
	}
	mean, deviation := stat.MeanStdDev(values, nil)
	return &floor{mean, deviation, floorSets}, nil
}

// refer makes the reference set.
func (p *Problem) refer(ctx context.Context, o rbmOptions, exact *solved) error {
	if o.ReferenceSamples == 0 {
		o.ReferenceSamples = 500
	}
	if o.ReferenceSteps == 0 {
		o.ReferenceSteps = 1000
	}
	slots := len(p.Target.Categories())
	method := o.Reference
	auto := method == "" || method == references()[0]
	switch {
	case auto && exact != nil:
		method = "exact"
	case auto:
		method = "block-gibbs"
	case method == "exact" && exact == nil:
		return refuse("reference", "there are no exact draws of this machine: choose block-gibbs")
	}
	r := &reference{Method: method, Samples: o.ReferenceSamples, set: newBinarySet(slots)}
	gibbs := func(n int, label string) ([]int, error) {
		kernel, err := samplers.New("rbm-gibbs", p.Target)
		if err != nil {
			return nil, err
		}
		streams := samplers.Streams(o.Seed, label, n)
		run, err := samplers.Sample(ctx, kernel, samplers.RandomPositions(p.Target, streams), samplers.Plan{Streams: streams, Steps: o.ReferenceSteps}, nil)
		if err != nil {
			return nil, err
		}
		return run.State.Positions, nil
	}
	r.sample = func(n, label int) ([]int, error) {
		if method == "exact" {
			return exact.draw(n, samplers.Streams(o.Seed, fmt.Sprintf("floor %d", label), 1)[0]), nil
		}
		return gibbs(n, fmt.Sprintf("floor %d", label))
	}
	if method == "exact" {
		r.set.add(exact.draw(o.ReferenceSamples, samplers.Streams(o.Seed, "reference", 1)[0]))
	} else {
		r.Steps = o.ReferenceSteps
		states, err := gibbs(o.ReferenceSamples, "reference")
		if err != nil {
			return err
		}
		r.set.add(states)
	}
	r.self = stat.Mean(r.set.rowMeans(r.set), nil)
	if method != "exact" && exact != nil {
		set := newBinarySet(slots)
		set.add(exact.draw(o.ReferenceSamples, samplers.Streams(o.Seed, "against exact", 1)[0]))
		value, _ := squaredDiscrepancy(set, r.set, r.self)
		r.AgainstExact = &value
	}
	p.Reference = r
	p.Parameters = append(p.Parameters, parameter{"reference", fmt.Sprintf("%s,samples:%d,steps:%d", method, r.Samples, r.Steps)})
	return nil
}
