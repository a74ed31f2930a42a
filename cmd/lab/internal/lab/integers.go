package lab

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mathext"

	"infill/internal/logmath"
	"infill/samplers"
)

// integers is a distribution over slots that hold 0, 1, 2 and so on without
// end: Poisson numbers that pull on their neighbours,
//
//	U(θ) = Σ (θ_i ln λ - ln θ_i!) - c/2 Σ (θ_i - θ_{i+1})²
//
// Its domain is infinite, as in appendix C of the discrete Langevin paper.
type integers struct {
	slots          int
	rate, coupling float64 // λ and c
}

func (t integers) energy(state []int) (u float64) {
	for i, n := range state {
		u += t.alone(n)
		if i > 0 {
			u += t.between(state[i-1], n)
		}
	}
	return u
}

func (t integers) alone(n int) float64 {
	gamma, _ := math.Lgamma(float64(n + 1))
	return float64(n)*math.Log(t.rate) - gamma
}

func (t integers) between(a, b int) float64 { return -t.coupling / 2 * float64((a-b)*(a-b)) }

// derivative returns ∂U/∂θ_i, with the gamma function in place of the
// factorial.
func (t integers) derivative(state []int, i int) float64 {
	d := math.Log(t.rate) - mathext.Digamma(float64(state[i]+1))
	for _, j := range []int{i - 1, i + 1} {
		if j >= 0 && j < t.slots {
			d -= t.coupling * float64(state[i]-state[j])
		}
	}
	return d
}

// means returns the exact means of the slots. Numbers beyond a bound have less
// than the rounding's probability, as those of a Poisson number, which the
// coupling only draws together.
func (t integers) means() []float64 {
	bound := int(t.rate+20*math.Sqrt(t.rate)) + 40
	var forward [][]float64 // of each slot
	var before []float64
	for range t.slots {
		before = t.message(bound, before)
		forward = append(forward, before)
	}
	backward := make([]float64, bound) // log sum over the slots behind
	means := make([]float64, t.slots)
	for i := t.slots - 1; i >= 0; i-- {
		law := slices.Clone(forward[i])
		floats.Add(law, backward)
		whole := logmath.LogSumExp(law)
		for n, l := range law {
			means[i] += float64(n) * math.Exp(l-whole)
		}
		behind := slices.Clone(backward)
		for n := range behind {
			behind[n] += t.alone(n)
		}
		for n := range backward {
			var terms []float64
			for m, l := range behind {
				terms = append(terms, l+t.between(n, m))
			}
			backward[n] = logmath.LogSumExp(terms)
		}
	}
	return means
}

// message returns log of the sum, over all numbers of the slots before, of exp
// U of the slots up to one that holds each number. before is the message of the
// slot before, or empty.
func (t integers) message(bound int, before []float64) []float64 {
	own := make([]float64, bound)
	for n := range own {
		own[n] = t.alone(n)
		if len(before) == 0 {
			continue
		}
		var terms []float64
		for m, l := range before {
			terms = append(terms, l+t.between(m, n))
		}
		own[n] += logmath.LogSumExp(terms)
	}
	return own
}

// windowed is the discrete Langevin proposal within a window: slot i goes from
// θ_i to θ_i + d, |d| at most window, with
//
//	q_i(d | θ) ∝ exp(½ U'_i d - d²/(2α)),  θ_i + d ≥ 0
//
// DULA takes all proposals; DMALA, which is adjusted, accepts by
// Metropolis–Hastings and targets exp U.
type windowed struct {
	of       integers
	alpha    float64
	window   int
	adjusted bool
}

// logLaw returns log q_i of the changes from -window to window.
func (k windowed) logLaw(state []int, i int) []float64 {
	slope := k.of.derivative(state, i) / 2
	law := make([]float64, 2*k.window+1)
	for at := range law {
		d := at - k.window
		law[at] = math.Inf(-1)
		if state[i]+d >= 0 {
			law[at] = slope*float64(d) - float64(d*d)/(2*k.alpha)
		}
	}
	floats.AddConst(-logmath.LogSumExp(law), law)
	return law
}

// logProposal returns log q(to | from): -Inf if a slot changes by more than the
// window.
func (k windowed) logProposal(from, to []int) (logq float64) {
	for i, n := range to {
		at := n - from[i] + k.window
		if at < 0 || at > 2*k.window {
			return math.Inf(-1)
		}
		logq += k.logLaw(from, i)[at]
	}
	return logq
}

