package bits

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/stat"

	"infill/cmd/lab/internal/lab"
	"infill/internal/logmath"
	"infill/internal/targets"
	"infill/samplers"
)

// An estimator estimates the gradient of E[U(b)] over independent slots with
// b_j ~ softmax(0, φ_j), which for two categories is Bernoulli(sigmoid(φ_j)). A
// batch has several rows of logits, each with an expectation of its own. The
// target gets the state of row n as state number n.
type estimator interface {
	// evaluations returns how many evaluations of the target, at hard or
	// relaxed states, one draw takes.
	evaluations() int
	// estimate writes the mean of the given number of draws to gradient, [rows
	// × slots × (categories - 1)] like logits.
	estimate(ctx context.Context, logits []float64, draws int, r *rand.Rand, gradient []float64) error
}

type estimatorKind struct {
	name string
	make func(batch) estimator
	// binary says that it needs two categories in every slot, and relaxed that
	// it also needs energies of slots between 0 and 1.
	binary, relaxed bool
	// biased says that its mean is not the gradient.
	biased bool
	// step says that it is a step of ARM's derivation, for no training.
	step bool
}

func estimatorKinds() []estimatorKind {
	score := func(kind string) func(batch) estimator {
		return func(b batch) estimator { return &scoreEstimator{batch: b, kind: kind} }
	}
	return []estimatorKind{
		{name: "arm", make: func(b batch) estimator { return arm{b} }},
		{name: "augment", make: func(b batch) estimator { return augment{b, false} }, binary: true, step: true},
		{name: "augment-merge", make: func(b batch) estimator { return augment{b, true} }, binary: true, step: true},
		{name: "ar", make: score("ar"), binary: true},
		{name: "reinforce", make: score("reinforce")},
		{name: "leave-one-out", make: score("leave-one-out")},
		{name: "nvil", make: newNVIL},
		{name: "muprop", make: func(b batch) estimator { return muProp{b} }, relaxed: true},
		{name: "legrad", make: func(b batch) estimator { return leGrad{b} }},
		{name: "rebar", make: func(b batch) estimator { return &rebar{batch: b, eta: 1, rate: 0.05} }, relaxed: true},
		{name: "relax", make: newRELAX, relaxed: true},
		{name: "concrete", make: func(b batch) estimator { return concrete{b, false} }, relaxed: true, biased: true},
		{name: "straight-through", make: newAtBits(straightThrough), relaxed: true, biased: true},
		{name: "annealed-st", make: func(b batch) estimator { return &annealedThrough{b, 1, steeper} }, relaxed: true,
			biased: true},
		{name: "darn", make: newAtBits(darn), relaxed: true, biased: true},
		{name: "st-gumbel", make: func(b batch) estimator { return concrete{b, true} }, relaxed: true, biased: true},
	}
}

// estimators lists the names of the estimators, those that are steps of ARM's
// derivation only if they are wanted: trainings leave them out.
func estimators(steps bool) (names []string) {
	for _, k := range estimatorKinds() {
		if steps || !k.step {
			names = append(names, k.name)
		}
	}
	return names
}

// newEstimator makes an estimator. All slots must have equal categories.
func newEstimator(name string, target samplers.Target) (estimator, error) {
	categories := target.Categories()
	relaxed, soft := target.(samplers.RelaxedTarget)
	b := batch{target, relaxed, len(categories), categories[0]}
	list := estimatorKinds()
	kind := list[slices.IndexFunc(list, func(k estimatorKind) bool { return k.name == name })]
	needs := ""
	switch {
	case slices.Min(categories) != slices.Max(categories) || b.categories < 2:
		needs = "as many categories in every slot, two at least"
	case b.categories > 2 && (kind.binary || kind.relaxed):
		needs = "two categories in every slot"
	case !soft && kind.relaxed:
		needs = "energies of slots between 0 and 1"
	default:
		return kind.make(b), nil
	}
	return nil, fmt.Errorf("%s needs %s: %w", name, needs, samplers.ErrUnsupported)
}

// batch evaluates a target at one state for each row of logits.
type batch struct {
	target            samplers.Target
	relaxed           samplers.RelaxedTarget // nil if the target has no energies of slots between 0 and 1
	slots, categories int
}

// evaluations is that of most estimators.
func (batch) evaluations() int { return 1 }

// energies returns U of each row. If one is not finite, it returns an error, as
// the expectation does not exist.
func (b batch) energies(ctx context.Context, states []int) ([]float64, error) {
	u := make([]float64, len(states)/b.slots)
	err := b.target.Energy(ctx, states, u)
	for _, x := range u {
		if err == nil && !logmath.Finite(x) {
			err = fmt.Errorf("a state of energy %v has no finite expectation", x)
		}
	}
	return u, err
}

// lawsOf returns each slot's law, by its logits but the first, which is 0.
func lawsOf(logits []float64, more int) [][]float64 {
	laws := make([][]float64, len(logits)/more)
	for i := range laws {
		laws[i] = lab.Softmax(append([]float64{0}, logits[i*more:(i+1)*more]...))
	}
	return laws
}

// drawCategory returns the category that a uniform number u falls on: the
// others come before category 0.
func drawCategory(law []float64, u float64) int {
	rest := 0.0
	for c := 1; c < len(law); c++ {
		rest += law[c]
		if u < rest {
			return c
		}
	}
	return 0
}

func inside(u float64) float64 { return min(max(u, 1e-12), 1-1e-12) }

// exactGradient writes ∂E[U]/∂φ of one row of logits, as a sum over all states.
func exactGradient(e *targets.Enumeration, logits, gradient []float64) {
	more := len(logits) / len(e.State(0))
	laws := lawsOf(logits, more)
	clear(gradient)
	for s, u := range e.Energy {
		for j, v := range e.State(s) {
			u *= laws[j][v]
		}
		for j, v := range e.State(s) {
			for c := range more {
				gradient[j*more+c] += u * (float64(logmath.Indicator(v == c+1)) - laws[j][c+1])
			}
		}
	}
}

// squareTarget is ARM's example, U(z) = (z - p₀)² of one bit z.
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
		energy[c] = math.Pow(z-float64(t), 2)
		gradient[c] = 2 * (z - float64(t))
	}
	return nil
}

// deviations compares estimates with the exact gradient want. It returns the
// largest distance of a mean estimate, in standard errors, and the variance of
// one estimate, summed over the entries.
func deviations(estimates [][]float64, want []float64) (deviation, variance float64) {
	column := make([]float64, len(estimates))
	for j, w := range want {
		for i, g := range estimates {
			column[i] = g[j]
		}
		mean, sd := stat.MeanStdDev(column, nil)
		variance += sd * sd
		if sd > 0 {
			deviation = math.Max(deviation, math.Abs(mean-w)/stat.StdErr(sd, float64(len(column))))
		}
	}
	return deviation, variance
}
