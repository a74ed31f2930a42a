package lab

import (
	"context"
	"flag"
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/floats"

	"infill/internal/logmath"
	"infill/samplers"
)

// newBernoulliMixture is a mixture with the slots as observables, and exact draws as its reference.
func newBernoulliMixture(f *flag.FlagSet) maker {
	slots := Whole(f, "slots", 50, 1, 1<<14, "binary slots")
	components := Whole(f, "components", 10, 1, 1<<12, "components, equally likely")
	scale := number(f, "scale", 1, " of 0 or more",
		"standard deviation of the log-odds of their slots: the larger, the deeper between modes")
	samples := Whole(f, "reference-samples", 500, 2, 1<<14, "exact draws that MMD is measured from")
	own := targetSeed(f, "seed of the components")
	return func(context.Context, uint64) (*distribution, error) {
		r := samplers.Streams(*own, "mixture", 1)[0]
		probabilities := make([]float64, *slots**components)
		for i := range probabilities {
			probabilities[i] = min(max(logmath.Sigmoid(*scale*r.NormFloat64()), 1e-6), 1-1e-6)
		}
		target := newMixture(slices.Repeat([]float64{1}, *components), probabilities)
		d := &distribution{kind: "mixture", target: target, observables: numbered(*slots, 0, 1),
			parameters: settings(f, "slots", "components", "scale", "target-seed"),
			truth:      truth{method: "sum over the components", means: target.means()}}
		for _, m := range d.truth.means {
			d.independent = append(d.independent, bernoulli(m))
		}
		d.reference = &reference{method: "exact", samples: *samples, sample: func(n int, label string) ([]int, error) {
			return target.draw(n, samplers.Streams(*own, label, 1)[0]), nil
		}}
		return d, d.reference.draw(*slots)
	}
}

// mixture is a mixture of independent binary slots:
//
//	U(x) = log Σ_c w_c Π_j μ_cj^x_j (1 - μ_cj)^(1 - x_j)
//
// Its normaliser is 1, and its means and draws are exact.
type mixture struct {
	logWeights []float64 // [components]
	on, off    []float64 // log μ and log(1 - μ), [components × slots]
	categories []int
	logs       []float64 // scratch
}

// newMixture makes a mixture of weights [components], which are normalised, and
// probabilities of 1, [components × slots], inside (0, 1).
func newMixture(weights, probabilities []float64) *mixture {
	components := len(weights)
	t := &mixture{categories: slices.Repeat([]int{2}, len(probabilities)/components), logs: make([]float64, components)}
	total := floats.Sum(weights)
	for _, w := range weights {
		t.logWeights = append(t.logWeights, math.Log(w/total))
	}
	for _, p := range probabilities {
		t.on, t.off = append(t.on, math.Log(p)), append(t.off, math.Log1p(-p))
	}
	return t
}

func (t *mixture) Categories() []int { return t.categories }

// joint writes log w_c p(x | c) of a state to the scratch, and returns its log sum.
func (t *mixture) joint(state []int) float64 {
	for c := range t.logs {
		sum, first := t.logWeights[c], c*len(state)
		for j, v := range state {
			if v == 1 {
				sum += t.on[first+j]
			} else {
				sum += t.off[first+j]
			}
		}
		t.logs[c] = sum
	}
	return floats.LogSumExp(t.logs)
}

// Energy writes U, the log-probability of each chain's state.
func (t *mixture) Energy(_ context.Context, states []int, energy []float64) error {
	n := len(t.categories)
	for c := range energy {
		energy[c] = t.joint(states[c*n : (c+1)*n])
	}
	return nil
}

func (t *mixture) EnergyGradient(_ context.Context, states []int, energy, gradient []float64) error {
	n := len(t.categories)
	for c := range energy {
		u := t.joint(states[c*n : (c+1)*n])
		out := gradient[2*c*n : 2*(c+1)*n]
		clear(out)
		for k, l := range t.logs {
			share := math.Exp(l - u)
			for j := range n {
				out[2*j] += share * t.off[k*n+j]
				out[2*j+1] += share * t.on[k*n+j]
			}
		}
		energy[c] = u
	}
	return nil
}

func (t *mixture) LogConditionals(_ context.Context, states []int, slots []int, logp []float64) error {
	n := len(t.categories)
	on, off := make([]float64, len(t.logs)), make([]float64, len(t.logs))
	for c, j := range slots {
		state := states[c*n : (c+1)*n]
		t.joint(state)
		for k, l := range t.logs {
			rest := l - t.off[k*n+j]
			if state[j] == 1 {
				rest = l - t.on[k*n+j]
			}
			on[k], off[k] = rest+t.on[k*n+j], rest+t.off[k*n+j]
		}
		logp[2*c], logp[2*c+1] = floats.LogSumExp(off), floats.LogSumExp(on)
		logmath.Normalise(logp[2*c : 2*c+2])
	}
	return nil
}

// means are the exact probabilities of 1, [slots].
func (t *mixture) means() []float64 {
	means := make([]float64, len(t.categories))
	for k, l := range t.logWeights {
		for j := range means {
			means[j] += math.Exp(l + t.on[k*len(means)+j])
		}
	}
	return means
}

// draw returns n independent exact draws, [n × slots].
func (t *mixture) draw(n int, r *rand.Rand) []int {
	slots := len(t.categories)
	states := make([]int, 0, n*slots)
	for range n {
		u, k := r.Float64(), 0
		for ; k < len(t.logWeights)-1; k++ {
			if u -= math.Exp(t.logWeights[k]); u < 0 {
				break
			}
		}
		for j := range slots {
			states = append(states, bit(r.Float64() < math.Exp(t.on[k*slots+j])))
		}
	}
	return states
}
