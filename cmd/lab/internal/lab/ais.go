package lab

import (
	"context"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"

	"infill/internal/logmath"
	"infill/samplers"
)

// base is a law of independent slots by its log-probabilities, [slots][categories].
type base [][]float64

func newBase(laws [][]float64) (b base) {
	for _, law := range laws {
		logs := make([]float64, len(law))
		for v, p := range law {
			logs[v] = math.Log(p)
		}
		b = append(b, logs)
	}
	return b
}

// log is the log-probability of one state.
func (b base) log(state []int) (sum float64) {
	for j, v := range state {
		sum += b[j][v]
	}
	return sum
}

// annealed is π_β ∝ base^(1-β) exp(βU), on the way from a law of independent slots to a target.
type annealed struct {
	target samplers.GradientTarget
	base   base
	beta   float64
	wide   int
}

var (
	_ samplers.GradientTarget    = (*annealed)(nil)
	_ samplers.ConditionalTarget = (*annealed)(nil)
)

func newAnnealed(target samplers.GradientTarget, laws [][]float64) *annealed {
	return &annealed{target: target, base: newBase(laws), wide: slices.Max(target.Categories())}
}

func (a *annealed) Categories() []int { return a.target.Categories() }

// mix makes energies of the target those of the mixture.
func (a *annealed) mix(states []int, energy []float64) {
	n := len(a.base)
	for c, u := range energy {
		energy[c] = (1-a.beta)*a.base.log(states[c*n:(c+1)*n]) + a.beta*u
	}
}

func (a *annealed) Energy(ctx context.Context, states []int, energy []float64) error {
	err := a.target.Energy(ctx, states, energy)
	a.mix(states, energy)
	return err
}

func (a *annealed) EnergyGradient(ctx context.Context, states []int, energy, gradient []float64) error {
	err := a.target.EnergyGradient(ctx, states, energy, gradient)
	a.mix(states, energy)
	for i := range states {
		for v, l := range a.base[i%len(a.base)] {
			gradient[i*a.wide+v] = (1-a.beta)*l + a.beta*gradient[i*a.wide+v]
		}
	}
	return err
}

// LogConditionals mixes the target's own, where it has any.
func (a *annealed) LogConditionals(ctx context.Context, states []int, slots []int, logp []float64) error {
	target, ok := a.target.(samplers.ConditionalTarget)
	if !ok {
		return fmt.Errorf("annealing by conditionals of a target without: %w", samplers.ErrUnsupported)
	}
	if err := target.LogConditionals(ctx, states, slots, logp); err != nil {
		return err
	}
	for c, j := range slots {
		row := logp[c*a.wide : c*a.wide+len(a.base[j])]
		for v, l := range a.base[j] {
			row[v] = (1-a.beta)*l + a.beta*row[v]
		}
		logmath.Normalise(row)
	}
	return nil
}

// logNormaliser is an estimate of log Σ exp(U), with an interval.
type logNormaliser struct {
	value, low, high float64
	// effective is the effective number of chains, (Σw)²/Σw²: where it is small a
	// few chains make the estimate, and the interval is too short.
	effective float64
}

// fewWeights is the effective fraction of chains below which a warning is due.
const fewWeights = 0.2

// annealing is annealed importance sampling (Neal 2001) from independent slots, β rising linearly in steps:
//
//	log w = Σ_k (β_k - β_{k-1}) (U(x_{k-1}) - log base(x_{k-1}))
//
// log mean w has Z's expectation in w, not in its logarithm, which is on the low side.
// The sampler's steps must leave π_β as it is, so it must be exact. The interval has
// 95 %: the mean of the weights ± Student's t times its standard error.
type annealing struct {
	sampler       Spec
	steps, chains int // temperatures, each with one step of the sampler
}

// normaliser estimates log Σ exp(U).
func (o annealing) normaliser(ctx context.Context, target samplers.GradientTarget, laws [][]float64, b *bench,
	label string) (*logNormaliser, error) {
	path := newAnnealed(target, laws)
	kernel, err := o.sampler.New(path, b.stream(label+" terms"))
	if err != nil {
		return nil, err
	}
	streams := b.streams(label, o.chains)
	positions, logw := drawFrom(laws, streams), make([]float64, o.chains)
	var info samplers.Info
	for k := range o.steps {
		before := path.beta
		path.beta = float64(k+1) / float64(o.steps)
		state, err := kernel.Init(ctx, positions)
		if err != nil {
			return nil, err
		}
		if err := state.Evaluate(ctx, path); err != nil {
			return nil, err
		}
		for c, e := range state.Energy {
			logw[c] += (path.beta - before) * (e - path.base.log(state.Position(c))) / path.beta
		}
		if err := kernel.Step(ctx, state, streams, &info); err != nil {
			return nil, err
		}
		positions = state.Positions
		if err := b.tick(ctx, k+1, o.steps, nil); err != nil {
			return nil, err
		}
	}
	return interval(logw), nil
}

// interval is the log of the mean of weights, with 95 %.
func interval(logw []float64) *logNormaliser {
	n := float64(len(logw))
	total := floats.LogSumExp(logw)
	weights := make([]float64, len(logw))
	squares := 0.0
	for i, l := range logw {
		weights[i] = n * math.Exp(l-total) // of mean 1
		squares += weights[i] * weights[i]
	}
	z := &logNormaliser{value: total - math.Log(n), effective: n * n / squares}
	_, deviation := stat.MeanStdDev(weights, nil)
	half := distuv.StudentsT{Mu: 0, Sigma: 1, Nu: n - 1}.Quantile(0.975) * deviation / math.Sqrt(n)
	z.low, z.high = math.Inf(-1), z.value+math.Log1p(half)
	if half < 1 {
		z.low = z.value + math.Log1p(-half)
	}
	return z
}
