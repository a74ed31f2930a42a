package lab

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"

	"infill/internal/logmath"
	"infill/internal/targets"
	"infill/samplers"
)

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

// newARMGradients measures bias, variance and speed of gradient estimators: the
// figures of Yin and Zhou's example, and the same on models of more bits.
func newARMGradients() *Study {
	s := newStudy("arm gradients", "Bias, variance and speed of ARM and other gradient estimators",
		`Estimate the gradient of E[U] over independent bits by ARM, by REINFORCE, by REINFORCE with the
mean of the other draws as baseline (leave-one-out), and by REBAR's relaxed control variate (relax),
at equal numbers of evaluations, and compare with the exact gradient. A target is square:P0, ARM's
example (z - P0)² of one bit, or one of the laboratory's with few binary slots.`)
	f := s.Flags
	names := texts(f, "targets", []string{"square:0.49", "ising:size=3x3", "rbm:data=none,visible=8,hidden=5,scale=1"},
		";", "targets, with semicolons between them")
	chosen := texts(f, "estimators", estimators(), ",", "of "+strings.Join(estimators(), ", "))
	evaluations := Whole(f, "evaluations", 12, 6, 1<<20,
		"evaluations of the target for each estimate, a multiple of 6")
	estimates := Whole(f, "estimates", 2000, 2, 1<<20, "estimates of each cell")
	repeats := repeatsFlag(f, 2)
	s.plan = func(ctx context.Context, _ uint64) (*plan, error) {
		p := newPlan("estimators of the gradient of independent bits", []column{
			{name: "deviation", format: "%.2f", definition: "largest difference of the mean estimate from the exact " +
				"gradient over the bits, in standard errors: unbiased estimators stay below about 4"},
			{name: "variance", format: "%.4g",
				definition: fmt.Sprintf("of one estimate of %d evaluations, summed over the bits", *evaluations)},
			{name: "ratio", format: "%.4g", definition: "standard deviation as a fraction of the gradient's length"},
			{name: "microseconds", format: "%.1f", definition: secondsAre + ", of one estimate", timed: true},
		})
		if err := checkEstimators(*chosen, estimators(), *evaluations); err != nil {
			return nil, err
		}
		for _, name := range *names {
			target, err := bitsOf(ctx, name)
			if err != nil {
				return nil, err
			}
			for _, kind := range *chosen {
				if _, err := newEstimator(kind, target); err != nil {
					return nil, fmt.Errorf("%s: %w", name, err)
				}
				p.add(*repeats, func(ctx context.Context, b *bench) error {
					return b.gradients(ctx, kind, target, *evaluations, *estimates)
				}, parameter{"estimator", kind}, parameter{"target", name})
			}
		}
		return p, nil
	}
	return s
}

// bitsOf opens a target of binary slots.
func bitsOf(ctx context.Context, name string) (samplers.Target, error) {
	if p0, found := strings.CutPrefix(name, "square:"); found {
		p, err := strconv.ParseFloat(p0, 64)
		if err != nil || !logmath.Finite(p) {
			return nil, refuse("targets", "square:%s: %q is not a finite number", p0, p0)
		}
		return squareTarget(p), nil
	}
	d, err := newDistribution(ctx, name, 0)
	if err != nil {
		return nil, refuse("targets", "%w", err)
	}
	if n := len(d.target.Categories()); n > maxFitted {
		return nil, refuse("targets", "%s has %d slots, and the exact gradient lists the states of at most %d", name, n,
			maxFitted)
	}
	return d.target, nil
}

// gradients compares an estimator with the exact gradient at random log-odds.
func (b *bench) gradients(ctx context.Context, kind string, target samplers.Target, evaluations, estimates int) error {
	e, err := newEstimator(kind, target)
	if err != nil {
		return err
	}
	logits := targets.Normals(b.stream("logits"), len(target.Categories()), 1)
	all, err := targets.Enumerate(ctx, target)
	if err != nil {
		return err
	}
	want := make([]float64, len(logits))
	exactGradient(all, logits, want)
	streams := b.streams("draws "+kind, evaluations/e.evaluations())
	gradient := make([]float64, len(logits))
	for range estimates / 10 { // relax finds its scale
		if _, err := e.estimate(ctx, logits, streams, gradient); err != nil {
			return err
		}
	}
	began := b.seconds()
	bySlot := make([][]float64, len(logits))
	for n := range estimates {
		if _, err := e.estimate(ctx, logits, streams, gradient); err != nil {
			return err
		}
		for j, g := range gradient {
			bySlot[j] = append(bySlot[j], g)
		}
		if n%100 == 0 {
			if err := b.tick(ctx, n, estimates, nil); err != nil {
				return err
			}
		}
	}
	b.number("microseconds", 1e6*(b.seconds()-began)/float64(estimates))
	variance, deviation := 0.0, 0.0
	for j, list := range bySlot {
		mean, sd := stat.MeanStdDev(list, nil)
		variance += sd * sd
		if sd > 0 {
			deviation = math.Max(deviation, math.Abs(mean-want[j])/stat.StdErr(sd, float64(len(list))))
		}
	}
	b.number("deviation", deviation)
	b.number("variance", variance)
	b.number("ratio", math.Sqrt(variance)/floats.Norm(want, 2))
	return nil
}

