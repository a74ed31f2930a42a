// Importance sampling with draws of the chain rule (chainrule.go). With q as proposal and π ∝ exp(U),
//
//	x_i ~ q,  w_i = exp(U(x_i) - log q(x_i)),  Ẑ = mean w,  P(x) = exp(U(x))/Ẑ
//
// Ẑ is unbiased for Z = Σ exp(U), and the probability of every state of known energy has the relative standard error of
// Ẑ (delta method): drawn or not, and however seldom. Means of functions are ratios Σ w f / Σ w (Owen, Monte Carlo
// theory, methods and examples, chapter 9). Whether to believe the errors depends on the shape k̂ of a generalised
// Pareto distribution fitted to the largest weights (Vehtari, Simpson, Gelman, Yao and Gabry, "Pareto Smoothed
// Importance Sampling", JMLR 2024), by the estimator of Zhang and Stephens (Technometrics 2009). The weights themselves
// are not smoothed: their mean stays unbiased.
//
// Where exp(U)/q differs widely, a set A of states whose energies are known, by a search and by the draws before, is
// summed exactly, and draws tell of the others (Liu, Regier, Tripuraneni, Jordan and McAuliffe, "Rao-Blackwellized
// Stochastic Gradients for Discrete Distributions", ICML 2019):
//
//	Ẑ = mean of  Σ_{x∈A} exp(U(x)) + w_i 1[x_i ∉ A]
//
// A share λ of the draws is then of states beside those of A, by r of beside.go, and w = exp(U)/((1-λ) q + λ r): where
// A has a state of a mode that q hardly reaches, r reaches the rest of it. λ is the one of a few for which the weights
// of the draws before would have differed least. A grows after every batch of draws. Given all before, the mean of a
// batch is unbiased, and so is that of all; its variance is that within the batches.
//
// The kernel importance makes a chain of it: iterated sampling importance resampling (Tjelmeland 2004; Andrieu, Doucet
// and Holenstein, JRSS B 2010). Of the state and n draws of q one becomes the next, with probability ∝ w.
//
// Target: exp(U) exactly, as long as q reaches every state of positive probability; the kernel is reversible. No step
// size, nothing to tune, no gradient. It does not say whether a mode was missed that q hardly reaches: no weight tells
// of what was never drawn. Cost: a conditional a slot and an energy for each draw, and the kernel's conditionals of the
// state where it is. States whose energy is no number count as forbidden.

package samplers

import (
	"context"
	"flag"
	"math"
	"math/rand/v2"
	"slices"

	"infill/internal/logmath"
)

// Importance estimates the normaliser of exp(U), and with it probabilities of states,
// from weighted draws of the chain rule.
type Importance struct {
	target    Target
	rules     []*ChainRule
	slots     int
	states    []int // [draws × slots]
	energy    []float64
	logWeight []float64
	// Log of the two proposals that draws are weighed by, see beside.go.
	logq, logr []float64

	// Of [Importance.Know]: what is known, the states in the order in which they came,
	// since which draw each is, and the log of their sum.
	known       map[string]bool
	knownStates []int
	knownEnergy []float64
	since       []int
	logKnown    float64
	// batches tell what was known while draws were made, and which of these were of it.
	batches []batchOfDraws
	inside  []bool
	key     []byte
}

// batchOfDraws are the draws before to, and not before those of the batch before.
type batchOfDraws struct {
	to       int
	logKnown float64
}

// NewImportance makes an estimate without draws yet. orders are as in NewChainRule. With several, each draw
// takes one at random, and q is their mean.
func NewImportance(target Target, orders ...[]int) (*Importance, error) {
	m := &Importance{target: target, logKnown: math.Inf(-1)}
	if len(orders) == 0 {
		orders = [][]int{nil}
	}
	for _, order := range orders {
		rule, err := newChainRule("importance sampling", target, order)
		if err != nil {
			return nil, err
		}
		m.rules, m.slots = append(m.rules, rule), len(rule.categories)
	}
	return m, nil
}

