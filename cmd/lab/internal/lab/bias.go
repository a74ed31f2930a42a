package lab

import (
	"context"
	"fmt"
	"math"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"

	"infill/internal/targets"
	"infill/samplers"
)

// biasPoint is the bias of DULA at one setting, ‖π_α - π‖₁ = Σ |π_α(θ) - π(θ)|
// with π_α its stationary law; twice the total variation.
type biasPoint struct {
	// X is the setting: a step size, or ε.
	X float64 `json:"x"`
	// StepSizeSpins is the same step size where the numbers are spins.
	StepSizeSpins float64 `json:"step_size_spins,omitempty"`
	// Exact is the distance of the exact stationary law.
	Exact float64 `json:"exact"`
	// Bound is that of theorem 5.1 for the numbers 0 and 1, BoundSpins for
	// -1 and 1; absent where the theorem says nothing.
	Bound      *float64 `json:"bound,omitempty"`
	BoundSpins *float64 `json:"bound_spins,omitempty"`
	// Rate is the fitted multiple of exp(-1/(2α)).
	Rate *float64 `json:"rate,omitempty"`
	// Observed is the distance of the states that chains of the kernel visited, over all chains. Noise is the sum over
	// states of the standard errors between chains: a distance below it is not seen.
	Observed *float64 `json:"observed,omitempty"`
	Noise    *float64 `json:"noise,omitempty"`
	// FromStationary is the distance of those states from the exact stationary law, which noise alone should explain.
	FromStationary *float64 `json:"from_stationary,omitempty"`
}

// biasCurve is the bias against one setting.
type biasCurve struct {
	Title    string      `json:"title"`
	Variable string      `json:"variable"`
	Chains   int         `json:"chains,omitempty"`
	Steps    int         `json:"steps,omitempty"`
	Points   []biasPoint `json:"points"`
	// Slope of ln bias against -1/(2α) over the smallest third of the step sizes: theorem 5.1 says 1.
	Slope *float64 `json:"slope,omitempty"`
}

// langevinTransition is DULA's transition matrix by equation 2 of the discrete Langevin paper, written down anew to
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

// biasAt computes the exact bias and, when chains is above 0, runs the kernel.
func biasAt(ctx context.Context, target samplers.OrdinalTarget, alpha float64, o Options) (biasPoint, error) {
	var b biasPoint
	e, transition, err := langevinTransition(ctx, target, alpha)
	if err != nil {
		return b, err
	}
	law := stationaryLaw(transition)
	b.Exact = floats.Distance(law, e.Probability, 1)
	if o.Chains == 0 {
		return b, nil
	}
	kernel, err := samplers.Spec{Name: "dula-ordinal"}.With("step-size", alpha).New(target, nil)
	if err != nil {
		return b, err
	}
	streams := samplers.Streams(o.Seed, "bias "+decimal(alpha), o.Chains)
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
		return b, err
	}
	observed, noise := make([]float64, e.Len()), 0.0
	for i, byChain := range counts {
		mean, deviation := stat.MeanStdDev(byChain, nil)
		observed[i] = mean
		noise += stat.StdErr(deviation, float64(o.Chains))
	}
	seen, off := floats.Distance(observed, e.Probability, 1), floats.Distance(observed, law, 1)
	b.Observed, b.FromStationary = &seen, &off
	if o.Chains > 1 {
		b.Noise = &noise
	}
	return b, nil
}

// biases are those of figure 1.
func biases(ctx context.Context, o Options) ([]*biasCurve, error) {
	ising, err := isingBias(ctx, o.part(0, 1))
	if err != nil {
		return nil, err
	}
	// In the exact law of the example α matters little; a large one lets the
	// chains mix, since the example's quadratic term holds them back.
	near, err := epsilonBias(ctx, 1, 0.1, 2, o)
	if err != nil {
		return nil, err
	}
	counter, err := epsilonBias(ctx, 0, 0, 2, o)
	return []*biasCurve{ising, near, counter}, err
}

// isingBias is figure 1, left: the 2 × 2 model with c = 0.1 and b = 0.2 (appendix I.1). Step sizes are for the numbers
// 0 and 1, which theorem 5.1 is proven for: it takes two different states to be at least 1 apart. Spins are twice as
// far apart, so that the same chain has four times the step size there.
func isingBias(ctx context.Context, o Options) (*biasCurve, error) {
	const coupling, field = 0.1, 0.2
	target, err := targets.NewIsing(2, 2, coupling, field)
	if err != nil {
		return nil, err
	}
	e, err := targets.Enumerate(ctx, target)
	if err != nil {
		return nil, err
	}
	// W of the ring of four has the eigenvalues ±2 and 0, twice. In x = (1+s)/2 the quadratic form is 4cW, and the
	// constant, the energy of all spins down, falls away.
	const smallest = -2 * coupling
	logZSpins := e.LogNormaliser
	logZ := logZSpins - e.Energy[0]
	curve := &biasCurve{
		Title:    fmt.Sprintf("DULA on a 2 × 2 Ising model, coupling %v, field %v", coupling, field),
		Variable: "step size α (numbers 0 and 1)", Chains: o.Chains, Steps: o.Steps,
	}
	for i := range 16 {
		alpha := 0.05 * math.Pow(20, float64(i)/15) // 0.05 to 1
		point, err := biasAt(ctx, target, 4*alpha, o)
		if err != nil {
			return nil, err
		}
		point.X, point.StepSizeSpins = alpha, 4*alpha
		bound := math.Exp(logZ - 1/(2*alpha) - 4*smallest/2)
		spins := math.Exp(logZSpins - 1/(2*4*alpha) - smallest/2)
		point.Bound, point.BoundSpins = &bound, &spins
		curve.Points = append(curve.Points, point)
		if o.Observe != nil {
			o.Observe(Progress{"dula-ordinal", i + 1, 16})
		}
	}
	small := curve.Points[:len(curve.Points)/3]
	var x, y []float64
	for _, p := range small {
		x, y = append(x, -1/(2*p.X)), append(y, math.Log(p.Exact))
	}
	_, slope := stat.LinearRegression(x, y, nil, false)
	curve.Slope = &slope
	for i := range curve.Points {
		rate := small[0].Exact * math.Exp(1/(2*small[0].X)-1/(2*curve.Points[i].X))
		curve.Points[i].Rate = &rate
	}
	return curve, nil
}

// epsilonBias is figure 1, right, with the step size as it stands in equation 2.
func epsilonBias(ctx context.Context, a, b, alpha float64, o Options) (*biasCurve, error) {
	curve := &biasCurve{
		Title:    fmt.Sprintf("DULA on exp(aθ² + bθ + 2ε sin(θπ/2)), θ = ±1, a = %v, b = %v, α = %v", a, b, alpha),
		Variable: "ε", Chains: o.Chains, Steps: o.Steps,
	}
	for i := range 11 {
		epsilon := float64(i) / 10
		point, err := biasAt(ctx, targets.NewCounterExample(a, b, epsilon), alpha, o)
		if err != nil {
			return nil, err
		}
		point.X = epsilon
		curve.Points = append(curve.Points, point)
	}
	return curve, nil
}
