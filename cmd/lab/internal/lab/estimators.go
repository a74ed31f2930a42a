package lab

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"

	"infill/internal/logmath"
	"infill/internal/targets"
	"infill/samplers"
)

// An estimator estimates the gradient of E[U(b)] over independent slots with b_j ~ softmax(0, φ_j), which for two
// categories is Bernoulli(sigmoid(φ_j)). A batch has several rows of logits, each with an expectation of its own. The
// target gets the state of row n as state number n.
type estimator interface {
	// evaluations returns how many evaluations of the target, at hard or relaxed states, one draw takes.
	evaluations() int
	// estimate writes the mean of the given number of draws to gradient, [rows × slots × (categories - 1)] like logits.
	estimate(ctx context.Context, logits []float64, draws int, r *rand.Rand, gradient []float64) error
}

// estimators lists the estimators: ARM; its half, AR; REINFORCE without and with a baseline; a relaxed control variate;
// and Gumbel-softmax with straight-through. Only the last is biased.
func estimators() []string {
	return []string{"arm", "ar", "reinforce", "leave-one-out", "relax", "straight-through"}
}

// newEstimator makes an estimator. All slots of target must have the same number of categories.
func newEstimator(name string, target samplers.Target) (estimator, error) {
	categories := target.Categories()
	b, needs := batch{target, len(categories), categories[0]}, ""
	relaxed, soft := target.(samplers.RelaxedTarget)
	switch {
	case slices.Min(categories) != slices.Max(categories) || b.categories < 2:
		needs = "as many categories in every slot, two at least"
	case b.categories > 2 && slices.Contains([]string{"ar", "relax", "straight-through"}, name):
		needs = "two categories in every slot"
	case !soft && (name == "relax" || name == "straight-through"):
		needs = "energies of slots between 0 and 1"
	case name == "arm":
		return arm{b}, nil
	case name == "relax":
		return &relaxEstimator{batch: b, relaxed: relaxed, eta: 1}, nil
	case name == "straight-through":
		return straightThrough{b, relaxed}, nil
	default:
		return &scoreEstimator{batch: b, kind: name}, nil
	}
	return nil, fmt.Errorf("%s needs %s: %w", name, needs, samplers.ErrUnsupported)
}

// batch evaluates a target at one state for each row of logits.
type batch struct {
	target            samplers.Target
	slots, categories int
}

// energies returns U of each row. If one is not finite, it returns an error, as the expectation does not exist.
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

// arm is the augment-REINFORCE-merge estimator of Yin and Zhou, "ARM: Augment-REINFORCE-Merge Gradient for Stochastic
// Binary Networks" (ICLR 2019, algorithm 1), an unbiased gradient that needs energies only:
//
//	u ~ Uniform(0,1)^m
//	∂E[U]/∂φ_j ≈ (U([u > sigmoid(-φ)]) - U([u < sigmoid(φ)])) (u_j - ½)
//
// For K categories it is ARSM (Yin, Yue and Zhou, ICML 2019); ARM is its case K = 2. π is uniform on the simplex, and b
// is the category of the least π_i exp(-φ_i). If b^ck is the state after parts c and k of π swap in every slot,
//
//	∂E[U]/∂φ_jc ≈ Σ_k (U(b^ck) - mean_i U(b^ik)) (1/K - π_jk)
type arm struct{ batch }

func (a arm) evaluations() int { return 1 + a.categories*(a.categories-1)/2 }

func (a arm) estimate(ctx context.Context, logits []float64, draws int, r *rand.Rand, gradient []float64) error {
	k := a.categories
	sites := len(logits) / (k - 1)
	pi, states := make([]float64, sites*k), make([]int, sites)
	u := make([][]float64, k*k) // U of b^ck, [rows]
	clear(gradient)
	for range draws {
		for part := range slices.Chunk(pi, k) {
			for c := range part {
				part[c] = r.ExpFloat64()
			}
			floats.Scale(1/floats.Sum(part), part)
		}
		for c := range k {
			for d := range c + 1 {
				if c == d && c > 0 {
					u[c*k+c] = u[0] // here c = d, which swaps nothing
					continue
				}
				for i := range states {
					states[i] = race(pi[i*k:(i+1)*k], logits[i*(k-1):(i+1)*(k-1)], c, d)
				}
				of, err := a.energies(ctx, states)
				if err != nil {
					return err
				}
				u[c*k+d], u[d*k+c] = of, of
			}
		}
		for i := range sites {
			row := i / a.slots
			for d := range k {
				mean := 0.0
				for c := range k {
					mean += u[c*k+d][row] / float64(k)
				}
				for c := 1; c < k; c++ {
					gradient[i*(k-1)+c-1] += (u[c*k+d][row] - mean) * (1/float64(k) - pi[i*k+d]) / float64(draws)
				}
			}
		}
	}
	return nil
}

