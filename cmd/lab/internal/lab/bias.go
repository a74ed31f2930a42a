package lab

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/plot"

	"infill/internal/chart"
	"infill/internal/targets"
	"infill/samplers"
)

// langevinTransition is DULA's transition matrix by equation 2 of the discrete Langevin paper, written down again to
// check the kernel by: q_j(v | θ) ∝ exp(½ U'_j (x_v - x_θ) - (x_v - x_θ)²/(2α)), slot by slot.
func langevinTransition(ctx context.Context, target samplers.OrdinalTarget,
	alpha float64) (*targets.Enumeration, [][]float64, error) {
	e, err := targets.Enumerate(ctx, target)
	if err != nil {
		return nil, nil, err
	}
	slots := len(target.Categories())
	derivative := make([]float64, len(e.States))
	if err := target.EnergyDerivative(ctx, e.States, make([]float64, e.Len()), derivative); err != nil {
		return nil, nil, err
	}
	values := target.Values()
	transition := make([][]float64, e.Len())
	for i := range transition {
		from := e.State(i)
		rows := make([][]float64, slots)
		for j, x := range values {
			logits := make([]float64, len(x))
			for v := range logits {
				d := x[v] - x[from[j]]
				logits[v] = derivative[i*slots+j]*d/2 - d*d/(2*alpha)
			}
			total := floats.LogSumExp(logits)
			for v := range logits {
				logits[v] -= total
			}
			rows[j] = logits
		}
		transition[i] = make([]float64, e.Len())
		for k := range transition[i] {
			log := 0.0
			for j, v := range e.State(k) {
				log += rows[j][v]
			}
			transition[i][k] = math.Exp(log)
		}
	}
	return e, transition, nil
}

// stationaryLaw solves π = πP by the elimination of Grassmann, Taksar and Heyman (Regenerative Analysis and Steady
// State Distributions for Markov Chains, 1985), which subtracts nothing and so keeps every digit of probabilities
// however rare the moves are. The matrix is overwritten.
func stationaryLaw(p [][]float64) []float64 {
	for n := len(p) - 1; n > 0; n-- {
		leave := 0.0
		for _, x := range p[n][:n] {
			leave += x
		}
		for i := range n {
			p[i][n] /= leave
			for j := range n {
				p[i][j] += p[i][n] * p[n][j]
			}
		}
	}
	law := make([]float64, len(p))
	law[0] = 1
	total := 1.0
	for n := 1; n < len(p); n++ {
		for i := range n {
			law[n] += law[i] * p[i][n]
		}
		total += law[n]
	}
	for i := range law {
		law[i] /= total
	}
	return law
}

// langevinBias is the bias of DULA at one step size, ‖π_α - π‖₁ = Σ |π_α(θ) - π(θ)| with π_α its stationary law, which
// is twice the total variation.
type langevinBias struct {
	target  samplers.OrdinalTarget
	alpha   float64
	of      *targets.Enumeration
	law     []float64
	numbers map[string]float64 // that are known without chains
}

func newLangevinBias(ctx context.Context, target samplers.OrdinalTarget, alpha float64) (*langevinBias, error) {
	e, transition, err := langevinTransition(ctx, target, alpha)
	if err != nil {
		return nil, err
	}
	l := &langevinBias{target, alpha, e, stationaryLaw(transition), map[string]float64{}}
	if bias := floats.Distance(l.law, e.Probability, 1); bias >= 1e-13 {
		l.numbers["exact"] = bias
	} else {
		l.numbers["exact"] = 0 // rounding
	}
	return l, nil
}

// observe finds the bias of the states that chains of the kernel visit.
func (l *langevinBias) observe(ctx context.Context, b *bench, chains, steps int) error {
	kernel, err := samplers.Spec{Name: "dula-ordinal"}.With("step-size", l.alpha).New(l.target, nil)
	if err != nil {
		return err
	}
	streams := samplers.Streams(b.seed, "bias "+decimal(l.alpha), chains)
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
	observed, noise := make([]float64, len(counts)), 0.0
	for i, byChain := range counts {
		mean, deviation := stat.MeanStdDev(byChain, nil)
		observed[i] = mean
		noise += stat.StdErr(deviation, float64(chains)) // NaN of a single chain
	}
	for name, x := range l.numbers {
		b.number(name, x)
	}
	b.number("observed", floats.Distance(observed, l.of.Probability, 1))
	b.number("noise", noise)
	b.number("from-stationary", floats.Distance(observed, l.law, 1))
	return nil
}

// biasPreset is the figure that is no comparison of samplers.
const biasPreset = "dlp-figure-1"

const biasOfIsing = "2 × 2 Ising model by α"

