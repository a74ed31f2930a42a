package chains

import (
	"context"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"

	"infill/cmd/lab/internal/lab"
	"infill/internal/logmath"
	"infill/internal/targets"
	"infill/samplers"
)

// Base holds the log-probabilities of independent slots, [slots][categories].
type Base [][]float64

// NewBase makes independent slots with these laws, [slots][categories].
func NewBase(laws [][]float64) (b Base) {
	for _, law := range laws {
		logs := make([]float64, len(law))
		for v, p := range law {
			logs[v] = math.Log(p)
		}
		b = append(b, logs)
	}
	return b
}

func (b Base) Log(state []int) (sum float64) {
	for j, v := range state {
		sum += b[j][v]
	}
	return sum
}

// MeanLog returns the mean log-probability of states [any number × slots].
func MeanLog(states []int, slots int, log func(state []int) float64) float64 {
	sum := 0.0
	for state := range slices.Chunk(states, slots) {
		sum += log(state)
	}
	return sum / float64(len(states)/slots)
}

// annealed is the target π_β ∝ base^(1-β) exp(βU), between base, a law of
// independent slots, and a target with U.
type annealed struct {
	target samplers.GradientTarget
	base   Base
	beta   float64
	wide   int
}

var (
	_ samplers.GradientTarget    = (*annealed)(nil)
	_ samplers.ConditionalTarget = (*annealed)(nil)
)

func newAnnealed(target samplers.GradientTarget, laws [][]float64) *annealed {
	return &annealed{target: target, base: NewBase(laws), wide: slices.Max(target.Categories())}
}

func (a *annealed) Categories() []int { return a.target.Categories() }

