package samplers

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"infill/internal/logmath"
)

// informed is the engine of every kernel that proposes from a gradient. If it
// is adjusted, it accepts proposals by Metropolis–Hastings:
//
//	A(θ → θ') = min(1, exp(U(θ') - U(θ)) q(θ|θ') / q(θ'|θ))
//
// It evaluates the target once a step, at the proposals of all chains.
// Energy, gradient and proposal weights at the present positions are
// kept with the state.
type informed struct {
	target     GradientTarget
	categories []int
	adjusted   bool
	proposer   proposer
	scorer     scorer
	terms      *termSampler // nil if the whole gradient is used
	revision   uint64       // number of changes of the scorer's parameters
	cost       Cost         // cost of evaluating one state

	// The fields below are scratch memory of one step.
	state      *State
	known      *surroundings // surroundings of state
	by         []source
	info       *Info
	energy     []float64      // at the proposals, [chains]
	gradient   []float64      // at the proposals, [chains × slots × K]
	weights    *neighbourhood // around the proposals
	logForward []float64      // log q(proposal | position), [chains]
	usable     []bool         // whether the weights at the position are usable, [chains]
	nextTerms  []int
	crew       crew
	measureFn  func(chain int)
	forwardFn  func(chain int)
	decideFn   func(chain int)
}

// A proposer makes the proposals of an informed kernel. Both methods work on
// one chain, and may be called for several chains at once.
type proposer interface {
	// propose writes a proposal to the slice to, which holds the present
	// position before. It returns log q(to | at).
	propose(at place, to []int, src source) float64
	// logReverse returns log q(to | at). at is the proposal, and to is the
	// position from which the proposal came.
	logReverse(at place, to []int) float64
}

// place is the position of one chain, with the gradient and the weights at this position.
type place struct {
	chain    int
	position []int     // [slots]
	gradient []float64 // [slots × K]
	weights  *neighbourhood
	scorer   scorer
}

// draw draws a category by the weights, never the current one.
func (p place) draw(slot int, src source) int {
	return p.weights.draw(p.chain, p.scorer, slot, p.position[slot], p.gradient, src)
}

func (p place) logWeight(slot, v int) float64 {
	return p.weights.logWeight(p.chain, p.scorer, slot, p.position[slot], v, p.gradient)
}

// totals returns, for each slot, the log of the sum of the weights of its moves, [slots].
func (p place) totals() []float64 { return p.weights.totals(p.chain) }

// drawSlot draws a slot by log weights. total is the log of the sum of the weights.
func (p place) drawSlot(logWeight []float64, total float64, src source) int {
	return drawLog(src, logWeight, total, p.weights.scratch(p.chain, len(logWeight)))
}

// newInformed makes an engine. It uses the gradient of a random subset of that
// many terms, or of all terms if terms is
// 0. The caller sets proposer and scorer.
func newInformed(name string, target Target, terms int, shared *rand.Rand, adjusted bool) (*informed, error) {
	k := &informed{categories: target.Categories(), adjusted: adjusted, cost: Cost{Gradients: 1}}
	var err error
	if terms == 0 {
		k.target, err = capability[GradientTarget](target, name)
	} else {
		k.target, k.terms, err = newTermSampler(name, target, terms, shared)
	}
	if err != nil {
		return nil, err
	}
	k.measureFn = k.measure
	k.forwardFn = k.forward
	k.decideFn = k.decide
	return k, nil
}

// surroundings hold the gradient and the weights that an engine has computed for a state.
type surroundings struct {
	gradient []float64      // ∂U/∂θ_j[v] at the positions, [chains × slots × K]
	terms    []int          // the terms of the energy in gradient; nil for all
	weights  *neighbourhood // weights of the moves from the positions
	measured bool           // whether weights are up to date for revision
	revision uint64
	step     int // steps made, for kernels that change from step to step
}

// start evaluates what each proposal needs: the energy, and the gradient where
// the chains stand, estimated from a subset of terms if the kernel has terms.
func (k *informed) start(ctx context.Context, state *State) error {
	k.room(state.Chains())
	state.own = &surroundings{gradient: make([]float64, len(k.gradient)),
		weights: newNeighbourhood(k.categories, state.Chains())}
	k.use(state)
	if k.terms != nil {
		k.known.terms = k.terms.draw(k.known.terms)
	}
	if err := k.evaluate(ctx, k.known.terms, state.Positions, state.Energy, k.known.gradient); err != nil {
		return err
	}
	if err := checkStart(state.Energy); err != nil {
		return err
	}
	k.remeasure()
	for c, usable := range k.usable {
		if !usable {
			return fmt.Errorf("chain %d starts where the gradient is not finite: start it elsewhere", c)
		}
	}
	return nil
}

func (k *informed) use(state *State) {
	k.room(state.Chains())
	k.state = state
	k.known = state.own.(*surroundings)
}