// race returns the category with the least π_i exp(-φ_i), after parts c and d of π are swapped.
func race(pi, logits []float64, c, d int) int {
	best, at := math.Inf(1), 0
	for v := range pi {
		part, weight := v, 1.0
		switch v {
		case c:
			part = d
		case d:
			part = c
		}
		if v > 0 {
			weight = math.Exp(-logits[v-1])
		}
		if x := pi[part] * weight; x < best {
			best, at = x, v
		}
	}
	return at
}

// scoreEstimator is REINFORCE (Williams 1992), (U(b) - baseline) ∂log p(b)/∂φ. Its baseline is 0 or, given two draws or
// more, the mean U of the row's other draws. It is also ARM's half, AR, (U([u < sigmoid(φ)]) - baseline) (1 - 2u),
// whose baseline is the mean U of earlier calls.
type scoreEstimator struct {
	batch
	kind       string
	sum, count float64
}

func (*scoreEstimator) evaluations() int { return 1 }

func (e *scoreEstimator) estimate(ctx context.Context, logits []float64, draws int, r *rand.Rand,
	gradient []float64) error {
	more := e.categories - 1
	law := make([][]float64, len(logits)/more)
	for i := range law {
		law[i] = softmax(append([]float64{0}, logits[i*more:(i+1)*more]...))
	}
	scores, energy, mean := make([][]float64, draws), make([][]float64, draws), make([]float64, len(law)/e.slots)
	for n := range draws {
		scores[n] = make([]float64, len(logits))
		states := make([]int, len(law))
		for i, p := range law {
			u, rest := r.Float64(), 0.0
			for c := 1; c < len(p) && states[i] == 0; c++ {
				if rest += p[c]; u < rest {
					states[i] = c
				}
			}
			for c := range more {
				scores[n][i*more+c] = float64(bit(states[i] == c+1)) - p[c+1]
			}
			if e.kind == "ar" {
				scores[n][i] = 1 - 2*u
			}
		}
		var err error
		if energy[n], err = e.energies(ctx, states); err != nil {
			return err
		}
		floats.AddScaled(mean, 1/float64(draws), energy[n])
	}
	clear(gradient)
	for n, of := range scores {
		for i, score := range of {
			row := i / more / e.slots
			weight := energy[n][row]
			switch e.kind {
			case "ar":
				weight -= e.sum / max(e.count, 1)
			case "leave-one-out": // the baseline is the mean of the other draws
				weight = (weight - mean[row]) * float64(draws) / float64(max(draws-1, 1))
			}
			gradient[i] += weight * score / float64(draws)
		}
	}
	e.sum, e.count = e.sum+floats.Sum(mean), e.count+float64(len(mean))
	return nil
}

// temperature is λ, the temperature of the relaxed bits.
const temperature = 0.5

// relaxEstimator is the score function with REBAR's control variate (Tucker and others 2017; Grathwohl and others,
// RELAX, 2018). The temperature λ is fixed; each call moves the scale η to lower the variance. With z = φ + logit(u), b
// = [z > 0], z̃ drawn as z given b, and s(z) = sigmoid(z/λ):
//
//	(U(b) - ηU(s(z̃))) ∂log p(b)/∂φ + η ∂U(s(z))/∂φ - η ∂U(s(z̃))/∂φ
type relaxEstimator struct {
	batch
	relaxed samplers.RelaxedTarget
	eta     float64
	moment  float64 // running mean square of η's gradient
	calls   int
}

func (*relaxEstimator) evaluations() int { return 3 }