// Draw adds one draw per stream. You can pass the same streams again: they continue. After an error nothing is
// added.
func (m *Importance) Draw(ctx context.Context, streams []*rand.Rand) error {
	n := len(streams)
	near, err := m.besideKnown(ctx)
	if err != nil {
		return err
	}
	states, logq, logr, energy := make([]int, n*m.slots), make([]float64, n), make([]float64, n), make([]float64, n)
	if err := m.draw(ctx, near, states, streams, logq); err != nil {
		return err
	}
	if err := m.target.Energy(ctx, states, energy); err != nil {
		return err
	}
	for i, u := range energy {
		logr[i] = math.Inf(-1)
		if near != nil {
			logr[i] = near.logProbability(m.stateOf(states, i))
		}
		m.logWeight = append(m.logWeight, logWeight(u, near.mixed(logq[i], logr[i])))
	}
	m.states = append(m.states, states...)
	m.energy = append(m.energy, energy...)
	m.logq, m.logr = append(m.logq, logq...), append(m.logr, logr...)
	m.batches = append(m.batches, batchOfDraws{len(m.energy), m.logKnown})
	for i := range n {
		m.inside = append(m.inside, m.known != nil && m.known[string(m.keyOf(m.stateOf(states, i)))])
	}
	if m.known != nil {
		m.Know(states, energy)
	}
	return nil
}

// Know adds states of known energies, [states × slots], to the states that are summed exactly. After the first
// call, every draw becomes known to later draws.
func (m *Importance) Know(states []int, energy []float64) {
	if m.known == nil {
		m.known = map[string]bool{}
	}
	sums := []float64{m.logKnown}
	for i, u := range energy {
		state := states[i*m.slots : (i+1)*m.slots]
		if key := string(m.keyOf(state)); logmath.Finite(u) && !m.known[key] {
			m.known[key] = true
			m.knownStates, m.knownEnergy = append(m.knownStates, state...), append(m.knownEnergy, u)
			m.since, sums = append(m.since, len(m.energy)), append(sums, u)
		}
	}
	m.logKnown = logmath.LogSumExp(sums)
}

// Forget drops all draws so far. The estimate then comes from known states and later draws.
func (m *Importance) Forget() {
	m.states, m.energy, m.logWeight, m.batches, m.inside = nil, nil, nil, nil, nil
	m.logq, m.logr = nil, nil
	clear(m.since)
}

func (m *Importance) keyOf(state []int) []byte {
	m.key = appendState(m.key[:0], state)
	return m.key
}

// A Point is a state of an estimate of π: a draw, or a known state.
type Point struct {
	State  []int
	Energy float64
	Weight float64 // the weights of all points add up to one
	Drawn  bool
}

// Points returns the estimate of π: first the draws, by weight unless they were known, then the known states.
func (m *Importance) Points() []Point {
	z, n := m.Normaliser(), m.Len()
	points := make([]Point, 0, n+len(m.since))
	for i := range n {
		p := Point{State: m.State(i), Energy: m.energy[i], Drawn: true}
		if !m.inside[i] {
			p.Weight = math.Exp(m.logWeight[i]-z.Log) / float64(n)
		}
		points = append(points, p)
	}
	for i, since := range m.since {
		share := float64(n-since) / float64(n)
		points = append(points,
			Point{m.knownStates[i*m.slots : (i+1)*m.slots], m.knownEnergy[i], math.Exp(m.knownEnergy[i]-z.Log) * share,
				false})
	}
	return points
}

// draw draws beside known states, and by the mean of the rules; logq is that of the latter alone.
func (m *Importance) draw(ctx context.Context, near *beside, states []int, streams []*rand.Rand, logq []float64) error {
	if len(m.rules) == 1 && near == nil {
		return m.rules[0].Draw(ctx, states, nil, streams, logq)
	}
	n := len(streams)
	by := make([][]int, len(m.rules)) // the draws of each rule
	for i, stream := range streams {
		if near != nil && stream.Float64() < near.share {
			near.draw(m.stateOf(states, i), stream)
			continue
		}
		rule := stream.IntN(len(m.rules))
		by[rule] = append(by[rule], i)
	}
	for rule, draws := range by {
		if len(draws) == 0 {
			continue
		}
		part, own := make([]int, len(draws)*m.slots), make([]*rand.Rand, len(draws))
		for k, i := range draws {
			own[k] = streams[i]
		}
		if err := m.rules[rule].Draw(ctx, part, nil, own, make([]float64, len(draws))); err != nil {
			return err
		}
		for k, i := range draws {
			copy(states[i*m.slots:(i+1)*m.slots], part[k*m.slots:])
		}
	}
	logqs := make([]float64, n*len(m.rules)) // [draws × rules]
	one := make([]float64, n)
	for rule, r := range m.rules {
		if err := r.LogProbability(ctx, states, nil, one); err != nil {
			return err
		}
		for i, l := range one {
			logqs[i*len(m.rules)+rule] = l
		}
	}
	for i := range logq {
		logq[i] = logmath.LogSumExp(logqs[i*len(m.rules):(i+1)*len(m.rules)]) - math.Log(float64(len(m.rules)))
	}
	return nil
}

