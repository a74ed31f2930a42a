package chains

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/spf13/pflag"
	"gonum.org/v1/gonum/floats"

	"infill/cmd/lab/internal/lab"
	"infill/internal/logmath"
	"infill/internal/targets"
	"infill/samplers"
)

// newHiddenChains makes a factorial hidden Markov model, by default that of the
// code of Gibbs with Gradients. Every factor at every time is an observable. As
// in that code, chains can start from the model without observations.
func newHiddenChains(f *pflag.FlagSet) maker {
	times := lab.WholeFlag(f, "times", 100, 1, 1<<16, "times at which a number is observed")
	factors := lab.WholeFlag(f, "factors", 10, 1, 16, "hidden chains")
	noise := lab.NumberFlag(f, "noise", 0.5, " above 0", "standard deviation of what is observed")
	first := lab.NumberFlag(f, "first", 0.1, " above 0", "probability of 1 at the first time")
	keep := lab.NumberFlag(f, "keep", 0.95, " above 0", "probability that a state stays")
	own := lab.TargetSeed(f, "seed of weights, states and observations")
	return func(context.Context, *lab.Inputs) (*distribution, error) {
		if *first >= 1 || *keep >= 1 {
			return nil, lab.Refuse("keep", "noise %v, first %v, keep %v: the noise must be above 0, probabilities "+
				"between 0 and 1", *noise, *first, *keep)
		}
		target := newFHMM(*times, *factors, *noise, *first, *keep, samplers.Streams(*own, "fhmm", 1)[0])
		d := &distribution{kind: "fhmm", Target: target, observables: numbered(*times**factors, 0, 1),
			parameters: settings(f, "times", "factors", "noise", "first", "keep", "target-seed")}
		d.truth.method = fmt.Sprintf("forward and backward recursions over the 2^%d states of a time", *factors)
		d.truth.means = target.means()
		for time := range *times {
			on := 0.5 + (*first-0.5)*math.Pow(2**keep-1, float64(time))
			d.independent = append(d.independent, slices.Repeat([][]float64{lab.Bernoulli(on)}, *factors)...)
		}
		return d, nil
	}
}

// fhmm is a factorial hidden Markov model (Ghahramani and Jordan 1997) with
// binary states and a number observed at each time, as in the code of Gibbs
// with Gradients:
//
//	x_1k ~ Bernoulli(first),  x_tk = x_(t-1)k with probability keep
//	y_t ~ N(b + Σ_k w_k x_tk, σ²)
//
// The target is log p(y, x) over x given y, up to a constant: slot t·K + k is
// factor k at time t. It is quadratic in x, so it is an Ising model.
type fhmm struct {
	*targets.Ising
	observed    []float64 // y, [times]
	weights     []float64 // w, [factors]
	offset      float64   // b
	noise       float64   // σ
	first, keep float64
}

// newFHMM draws weights and the offset from N(0, 1), then states and
// observations from the model.
func newFHMM(times, factors int, noise, first, keep float64, r *rand.Rand) *fhmm {
	t := &fhmm{weights: targets.Normals(r, factors, 1), offset: r.NormFloat64(), noise: noise, first: first, keep: keep}
	var states []int
	for time := range times {
		y := t.offset + noise*r.NormFloat64()
		for _, w := range t.weights {
			x := logmath.Indicator(r.Float64() < first)
			if time > 0 {
				x = states[len(states)-factors] ^ logmath.Indicator(keep < r.Float64())
			}
			states = append(states, x)
			y += w * float64(x)
		}
		t.observed = append(t.observed, y)
	}
	t.Ising = t.quadratic()
	return t
}

// quadratic returns log p(y, x) as an Ising model of the spins s = 2x - 1.
func (t *fhmm) quadratic() *targets.Ising {
	factors := len(t.weights)
	n := len(t.weights) * len(t.observed)
	near := make([][]int, n)
	couplings := make([][]float64, n)
	field := make([]float64, n)
	// add adds q x_i x_j = q (1 + s_i + s_j + s_i s_j)/4. Callers add every
	// pair in both orders, half each time.
	add := func(i, j int, q float64) {
		near[i] = append(near[i], j)
		couplings[i] = append(couplings[i], q/4)
		field[i] += q / 4
		field[j] += q / 4
	}
	for i := range field {
		time := i / factors
		k := i % factors
		w := t.weights[k]
		precision := 1 / (t.noise * t.noise)
		field[i] += w * (t.observed[time] - t.offset) * precision / 2
		for l, other := range t.weights {
			add(i, time*factors+l, -w*other*precision/2)
		}
		if time == 0 {
			field[i] += lab.LogOdds(t.first) / 2
		}
		// A transition adds 1 - x - x' + 2xx', which is 1 if x = x', else 0,
		// times the log-odds of keeping the state.
		for _, j := range []int{i - factors, i + factors} {
			if j >= 0 && j < n {
				field[i] -= lab.LogOdds(t.keep) / 2
				add(i, j, lab.LogOdds(t.keep))
			}
		}
	}
	return targets.NewSparseIsing(near, couplings, field)
}

// means returns the exact probabilities of 1, [slots], by the forward and
// backward recursions over the 2^factors joint states of one time.
func (t *fhmm) means() []float64 {
	factors := len(t.weights)
	times := len(t.observed)
	n := 1 << factors
	likelihood := make([][]float64, times)
	for time, y := range t.observed {
		row := make([]float64, n)
		for s := range row {
			e := y - t.offset
			for k, w := range t.weights {
				e -= w * float64(s>>k&1)
			}
			row[s] = -e * e / (2 * t.noise * t.noise)
		}
		likelihood[time] = lab.Softmax(row)
	}
	// pass goes over the times in steps of by. For each time, it returns the
	// message from the times before it.
	pass := func(law []float64, time, by int) [][]float64 {
		said := make([][]float64, times)
		for ; time >= 0 && time < times; time += by {
			said[time] = slices.Clone(law)
			floats.Mul(law, likelihood[time])
			scale(law)
			for k := range factors { // each factor keeps its state or changes it
				for s := range law {
					if s>>k&1 == 0 {
						a := law[s]
						b := law[s|1<<k]
						law[s] = t.keep*a + (1-t.keep)*b
						law[s|1<<k] = t.keep*b + (1-t.keep)*a
					}
				}
			}
		}
		return said
	}
	first := slices.Repeat([]float64{1}, n)
	for s := range first {
		for k := range factors {
			first[s] *= lab.Bernoulli(t.first)[s>>k&1]
		}
	}
	forward := pass(first, 0, 1)
	backward := pass(slices.Repeat([]float64{1}, n), times-1, -1)
	means := make([]float64, times*factors)
	for time, at := range forward {
		floats.Mul(at, likelihood[time])
		floats.Mul(at, backward[time])
		scale(at)
		for s, p := range at {
			for k := range factors {
				means[time*factors+k] += p * float64(s>>k&1)
			}
		}
	}
	return means
}

// scale divides numbers by their sum, so that products of them do not vanish.
func scale(row []float64) { floats.Scale(1/floats.Sum(row), row) }