// newARMToy climbs E[(z - p₀)²] as the slides' example does: one bit, whose best value
// is 0 for p₀ above a half and 1 below.
func newARMToy() *Study {
	s := newStudy("arm toy", "Climb ARM's example with each gradient estimator",
		`Climb E[(z - p0)²] over the probability of one bit z, from even odds, by the exact gradient and
by each estimator: the example of ARM's slides.`)
	f := s.Flags
	known := append([]string{"exact"}, estimators()...)
	p0s := Numbers(f, "p0", []float64{0.49, 0.499, 0.501, 0.51}, "numbers p0")
	chosen := texts(f, "estimators", known, ",", "of "+strings.Join(known, ", "))
	evaluations := Whole(f, "evaluations", 6, 6, 1<<20, "evaluations of each step, a multiple of 6")
	steps := Whole(f, "steps", 2000, 1, 1<<30, "steps of each ascent")
	rate := number(f, "rate", 1, " above 0", "of the ascent")
	repeats := repeatsFlag(f, 5)
	s.plan = func(context.Context, uint64) (*plan, error) {
		p := newPlan("ascent of E[(z - p0)²] over one bit", []column{
			{name: "probability", format: "%.3f", definition: "of the better value, after the last step"},
			{name: "deviation", format: "%.2g",
				definition: "root mean square of the estimates less the exact gradient, over the steps"},
		}, curve{name: "probability", x: "step", y: "probability of the better value"},
			curve{name: "gradient", x: "step", y: "estimate of the gradient"})
		for _, p0 := range *p0s {
			for _, kind := range *chosen {
				p.add(*repeats, func(ctx context.Context, b *bench) error {
					return b.climb(ctx, kind, p0, *evaluations, *steps, *rate)
				}, parameter{"estimator", kind}, parameter{"p0", decimal(p0)})
			}
		}
		return p, checkEstimators(*chosen, known, *evaluations)
	}
	return s
}

// exactly is the gradient of the example itself.
type exactly struct{ p0 float64 }

func (exactly) evaluations() int { return 1 }

func (e exactly) estimate(_ context.Context, logits []float64, _ []*rand.Rand, gradient []float64) (float64, error) {
	p := logmath.Sigmoid(logits[0])
	gradient[0] = p * (1 - p) * (1 - 2*e.p0)
	return 0, nil
}

// climb climbs the example.
func (b *bench) climb(ctx context.Context, kind string, p0 float64, evaluations, steps int, rate float64) (err error) {
	logits, gradient, exact := []float64{0}, []float64{0}, []float64{0}
	var e estimator = exactly{p0}
	if kind != "exact" {
		if e, err = newEstimator(kind, squareTarget(p0)); err != nil {
			return err
		}
	}
	streams := b.streams("draws "+kind, evaluations/e.evaluations())
	squares := 0.0
	better := func() float64 {
		if p0 > 0.5 {
			return logmath.Sigmoid(-logits[0])
		}
		return logmath.Sigmoid(logits[0])
	}
	reports := reportsOf(steps, 100)
	for step := range steps {
		if _, err := e.estimate(ctx, logits, streams, gradient); err != nil {
			return err
		}
		_, _ = exactly{p0}.estimate(ctx, logits, nil, exact)
		squares += math.Pow(gradient[0]-exact[0], 2) / float64(steps)
		logits[0] += rate * gradient[0]
		if reports(step + 1) {
			b.point("probability", float64(step+1), better())
			b.point("gradient", float64(step+1), gradient[0])
		}
	}
	b.number("probability", better())
	b.number("deviation", math.Sqrt(squares))
	return b.tick(ctx, 1, 1, nil)
}
