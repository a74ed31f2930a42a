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

// StepSize returns the largest step size of the cycle.
func (k *cyclical) StepSize() float64 { return k.alphas[0] }

func (k *cyclical) transition(ctx context.Context, state *State, sources []source, info *Info) error {
	now := state.own.(*surroundings).step % len(k.alphas)
	if k.scorer != k.scorers[now] {
		k.scorer = k.scorers[now]
		k.revision++
	}
	if err := k.SetStepSize(k.alphas[now]); err != nil {
		return err
	}
	return k.dlp.transition(ctx, state, sources, info)
}

// Cyclical is DMALA with a cyclical step size and balance.
type Cyclical struct {
	// StepSize is α of the largest step of a cycle, and Smallest that of the smallest:
	// changing a slot costs 1/α nats.
	StepSize float64 `option:"step-size" default:"10" exclusiveMinimum:"0"`
	Smallest float64 `option:"smallest" default:"0.2" exclusiveMinimum:"0"`
	// Cycle is the number of steps of a cycle.
	Cycle int `option:"cycle" default:"20" minimum:"1"`
	// Exponent is β, the power of the balance, at the largest step; it falls to 0.5.
	Exponent       float64   `option:"exponent" default:"0.85" minimum:"0.5" maximum:"1"`
	Preconditioner []float64 `option:"preconditioner" between:"/" exclusiveMinimum:"0"`
	Terms          int       `option:"terms" minimum:"1"`
}

var _ Sampler = Cyclical{}

func (s Cyclical) Kernel(target Target, shared *rand.Rand) (Kernel, error) {
	return newKernel(s, target, untuned, func(s Cyclical) (mover, error) {
		if s.Smallest > s.StepSize {
			return nil, fmt.Errorf("acs: steps from %v to %v in a cycle: the first must not be the larger", s.Smallest,
				s.StepSize)
		}
		settings := langevin{s.StepSize, power(s.Exponent), s.Preconditioner, s.Terms, true}
		inner, err := newDLP("acs", target, settings, shared)
		if err != nil {
			return nil, err
		}
		k := &cyclical{dlp: inner}
		for step := range s.Cycle {
			cosine := math.Cos(math.Pi * float64(step) / float64(s.Cycle))
			k.alphas = append(k.alphas, math.Max(s.Smallest, s.StepSize/2*(1+cosine)))
			beta := math.Max(0.5, (s.Exponent-0.5)/2*cosine+(s.Exponent+0.5)/2)
			k.scorers = append(k.scorers, balanced{power(beta)})
		}
		return k, nil
	})
}

func (Cyclical) Describe() Description {
	return Description{
		Name: "acs", Title: "DMALA with a cyclical step size and balance",
		Paper: "Pynadath et al., Gradient-based Discrete Sampling with Automatic Cyclical Scheduling, NeurIPS 2024",
		Exact: true, Target: onlyExp, Cost: oneForAll, OnText: &OnText{Gradient: "local"},
	}
}
