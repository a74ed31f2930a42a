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

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"

	"infill/internal/logmath"
	"infill/internal/targets"
	"infill/samplers"
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
		return side{}, fmt.Errorf("%w: %d visible and %d hidden units, and one side must have at most %d to be "+
			"summed over", errTooLarge, len(m.visible), len(m.hidden), maxSummed)
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

// each calls visit for every state of the listed side, in Gray code order, with the state, its log weight summed over
// the others, and the log-odds of the others given it.
func (s *side) each(visit func(state uint32, logWeight float64, logits []float64)) {
	n := len(s.others)
	logits := slices.Clone(s.others)
	own := 0.0
	state := uint32(0)
	for i := uint64(0); ; {
		logWeight := own
		for _, l := range logits {
			logWeight += logmath.Softplus(l)
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
				r.means[j] += p * logmath.Sigmoid(logits[j])
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
			v := int(s.states[at] >> j & 1)
			if s.listedAreHidden {
				logit := s.others[j]
				for i := range s.listed {
					if s.states[at]>>i&1 == 1 {
						logit += s.weights[i*len(s.others)+j]
					}
				}
				v = bit(r.Float64() < logmath.Sigmoid(logit))
			}
			states = append(states, v)
		}
	}
	return states
}

// rbmData lists the data sets an RBM can be trained on: bars and stripes, or none, which draws random weights instead.
func rbmData() []string { return []string{"bars-and-stripes", "none"} }

// references lists what the maximum mean discrepancy is measured from: exact draws where there are any and else the
// states of block Gibbs chains, as in the papers; or one of the two.
func references() []string { return []string{"auto", "exact", "block-gibbs"} }

// rbmOptions set a restricted Boltzmann machine over binary visible units, U(v) = Σ_i softplus(W v + a)_i + bᵀv; by
// default one for bars and stripes, the images whose rows, or columns, are each all on or all off, that can be summed
// exactly.
type rbmOptions struct {
	data            string
	side            int // of the images
	visible, hidden int // visible: of random weights; trained machines have side²
	scale           float64
	training        trainingOptions
	seed            uint64 // of the training, or of the random weights

	truth            truthOptions
	reference        string
	referenceSamples int
	referenceSteps   int // of block Gibbs
}

func defaultRBM() rbmOptions {
	return rbmOptions{data: rbmData()[0], side: 5, visible: 100, hidden: 12, scale: 0.05,
		training: trainingOptions{divergenceSteps: 10, updates: 1000, batch: 100, learningRate: 0.02},
		seed:     1, reference: references()[0], referenceSamples: 500, referenceSteps: 1000}
}

func (o *rbmOptions) register(f *flag.FlagSet) {
	ChoiceVar(f, &o.data, "data", rbmData(), "what the machine is trained on; none draws random weights")
	WholeVar(f, &o.side, "side", 2, 16, "the images have this number of pixels squared, the visible units")
	WholeVar(f, &o.hidden, "hidden", 1, 4096, "hidden units")
	WholeVar(f, &o.visible, "visible", 1, 4096, "visible units of random weights")
	numberVar(f, &o.scale, "scale", " of 0 or more", "standard deviation of random weights; biases are N(0, 1)")
	o.training.register(f)
	seedVar(f, &o.seed, "seed of the training or of the weights")
	ChoiceVar(f, &o.reference, "reference", references(), "what MMD is measured from; auto is exact where possible")
	WholeVar(f, &o.referenceSamples, "reference-samples", 2, 1<<14, "states of the reference")
	WholeVar(f, &o.referenceSteps, "reference-steps", 1, 1<<20, "block Gibbs steps behind each state of the reference")
	o.truth.register(f)
}

