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

// biasAt finds the bias of DULA at one step size, ‖π_α - π‖₁ = Σ |π_α(θ) - π(θ)| with π_α its stationary law, which is
// twice the total variation: exactly, and of the states that chains of the kernel visit.
func biasAt(ctx context.Context, b *bench, target samplers.OrdinalTarget, alpha float64, o Options) error {
	e, transition, err := langevinTransition(ctx, target, alpha)
	if err != nil {
		return err
	}
	law := stationaryLaw(transition)
	bias := floats.Distance(law, e.Probability, 1)
	if bias < 1e-13 {
		bias = 0 // rounding
	}
	b.number("exact", bias)
	kernel, err := samplers.Spec{Name: "dula-ordinal"}.With("step-size", alpha).New(target, nil)
	if err != nil {
		return err
	}
	streams := samplers.Streams(b.seed, "bias "+decimal(alpha), o.Chains)
	counts := make([][]float64, e.Len())
	for i := range counts {
		counts[i] = make([]float64, o.Chains)
	}
	plan := samplers.Plan{Streams: streams, WarmUp: o.Steps / 10, Steps: o.Steps}
	_, err = samplers.Sample(ctx, kernel, samplers.RandomPositions(target, streams), plan, func(s samplers.Step) error {
		for c := range o.Chains {
			if !s.WarmUp {
				counts[e.Index(s.State.Position(c))][c] += 1 / float64(o.Steps)
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	observed, noise := make([]float64, e.Len()), 0.0
	for i, byChain := range counts {
		mean, deviation := stat.MeanStdDev(byChain, nil)
		observed[i] = mean
		noise += stat.StdErr(deviation, float64(o.Chains)) // NaN of a single chain
	}
	b.number("observed", floats.Distance(observed, e.Probability, 1))
	b.number("noise", noise)
	b.number("from-stationary", floats.Distance(observed, law, 1))
	return nil
}

// biasPreset is the figure that is no comparison of samplers.
const biasPreset = "dlp-figure-1"

const biasOfIsing = "2 × 2 Ising model by α"

// biasPlan is figure 1: left the Ising model, right the example, whose step size is as it stands in equation 2. In the
// exact law of the example α matters little; a large one lets the chains mix, since the quadratic term holds them back.
func biasPlan(title string, o Options) *plan {
	p := &plan{title: title, finish: followRate, draw: drawBias,
		columns: []column{
			{name: "exact", format: "%.3g", definition: "‖π_α - π‖₁ of the exact stationary law"},
			{name: "observed", format: "%.3g", definition: "the same of the states that chains visited"},
			{name: "noise", format: "%.3g",
				definition: "sum over states of the standard errors between chains: a distance below is not seen"},
			{name: "bound", format: "%.3g", definition: "of theorem 5.1, for the numbers 0 and 1"},
			{name: "rate", format: "%.3g", definition: "multiple of exp(-1/(2α))"},
		},
		between: counted(o.Chains, "chain"),
		notes: []string{"the Ising model has coupling 0.1 and field 0.2, and α is for 0 and 1; the example is " +
			"exp(aθ² + bθ + 2ε sin(θπ/2)), θ = ±1, α = 2",
			fmt.Sprintf("observed over %s × %s", counted(o.Chains, "chain"), counted(o.Steps, "step"))},
	}
	add := func(curve string, x float64, run func(context.Context, *bench) error) {
		at := strconv.FormatFloat(x, 'g', 3, 64)
		p.cells = append(p.cells, cell{[]parameter{{"bias", curve}, {"at", at}}, run})
	}
	for i := range 16 {
		alpha := 0.05 * math.Pow(20, float64(i)/15) // 0.05 to 1
		add(biasOfIsing, alpha, func(ctx context.Context, b *bench) error { return biasOfLattice(ctx, b, alpha, o) })
	}
	for _, example := range []struct{ a, b float64 }{{1, 0.1}, {0, 0}} {
		for i := range 11 {
			epsilon := float64(i) / 10
			add(fmt.Sprintf("a = %v, b = %v by ε", example.a, example.b), epsilon,
				func(ctx context.Context, b *bench) error {
					return biasAt(ctx, b, targets.NewCounterExample(example.a, example.b, epsilon), 2, o)
				})
		}
	}
	return p
}

// biasOfLattice is of the 2 × 2 model with c = 0.1 and b = 0.2 (appendix I.1). Step sizes are for the numbers 0 and 1,
// which theorem 5.1 is proven for: it takes two different states to be at least 1 apart. Spins are twice as far apart,
// so that the same chain has four times the step size there.
func biasOfLattice(ctx context.Context, b *bench, alpha float64, o Options) error {
	const coupling, field = 0.1, 0.2
	target, err := targets.NewIsing(2, 2, coupling, field)
	if err != nil {
		return err
	}
	e, err := targets.Enumerate(ctx, target)
	if err != nil {
		return err
	}
	// W of the ring of four has the eigenvalues ±2 and 0, twice. In x = (1+s)/2 the quadratic form is 4cW, and the
	// constant, the energy of all spins down, falls away.
	const smallest = -2 * coupling
	b.number("alpha", alpha)
	b.number("bound", math.Exp(e.LogNormaliser-e.Energy[0]-1/(2*alpha)-4*smallest/2))
	b.number("bound-of-spins", math.Exp(e.LogNormaliser-1/(2*4*alpha)-smallest/2))
	return biasAt(ctx, b, target, 4*alpha, o)
}

// followRate draws the rate of theorem 5.1 through the bias at the smallest step size, and finds the slope of ln bias
// against -1/(2α) over the smallest third of the step sizes: the theorem says 1.
func followRate(r *StudyReport) {
	var x, y []float64
	for _, c := range r.Cells {
		alpha, of := c.Numbers["alpha"]
		if !of {
			continue
		}
		x, y = append(x, -1/(2*alpha)), append(y, math.Log(c.Numbers["exact"]))
		c.Numbers["rate"] = math.Exp(y[0] - x[0] - 1/(2*alpha))
	}
	_, slope := stat.LinearRegression(x[:len(x)/3], y[:len(y)/3], nil, false)
	r.plan.notes = append(r.plan.notes, fmt.Sprintf("slope of ln bias against -1/(2α) at small α: %.3f", slope))
}

// drawBias draws the columns together, a figure for each bias.
func drawBias(r *StudyReport) (figures []chart.Figure, failed error) {
	known := map[string][]chart.Line{}
	for _, g := range r.groups() {
		title := g.labels[0].Value
		at, _ := strconv.ParseFloat(g.labels[1].Value, 64)
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