// mix replaces the target's energies of states by energies of π_β.
func (a *annealed) mix(states []int, energy []float64) {
	n := len(a.base)
	for c, u := range energy {
		energy[c] = (1-a.beta)*a.base.Log(states[c*n:(c+1)*n]) + a.beta*u
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

// LogConditionals mixes the conditionals of base and target. If the target has
// no conditionals, it returns an error.
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

// LogNormaliser is an estimate of log Σ exp(U), with an interval.
type LogNormaliser struct {
	Value, Low, High float64
	Effective        float64 // chains that count, (Σw)²/Σw²; if few, the interval is too short
}

// FewWeights is the share of effective chains that is worth a warning.
const FewWeights = 0.2

// Annealing is annealed importance sampling (Neal 2001) from independent slots.
// β rises linearly, step by step:
//
//	log w = Σ_k (β_k - β_{k-1}) (U(x_{k-1}) - log base(x_{k-1}))
//
// The mean of w has the expectation Z; its logarithm underestimates log Z on
// average. The sampler must be exact. The 95 % interval is the mean of the
// weights ± Student's t times the standard error of that mean.
type Annealing struct {
	Sampler       lab.Spec
	Steps, Chains int // steps is the number of temperatures, with one step of the sampler each
}

// Normaliser estimates log Σ exp(U) of the target.
func (o Annealing) Normaliser(ctx context.Context, target samplers.GradientTarget, laws [][]float64, b *lab.Bench,
	label string) (*LogNormaliser, error) {
	path := newAnnealed(target, laws)
	kernel, err := o.Sampler.Sampler.Kernel(path, b.Stream(label+" terms"))
	if err != nil {
		return nil, err
	}
	streams := b.Streams(label, o.Chains)
	positions := lab.DrawFrom(laws, streams)
	logw := make([]float64, o.Chains)
	var info samplers.Info
	for k := range o.Steps {
		before := path.beta
		path.beta = float64(k+1) / float64(o.Steps)
		state, err := kernel.Init(ctx, positions)
		if err != nil {
			return nil, err
		}
		if err := state.Evaluate(ctx, path); err != nil {
			return nil, err
		}
		for c, e := range state.Energy {
			logw[c] += (path.beta - before) * (e - path.base.Log(state.Position(c))) / path.beta
		}
		if err := kernel.Step(ctx, state, streams, &info); err != nil {
			return nil, err
		}
		positions = state.Positions
		if err := b.Tick(ctx, k+1, o.Steps); err != nil {
			return nil, err
		}
	}
	return interval(logw), nil
}

// interval returns the logarithm of the mean weight, and its 95 % interval.
func interval(logw []float64) *LogNormaliser {
	n := float64(len(logw))
	total := floats.LogSumExp(logw)
	weights := make([]float64, len(logw))
	squares := 0.0
	for i, l := range logw {
		weights[i] = n * math.Exp(l-total) // so that the weights have the mean 1
		squares += weights[i] * weights[i]
	}
	z := &LogNormaliser{Value: total - math.Log(n), Effective: n * n / squares}
	_, deviation := stat.MeanStdDev(weights, nil)
	half := distuv.StudentsT{Mu: 0, Sigma: 1, Nu: n - 1}.Quantile(0.975) * deviation / math.Sqrt(n)
	z.Low = math.Inf(-1)
	z.High = z.Value + math.Log1p(half)
	if half < 1 {
		z.Low = z.Value + math.Log1p(-half)
	}
	return z
}

func newAnnealing() *lab.Study {
	s := lab.NewStudy("ais")
	f := s.Flags
	names := f.StringArray("target", []string{"ising:size=4x4", "rbm:data=digits,hidden=16"},
		"a target; give it again for more")
	list := lab.SamplersFlag(f, "samplers", "gibbs,gwg,dmala:step-size=0.4",
		"exact samplers, a step at each temperature")
	steps := lab.WholeFlag(f, "steps", 300, 1, 1<<30, "temperatures")
	chains := lab.WholeFlag(f, "chains", 50, 2, lab.MaxChains, "chains, whose weights give the interval")
	repeats := lab.RepeatsFlag(f, 50)
	s.Plan = func(ctx context.Context, in *lab.Inputs, _ uint64) (*lab.Plan, error) {
		p := s.NewPlan("annealed importance sampling")
		for _, name := range *names {
			d, err := NewDistribution(ctx, in, name, 0)
			if err != nil {
				return nil, err
			}
			target, ok := d.Target.(samplers.GradientTarget)
			if !ok {
				return nil, lab.Refuse("target", "%s has no gradient", name)
			}
			exact, err := logZ(ctx, d.Target)
			if err != nil {
				return nil, lab.Refuse("target", "%s: %w", name, err)
			}
			for _, spec := range *list {
				if !d.exact(spec.Sampler) {
					return nil, lab.Refuse("samplers", "%s is not exact", spec.Label)
				}
				p.Add(*repeats, func(ctx context.Context, b *lab.Bench) error {
					return Annealing{spec, *steps, *chains}.judge(ctx, b, d, target, exact)
				}, lab.Label{Name: "sampler", Value: spec.Label}, lab.Label{Name: "target", Value: name})
			}
		}
		return p, lab.CheckedSpecs(*list)
	}
	return s
}

// logZ returns the exact log Σ exp(U), or NaN for too many states.
func logZ(ctx context.Context, target samplers.Target) (float64, error) {
	if m, ok := target.(*targets.RBM); ok && min(len(m.Hidden), len(m.Visible)) <= maxSummed {
		s, err := solve(ctx, m)
		if err != nil {
			return 0, err
		}
		return s.all.LogNormaliser, nil
	}
	if lab.StatesOf(target.Categories()) > targets.MaxStates {
		return math.NaN(), nil
	}
	e, err := targets.Enumerate(ctx, target)
	if err != nil {
		return 0, err
	}
	return e.LogNormaliser, nil
}

func (o Annealing) judge(ctx context.Context, b *lab.Bench, d *distribution, target samplers.GradientTarget,
	exact float64) error {
	laws := d.independent
	for _, k := range target.Categories()[len(laws):] { // without a law of independent slots, each slot is uniform
		laws = append(laws, lab.Softmax(make([]float64, k)))
	}
	z, err := o.Normaliser(ctx, target, laws, b, "annealing "+o.Sampler.Label)
	if err != nil {
		return err
	}
	for name, x := range map[string]float64{"log-z": z.Value, "low": z.Low, "high": z.High, "exact": exact,
		"effective": z.Effective / float64(o.Chains), "seconds": b.Seconds()} {
		b.Number(name, x)
	}
	if logmath.Finite(exact) {
		b.Number("holds", float64(logmath.Indicator(z.Low <= exact && exact <= z.High)))
	}
	if d.pictures == nil {
		return nil
	}
	mean, err := MeanEnergy(ctx, target, lab.Binarised(d.pictures.Train, false, nil))
	b.Number("ll", mean-z.Value)
	return err
}

// MeanEnergy returns the mean energy of states, [any number × slots].
func MeanEnergy(ctx context.Context, target samplers.Target, states []int) (float64, error) {
	energy := make([]float64, len(states)/len(target.Categories()))
	err := target.Energy(ctx, states, energy)
	return stat.Mean(energy, nil), err
}
