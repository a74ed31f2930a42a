package bits

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"strings"

	"gonum.org/v1/gonum/floats"

	"infill/cmd/lab/internal/chains"
	"infill/cmd/lab/internal/lab"
	"infill/internal/logmath"
	"infill/internal/targets"
	"infill/samplers"
)

// maxListedSlots bounds the slots whose states the exact gradient lists.
const maxListedSlots = 16

func newARMGradients() *lab.Study {
	s := lab.NewStudy("arm gradients")
	f := s.Flags
	names := f.StringArray("target", []string{"square:0.49", "ising:size=3x3",
		"rbm:data=none,visible=8,hidden=5,scale=1", "potts:size=2x2"}, "a target; give it again for more")
	chosen := lab.ChoicesFlag(f, "estimators", estimators(true), estimators(true))
	evaluations := lab.WholeFlag(f, "evaluations", 12, 2, 1<<20, "evaluations of the target for each estimate")
	estimates := lab.WholeFlag(f, "estimates", 2000, 2, 1<<20, "estimates of each cell")
	repeats := lab.RepeatsFlag(f, 2)
	s.Plan = func(ctx context.Context, in *lab.Inputs, _ uint64) (*lab.Plan, error) {
		p := s.NewPlan("estimators of the gradient of independent slots", "{evaluations}", strconv.Itoa(*evaluations))
		for _, name := range *names {
			var byRepeat []samplers.Target
			for n := range *repeats {
				target, err := slotsOf(ctx, in, name, n)
				if err != nil {
					return nil, err
				}
				byRepeat = append(byRepeat, target)
			}
			for _, kind := range *chosen {
				if _, err := newEstimator(kind, byRepeat[0]); err != nil {
					p.Notes = append(p.Notes, fmt.Sprintf("left out on %s: %v", name, err))
					continue
				}
				p.Add(*repeats, func(ctx context.Context, b *lab.Bench) error {
					return gradients(ctx, b, kind, byRepeat[b.Repetition()], *evaluations, *estimates)
				}, lab.Label{Name: "estimator", Value: kind}, lab.Label{Name: "target", Value: name})
			}
		}
		return p, nil
	}
	return s
}

// slotsOf makes the target that name describes, of a repetition, from 0. For
// more than maxListedSlots slots, it returns an error.
func slotsOf(ctx context.Context, in *lab.Inputs, name string, repeat int) (samplers.Target, error) {
	if p0, found := strings.CutPrefix(name, "square:"); found {
		p, err := strconv.ParseFloat(p0, 64)
		if err != nil || !logmath.Finite(p) {
			return nil, lab.Refuse("target", "square:%s: %q is not a finite number", p0, p0)
		}
		return squareTarget(p), nil
	}
	d, err := chains.NewDistribution(ctx, in, name, repeat)
	if err != nil {
		return nil, lab.Refuse("target", "%w", err)
	}
	if n := len(d.Target.Categories()); n > maxListedSlots {
		return nil, lab.Refuse("target", "%s has %d slots, and the exact gradient lists the states of at most %d",
			name, n,
			maxListedSlots)
	}
	return d.Target, nil
}

// gradients compares an estimator with the exact gradient, at random log-odds.
func gradients(ctx context.Context, b *lab.Bench, kind string, target samplers.Target, evaluations, estimates int,
) error {
	e, err := newEstimator(kind, target)
	if err != nil {
		return err
	}
	categories := target.Categories()
	logits := targets.Normals(b.Stream("logits"), len(categories)*(categories[0]-1), 1)
	all, err := targets.Enumerate(ctx, target)
	if err != nil {
		return err
	}
	want := make([]float64, len(logits))
	exactGradient(all, logits, want)
	r := b.Stream("draws " + kind)
	draws := max(evaluations/e.evaluations(), 1)
	known := make([][]float64, estimates)
	for range estimates / 10 { // during these calls control variates are tuned
		if err := e.estimate(ctx, logits, draws, r, make([]float64, len(logits))); err != nil {
			return err
		}
	}
	began := b.Seconds()
	for n := range known {
		known[n] = make([]float64, len(logits))
		if err := e.estimate(ctx, logits, draws, r, known[n]); err != nil {
			return err
		}
		if n%100 == 0 {
			if err := b.Tick(ctx, n, estimates); err != nil {
				return err
			}
		}
	}
	b.Number("microseconds", 1e6*(b.Seconds()-began)/float64(estimates))
	deviation, variance := deviations(known, want)
	b.Number("deviation", deviation)
	b.Number("variance", variance)
	b.Number("by-draw", variance*float64(draws))
	b.Number("ratio", math.Sqrt(variance)/floats.Norm(want, 2))
	return nil
}

// newARMToy returns the study that climbs E[(z - p₀)²] of one bit. The best bit
// is 0 for p₀ above a half, otherwise 1.
func newARMToy() *lab.Study {
	s := lab.NewStudy("arm toy")
	f := s.Flags
	known := append([]string{"exact"}, estimators(true)...)
	p0s := lab.NumbersFlag(f, "p0", []float64{0.49, 0.499, 0.501, 0.51}, "numbers p0")
	chosen := lab.ChoicesFlag(f, "estimators", append([]string{"exact"}, estimators(false)...), known)
	evaluations := lab.WholeFlag(f, "evaluations", 6, 2, 1<<20, "evaluations of each step")
	steps := lab.WholeFlag(f, "steps", 2000, 1, 1<<30, "steps of each ascent")
	rate := lab.NumberFlag(f, "rate", 1, " above 0", "of the ascent")
	repeats := lab.RepeatsFlag(f, 5)
	s.Plan = func(context.Context, *lab.Inputs, uint64) (*lab.Plan, error) {
		p := s.NewPlan("ascent of E[(z - p0)²] over one bit")
		for _, p0 := range *p0s {
			for _, kind := range *chosen {
				p.Add(*repeats, func(ctx context.Context, b *lab.Bench) error {
					return climb(ctx, b, kind, p0, *evaluations, *steps, *rate)
				}, lab.Label{Name: "estimator", Value: kind}, lab.Label{Name: "p0", Value: lab.Decimal(p0)})
			}
		}
		return p, nil
	}
	return s
}

// climb raises E[(z - p₀)²] by one estimator, or by the exact gradient.
func climb(ctx context.Context, b *lab.Bench, kind string, p0 float64, evaluations, steps int, rate float64,
) (err error) {
	logits := []float64{0}
	gradient := []float64{0}
	var e estimator
	if kind != "exact" {
		e, err = newEstimator(kind, squareTarget(p0))
		if err != nil {
			return err
		}
	}
	r := b.Stream("draws " + kind)
	squares := 0.0
	better := func() float64 {
		if p0 > 0.5 {
			return logmath.Sigmoid(-logits[0])
		}
		return logmath.Sigmoid(logits[0])
	}
	reports := lab.ReportsOf(steps, 100)
	for step := range steps {
		p := logmath.Sigmoid(logits[0])
		exact := p * (1 - p) * (1 - 2*p0)
		gradient[0] = exact
		if e != nil {
			if err := e.estimate(ctx, logits, max(evaluations/e.evaluations(), 1), r, gradient); err != nil {
				return err
			}
		}
		squares += math.Pow(gradient[0]-exact, 2) / float64(steps)
		logits[0] += rate * gradient[0]
		if reports(step + 1) {
			b.Point("probability", float64(step+1), better())
			b.Point("gradient", float64(step+1), gradient[0])
		}
	}
	b.Number("probability", better())
	b.Number("deviation", math.Sqrt(squares))
	b.Number("seconds", b.Seconds())
	return b.Tick(ctx, 1, 1)
}