// logWeight is log w, -Inf for a state that is forbidden.
func logWeight(energy, logq float64) float64 {
	if !logmath.Finite(energy) {
		return math.Inf(-1)
	}
	return energy - logq
}

// Len is the number of draws.
func (m *Importance) Len() int { return len(m.energy) }

// State is the i-th draw, [slots].
func (m *Importance) State(i int) []int { return m.stateOf(m.states, i) }

func (m *Importance) stateOf(states []int, i int) []int {
	return states[i*m.slots : (i+1)*m.slots]
}

// Energy is U of the i-th draw, in nats.
func (m *Importance) Energy(i int) float64 { return m.energy[i] }

// A Normaliser is an estimate of Z = Σ exp(U).
type Normaliser struct {
	Log float64 // log Ẑ, in nats
	// Error is the relative standard error of Ẑ and of every probability that is
	// computed from it. NaN for fewer than two draws.
	Error float64
	Draws int
	// EffectiveSampleSize is (Σ w)²/Σ w² of weighted draws (Kong 1992); where some are known, 1/Error².
	EffectiveSampleSize float64
	// Unseen is the share of Ẑ that one more draw of an unknown state may add. It is a part of Error, and 0 if
	// no state is known.
	Unseen float64
	// ParetoK is k̂, the shape of the weights' tail: they have moments below 1/k̂.
	// It is -Inf without a tail, and +Inf if it is undefined, as for fewer than 25 draws.
	ParetoK float64
	rough   bool
}

// fewWeights is how many draws of equal weight tell how much weights differ.
const fewWeights = 50

// Normaliser is the estimate of all draws.
func (m *Importance) Normaliser() Normaliser {
	n := len(m.logWeight)
	z := Normaliser{Log: math.NaN(), Error: math.NaN(), Draws: n, ParetoK: math.Inf(1)}
	if n == 0 {
		return z
	}
	if m.known == nil {
		z.ParetoK = paretoK(m.logWeight)
		sum := logmath.LogSumExp(m.logWeight)
		z.Log = sum - math.Log(float64(n))
		squares := 0.0
		for _, l := range m.logWeight {
			squares += math.Exp(2 * (l - sum))
		}
		if z.EffectiveSampleSize = 1 / squares; n > 1 {
			// Σ (w/Σw - 1/n)² = Σ (w/Σw)² - 1/n
			z.Error = math.Sqrt(math.Max(0, squares-1/float64(n)) * float64(n) / float64(n-1))
		}
		return z
	}
	terms := make([]float64, n) // log of what is known and the weight of what is not
	weights := make([]float64, n)
	heaviest, last, rest, squared := math.Inf(-1), 0, 0.0, 0.0
	for _, b := range m.batches {
		for i := last; i < b.to; i++ {
			terms[i], weights[i] = b.logKnown, math.Inf(-1)
			if !m.inside[i] {
				weights[i] = m.logWeight[i]
				terms[i] = logmath.LogSumExp([]float64{b.logKnown, weights[i]})
				heaviest = max(heaviest, weights[i])
			}
		}
		last = b.to
	}
	// Their tail, and not that of the terms, in which what is known would hide it.
	if z.ParetoK = math.Inf(-1); logmath.Finite(heaviest) {
		z.ParetoK = paretoK(weights)
	}
	z.Log = logmath.LogSumExp(terms) - math.Log(float64(n))
	variance := 0.0
	last = 0
	for _, b := range m.batches {
		size := float64(b.to - last)
		mean, squares := 0.0, 0.0
		for _, l := range terms[last:b.to] {
			mean += math.Exp(l-z.Log) / size
		}
		for _, l := range terms[last:b.to] {
			d := math.Exp(l-z.Log) - mean
			squares += d * d
		}
		if size > 1 {
			variance += squares * size / (size - 1)
		} else {
			variance += mean * mean
		}
		last = b.to
	}
	// A draw more might have been of what is not known: as heavy as the heaviest of those that were, or as all.
	more := 1.0
	if logmath.Finite(heaviest) {
		more = math.Exp(heaviest - z.Log)
		for _, l := range weights {
			w := math.Exp(l - z.Log)
			rest, squared = rest+w, squared+w*w
		}
	}
	z.Unseen = more / float64(n)
	z.Error = math.Sqrt(variance/float64(n)/float64(n) + z.Unseen*z.Unseen)
	if !z.tailed() || rest*rest < fewWeights*squared {
		// So few weights do not tell how much they differ: what is not known may well be twice what it seems.
		z.Error = max(z.Error, rest/float64(n)+z.Unseen)
		z.rough = true
	}
	z.EffectiveSampleSize = 1 / (z.Error * z.Error)
	return z
}

