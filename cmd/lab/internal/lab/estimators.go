package lab

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"infill/internal/logmath"
	"infill/internal/targets"
	"infill/samplers"
)

// An estimator estimates the gradient of E[U(b)] over independent bits b_j ~ Bernoulli(sigmoid(φ_j)).
type estimator interface {
	// estimate writes the mean of one estimate per stream to gradient [slots], and returns a mean of energies.
	estimate(ctx context.Context, logits []float64, streams []*rand.Rand, gradient []float64) (float64, error)
	// evaluations of the target, hard or relaxed, for each stream.
	evaluations() int
}

// estimators lists them: ARM; the score-function estimator; the same with the mean of
// the other draws as its baseline; and one with a relaxed control variate.
func estimators() []string { return []string{"arm", "reinforce", "leave-one-out", "relax"} }

// checkEstimators refuses names that are not of a list, and numbers of evaluations that not every estimator can take.
func checkEstimators(names, of []string, evaluations int) error {
	if evaluations%6 != 0 {
		return refuse("evaluations", "%d is not a multiple of 6, so that every estimator takes as many", evaluations)
	}
	for _, name := range names {
		if !slices.Contains(of, name) {
			return refuse("estimators", "%q is not one of %s", name, strings.Join(of, ", "))
		}
	}
	return nil
}

// newEstimator is an estimator on a target of binary slots.
func newEstimator(name string, target samplers.Target) (estimator, error) {
	if !binarySlots(target) {
		return nil, fmt.Errorf("%s needs two categories in every slot: %w", name, samplers.ErrUnsupported)
	}
	switch name {
	case "arm":
		return arm{target}, nil
	case "reinforce", "leave-one-out":
		return scoreEstimator{target, name == "leave-one-out"}, nil
	}
	relaxed, ok := target.(samplers.RelaxedTarget)
	if !ok {
		return nil, fmt.Errorf("relax needs energies of slots between 0 and 1: %w", samplers.ErrUnsupported)
	}
	return &relaxEstimator{target: relaxed, temperature: 0.5, eta: 1}, nil
}

func binarySlots(target samplers.Target) bool {
	return !slices.ContainsFunc(target.Categories(), func(n int) bool { return n != 2 })
}

// arm is the augment-REINFORCE-merge estimator of Yin and Zhou, "ARM: Augment-REINFORCE-Merge Gradient for Stochastic
// Binary Networks" (ICLR 2019, algorithm 1), an unbiased gradient that needs energies only:
//
//	u ~ Uniform(0,1)^m
//	∂E[U]/∂φ_j ≈ (U([u > sigmoid(-φ)]) - U([u < sigmoid(φ)])) (u_j - ½)
//
// The two states are antithetic. Not here: gradients through layers, and the categorical generalisation.
type arm struct{ target samplers.Target }

func (arm) evaluations() int { return 2 }

// estimate returns the mean energy of the 2·len(streams) states it evaluated. A state whose energy is not finite is an
// error: the expectation does not exist.
func (a arm) estimate(ctx context.Context, logits []float64, streams []*rand.Rand,
	gradient []float64) (energy float64, err error) {
	n, slots := len(streams), len(logits)
	states, uniforms := make([]int, 2*n*slots), make([]float64, n*slots)
	for s, stream := range streams {
		for j, phi := range logits {
			u := stream.Float64()
			uniforms[s*slots+j] = u
			states[2*s*slots+j] = bit(logmath.Sigmoid(-phi) < u)
			states[(2*s+1)*slots+j] = bit(u < logmath.Sigmoid(phi))
		}
	}
	energies := make([]float64, 2*n)
	if err := a.target.Energy(ctx, states, energies); err != nil {
		return 0, err
	}
	clear(gradient)
	for s := range n {
		right, left := energies[2*s], energies[2*s+1]
		if !logmath.Finite(right) || !logmath.Finite(left) {
			return 0, fmt.Errorf("arm: states of energy %v and %v have no finite expectation", right, left)
		}
		energy += (right + left) / float64(2*n)
		for j := range gradient {
			gradient[j] += (right - left) * (uniforms[s*slots+j] - 0.5) / float64(n)
		}
	}
	return energy, nil
}

// scoreEstimator is REINFORCE (Williams 1992): (U(b) - baseline) (b_j - sigmoid(φ_j)).
// The baseline of a draw is the mean U of the others, so two streams are needed.
type scoreEstimator struct {
	target   samplers.Target
	baseline bool
}

func (scoreEstimator) evaluations() int { return 1 }

func (e scoreEstimator) estimate(ctx context.Context, logits []float64, streams []*rand.Rand,
	gradient []float64) (float64, error) {
	n := len(streams)
	states, energy := make([]int, 0, n*len(logits)), make([]float64, n)
	for _, r := range streams {
		for _, phi := range logits {
			states = append(states, bit(r.Float64() < logmath.Sigmoid(phi)))
		}
	}
	if err := e.target.Energy(ctx, states, energy); err != nil {
		return 0, err
	}
	total := 0.0
	for _, u := range energy {
		total += u
	}
	clear(gradient)
	for s, u := range energy {
		if e.baseline && n > 1 {
			u -= (total - u) / float64(n-1)
		}
		for j, phi := range logits {
			gradient[j] += u * (float64(states[s*len(logits)+j]) - logmath.Sigmoid(phi)) / float64(n)
		}
	}
	return total / float64(n), nil
}

