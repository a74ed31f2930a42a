// ARM is the augment-REINFORCE-merge estimator of Yin and Zhou, "ARM: Augment-REINFORCE-Merge Gradient for Stochastic
// Binary Networks" (ICLR 2019, algorithm 1). For binary slots drawn from Bernoulli(sigmoid(φ_j)) it is an unbiased
// gradient of the expected energy that needs energies only:
//
//	u ~ Uniform(0,1)^m
//	∂E[U]/∂φ_j ≈ (U([u > sigmoid(-φ)]) - U([u < sigmoid(φ)])) (u_j - ½)
//
// The two states are antithetic. Slots of more categories are made binary by recombining two states. Not here:
// gradients through layers, and the categorical generalisation.

package lab

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"infill/internal/logmath"
	"infill/samplers"
)

// arm estimates the gradient of the expected energy of independent binary slots from energies alone.
type arm struct {
	target   samplers.Target
	slots    int
	states   []int
	energy   []float64
	uniforms []float64
}

// newARM makes the estimator; every slot of the target must be binary.
func newARM(target samplers.Target) (*arm, error) {
	for j, n := range target.Categories() {
		if n != 2 {
			return nil, fmt.Errorf("arm: slot %d has %d categories, and it needs two: %w", j, n,
				samplers.ErrUnsupported)
		}
	}
	return &arm{target: target, slots: len(target.Categories())}, nil
}

func (*arm) evaluations() int { return 2 }

// estimate writes the mean of one estimate per stream to gradient [slots] and returns the mean energy of the
// 2·len(streams) states it evaluated. logits is φ, [slots]. A state whose energy is not finite is an error: the
// expectation does not exist.
func (a *arm) estimate(ctx context.Context, logits []float64, streams []*rand.Rand,
	gradient []float64) (energy float64, err error) {
	n := len(streams)
	if len(a.energy) != 2*n {
		a.states, a.energy = make([]int, 2*n*a.slots), make([]float64, 2*n)
		a.uniforms = make([]float64, n*a.slots)
	}
	for s, stream := range streams {
		right := a.states[2*s*a.slots : (2*s+1)*a.slots]
		left := a.states[(2*s+1)*a.slots : (2*s+2)*a.slots]
		for j, phi := range logits {
			u := stream.Float64()
			a.uniforms[s*a.slots+j] = u
			right[j] = bit(logmath.Sigmoid(-phi) < u)
			left[j] = bit(u < logmath.Sigmoid(phi))
		}
	}
	if err := a.target.Energy(ctx, a.states, a.energy); err != nil {
		return 0, err
	}
	clear(gradient)
	for s := range n {
		right, left := a.energy[2*s], a.energy[2*s+1]
		if !logmath.Finite(right) || !logmath.Finite(left) {
			return 0, fmt.Errorf("arm: states of energy %v and %v have no finite expectation", right, left)
		}
		energy += (right + left) / float64(2*n)
		for j := range gradient {
			gradient[j] += (right - left) * (a.uniforms[s*a.slots+j] - 0.5) / float64(n)
		}
	}
	return energy, nil
}

// factorisedOptions set a fit.
type factorisedOptions struct {
	Steps int
	Rate  float64 // of plain gradient ascent
	// NoEntropy looks for the best state. Without it the fit is to exp(U), by the evidence lower bound E[U] + entropy.
	NoEntropy bool
}

// factorised is a distribution over binary slots that are independent.
type factorised struct {
	Logits []float64 // log-odds of category 1, [slots]
	// Bound is the estimate of E[U] + entropy (or of E[U] alone) over the last
	// tenth of the fit, in nats: a lower bound of log Σ exp(U).
	Bound float64
}

// fitFactorised fits independent Bernoulli slots to exp(U) by stochastic gradient ascent with [arm], from even odds.
// Each step evaluates two states per stream. The entropy's gradient is exact: -φ_j σ(φ_j)(1 - σ(φ_j)).
func fitFactorised(ctx context.Context, target samplers.Target, streams []*rand.Rand,
	o factorisedOptions) (*factorised, error) {
	arm, err := newARM(target)
	if err != nil {
		return nil, err
	}
	f := &factorised{Logits: make([]float64, arm.slots)}
	gradient := make([]float64, arm.slots)
	last := max(1, o.Steps/10)
	for step := range o.Steps {
		bound, err := arm.estimate(ctx, f.Logits, streams, gradient)
		if err != nil {
			return nil, fmt.Errorf("step %d: %w", step+1, err)
		}
		// Robbins–Monro: the rate falls, so that the noise does.
		rate := o.Rate / math.Sqrt(1+float64(step)/20)
		for j, phi := range f.Logits {
			if !o.NoEntropy {
				p := logmath.Sigmoid(phi)
				bound += phi*(1-p) + logmath.Softplus(-phi)
				gradient[j] -= phi * p * (1 - p)
			}
			f.Logits[j] += rate * gradient[j]
		}
		if step >= o.Steps-last {
			f.Bound += bound / float64(last)
		}
	}
	return f, nil
}

// recombine is the target over the ways to take each slot from one of two states of another, [slots] each: category 0
// takes it from the first, category 1 from the second.
func recombine(target samplers.Target, first, second []int) *recombination {
	return &recombination{target, [2][]int{first, second}, slices.Repeat([]int{2}, len(first)), nil}
}

type recombination struct {
	target     samplers.Target
	of         [2][]int
	categories []int
	mixed      []int
}

func (r *recombination) Categories() []int { return r.categories }

func (r *recombination) Energy(ctx context.Context, states []int, energy []float64) error {
	r.mixed = r.mix(states, r.mixed)
	return r.target.Energy(ctx, r.mixed, energy)
}

// mix writes the states of the target below to mixed, growing it as needed, and returns it.
func (r *recombination) mix(states, mixed []int) []int {
	mixed = mixed[:0]
	for i, from := range states {
		mixed = append(mixed, r.of[from][i%len(r.categories)])
	}
	return mixed
}