func (e *relaxEstimator) estimate(ctx context.Context, logits []float64, draws int, r *rand.Rand,
	gradient []float64) error {
	n := len(logits)
	hard, score, given := make([]int, n), make([]float64, n), make([]float64, n) // ∂log p/∂φ and ∂z̃/∂φ
	var points, slopes, values [2][]float64                                      // at s(z) and s(z̃)
	for i := range points {
		points[i], slopes[i], values[i] = make([]float64, n), make([]float64, n), make([]float64, n/e.slots)
	}
	clear(gradient)
	pull := 0.0
	for range draws {
		for j, phi := range logits {
			theta := logmath.Sigmoid(phi)
			u, v := inside(r.Float64()), inside(r.Float64())
			z := phi + logOdds(u)
			hard[j] = bit(z > 0)
			score[j] = float64(hard[j]) - theta
			// Given b, u is uniform above or below 1 - θ.
			conditional, slope := v*(1-theta), -v*theta*(1-theta)
			if hard[j] == 1 {
				conditional, slope = 1-theta*(1-v), -(1-v)*theta*(1-theta)
			}
			conditional = inside(conditional)
			given[j] = 1 + slope/(conditional*(1-conditional))
			points[0][j] = logmath.Sigmoid(z / temperature)
			points[1][j] = logmath.Sigmoid((phi + logOdds(conditional)) / temperature)
		}
		energy, err := e.energies(ctx, hard)
		for i := range points {
			if err == nil {
				err = e.relaxed.RelaxedEnergyGradient(ctx, points[i], values[i], slopes[i])
			}
		}
		if err != nil {
			return err
		}
		for j := range logits {
			s, t, row := points[0][j], points[1][j], j/e.slots
			variate := -values[1][row]*score[j] +
				(slopes[0][j]*s*(1-s)-slopes[1][j]*t*(1-t)*given[j])/temperature
			g := energy[row]*score[j] + e.eta*variate
			gradient[j] += g / float64(draws)
			pull += 2 * g * variate / float64(draws*len(energy))
		}
	}
	// The step is scaled by the gradient's running size, as in RMSprop, and falls from call to call.
	e.moment = 0.9*e.moment + 0.1*pull*pull
	if e.calls++; e.moment > 0 {
		e.eta -= 0.05 / math.Sqrt(float64(e.calls)) * pull / math.Sqrt(e.moment)
	}
	return nil
}

// straightThrough is Gumbel-softmax with straight-through (Jang and others 2017; Maddison and others 2017). It takes
// the slope of U(b + s(z) - c), with b = [z > 0], s(z) = sigmoid(z/λ), and c = s(z) held constant.
type straightThrough struct {
	batch
	relaxed samplers.RelaxedTarget
}

func (straightThrough) evaluations() int { return 1 }

func (e straightThrough) estimate(ctx context.Context, logits []float64, draws int, r *rand.Rand,
	gradient []float64) error {
	n := len(logits)
	bits, soft, slopes, energy := make([]float64, n), make([]float64, n), make([]float64, n), make([]float64, n/e.slots)
	clear(gradient)
	for range draws {
		for j, phi := range logits {
			z := phi + logOdds(inside(r.Float64()))
			bits[j], soft[j] = float64(bit(z > 0)), logmath.Sigmoid(z/temperature)
		}
		if err := e.relaxed.RelaxedEnergyGradient(ctx, bits, energy, slopes); err != nil {
			return err
		}
		for j, s := range soft {
			gradient[j] += slopes[j] * s * (1 - s) / temperature / float64(draws)
		}
	}
	return nil
}

func inside(u float64) float64 { return min(max(u, 1e-12), 1-1e-12) }

func logOdds(p float64) float64 { return math.Log(p) - math.Log1p(-p) }

// exactGradient writes ∂E[U]/∂φ of one row of logits, as a sum over all states.
func exactGradient(e *targets.Enumeration, logits, gradient []float64) {
	more := len(logits) / len(e.State(0))
	laws := make([][]float64, len(e.State(0)))
	for j := range laws {
		laws[j] = softmax(append([]float64{0}, logits[j*more:(j+1)*more]...))
	}
	clear(gradient)
	for s, u := range e.Energy {
		for j, v := range e.State(s) {
			u *= laws[j][v]
		}
		for j, v := range e.State(s) {
			for c := range more {
				gradient[j*more+c] += u * (float64(bit(v == c+1)) - laws[j][c+1])
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
		energy[c], gradient[c] = math.Pow(z-float64(t), 2), 2*(z-float64(t))
	}
	return nil
}

// deviations compares estimates with the exact gradient want. It returns the largest distance of a mean estimate, in
// standard errors, and the variance of one estimate, summed over the entries.
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