// Believable reports whether the errors can be trusted: k̂ is below min(1 - 1/log₁₀ draws, 0.7), the bound of
// Vehtari et al. (JMLR 2024), or Error covers all that is not known.
func (z Normaliser) Believable() bool { return z.rough || z.tailed() }

func (z Normaliser) tailed() bool {
	return z.ParetoK < min(1-1/math.Log10(float64(z.Draws)), 0.7)
}

// Rough reports whether Error covers all that is not known, because the draws were too few for a better
// estimate.
func (z Normaliser) Rough() bool { return z.rough }

// Mean returns the mean of a function of the state under π, with its standard error by the delta method; NaN if
// no draw has weight.
func (m *Importance) Mean(f func(p Point) float64) (mean, standardError float64) {
	points := m.Points()
	values := make([]float64, len(points))
	for i, p := range points {
		values[i] = f(p)
		mean += p.Weight * values[i]
	}
	squares, spread := 0.0, 0.0
	for i, p := range points {
		d := values[i] - mean
		spread += p.Weight * d * d
		if p.Drawn {
			squares += p.Weight * p.Weight * d * d
		}
	}
	unseen := m.Normaliser().Unseen
	return mean, math.Sqrt(squares + unseen*unseen*spread)
}

// paretoK is the shape k̂ of the generalised Pareto distribution that fits the largest weights, the ⌈min(n/5, 3√n)⌉ of
// n that lie above the others, given as logarithms. A law of weights with shape k has moments below 1/k: from 1/2 on
// the variance is infinite, from 1 on the mean.
//
// -Inf reports that the largest weights are all equal, so that there is no tail.
// +Inf means that it is not defined: fewer than 25 weights, one that is NaN or +Inf, or none above zero.
func paretoK(logWeights []float64) float64 {
	n := len(logWeights)
	if n < 25 {
		return math.Inf(1)
	}
	sorted := slices.Sorted(slices.Values(logWeights))
	largest := sorted[n-1]
	if math.IsNaN(sorted[0]) || math.IsInf(largest, 0) {
		return math.Inf(1)
	}
	tail := int(math.Ceil(min(float64(n)/5, 3*math.Sqrt(float64(n)))))
	threshold := math.Exp(sorted[n-tail-1] - largest)
	var above []float64
	for _, l := range sorted[n-tail:] {
		// What differs by rounding is equal.
		if x := math.Exp(l-largest) - threshold; x > 1e-6 {
			above = append(above, x)
		}
	}
	if len(above) < 5 {
		return math.Inf(-1)
	}
	return paretoShape(above)
}