// transition is one step of Metropolis and Hastings: a proposal by the
// gradient, the gradient at the proposal for the way back, and a decision. An
// unadjusted kernel takes every proposal.
func (k *informed) transition(ctx context.Context, state *State, sources []source, info *Info) error {
	chains := state.Chains()
	info.reset(chains, len(k.categories))
	k.use(state)
	k.by = sources
	k.info = info

	known := k.known
	terms := known.terms
	if k.terms != nil && k.adjusted {
		// Forward and reverse proposal use the same new subset. Given the
		// subset, each step is an exact Metropolis–Hastings step.
		terms = k.terms.draw(terms)
		known.measured = false
		if err := k.evaluate(ctx, terms, state.Positions, k.energy, known.gradient); err != nil {
			return err
		}
		known.terms = terms
		info.Cost = info.Cost.Plus(k.cost.times(chains))
	}
	for c := range k.usable {
		k.usable[c] = true
	}
	if !known.measured || known.revision != k.revision {
		k.remeasure()
	}
	k.crew.each(chains, k.work(), k.forwardFn)

	if k.terms != nil && !k.adjusted {
		// The gradient at the proposal serves the next step, which has a new subset.
		k.nextTerms = k.terms.draw(k.nextTerms)
		terms = k.nextTerms
	}
	if err := k.evaluate(ctx, terms, info.Proposal, k.energy, k.gradient); err != nil {
		return err
	}
	info.Cost = info.Cost.Plus(k.cost.times(chains))
	k.crew.each(chains, k.work(), k.decideFn)
	known.terms = append(known.terms[:0], terms...)
	known.step++
	return nil
}

func (k *informed) evaluate(ctx context.Context, terms, states []int, energy, gradient []float64) error {
	if k.terms != nil {
		return k.terms.target.EnergyGradientOf(ctx, terms, states, energy, gradient)
	}
	return k.target.EnergyGradient(ctx, states, energy, gradient)
}

// work returns the number of weights around one position.
func (k *informed) work() int { return len(k.categories) * width(k.categories) }

func (k *informed) room(chains int) {
	if len(k.energy) == chains {
		return
	}
	k.energy = make([]float64, chains)
	k.gradient = make([]float64, chains*k.work())
	k.weights = newNeighbourhood(k.categories, chains)
	k.logForward = make([]float64, chains)
	k.usable = make([]bool, chains)
	p, ok := k.proposer.(interface{ grow(chains int) })
	if ok {
		p.grow(chains)
	}
}

// remeasure sums the weights around the state's positions.
func (k *informed) remeasure() {
	k.crew.each(k.state.Chains(), k.work(), k.measureFn)
	k.known.measured = true
	k.known.revision = k.revision
}

// measure, forward and decide are the parts of a step for one chain: sum the
// weights, propose, and accept or reject.
func (k *informed) measure(chain int) {
	at := k.present(chain)
	k.usable[chain] = at.weights.measure(chain, k.scorer, at.position, at.gradient)
}

func (k *informed) forward(chain int) {
	to := k.info.proposal(chain)
	at := k.present(chain)
	copy(to, at.position)
	if !k.usable[chain] {
		return
	}
	k.logForward[chain] = k.proposer.propose(at, to, k.by[chain])
}

func (k *informed) decide(chain int) {
	from := k.present(chain)
	to := k.proposed(chain)
	usable := to.weights.measure(chain, k.scorer, to.position, to.gradient) && k.usable[chain] &&
		logmath.Finite(k.energy[chain])

	ratio := math.Inf(-1)
	switch {
	case usable && k.adjusted:
		ratio = k.energy[chain] - k.state.Energy[chain] + k.proposer.logReverse(to, from.position) - k.logForward[chain]
	case usable:
		ratio = 0
	}
	k.info.settle(chain, k.state, k.energy[chain], ratio, k.by[chain])
	if k.info.Accepted[chain] {
		copy(from.gradient, to.gradient)
		k.known.weights.adopt(chain, to.weights)
	}
}

func (k *informed) present(chain int) place {
	w := k.work()
	return place{chain, k.state.Position(chain), k.known.gradient[chain*w : (chain+1)*w], k.known.weights, k.scorer}
}

func (k *informed) proposed(chain int) place {
	w := k.work()
	return place{chain, k.info.proposal(chain), k.gradient[chain*w : (chain+1)*w], k.weights, k.scorer}
}

// termSampler draws the random subset of energy terms for a stochastic gradient.
type termSampler struct {
	target StochasticGradientTarget
	src    source
	order  []int
	size   int
}

func newTermSampler(name string, target Target, size int, shared *rand.Rand) (GradientTarget, *termSampler, error) {
	t, err := capability[StochasticGradientTarget](target, name)
	if err != nil {
		return nil, nil, err
	}
	if shared == nil {
		return nil, nil,
			fmt.Errorf("%s with a stochastic gradient needs a random stream for the subset of terms: give one", name)
	}
	n := t.Terms()
	if size > n {
		return nil, nil,
			fmt.Errorf("%d terms for the stochastic gradient: the energy has %d, choose from 1 to %d", size, n, n)
	}
	return t, &termSampler{t, random{shared}, ascending(n), size}, nil
}

// draw writes a uniform subset to terms, ascending. The order of t.order before
// the draw does not matter, so draw never restores it.
func (t *termSampler) draw(terms []int) []int {
	for i := range t.size {
		j := i + t.src.index(len(t.order)-i)
		t.order[i], t.order[j] = t.order[j], t.order[i]
	}
	terms = append(terms[:0], t.order[:t.size]...)
	slices.Sort(terms)
	return terms
}
