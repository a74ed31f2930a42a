package chains

import (
	"cmp"
	"context"
	"crypto/sha256"
	_ "embed"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"

	"infill/cmd/lab/internal/lab"
	"infill/internal/logmath"
	"infill/internal/phrase"
	"infill/internal/targets"
	"infill/samplers"
)

// A figure is a figure or table of the discrete Langevin paper.
type figure struct {
	Name string
	// Command repeats it, if it is no preset.
	Command string
	// Title names the subject. Setting says with which settings, and where
	// these differ from the paper's.
	Title, Setting string
	Chains, Steps  int // defaults of --chains and --steps
	Parts          []part
}

type part struct {
	Title, Target string
	Samplers      []string
	Initial       string
}

//go:embed presets.yaml
var presetsFile []byte

// figures reads the figures, of which those with a command are no presets.
func figures() []figure { return lab.Own[[]figure](presetsFile) }

// NewPreset returns the study that repeats the figure given by --preset. The
// figure fixes samplers, warm-up and starts.
func NewPreset() *lab.Study {
	s := lab.NewStudy("preset")
	var names []string
	known := map[string]figure{}
	for _, f := range figures() {
		known[f.Name] = f
		if f.Command == "" {
			names = append(names, f.Name)
			s.Help = append(s.Help, fmt.Sprintf("  %s: %s\n      %s", f.Name, f.Title, f.Setting))
		}
	}
	name := s.Flags.String("preset", "", "repeat the settings of the figure `NAME`")
	chains := lab.WholeFlag(s.Flags, "chains", 0, 0, lab.MaxChains, "chains of each sampler; 0 is the preset's own")
	steps := lab.WholeFlag(s.Flags, "steps", 0, 0, lab.MaxSteps, "steps of each chain; 0 is the preset's own")
	s.Plan = func(ctx context.Context, in *lab.Inputs, seed uint64) (*lab.Plan, error) {
		f, found := known[*name]
		if !found {
			return nil, lab.Refuse("preset", "%q is not one of %s", *name, strings.Join(names, ", "))
		}
		if f.Command != "" {
			return nil, lab.Refuse("preset", "%s has a command of its own: %s", *name, f.Command)
		}
		return f.plan(ctx, in, s, cmp.Or(*chains, f.Chains), cmp.Or(*steps, f.Steps), seed)
	}
	return s
}

// sum returns the SHA-256 of what the figure runs.
func (f figure) sum() string {
	type settings struct{ title, target, samplers, initial string }
	var parts []settings
	for _, p := range f.Parts {
		parts = append(parts, settings{p.Title, p.Target, strings.Join(p.Samplers, ","), p.Initial})
	}
	return fmt.Sprintf("%x", sha256.Sum256(fmt.Append(nil, f.Chains, f.Steps, parts)))
}

