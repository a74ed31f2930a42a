package lab

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/spf13/pflag"
	"gonum.org/v1/gonum/floats"

	"infill/internal/logmath"
	"infill/internal/targets"
	"infill/samplers"
)

// newHiddenChains is a factorial hidden Markov model, by default that of the code of Gibbs with Gradients. Every factor
// at every time is an observable. Chains can start by the model before anything was observed, as in the code.
func newHiddenChains(f *pflag.FlagSet) maker {
	times := Whole(f, "times", 100, 1, 1<<16, "times at which a number is observed")
	factors := Whole(f, "factors", 10, 1, 16, "hidden chains")
	noise := number(f, "noise", 0.5, " above 0", "standard deviation of what is observed")
	first := number(f, "first", 0.1, " above 0", "probability of 1 at the first time")
	keep := number(f, "keep", 0.95, " above 0", "probability that a state stays")
	own := targetSeed(f, "seed of weights, states and observations")
	return func(context.Context, uint64) (*distribution, error) {
		if *first >= 1 || *keep >= 1 {
			return nil, refuse("keep", "noise %v, first %v, keep %v: the noise must be above 0, probabilities "+
				"between 0 and 1", *noise, *first, *keep)
		}
		target := newFHMM(*times, *factors, *noise, *first, *keep, samplers.Streams(*own, "fhmm", 1)[0])
		d := &distribution{kind: "fhmm", target: target, observables: numbered(*times**factors, 0, 1),
			parameters: settings(f, "times", "factors", "noise", "first", "keep", "target-seed")}
		d.truth.method = fmt.Sprintf("forward and backward recursions over the 2^%d states of a time", *factors)
		d.truth.means, _ = target.means()
		for time := range *times {
			on := 0.5 + (*first-0.5)*math.Pow(2**keep-1, float64(time))
			d.independent = append(d.independent, slices.Repeat([][]float64{bernoulli(on)}, *factors)...)
		}
		return d, nil
	}
}

// fhmm is a factorial hidden Markov model (Ghahramani and Jordan 1997) with binary states and a number observed at each
// time, as in the code of Gibbs with Gradients:
//
//	x_1k ~ Bernoulli(first),  x_tk = x_(t-1)k with probability keep
//	y_t ~ N(b + Σ_k w_k x_tk, σ²)
//
// The target is log p(y, x) over x given y: slot t·K + k is factor k at time t.
type fhmm struct {
	observed    []float64 // y, [times]
	weights     []float64 // w, [factors]
	offset      float64   // b
	noise       float64   // σ
	first, keep float64
	categories  []int
}

// newFHMM draws weights and the offset from N(0, 1), states from the model, and observes them.
func newFHMM(times, factors int, noise, first, keep float64, r *rand.Rand) *fhmm {
	t := &fhmm{weights: targets.Normals(r, factors, 1), offset: r.NormFloat64(), noise: noise, first: first, keep: keep,
		categories: slices.Repeat([]int{2}, times*factors)}
	var states []int
	for time := range times {
		y := t.offset + noise*r.NormFloat64()
		for _, w := range t.weights {
			x := bit(r.Float64() < first)
			if time > 0 {
				x = states[len(states)-factors] ^ bit(keep < r.Float64())
			}
			states = append(states, x)
			y += w * float64(x)
		}
		t.observed = append(t.observed, y)
	}
	return t
}

func (t *fhmm) Categories() []int { return t.categories }

// residual is y_t less its mean in a state.
func (t *fhmm) residual(state []int, time int) float64 {
	e := t.observed[time] - t.offset
	for k, w := range t.weights {
		e -= w * float64(state[time*len(t.weights)+k])
	}
	return e
}

// logNormal is the log density of a residual.
func (t *fhmm) logNormal(e float64) float64 {
	return -e*e/(2*t.noise*t.noise) - math.Log(t.noise) - 0.5*math.Log(2*math.Pi)
}

// Energy writes log p(y, x) of each chain's states.
func (t *fhmm) Energy(_ context.Context, states []int, energy []float64) error {
	n, factors := len(t.categories), len(t.weights)
	for c := range energy {
		state, u := states[c*n:(c+1)*n], 0.0
		for time := range t.observed {
			u += t.logNormal(t.residual(state, time))
			for k := range factors {
				j := time*factors + k
				p, is := t.first, state[j] == 1
				if time > 0 {
					p, is = t.keep, state[j] == state[j-factors]
				}
				if is {
					u += math.Log(p)
				} else {
					u += math.Log1p(-p)
				}
			}
		}
		energy[c] = u
	}
	return nil
}