// biasPlan is figure 1: left the Ising model, right the example, whose step size is as it stands in equation 2. In the
// exact law of the example α matters little; a large one lets the chains mix, since the quadratic term holds them back.
func biasPlan(ctx context.Context, title string, chains, steps int) (*plan, error) {
	p := newPlan(title, []column{
		{name: "exact", format: "%.3g", definition: "‖π_α - π‖₁ of the exact stationary law"},
		{name: "observed", format: "%.3g", definition: "the same of the states that chains visited"},
		{name: "noise", format: "%.3g",
			definition: "sum over states of the standard errors between chains: a distance below is not seen"},
		{name: "bound", format: "%.3g", definition: "of theorem 5.1, for the numbers 0 and 1"},
		{name: "rate", format: "%.3g", definition: "multiple of exp(-1/(2α))"},
	})
	p.between, p.figures = counted(chains, "chain"), drawBias
	p.notes = []string{"the Ising model has coupling 0.1 and field 0.2, and α is for 0 and 1; the example is " +
		"exp(aθ² + bθ + 2ε sin(θπ/2)), θ = ±1, α = 2",
		fmt.Sprintf("observed over %s × %s", counted(chains, "chain"), counted(steps, "step"))}
	add := func(curve string, x float64, l *langevinBias) {
		p.cells = append(p.cells, cell{labels{{"bias", curve}, {"at", strconv.FormatFloat(x, 'g', 3, 64)}},
			func(ctx context.Context, b *bench) error { return l.observe(ctx, b, chains, steps) }})
	}
	// The rate of theorem 5.1 goes through the bias at the smallest step size. The slope of ln bias against -1/(2α) is
	// of the smallest third of the step sizes: the theorem says 1.
	var x, y []float64
	for i := range 16 {
		alpha := 0.05 * math.Pow(20, float64(i)/15) // 0.05 to 1
		l, err := biasOfLattice(ctx, alpha)
		if err != nil {
			return nil, err
		}
		x, y = append(x, -1/(2*alpha)), append(y, math.Log(l.numbers["exact"]))
		l.numbers["rate"] = math.Exp(y[0] - x[0] - 1/(2*alpha))
		add(biasOfIsing, alpha, l)
	}
	_, slope := stat.LinearRegression(x[:len(x)/3], y[:len(y)/3], nil, false)
	p.notes = append(p.notes, fmt.Sprintf("slope of ln bias against -1/(2α) at small α: %.3f", slope))
	for _, example := range []struct{ a, b float64 }{{1, 0.1}, {0, 0}} {
		for i := range 11 {
			epsilon := float64(i) / 10
			l, err := newLangevinBias(ctx, targets.NewCounterExample(example.a, example.b, epsilon), 2)
			if err != nil {
				return nil, err
			}
			add(fmt.Sprintf("a = %v, b = %v by ε", example.a, example.b), epsilon, l)
		}
	}
	return p, nil
}

// biasOfLattice is of the 2 × 2 model with c = 0.1 and b = 0.2 (appendix I.1). Step sizes are for the numbers 0 and 1,
// which theorem 5.1 is proven for: it takes two different states to be at least 1 apart. Spins are twice as far apart,
// so that the same chain has four times the step size there.
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
	// W of the ring of four has the eigenvalues ±2 and 0, twice. In x = (1+s)/2 the quadratic form is 4cW, and the
	// constant, the energy of all spins down, falls away.
	const smallest = -2 * coupling
	l.numbers["alpha"] = alpha
	l.numbers["bound"] = math.Exp(l.of.LogNormaliser - l.of.Energy[0] - 1/(2*alpha) - 4*smallest/2)
	l.numbers["bound-of-spins"] = math.Exp(l.of.LogNormaliser - 1/(2*4*alpha) - smallest/2)
	return l, nil
}

// drawBias draws the columns together, a figure for each bias.
func drawBias(r *StudyReport) (figures []chart.Figure, failed error) {
	known := map[string][]chart.Line{}
	for _, g := range r.groups() {
		title := g.labels()[0].Value
		at, _ := strconv.ParseFloat(g.labels()[1].Value, 64)
		for _, c := range r.plan.columns {
			if y := g.numbers(c.name); len(y) > 0 && y[0] > 1e-12 {
				known[title] = chart.Add(known[title], c.name, at, y[0])
			}
		}
	}
	for i, title := range slices.Sorted(maps.Keys(known)) {
		p, err := chart.Lines(title, "α or ε", "‖π_α - π‖₁", known[title], true)
		failed = errors.Join(failed, err)
		if p != nil {
			p.Y.Scale, p.Y.Tick.Marker = plot.LogScale{}, plot.LogTicks{Prec: -1}
			figures = append(figures, chart.Figure{Name: fmt.Sprintf("bias-%d", i+1), Plot: p})
		}
	}
	return figures, failed
}