// logAcceptance returns log of the probability to accept a proposal.
func (k windowed) logAcceptance(from, to []int) float64 {
	if !k.adjusted {
		return 0
	}
	return math.Min(0, k.of.energy(to)-k.of.energy(from)+k.logProposal(to, from)-k.logProposal(from, to))
}

// step moves a state, and reports whether the proposal was accepted.
func (k windowed) step(state []int, r *rand.Rand) bool {
	to := slices.Clone(state)
	for i := range to {
		u := r.Float64()
		for at, l := range k.logLaw(state, i) {
			to[i] = state[i] + at - k.window
			u -= math.Exp(l)
			if u < 0 {
				break
			}
		}
	}
	if math.Log(r.Float64()) >= k.logAcceptance(state, to) {
		return false
	}
	copy(state, to)
	return true
}

func newIntegers() *Study {
	s := newStudy("integers", "DULA and DMALA on slots without an end",
		`Slots hold 0, 1, 2 and so on without end: Poisson numbers that pull on their neighbours. The
proposal sees a window around the present number, as in appendix C of the discrete Langevin
paper. The means come from sums over all numbers that matter.`)
	f := s.Flags
	slots := wholeFlag(f, "slots", 10, 1, 1000, "slots in a row")
	rate := number(f, "rate", 5, " above 0", "mean of a slot without neighbours")
	coupling := number(f, "coupling", 0.1, " of 0 or more", "of neighbours: c in -c/2 (a - b)²")
	window := wholeFlag(f, "window", 1, 1, 100, "largest change of a slot")
	alphas := numbersFlag(f, "step-sizes", []float64{0.5, 2}, "α, with commas between them")
	chains := wholeFlag(f, "chains", 16, 2, maxChains, "chains, which start at 0")
	steps := wholeFlag(f, "steps", 5000, 10, maxSteps, "steps of each chain; the first tenth is left out")
	s.plan = func(context.Context, *inputs, uint64) (*plan, error) {
		target := integers{*slots, *rate, *coupling}
		p := newPlan(fmt.Sprintf("integers without an end, window %d", *window), []column{
			{name: "mean", format: "%.3f", definition: "of all slots"},
			{name: "exact", format: "%.3f", definition: "the exact mean"},
			{name: "log-rmse", format: "%.2f",
				definition: "½ ln of the mean over slots of (mean over the chains - exact)²"},
			acceptanceColumn(),
			{name: "ess", format: "%.1f", definition: "effective sample size of the sum of the slots, of 1,000 steps"},
			{name: "largest", format: "%.0f", definition: "number of a slot"},
		})
		p.betweenChains(*chains)
		for _, alpha := range *alphas {
			if alpha <= 0 {
				return nil, refuse("step-sizes", "%v is not above 0", alpha)
			}
			for _, adjusted := range []bool{false, true} {
				k := windowed{target, alpha, *window, adjusted}
				name := "dula"
				if adjusted {
					name = "dmala"
				}
				p.cells = append(p.cells, cell{labels{{"sampler", name}, {"step-size", decimal(alpha)}},
					func(ctx context.Context, b *bench) error { return k.measure(ctx, b, *chains, *steps) }})
			}
		}
		return p, nil
	}
	return s
}

// measure runs chains from 0.
func (k windowed) measure(ctx context.Context, b *bench, chains, steps int) error {
	first := steps / 10
	sums := make([]float64, k.of.slots) // over chains and steps
	var accepted, means, worth []float64
	largest := 0
	for c, r := range b.streams("chains", chains) {
		state := make([]int, k.of.slots)
		taken := 0
		var totals []float64
		for step := range steps {
			if k.step(state, r) {
				taken++
			}
			largest = max(largest, slices.Max(state))
			if step < first {
				continue
			}
			total := 0
			for i, n := range state {
				sums[i] += float64(n)
				total += n
			}
			totals = append(totals, float64(total))
		}
		accepted = append(accepted, float64(taken)/float64(steps))
		means = append(means, floats.Sum(totals)/float64(len(totals)*k.of.slots))
		worth = append(worth, samplers.EffectiveSampleSize([][]float64{totals})*1000/float64(len(totals)))
		err := b.tick(ctx, c+1, chains)
		if err != nil {
			return err
		}
	}
	exact := k.of.means()
	floats.Scale(1/float64(chains*(steps-first)), sums)
	b.chains("mean", means)
	b.number("exact", floats.Sum(exact)/float64(k.of.slots))
	b.number("log-rmse", math.Log(floats.Distance(sums, exact, 2)/math.Sqrt(float64(k.of.slots))))
	b.chains("acceptance", accepted)
	b.chains("ess", worth)
	b.number("largest", float64(largest))
	return nil
}