// paretoShape is the estimate of Zhang and Stephens (2009) of a generalised Pareto distribution's shape, from
// exceedances in ascending order, drawn towards 1/2 by a weak prior worth ten of them (Vehtari et al., appendix C).
func paretoShape(x []float64) float64 {
	n := len(x)
	grid := 30 + int(math.Sqrt(float64(n)))
	quartile := x[int(float64(n)/4+0.5)-1]
	theta, likelihood := make([]float64, grid), make([]float64, grid)
	shape := func(b float64) float64 {
		sum := 0.0
		for _, v := range x {
			sum += math.Log1p(-b * v)
		}
		return sum / float64(n)
	}
	for j := range theta {
		theta[j] = 1/x[n-1] + (1-math.Sqrt(float64(grid)/(float64(j)+0.5)))/(3*quartile)
		k := shape(theta[j])
		likelihood[j] = float64(n) * (math.Log(-theta[j]/k) - k - 1)
	}
	total, b := logmath.LogSumExp(likelihood), 0.0
	for j, l := range likelihood {
		b += math.Exp(l-total) * theta[j]
	}
	return (shape(b)*float64(n) + 5) / float64(n+10)
}

// resampler is the kernel.
type resampler struct {
	target     Target
	rule       *ChainRule
	categories []int
	draws      int

	choose  choice
	sources []source
	states  []int // the draws of all chains, then their positions
	logq    []float64
	energy  []float64 // of the draws
	weight  []float64 // log, of one chain's draws and its state
	scratch []float64
}

var _ mover = (*resampler)(nil)

type resamplerSettings struct {
	draws count
	order slotOrder
}

func (s *resamplerSettings) register(f *flag.FlagSet) {
	f.Var(&s.draws, "draws", "that a step makes")
	f.Var(&s.order, "order", orderHelp)
}

func (s *resamplerSettings) mover(name string, target Target, _ *rand.Rand) (mover, error) {
	k := &resampler{target: target, categories: target.Categories(), draws: int(s.draws)}
	var err error
	if k.rule, err = s.order.rule(name, target); err != nil {
		return nil, err
	}
	k.weight, k.scratch = make([]float64, k.draws+1), make([]float64, k.draws+1)
	k.choose = func(row, slot int, logp []float64, total float64) int {
		if chain := row / k.draws; chain < len(k.sources) {
			return drawLog(k.sources[chain], logp, total, k.rule.weight)
		}
		return k.states[row*len(k.categories)+slot]
	}
	return k, nil
}

func (k *resampler) start(ctx context.Context, state *State) error {
	return evaluate(ctx, k.target, state)
}

func (k *resampler) transition(ctx context.Context, state *State, sources []source, info *Info) error {
	chains, slots := state.Chains(), len(k.categories)
	drawn := chains * k.draws
	info.reset(chains, slots)
	k.states, k.logq = resized(k.states, (drawn+chains)*slots), resized(k.logq, drawn+chains)
	k.energy = resized(k.energy, drawn)
	clear(k.states)
	copy(k.states[drawn*slots:], state.Positions)
	k.sources = sources
	conditionals, err := k.rule.walk(ctx, k.states, nil, k.logq, k.choose)
	if err != nil {
		return err
	}
	if err := k.target.Energy(ctx, k.states[:drawn*slots], k.energy); err != nil {
		return err
	}
	info.Cost = Cost{Energies: drawn, Conditionals: conditionals}
	for c, src := range sources {
		for i := range k.draws {
			if k.weight[i] = logWeight(k.energy[c*k.draws+i], k.logq[c*k.draws+i]); math.IsNaN(k.weight[i]) {
				k.weight[i] = math.Inf(-1)
			}
		}
		k.weight[k.draws] = state.Energy[c] - k.logq[drawn+c]
		at, energy := drawn+c, state.Energy[c]
		// A state that q does not reach weighs more than all that it does.
		if total := logmath.LogSumExp(k.weight); logmath.Finite(total) {
			if i := drawLog(src, k.weight, total, k.scratch); i < k.draws {
				at, energy = c*k.draws+i, k.energy[c*k.draws+i]
			}
		}
		copy(info.proposal(c), k.states[at*slots:(at+1)*slots])
		info.move(c, state, energy)
	}
	return nil
}

func importanceEntry() entry {
	return entry{
		Description: Description{
			Name: "importance", Title: "Iterated sampling importance resampling by the chain rule",
			Paper: "Andrieu, Doucet and Holenstein, Particle Markov Chain Monte Carlo Methods, JRSS B 2010",
			Exact: true, Target: onlyExp, Cost: "a conditional a slot and 1 energy a draw", Conditionals: true,
			OnText: &OnText{},
		},
		nature:   "it draws from the conditionals as they are",
		settings: func() settings { return &resamplerSettings{draws: 4} },
	}
}
