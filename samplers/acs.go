// ACS is DMALA whose step size and balance follow a cycle: Pynadath,
// Bhattacharya, Hariharan and Zhang, "Gradient-based Discrete Sampling with
// Automatic Cyclical Scheduling" (NeurIPS 2024). Large steps with a greedy
// balance find modes, small ones explore them:
//
//	α_k = max(α_min, α_max/2 (1 + cos(π k/s))),  k = 0..s-1 within a cycle
//	β_k = (β_0 - ½)/2 cos(π k/s) + (β_0 + ½)/2
//
// Target: π exactly, since each step by itself leaves π invariant. The steps of
// a cycle differ, so average over whole cycles. The state counts its steps and
// so knows its place in the cycle. Cost: one energy and gradient a step.
//
// Step size: α_max in the convention of the package, which is twice that of the
// paper's binary formula. This file leaves out the paper's search for a good
// cycle (algorithm 2).

package samplers

import (
	"context"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
)

type cyclical struct {
	*dlp
	alphas  []float64
	scorers []scorer // one for each step of a cycle
}

var _ mover = (*cyclical)(nil)

type cyclicalSettings struct {
	stepSize, smallest positive
	cycle              count
	exponent           Balance
	preconditioner     factors
	terms              count
}

func (s *cyclicalSettings) register(f *flag.FlagSet) {
	f.Var(&s.stepSize, "step-size", "α of the largest step of a cycle: changing a slot costs 1/α nats")
	f.Var(&s.smallest, "smallest", "α of the smallest step")
	f.Var(&s.cycle, "cycle", "steps of a cycle")
	f.Var(&s.exponent, "exponent", "β, the power of the balance, at the largest step; it falls to 0.5")
	f.Var(&s.preconditioner, "preconditioner", preconditionerHelp)
	f.Var(&s.terms, "terms", termsHelp)
}

func (s *cyclicalSettings) mover(name string, target Target, shared *rand.Rand) (mover, error) {
	largest := float64(s.stepSize)
	smallest := float64(s.smallest)
	if !(smallest <= largest && largest <= math.MaxFloat64) {
		return nil, fmt.Errorf("%s: steps from %v to %v in a cycle: both must be finite, the first not the larger",
			name, smallest, largest)
	}
	if s.exponent.rule != powerRule {
		return nil, fmt.Errorf("%s: exponent %v: give a number from 0.5 to 1", name, s.exponent)
	}
	inner, err := newDLP(name, target, &langevinSettings{s.stepSize, s.exponent, s.preconditioner, s.terms, true},
		shared)
	if err != nil {
		return nil, err
	}
	k := &cyclical{dlp: inner}
	for step := range int(s.cycle) {
		cosine := math.Cos(math.Pi * float64(step) / float64(s.cycle))
		greedy := s.exponent.exponent()
		k.alphas = append(k.alphas, math.Max(smallest, largest/2*(1+cosine)))
		k.scorers = append(k.scorers, balanced{power(math.Max(0.5, (greedy-0.5)/2*cosine+(greedy+0.5)/2))})
	}
	return k, nil
}

// stepSize returns the largest step size of the cycle.
func (k *cyclical) stepSize() float64 { return k.alphas[0] }

func (k *cyclical) transition(ctx context.Context, state *State, sources []source, info *Info) error {
	now := state.own.(*surroundings).step % len(k.alphas)
	if k.scorer != k.scorers[now] {
		k.scorer = k.scorers[now]
		k.revision++
	}
	if err := k.setStepSize(k.alphas[now]); err != nil {
		return err
	}
	return k.dlp.transition(ctx, state, sources, info)
}

func cyclicalEntry() entry {
	return entry{
		Description: Description{
			Name: "acs", Title: "DMALA with a cyclical step size and balance",
			Paper: "Pynadath et al., Gradient-based Discrete Sampling with Automatic Cyclical Scheduling, NeurIPS 2024",
			Exact: true, Target: onlyExp, Cost: oneForAll, OnText: &OnText{Gradient: "local"},
		},
		settings: func() settings {
			return &cyclicalSettings{stepSize: 10, smallest: 0.2, cycle: 20, exponent: power(0.85)}
		},
	}
}