// pull is ∂U/∂x_j of the chains of states alone, which is the exact change from 0
// to 1: a change between two times is x + x' - 2xx'.
func (t *fhmm) pull(state []int, j int) float64 {
	factors := len(t.weights)
	d, change := 0.0, -logOdds(t.keep)
	if j < factors {
		d = logOdds(t.first)
	} else {
		d = change * float64(1-2*state[j-factors])
	}
	if j+factors < len(state) {
		d += change * float64(1-2*state[j+factors])
	}
	return d
}

// EnergyGradient writes U and its gradient over one-hot slots: 0 for category 0 and ∂U/∂x_j for category 1.
func (t *fhmm) EnergyGradient(ctx context.Context, states []int, energy, gradient []float64) error {
	n, factors := len(t.categories), len(t.weights)
	for c := range energy {
		state, out := states[c*n:(c+1)*n], gradient[2*c*n:2*(c+1)*n]
		for time := range t.observed {
			e := t.residual(state, time) / (t.noise * t.noise)
			for k, w := range t.weights {
				j := time*factors + k
				out[2*j], out[2*j+1] = 0, w*e+t.pull(state, j)
			}
		}
	}
	return t.Energy(ctx, states, energy)
}

func (t *fhmm) LogConditionals(_ context.Context, states []int, slots []int, logp []float64) error {
	n := len(t.categories)
	for c, j := range slots {
		state := states[c*n : (c+1)*n]
		time, w := j/len(t.weights), t.weights[j%len(t.weights)]
		without := t.residual(state, time) + w*float64(state[j])
		d := t.pull(state, j) + t.logNormal(without-w) - t.logNormal(without)
		logp[2*c], logp[2*c+1] = -logmath.Softplus(d), -logmath.Softplus(-d)
	}
	return nil
}

// means are the exact probabilities of 1, [slots], by the forward and backward recursions over the 2^factors joint
// states of a time, and log p(y).
func (t *fhmm) means() (means []float64, logEvidence float64) {
	factors, times := len(t.weights), len(t.observed)
	n := 1 << factors
	likelihood := make([]float64, times*n)
	for time, y := range t.observed {
		row := likelihood[time*n : (time+1)*n]
		for s := range row {
			e := y - t.offset
			for k, w := range t.weights {
				e -= w * float64(s>>k&1)
			}
			row[s] = t.logNormal(e)
		}
		largest := floats.Max(row)
		logEvidence += largest
		for s, log := range row {
			row[s] = math.Exp(log - largest)
		}
	}
	// step moves a law by one time: each factor keeps its state or changes it.
	step := func(law []float64) {
		for k := range factors {
			for s := range law {
				if s>>k&1 == 0 {
					a, b := law[s], law[s|1<<k]
					law[s], law[s|1<<k] = t.keep*a+(1-t.keep)*b, t.keep*b+(1-t.keep)*a
				}
			}
		}
	}
	forward, law := make([]float64, times*n), slices.Repeat([]float64{1}, n)
	for s := range law {
		for k := range factors {
			if s>>k&1 == 1 {
				law[s] *= t.first
			} else {
				law[s] *= 1 - t.first
			}
		}
	}
	for time := range times {
		if time > 0 {
			step(law)
		}
		floats.Mul(law, likelihood[time*n:(time+1)*n])
		logEvidence += scale(law)
		copy(forward[time*n:], law)
	}
	means = make([]float64, times*factors)
	backward := slices.Repeat([]float64{1}, n)
	for time := times - 1; time >= 0; time-- {
		at := forward[time*n : (time+1)*n]
		floats.Mul(at, backward)
		scale(at)
		for s, p := range at {
			for k := range factors {
				means[time*factors+k] += p * float64(s>>k&1)
			}
		}
		floats.Mul(backward, likelihood[time*n:(time+1)*n])
		scale(backward)
		step(backward)
	}
	return means, logEvidence
}

// scale makes numbers sum to 1, so that they do not vanish, and returns the log of their sum before.
func scale(row []float64) float64 {
	sum := floats.Sum(row)
	floats.Scale(1/sum, row)
	return math.Log(sum)
}