// problem trains or draws a machine. Its observables are the visible units.
func (o rbmOptions) problem(ctx context.Context, seed uint64) (*Problem, error) {
	p := &Problem{Kind: "rbm", consistent: true}
	m := &machine{}
	var data [][]int
	if o.data == "none" {
		r := samplers.Streams(o.seed, "rbm", 1)[0]
		m.weights, m.hidden, m.visible = targets.Normals(r, o.hidden*o.visible, o.scale),
			targets.Normals(r, o.hidden, 1), targets.Normals(r, o.visible, 1)
		p.Parameters = parameters(&o, "data", "visible", "hidden", "scale", "target-seed")
	} else {
		data = barsAndStripes(o.side)
		var err error
		if m, p.Training, err = train(ctx, data, o.side*o.side, o.hidden, o.training, o.seed); err != nil {
			return nil, err
		}
		p.independent = pixelMeans(data, o.side*o.side)
		p.Parameters = parameters(&o, "data", "side", "hidden", "divergence-steps", "updates", "batch", "learning-rate",
			"target-seed")
	}
	target, err := targets.NewRBM(m.weights, m.hidden, m.visible)
	if err != nil {
		return nil, err
	}
	p.Target, p.observables = target, numbered(len(m.visible), 0, 1)
	var exact *solved
	err = p.settle(ctx, o.truth, seed, func() (string, []float64, error) {
		if exact, err = m.solve(); err != nil {
			return "", nil, err
		}
		return fmt.Sprintf("sum over the 2^%d states of one side", len(exact.listed)), exact.means, nil
	}, "rbm-gibbs", 1, false)
	if err == nil && p.Training != nil && exact != nil {
		err = p.Training.judge(ctx, target, exact, data)
	}
	if err != nil {
		return nil, err
	}
	return p, p.refer(ctx, o, exact)
}

// reference is what the maximum mean discrepancy is measured from.
type reference struct {
	Method  string
	Samples int
	// AgainstExact is the squared discrepancy of a block Gibbs reference from
	// as many exact draws, where they can be had.
	AgainstExact *float64

	set  *binarySet
	self float64 // mean kernel within the set
	// sample draws independently from the reference's own law.
	sample func(n int, label string) ([]int, error)
}

// states is a set of independent draws.
func (r *reference) states(slots, n int, label string) (*binarySet, error) {
	states, err := r.sample(n, label)
	set := newBinarySet(slots)
	set.add(states)
	return set, err
}

// draw makes the set.
func (r *reference) draw(slots int) (err error) {
	if r.set, err = r.states(slots, r.Samples, "reference"); err == nil {
		r.self = stat.Mean(r.set.rowMeans(r.set), nil)
	}
	return err
}

// floorSets is how many sets of draws a floor is of.
const floorSets = 20

// floor is the squared discrepancy that chains would show if they drew from the reference's own law: the mean of
// several sets of as many draws, and the deviation between them.
func (r *reference) floor(n int) (mean, deviation float64, err error) {
	values := make([]float64, floorSets)
	for i := range values {
		set, err := r.states(r.set.slots, n, fmt.Sprint("floor ", i))
		if err != nil {
			return 0, 0, err
		}
		values[i], _ = squaredDiscrepancy(set, r.set, r.self)
	}
	mean, deviation = stat.MeanStdDev(values, nil)
	return mean, deviation, nil
}

// refer makes the reference set.
func (p *Problem) refer(ctx context.Context, o rbmOptions, exact *solved) error {
	method, steps := o.reference, o.referenceSteps
	switch {
	case method == references()[0] && exact == nil:
		method = "block-gibbs"
	case method == references()[0]:
		method = "exact"
	case method == "exact" && exact == nil:
		return refuse("reference", "there are no exact draws of this machine: choose block-gibbs")
	}
	r := &reference{Method: method, Samples: o.referenceSamples}
	if method == "exact" {
		steps = 0
		r.sample = func(n int, label string) ([]int, error) {
			return exact.draw(n, samplers.Streams(o.seed, label, 1)[0]), nil
		}
	} else {
		kernel, err := samplers.New("rbm-gibbs", p.Target)
		if err != nil {
			return err
		}
		r.sample = func(n int, label string) ([]int, error) {
			streams := samplers.Streams(o.seed, label, n)
			run, err := samplers.Sample(ctx, kernel, samplers.RandomPositions(p.Target, streams),
				samplers.Plan{Streams: streams, Steps: steps}, nil)
			if err != nil {
				return nil, err
			}
			return run.State.Positions, nil
		}
	}
	if err := r.draw(len(p.Target.Categories())); err != nil {
		return err
	}
	if method != "exact" && exact != nil {
		set := newBinarySet(r.set.slots)
		set.add(exact.draw(o.referenceSamples, samplers.Streams(o.seed, "against exact", 1)[0]))
		value, _ := squaredDiscrepancy(set, r.set, r.self)
		r.AgainstExact = &value
	}
	p.Reference = r
	p.Parameters = append(p.Parameters,
		parameter{"reference", fmt.Sprintf("%s,samples:%d,steps:%d", method, r.Samples, steps)})
	return nil
}