// relaxEstimator is REBAR (Tucker et al. 2017), which RELAX (Grathwohl et al. 2018) generalises: the energy at relaxed
// bits is the control variate, scaled by η, which follows the gradient of the estimate's square. With v, u ~
// Uniform(0,1), z = φ + logit(u), b = [z > 0], z̃ = z given b by v, and s(z) = sigmoid(z/λ):
//
//	(U(b) - ηU(s(z̃))) ∂log p(b)/∂φ + η ∂U(s(z))/∂φ - η ∂U(s(z̃))/∂φ
//
// RELAX learns a network instead of U(s); there is none here.
type relaxEstimator struct {
	target      samplers.RelaxedTarget
	temperature float64 // λ
	eta         float64
	moment      float64 // of η's gradient
	calls       int
}

func (*relaxEstimator) evaluations() int { return 3 }

func (e *relaxEstimator) estimate(ctx context.Context, logits []float64, streams []*rand.Rand,
	gradient []float64) (float64, error) {
	n := len(logits)
	hard, energy := make([]int, n), make([]float64, 1)
	relaxed, values, slopes := make([]float64, 2*n), make([]float64, 2), make([]float64, 2*n)
	given, score := make([]float64, n), make([]float64, n) // ∂z̃/∂φ and ∂log p/∂φ
	clear(gradient)
	mean, pull := 0.0, 0.0
	for _, r := range streams {
		for j, phi := range logits {
			theta := logmath.Sigmoid(phi)
			u, v := inside(r.Float64()), inside(r.Float64())
			z := phi + logOdds(u)
			hard[j] = bit(z > 0)
			score[j] = float64(hard[j]) - theta
			// u given b is uniform above or below 1 - θ.
			conditional, slope := v*(1-theta), -v*theta*(1-theta)
			if hard[j] == 1 {
				conditional, slope = 1-theta*(1-v), -(1-v)*theta*(1-theta)
			}
			conditional = inside(conditional)
			given[j] = 1 + slope/(conditional*(1-conditional))
			relaxed[j] = logmath.Sigmoid(z / e.temperature)
			relaxed[n+j] = logmath.Sigmoid((phi + logOdds(conditional)) / e.temperature)
		}
		if err := e.target.Energy(ctx, hard, energy); err != nil {
			return 0, err
		}
		if err := e.target.RelaxedEnergyGradient(ctx, relaxed, values, slopes); err != nil {
			return 0, err
		}
		for j := range logits {
			s, t := relaxed[j], relaxed[n+j]
			variate := -values[1]*score[j] + (slopes[j]*s*(1-s)-slopes[n+j]*t*(1-t)*given[j])/e.temperature
			g := energy[0]*score[j] + e.eta*variate
			gradient[j] += g / float64(len(streams))
			pull += 2 * g * variate / float64(len(streams))
		}
		mean += energy[0] / float64(len(streams))
	}
	// The step is of the gradient's own size, as in RMSprop, and falls.
	e.moment = 0.9*e.moment + 0.1*pull*pull
	if e.calls++; e.moment > 0 {
		e.eta -= 0.05 / math.Sqrt(float64(e.calls)) * pull / math.Sqrt(e.moment)
	}
	return mean, nil
}

func inside(u float64) float64 { return min(max(u, 1e-12), 1-1e-12) }

func logOdds(p float64) float64 { return math.Log(p) - math.Log1p(-p) }

// exactGradient writes ∂E[U]/∂φ over all states: Σ_b q(b) U(b) (b_j - sigmoid(φ_j)).
func exactGradient(e *targets.Enumeration, logits, gradient []float64) {
	clear(gradient)
	for s, u := range e.Energy {
		logq := 0.0
		for j, phi := range logits {
			logq -= logmath.Softplus(phi - 2*phi*float64(e.State(s)[j]))
		}
		for j, phi := range logits {
			gradient[j] += math.Exp(logq) * u * (float64(e.State(s)[j]) - logmath.Sigmoid(phi))
		}
	}
}

// squareTarget is ARM's example: (z - p₀)² of one bit z.
type squareTarget float64

func (squareTarget) Categories() []int { return []int{2} }

func (t squareTarget) Energy(_ context.Context, states []int, energy []float64) error {
	for c, z := range states {
		energy[c] = math.Pow(float64(z)-float64(t), 2)
	}
	return nil
}

func (t squareTarget) RelaxedEnergyGradient(_ context.Context, x []float64, energy, gradient []float64) error {
	for c, z := range x {
		energy[c], gradient[c] = math.Pow(z-float64(t), 2), 2*(z-float64(t))
	}
	return nil
}
