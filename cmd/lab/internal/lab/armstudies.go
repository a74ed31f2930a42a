package lab

import (
	"context"
	"flag"
	"fmt"
	"math"
	"strconv"
	"strings"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"

	"infill/internal/logmath"
	"infill/internal/targets"
	"infill/samplers"
)

// armGradients measures bias, variance and speed of gradient estimators: the
// figures of Yin and Zhou's example, and the same on models of more bits.
type armGradients struct {
	targets    []string
	estimators []string
	draws      int
	estimates  int
	repeats    int
}

func newARMGradients() *Study {
	return newStudy("arm gradients", "Bias, variance and speed of ARM and other gradient estimators",
		`Estimate the gradient of E[U] over independent bits by ARM, by REINFORCE, by REINFORCE with the
mean of the other draws as baseline (leave-one-out), and by REBAR's relaxed control variate (relax),
at equal numbers of evaluations, and compare with the exact gradient. A target is square:P0, ARM's
example (z - P0)² of one bit, or one of the laboratory's with few binary slots.`, &armGradients{
			targets:    []string{"square:0.49", "ising:size=3x3", "rbm:data=none,visible=8,hidden=5,scale=1"},
			estimators: estimators(), draws: 12, estimates: 2000, repeats: 2,
		})
}

func (o *armGradients) register(f *flag.FlagSet) {
	listVar(f, &o.targets, "targets", ";", "targets, with semicolons between them")
	listVar(f, &o.estimators, "estimators", ",", "of "+strings.Join(estimators(), ", "))
	WholeVar(f, &o.draws, "evaluations", 6, 1<<20, "evaluations of the target for each estimate, a multiple of 6")
	WholeVar(f, &o.estimates, "estimates", 2, 1<<20, "estimates of each cell")
	repeatsVar(f, &o.repeats)
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
	p, err := NewProblem(ctx, name, 0)
	if err != nil {
		return nil, refuse("targets", "%w", err)
	}
	if n := len(p.Target.Categories()); n > maxFitted {
		return nil, refuse("targets", "%s has %d slots, and the exact gradient lists the states of at most %d", name, n,
			maxFitted)
	}
	return p.Target, nil
}

func (o *armGradients) plan(ctx context.Context, _ uint64) (*plan, error) {
	if err := checkEstimators(o.estimators, estimators(), o.draws); err != nil {
		return nil, err
	}
	p := &plan{
		title: "estimators of the gradient of independent bits",
		columns: []column{
			{name: "deviation", format: "%.2f", definition: "largest difference of the mean estimate from the exact " +
				"gradient over the bits, in standard errors: unbiased estimators stay below about 4"},
			{name: "variance", format: "%.4g",
				definition: fmt.Sprintf("of one estimate of %d evaluations, summed over the bits", o.draws)},
			{name: "ratio", format: "%.4g", definition: "standard deviation as a fraction of the gradient's length"},
			{name: "microseconds", format: "%.1f", definition: secondsAre + ", of one estimate", timed: true},
		},
	}
	for _, name := range o.targets {
		target, err := bitsOf(ctx, name)
		if err != nil {
			return nil, err
		}
		for _, kind := range o.estimators {
			if _, err := newEstimator(kind, target); err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
			p.add(o.repeats, func(ctx context.Context, b *bench) error { return o.measure(ctx, b, kind, target) },
				"estimator", kind, "target", name)
		}
	}
	return p, nil
}