func (f figure) plan(ctx context.Context, in *lab.Inputs, s *lab.Study, chains, steps int, seed uint64) (*lab.Plan,
	error) {
	title := f.Name + ": " + f.Title
	caption := "Discrete Langevin paper, " + strings.ReplaceAll(strings.TrimPrefix(f.Name, "dlp-"), "-", " ") + ":\n" +
		f.Title
	// What a preset stands for may change between commits of one version.
	in.Add("preset", f.Name, f.sum())
	if f.Name == biasPreset {
		return biasPlan(ctx, title, caption, chains, steps)
	}
	p := s.NewPlan(title)
	p.BetweenChains(chains)
	p.Caption = caption
	for _, part := range f.Parts {
		d, err := NewDistribution(ctx, in, part.Target, 0)
		if err != nil {
			return nil, err
		}
		list, err := lab.ParseSpecs(strings.ReplaceAll(strings.Join(part.Samplers, ","), "LONGER",
			strconv.Itoa(steps*5/2)))
		if err != nil {
			return nil, err
		}
		var of []lab.Label
		if len(f.Parts) > 1 {
			of = []lab.Label{{Name: "part", Value: part.Title}}
		}
		if err := compare(p, d, Options{list, chains, steps, 0, part.Initial, false, lab.Clock}, seed,
			of...); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// langevinLaw returns the stationary law of DULA by equation 2 of the discrete
// Langevin paper, without the kernel. Z_α(θ) = Π_j Σ_v exp(½ U'_j (x_v - x_θ) -
// (x_v - x_θ)²/(2α)) normalises the proposals. If U is quadratic, the law is
// Z_α π, normalised (proof of theorem 5.1). With two states, a chain leaves
// each with probability 1 - 1/Z_α.
func langevinLaw(ctx context.Context, target samplers.OrdinalTarget, e *targets.Enumeration,
	alpha float64) ([]float64, error) {
	derivative := make([]float64, len(e.States))
	law := slices.Clone(e.Probability)
	if err := target.EnergyDerivative(ctx, e.States, make([]float64, e.Len()), derivative); err != nil {
		return nil, err
	}
	values := target.Values()
	for i := range law {
		z := 1.0
		for j, from := range e.State(i) {
			sum := 0.0
			for _, x := range values[j] {
				d := x - values[j][from]
				sum += math.Exp(derivative[i*len(values)+j]*d/2 - d*d/(2*alpha))
			}
			z *= sum
		}
		law[i] *= z
		if len(law) == 2 {
			law[i] = z / (z - 1)
		}
	}
	floats.Scale(1/floats.Sum(law), law)
	return law, nil
}

// langevinBias is the bias of DULA at one step size, ‖π_α - π‖₁ = Σ |π_α(θ) -
// π(θ)|. This is twice the total variation between its stationary law π_α and
// π.
type langevinBias struct {
	target  samplers.OrdinalTarget
	alpha   float64
	of      *targets.Enumeration
	law     []float64
	numbers map[string]float64 // numbers known without running chains
}

func newLangevinBias(ctx context.Context, target samplers.OrdinalTarget, alpha float64) (*langevinBias, error) {
	e, err := targets.Enumerate(ctx, target)
	if err != nil {
		return nil, err
	}
	law, err := langevinLaw(ctx, target, e, alpha)
	if err != nil {
		return nil, err
	}
	l := &langevinBias{target, alpha, e, law, map[string]float64{}}
	if bias := floats.Distance(l.law, e.Probability, 1); bias >= 1e-13 {
		l.numbers["exact"] = bias
	} else {
		l.numbers["exact"] = 0 // without the error of rounding
	}
	return l, nil
}

// observe runs chains, and records the bias of the law of their states.
func (l *langevinBias) observe(ctx context.Context, b *lab.Bench, chains, steps int) error {
	kernel, err := samplers.OrdinalDULA{StepSize: l.alpha}.Kernel(l.target, nil)
	if err != nil {
		return err
	}
	streams := samplers.Streams(b.Seed, "bias "+lab.Decimal(l.alpha), chains)
	counts := make([][]float64, l.of.Len())
	for i := range counts {
		counts[i] = make([]float64, chains)
	}
	plan := samplers.Plan{Streams: streams, WarmUp: steps / 10, Steps: steps}
	starts := samplers.RandomPositions(l.target, streams)
	_, err = samplers.Sample(ctx, kernel, starts, plan, func(s samplers.Step) error {
		for c := range chains {
			if !s.WarmUp {
				counts[l.of.Index(s.State.Position(c))][c] += 1 / float64(steps)
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	observed := make([]float64, len(counts))
	noise := 0.0
	for i, byChain := range counts {
		mean, deviation := stat.MeanStdDev(byChain, nil)
		observed[i] = mean
		noise += stat.StdErr(deviation, float64(chains)) // NaN for a single chain
	}
	for name, x := range l.numbers {
		b.Number(name, x)
	}
	b.Number("observed", floats.Distance(observed, l.of.Probability, 1))
	b.Number("noise", noise)
	b.Number("from-stationary", floats.Distance(observed, l.law, 1))
	return nil
}

// biasPreset is the only figure that does not compare samplers.
const biasPreset = "dlp-figure-1"

const biasOfIsing = "2 × 2 Ising model by α"

// biasPlan plans figure 1: on the left the Ising model, on the right the
// example, with the step size of equation 2. In the example's exact law α
// matters little, but its chains, which the quadratic term holds back, mix only
// at a large α.
func biasPlan(ctx context.Context, title, caption string, chains, steps int) (*lab.Plan, error) {
	p := lab.NewStudy("bias").NewPlan(title)
	p.Caption = caption
	p.BetweenChains(chains)
	p.Notes = []string{"the Ising model has coupling 0.1 and field 0.2, and α is for 0 and 1; the example is " +
		"exp(aθ² + bθ + 2ε sin(θπ/2)), θ = ±1, α = 2",
		fmt.Sprintf("observed over %s × %s", phrase.Counted(chains, "chain"), phrase.Counted(steps, "step"))}
	add := func(curve string, x float64, l *langevinBias) {
		p.Cells = append(p.Cells, lab.Cell{
			Labels: lab.Labels{{Name: "bias", Value: curve}, {Name: "at", Value: strconv.FormatFloat(x, 'g', 3, 64)}},
			Run:    func(ctx context.Context, b *lab.Bench) error { return l.observe(ctx, b, chains, steps) }})
	}
	// The line with the slope of theorem 5.1 passes through the bias at the
	// smallest step size. The smallest third of the step sizes gives the slope
	// of ln bias against -1/(2α), which is 1 by the theorem.
	var x, y []float64
	for i := range 16 {
		alpha := 0.05 * math.Pow(20, float64(i)/15) // from 0.05 to 1
		l, err := biasOfLattice(ctx, alpha)
		if err != nil {
			return nil, err
		}
		x = append(x, -1/(2*alpha))
		y = append(y, math.Log(l.numbers["exact"]))
		l.numbers["rate"] = math.Exp(y[0] - x[0] - 1/(2*alpha))
		add(biasOfIsing, alpha, l)
	}
	_, slope := stat.LinearRegression(x[:len(x)/3], y[:len(y)/3], nil, false)
	p.Notes = append(p.Notes, fmt.Sprintf("slope of ln bias against -1/(2α) at small α: %.3f", slope))
	for _, example := range []targets.CounterExample{{A: 1, B: 0.1}, {}} {
		for i := range 11 {
			example.Epsilon = float64(i) / 10
			l, err := newLangevinBias(ctx, example, 2)
			if err != nil {
				return nil, err
			}
			add(fmt.Sprintf("a = %v, b = %v by ε", example.A, example.B), example.Epsilon, l)
		}
	}
	return p, nil
}

// biasOfLattice returns the bias on the 2 × 2 model with c = 0.1 and b = 0.2
// (appendix I.1). As in theorem 5.1, α is for states numbered 0 and 1. Spins
// are twice as far apart, so the same chain has the step size 4α for spins.
func biasOfLattice(ctx context.Context, alpha float64) (*langevinBias, error) {
	const coupling, field = 0.1, 0.2
	target, err := targets.NewIsing(2, 2, coupling, field)
	if err != nil {
		return nil, err
	}
	l, err := newLangevinBias(ctx, target, 4*alpha)
	if err != nil {
		return nil, err
	}
	// W of the ring of four has the eigenvalues -2, 0, 0 and 2. In x = (1+s)/2
	// the quadratic form is 4cW; the constant, the energy of all spins down,
	// cancels.
	const smallest = -2 * coupling
	l.numbers["alpha"] = alpha
	l.numbers["stochastic"], l.numbers["bound-6.1"], err = stochasticBias(ctx, target, l.of, alpha)
	if err != nil {
		return nil, err
	}
	l.numbers["bound"] = math.Exp(l.of.LogNormaliser - l.of.Energy[0] - 1/(2*alpha) - 4*smallest/2)
	l.numbers["bound-of-spins"] = math.Exp(l.of.LogNormaliser - 1/(2*4*alpha) - smallest/2)
	return l, nil
}

// stochasticBias returns the largest ‖E[q̂_i] - q_i‖₁ over states and slots,
// where q̂ proposes by the gradient of one term and q by the whole. It also
// returns the bound 2σ exp(-1/(2α) + L) of theorem 6.1, for the numbers 0 and
// 1.
func stochasticBias(ctx context.Context, target samplers.StochasticGradientTarget, e *targets.Enumeration,
	alpha float64) (largest, bound float64, err error) {
	terms := target.Terms()
	energy := make([]float64, e.Len())
	n := len(e.States)
	whole := make([]float64, 2*n)
	mean := make([]float64, n)
	square := make([]float64, n)
	if err := target.EnergyGradient(ctx, e.States, energy, whole); err != nil {
		return 0, 0, err
	}
	flip := func(i int, derivative float64) float64 {
		return logmath.Sigmoid(float64(1-2*e.States[i])*derivative/2 - 1/(2*alpha))
	}
	of := make([]float64, len(whole))
	most := 0.0
	for term := range terms {
		if err := target.EnergyGradientOf(ctx, []int{term}, e.States, energy, of); err != nil {
			return 0, 0, err
		}
		for i := range mean {
			d := of[2*i+1] - of[2*i]
			all := whole[2*i+1] - whole[2*i]
			mean[i] += flip(i, d) / float64(terms)
			square[i] += (d - all) * (d - all) / float64(terms)
			most = max(most, math.Abs(d), math.Abs(all))
		}
	}
	for i, p := range mean {
		largest = max(largest, 2*math.Abs(p-flip(i, whole[2*i+1]-whole[2*i])))
	}
	return largest, 2 * math.Sqrt(slices.Max(square)) * math.Exp(most-1/(2*alpha)), nil
}
