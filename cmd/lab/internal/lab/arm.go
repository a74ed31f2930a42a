package lab

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"

	"infill/internal/logmath"
	"infill/internal/targets"
	"infill/samplers"
)

// arm estimates the gradient of the expected energy of independent binary slots from energies alone.
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

// factorised is a distribution over binary slots that are independent.
type factorised struct {
	logits []float64 // log-odds of category 1, [slots]
	// bound is the estimate of E[U] + entropy (or of E[U] alone) over the last
	// tenth of the fit, in nats: a lower bound of log Σ exp(U).
	bound float64
}

// fitFactorised fits independent Bernoulli slots by stochastic gradient ascent with [arm], from even odds: to exp(U),
// by the evidence lower bound E[U] + entropy, or without the entropy to the best state. Each step evaluates two states
// per stream. The entropy's gradient is exact: -φ_j σ(φ_j)(1 - σ(φ_j)).
func fitFactorised(ctx context.Context, target samplers.Target, streams []*rand.Rand, steps int, rate float64,
	entropy bool) (*factorised, error) {
	slots := len(target.Categories())
	f := &factorised{logits: make([]float64, slots)}
	gradient := make([]float64, slots)
	last := max(1, steps/10)
	for step := range steps {
		bound, err := arm{target}.estimate(ctx, f.logits, streams, gradient)
		if err != nil {
			return nil, fmt.Errorf("step %d: %w", step+1, err)
		}
		// Robbins–Monro: the rate falls, so that the noise does.
		rate := rate / math.Sqrt(1+float64(step)/20)
		for j, phi := range f.logits {
			if entropy {
				p := logmath.Sigmoid(phi)
				bound += phi*(1-p) + logmath.Softplus(-phi)
				gradient[j] -= phi * p * (1 - p)
			}
			f.logits[j] += rate * gradient[j]
		}
		if step >= steps-last {
			f.bound += bound / float64(last)
		}
	}
	return f, nil
}

// recombination is a target over the ways to take each slot from one of two states of another: category 0 takes it from
// the first, category 1 from the second.
type recombination struct {
	target samplers.Target
	of     [2][]int
}

func (r *recombination) Categories() []int { return slices.Repeat([]int{2}, len(r.of[0])) }

func (r *recombination) Energy(ctx context.Context, states []int, energy []float64) error {
	mixed := make([]int, len(states))
	for i, from := range states {
		mixed[i] = r.of[from][i%len(r.of[0])]
	}
	return r.target.Energy(ctx, mixed, energy)
}

// maxFitted is the most binary slots whose states are listed.
const maxFitted = 16

// newARMFit fits independent slots to a target by ARM, and looks for its best state in the same way, without the
// entropy. Slots of more than two categories are recombined: each comes from one of two random states, another pair for
// each fit. The defaults fit most targets in a second.
func newARMFit(k kind) *Study {
	s := newStudy("arm "+k.name, "ARM on "+k.title, k.help+`

Fit independent binary slots to a target by ARM, which needs energies alone, and look
for its best state in the same way. Slots of several categories are recombined from
two random states.`)
	fits := Whole(s.Flags, "fits", 5, 1, 1<<20, "fits, each with random numbers of its own")
	steps := Whole(s.Flags, "steps", 500, 1, 1<<20, "steps of each fit")
	samples := Whole(s.Flags, "samples", 20, 1, 1<<20, "pairs of states that a step evaluates")
	rate := number(s.Flags, "rate", 0.5, " above 0", "of the gradient ascent")
	distribution := k.flags(s.Flags)
	s.plan = func(ctx context.Context, _ uint64) (*plan, error) {
		d, err := distribution(ctx, 0)
		if err != nil {
			return nil, err
		}
		p := newPlan("Independent slots by ARM on "+d.String(), []column{
			{name: "bound", format: "%.3f", definition: "E[U] + entropy of independent slots, nats, mean over the " +
				"last tenth of the steps: below log_normaliser"},
			{name: "log_normaliser", format: "%.3f", definition: "log Σ exp(U), where the states can be listed"},
			{name: "means_error", format: "%.3f", definition: "root mean square over the slots of the fitted " +
				"probability of category 1 less the exact one"},
			{name: "energy", format: "%.3f", definition: "U of the likeliest state of a fit without entropy"},
			{name: "best_energy", format: "%.3f", definition: "the largest U there is"},
		})
		p.notes = []string{fmt.Sprintf("%s × %d pairs of states", counted(*steps, "step"), *samples)}
		recombined := !binarySlots(d.target)
		if recombined {
			p.notes = append(p.notes, "the slots have several categories: each comes from one of two random states, "+
				"another pair for each fit, and the exact numbers are of these recombinations")
		}
		p.add(*fits, func(ctx context.Context, b *bench) error {
			repeat, err := strconv.Atoi(b.repeat)
			if err != nil {
				return err
			}
			target, number := d.target, strconv.Itoa(repeat-1)
			if recombined {
				two := samplers.RandomPositions(target, samplers.Streams(b.seed, "recombined "+number, 2))
				target = &recombination{target, [2][]int{two[:len(two)/2], two[len(two)/2:]}}
			}
			// fit is a fit with entropy, or without.
			fit := func(label string, entropy bool) (*factorised, error) {
				streams := samplers.Streams(b.seed, "fit "+number+label, *samples)
				return fitFactorised(ctx, target, streams, *steps, *rate, entropy)
			}
			law, err := fit("", true)
			if err != nil {
				return err
			}
			mode, err := fit(" best", false)
			if err != nil {
				return err
			}
			return b.fitted(ctx, target, law, mode)
		}, parameter{"target", d.String()})
		return p, nil
	}
	return s
}

// fitted finds how near fits with entropy and without are to the law and the best state of their target.
func (b *bench) fitted(ctx context.Context, target samplers.Target, law, mode *factorised) error {
	state, energy := make([]int, len(mode.logits)), make([]float64, 1)
	for j, l := range mode.logits {
		state[j] = bit(l > 0)
	}
	if err := target.Energy(ctx, state, energy); err != nil {
		return err
	}
	b.number("bound", law.bound)
	b.number("energy", energy[0])
	if len(state) <= maxFitted {
		e, err := targets.Enumerate(ctx, target)
		if err != nil {
			return err
		}
		var fitted, exact []float64
		for j, l := range law.logits {
			fitted = append(fitted, logmath.Sigmoid(l))
			exact = append(exact, e.Mean(func(state []int) float64 { return float64(state[j]) }))
		}
		b.number("log_normaliser", e.LogNormaliser)
		b.number("means_error", rootMeanSquare(fitted, exact))
		b.number("best_energy", slices.Max(e.Energy))
	}
	return b.tick(ctx, 1, 1, nil)
}