func (o *armGradients) measure(ctx context.Context, b *bench, kind string, target samplers.Target) error {
	e, err := newEstimator(kind, target)
	if err != nil {
		return err
	}
	logits := targets.Normals(b.streams("logits", 1)[0], len(target.Categories()), 1)
	all, err := targets.Enumerate(ctx, target)
	if err != nil {
		return err
	}
	want := make([]float64, len(logits))
	exactGradient(all, logits, want)
	streams := b.streams("draws "+kind, o.draws/e.evaluations())
	gradient := make([]float64, len(logits))
	for range o.estimates / 10 { // relax finds its scale
		if _, err := e.estimate(ctx, logits, streams, gradient); err != nil {
			return err
		}
	}
	began := b.seconds()
	bySlot := make([][]float64, len(logits))
	for n := range o.estimates {
		if _, err := e.estimate(ctx, logits, streams, gradient); err != nil {
			return err
		}
		for j, g := range gradient {
			bySlot[j] = append(bySlot[j], g)
		}
		if n%100 == 0 {
			if err := b.tick(ctx, n, o.estimates, nil); err != nil {
				return err
			}
		}
	}
	b.number("microseconds", 1e6*(b.seconds()-began)/float64(o.estimates))
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

// armToy climbs E[(z - p₀)²] as the slides' example does: one bit, whose best value
// is 0 for p₀ above a half and 1 below.
type armToy struct {
	p0         []float64
	estimators []string
	draws      int
	steps      int
	rate       float64
	repeats    int
}

func newARMToy() *Study {
	return newStudy("arm toy", "Climb ARM's example with each gradient estimator",
		`Climb E[(z - p0)²] over the probability of one bit z, from even odds, by the exact gradient and
by each estimator: the example of ARM's slides.`, &armToy{
			p0: []float64{0.49, 0.499, 0.501, 0.51}, estimators: append([]string{"exact"}, estimators()...), draws: 6,
			steps: 2000, rate: 1, repeats: 5,
		})
}

func (o *armToy) register(f *flag.FlagSet) {
	NumbersVar(f, &o.p0, "p0", "numbers p0")
	listVar(f, &o.estimators, "estimators", ",", "of exact, "+strings.Join(estimators(), ", "))
	WholeVar(f, &o.draws, "evaluations", 6, 1<<20, "evaluations of each step, a multiple of 6")
	WholeVar(f, &o.steps, "steps", 1, 1<<30, "steps of each ascent")
	numberVar(f, &o.rate, "rate", " above 0", "of the ascent")
	repeatsVar(f, &o.repeats)
}

func (o *armToy) plan(context.Context, uint64) (*plan, error) {
	if err := checkEstimators(o.estimators, append([]string{"exact"}, estimators()...), o.draws); err != nil {
		return nil, err
	}
	p := &plan{
		title: "ascent of E[(z - p0)²] over one bit",
		columns: []column{
			{name: "probability", format: "%.3f", definition: "of the better value, after the last step"},
			{name: "deviation", format: "%.2g",
				definition: "root mean square of the estimates less the exact gradient, over the steps"},
		},
		curves: []curve{{name: "probability", x: "step", y: "probability of the better value"},
			{name: "gradient", x: "step", y: "estimate of the gradient"}},
	}
	for _, p0 := range o.p0 {
		for _, kind := range o.estimators {
			p.add(o.repeats, func(ctx context.Context, b *bench) error { return o.climb(ctx, b, kind, p0) },
				"estimator", kind, "p0", decimal(p0))
		}
	}
	return p, nil
}

func (o *armToy) climb(ctx context.Context, b *bench, kind string, p0 float64) error {
	logits, gradient := []float64{0}, []float64{0}
	var e estimator
	streams := b.streams("draws "+kind, 1)
	if kind != "exact" {
		var err error
		if e, err = newEstimator(kind, squareTarget(p0)); err != nil {
			return err
		}
		streams = b.streams("draws "+kind, o.draws/e.evaluations())
	}
	squares := 0.0
	better := func() float64 {
		if p0 > 0.5 {
			return logmath.Sigmoid(-logits[0])
		}
		return logmath.Sigmoid(logits[0])
	}
	reports := reportsOf(o.steps, 100)
	for step := range o.steps {
		p := logmath.Sigmoid(logits[0])
		exact := p * (1 - p) * (1 - 2*p0)
		gradient[0] = exact
		if e != nil {
			if _, err := e.estimate(ctx, logits, streams, gradient); err != nil {
				return err
			}
		}
		squares += math.Pow(gradient[0]-exact, 2) / float64(o.steps)
		logits[0] += o.rate * gradient[0]
		if reports(step + 1) {
			b.point("probability", float64(step+1), better())
			b.point("gradient", float64(step+1), gradient[0])
		}
	}
	b.number("probability", better())
	b.number("deviation", math.Sqrt(squares))
	return b.tick(ctx, 1, 1, nil)
}
