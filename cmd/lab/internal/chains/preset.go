package chains

import (
	"cmp"
	"context"
	"crypto/sha256"
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

// A figure is a preset that repeats a figure of a paper with the same settings.
type figure struct {
	name string
	// title names the subject. setting says with which settings, and where
	// these differ from the paper's.
	title, setting string

	chains, steps int // defaults of --chains and --steps
	parts         []part
}

// part is one comparison of a preset.
type part struct{ title, target, samplers, initial string }

func figures() []figure {
	const paperIsing = "ising:coupling=0.1,field=0.2"
	var moves []string
	for i := 1; i <= 10; i++ {
		moves = append(moves, fmt.Sprintf("dmala:step-size=%v", float64(i)/5))
	}
	for x := 1; x <= 8; x++ {
		moves = append(moves, fmt.Sprintf("gwg-x:radius=%d", x))
	}
	var plain []string
	for _, alpha := range []string{"0.0005", "0.01", "1", "500"} {
		plain = append(plain, "dula:step-size="+alpha, "dmala:step-size="+alpha)
	}
	var couplings []part
	for _, coupling := range []float64{0.1, 0.15, 0.2, 0.25} {
		couplings = append(couplings, part{
			fmt.Sprintf("coupling %v", coupling), fmt.Sprintf("ising:coupling=%v,field=0.2", coupling),
			"gibbs-x:block=1,steps=LONGER,gwg,dula:step-size=0.4,steps=LONGER,dmala:step-size=0.8", "independent"})
	}
	random := part{"RBM", "rbm:data=none,visible=784,hidden=500,scale=0.2236," +
		"reference=block-gibbs,reference-steps=40", "", "uniform"}
	random.samplers = "rbm-gibbs,gibbs-x:block=1,gwg,r-mala:step-size=0.2,smoothing=0.5,r-hmc:step-size=0.2," +
		"smoothing=0.5,d-svgd:step-size=0.3,smoothing=0.5,dula:step-size=0.2,dmala:step-size=0.4"
	tuned := random
	tuned.samplers = grid([]string{"0.03", "0.1", "0.2", "0.3"}, "r-mala", "r-hmc") +
		",d-svgd:step-size=0.1,smoothing=0.5,d-svgd:step-size=0.3,smoothing=0.5,d-svgd:step-size=1,smoothing=0.5"
	lattice := part{"5 × 5 Ising model", paperIsing, "", "independent"}
	lattice.samplers = "hamming-ball:block=10,radius=1,gibbs-x:block=1,gibbs,lb-1,gwg,gwg-x:radius=4," +
		"r-mala:step-size=0.2,smoothing=0.5,r-hmc:step-size=0.3,smoothing=0.1,d-svgd:step-size=0.5,smoothing=1," +
		"dula:step-size=0.4,dmala:step-size=0.8"
	tunedLattice := lattice
	tunedLattice.samplers = grid([]string{"0.05", "0.1", "0.2", "0.3", "0.5"}, "r-mala", "r-hmc", "d-svgd")
	return []figure{
		{biasPreset, "the bias of DULA against the step size, and against ε",
			"2 × 2 Ising model, coupling 0.1, field 0.2; 1-d example with a = 1, b = 0.1, and with a = b = 0. Exact " +
				"stationary laws, and what chains visit.", 16, 20000, nil},
		{"dlp-figure-2", "acceptance against the slots changed, and effective sample size per second",
			"5 × 5 Ising model, coupling 0.1, field 0.2. The paper's α is for 0 and 1: twice as much here. Its " +
				"Gibbs-1 is gibbs-x:block=1; gibbs knows the conditionals without evaluating energies.", 10, 10000,
			[]part{
				{"acceptance against slots changed", paperIsing, strings.Join(moves, ","), "independent"},
				{"effective sample size per second", paperIsing, "hamming-ball:block=10,radius=1,gibbs-x:block=1," +
					"gibbs,lb-1,gwg,gwg-x:radius=4,dmala:step-size=0.8", "independent"},
			}},
		{"dlp-figure-3", "log RMSE on a 5 × 5 Ising model",
			"Coupling 0.1, field 0.2, 50,000 steps, starts by the field; 10 chains where the paper has 2, for the " +
				"errors. α of DMALA 0.4 and DULA 0.2 in the paper: 0.8 and 0.4 here. Relaxations and D-SVGD have " +
				"the best of dlp-figure-3-grid.", 10, 50000, []part{lattice}},
		{"dlp-figure-3-grid", "step sizes and smoothings of the relaxations and of D-SVGD, for figure 3",
			"The model and the starts of dlp-figure-3.", 10, 50000, []part{tunedLattice}},
		{"dlp-figure-4", "an RBM: maximum mean discrepancy from block Gibbs",
			"A random machine of MNIST's size, 784 × 500, weights N(0, 0.05) as in the GWG repository; 100 chains, " +
				"300 steps, 500 states of block Gibbs as reference. α of DMALA 0.2 and DULA 0.1 in the paper: 0.4 " +
				"and 0.2 here. Relaxations and D-SVGD have the best of dlp-figure-4-grid. With MNIST's files: lab " +
				"rbm --data train-images-idx3-ubyte.gz --hidden 500 --updates 600 --learning-rate 0.001 --chains 100 " +
				"--steps 300 --warm-up 0 --samplers rbm-gibbs,gwg,dula:step-size=0.2,dmala:step-size=0.4. Without " +
				"them, --data digits.", 100, 300, []part{random}},
		{"dlp-figure-4-grid", "step sizes and smoothings of the relaxations and of D-SVGD, for figure 4",
			"The random machine of dlp-figure-4.", 100, 300, []part{tuned}},
		{"dlp-figure-7", "log RMSE on 5 × 5 Ising models of several couplings",
			"Couplings 0.1, 0.15, 0.2, 0.25, field 0.2; GWG and DMALA 50,000 steps, Gibbs and DULA 125,000. The " +
				"column of equal steps has all at 50,000.", 10, 50000, couplings},
		{"dlp-appendix-h", "preconditioned DLP on two spins whose derivatives differ by a factor of 10^6",
			"Couplings -0.001 and -1000 of each spin with itself, 250,000 steps. Preconditioners 1000 and 0.001 of " +
				"α = 1 in the paper: 0.5 here. The paper's formula in appendix H has their squares; its numbers, and " +
				"section 6, have the preconditioners themselves.", 10, 250000,
			[]part{{"two spins", "ising:couplings=appendix-h", "dula:step-size=0.5,preconditioner=1000/0.001," +
				"dmala:step-size=0.5,preconditioner=1000/0.001," + strings.Join(plain, ","), "uniform"}}},
	}
}

// grid lists samplers with each of the step sizes and three smoothings.
func grid(stepSizes []string, names ...string) string {
	var list []string
	for _, name := range names {
		for _, stepSize := range stepSizes {
			for _, smoothing := range []string{"0.1", "0.5", "1"} {
				list = append(list, name+":step-size="+stepSize+",smoothing="+smoothing)
			}
		}
	}
	return strings.Join(list, ",")
}

// elsewhere maps each figure or table without a preset to the command that
// repeats it.
var elsewhere = map[string]string{
	"dlp-figure-5":                                      "lab learn ising",
	"dlp-figure-6 dlp-figure-10 dlp-table-3":            "infill eval --preset dlp",
	"dlp-figure-8":                                      "lab rbm --data FILE -o DIR draws the samples",
	"dlp-figure-9 dlp-table-1":                          "lab learn images -o DIR",
	"dlp-table-2 dlp-table-4":                           "lab networks",
	"arm-figure-5 arm-figure-6 arm-table-2 arm-table-3": "lab arm vae",
	"arm-figure-2 arm-figure-3":                         "lab arm toy",
	"arm-figure-4 arm-table-4":                          "lab arm vae --structures halves --updates 5000",
}

// NewPreset returns the study that repeats the figure given by --preset. The
// figure fixes samplers, warm-up and starts.
func NewPreset() *lab.Study {
	var names []string
	var text strings.Builder
	for _, f := range figures() {
		names = append(names, f.name)
		fmt.Fprintf(&text, "\n\n  %s: %s\n      %s", f.name, f.title, f.setting)
	}
	s := lab.NewStudy("preset", "Compare samplers on distributions that are known exactly",
		strings.TrimSpace(comparisonHelp)+"\n\nWith --preset instead of a target the settings of a figure are "+
			"repeated; --chains\nand --steps make it shorter or longer. Presets:"+text.String())
	name := s.Flags.String("preset", "", "repeat the settings of the figure `NAME`")
	chains := lab.WholeFlag(s.Flags, "chains", 0, 0, lab.MaxChains, "chains of each sampler; 0 is the preset's own")
	steps := lab.WholeFlag(s.Flags, "steps", 0, 0, lab.MaxSteps, "steps of each chain; 0 is the preset's own")
	s.Plan = func(ctx context.Context, in *lab.Inputs, seed uint64) (*lab.Plan, error) {
		i := slices.Index(names, *name)
		if i < 0 {
			for of, command := range elsewhere {
				if slices.Contains(strings.Fields(of), *name) {
					return nil, lab.Refuse("preset", "%s has a command of its own: %s", *name, command)
				}
			}
			return nil, lab.Refuse("preset", "%q is not one of %s", *name, strings.Join(names, ", "))
		}
		f := figures()[i]
		return f.plan(ctx, in, cmp.Or(*chains, f.chains), cmp.Or(*steps, f.steps), seed)
	}
	return s
}

// caption returns the title of the figure's pictures.
func (f figure) caption() string {
	part := strings.ReplaceAll(strings.TrimPrefix(f.name, "dlp-"), "-", " ")
	return lab.DiscreteLangevin + ", " + part + ":\n" + f.title
}

// sum returns the SHA-256 of what the figure runs.
func (f figure) sum() string {
	return fmt.Sprintf("%x", sha256.Sum256(fmt.Append(nil, f.chains, f.steps, f.parts)))
}

func (f figure) plan(ctx context.Context, in *lab.Inputs, chains, steps int, seed uint64) (*lab.Plan, error) {
	title := f.name + ": " + f.title
	// What a preset stands for may change between commits of one version.
	in.Add("preset", f.name, f.sum())
	if f.name == biasPreset {
		return biasPlan(ctx, title, f.caption(), chains, steps)
	}
	p := newComparisonPlan(title, chains)
	p.Caption = f.caption()
	for _, part := range f.parts {
		d, err := NewDistribution(ctx, in, part.target, 0)
		if err != nil {
			return nil, err
		}
		list, err := lab.ParseSpecs(strings.ReplaceAll(part.samplers, "LONGER", strconv.Itoa(steps*5/2)))
		if err != nil {
			return nil, err
		}
		var of []lab.Label
		if len(f.parts) > 1 {
			of = []lab.Label{{Name: "part", Value: part.title}}
		}
		if err := compare(p, d, Options{list, chains, steps, 0, part.initial, false, lab.Clock}, seed,
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

// observe runs chains of the kernel, and records the bias of the law of the
// states that they visit.
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
	p := lab.NewPlan(title, []lab.Column{
		{Name: "exact", Format: "%.3g", Definition: "‖π_α - π‖₁ of the exact stationary law", Against: "at"},
		{Name: "observed", Format: "%.3g", Definition: "the same of the states that chains visited", Against: "at"},
		{Name: "noise", Format: "%.3g",
			Definition: "sum over states of the standard errors between chains: a distance below is not seen"},
		{Name: "bound", Format: "%.3g", Definition: "of theorem 5.1, for the numbers 0 and 1"},
		{Name: "rate", Format: "%.3g", Definition: "multiple of exp(-1/(2α))"},
		{Name: "stochastic", Format: "%.3g", Table: 1, Definition: "largest ‖E[q̂_i] - q_i‖₁ by the gradient of one " +
			"of the model's terms, over all states and slots"},
		{Name: "bound-6.1", Format: "%.3g", Table: 1, Definition: "of theorem 6.1"},
	})
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
