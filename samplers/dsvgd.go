// D-SVGD: Han, Ding, Liu, Torresani, Peng and Liu, "Stein Variational Inference
// for Discrete Distributions" (AISTATS 2020). The chains are n particles z that
// move together, and binary slots are the signs of z. The particles follow the
// gradient-free Stein direction with a smooth surrogate s,
//
//	w_a ∝ s(z_a)/p(z_a),  p(z) ∝ N(z; 0, I) exp(U([z > 0]))
//	φ(z_b) = Σ_a w_a (k(z_a, z_b) ∇log s(z_a) + ∇_{z_a} k(z_a, z_b))
//	k(z, z') = exp(-|z - z'|²/(2h)),  h = median |z_a - z_b|² / (2 log(n+1))
//
// by the steps of Adam. Nothing in a step is random. More particles represent π
// better. A particle is no Markov chain: its path depends on all other
// particles, so results depend on the batch.
//
// Step size: the rate of Adam, 0.01 by default, not the α of the package.
// Smoothing: t of the surrogate, 2 by default. Cost: one energy and one relaxed
// gradient for each particle and step, and O(n² m) for the kernel k. Particles
// with the same start stay together, so give them different starts.

package samplers

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"

	"infill/internal/logmath"
)

type steinDescent struct {
	*relaxation
	surrogates []float64 // log s(z), [particles]
	weight     []float64 // [particles]
	distance   []float64 // squared, [particles × particles]
	sorted     []float64
	direction  []float64 // [particles × slots]
}

var (
	_ mover     = (*steinDescent)(nil)
	_ stepSizer = (*steinDescent)(nil)
)

// transition moves all chains at once along the direction of steer, by a step
// of Adam. Every finite proposal is taken: the method has no acceptance.
func (k *steinDescent) transition(ctx context.Context, state *State, _ []source, info *Info) error {
	n := state.Chains()
	slots := state.Slots()
	info.reset(n, slots)
	known := k.known(state)
	if len(k.weight) != n {
		k.surrogates = make([]float64, n)
		k.weight = make([]float64, n)
		k.distance = make([]float64, n*n)
		k.sorted = make([]float64, n*n)
		k.direction = make([]float64, n*slots)
	}
	// known holds the score at z, but no surrogate energy: surrogate computes both.
	if err := k.surrogate(ctx, known.z, known.score); err != nil {
		return err
	}
	copy(k.surrogates, k.discard)
	k.weigh(state)
	k.steer(known, n, slots)

	const decay, decay2, tiny = 0.9, 0.999, 1e-8
	t := float64(known.step + 1)
	rate := k.epsilon * math.Sqrt(1-math.Pow(decay2, t)) / (1 - math.Pow(decay, t))
	for i, g := range k.direction {
		// Adam's moments in known change only after the whole step succeeded.
		first := decay*known.first[i] + (1-decay)*g
		second := decay2*known.second[i] + (1-decay2)*g*g
		k.z[i] = known.z[i] + rate*first/(math.Sqrt(second)+tiny)
	}
	if err := k.evaluateProposals(ctx, info); err != nil {
		return err
	}
	info.Cost = Cost{Energies: n, Gradients: n}
	for c := range n {
		lo := c * slots
		hi := (c + 1) * slots
		if !logmath.Finite(k.energy[c]) ||
			slices.ContainsFunc(k.z[lo:hi], func(z float64) bool { return !logmath.Finite(z) }) {
			info.LogAcceptance[c] = math.Inf(-1)
			continue
		}
		info.move(c, state, k.energy[c])
		copy(known.z[lo:hi], k.z[lo:hi])
		for i := lo; i < hi; i++ {
			g := k.direction[i]
			known.first[i] = decay*known.first[i] + (1-decay)*g
			known.second[i] = decay2*known.second[i] + (1-decay2)*g*g
		}
	}
	known.step++
	return nil
}

func (k *steinDescent) weigh(state *State) {
	largest := math.Inf(-1)
	for a, u := range state.Energy {
		k.weight[a] = k.surrogates[a] - u
		largest = math.Max(largest, k.weight[a])
	}
	sum := 0.0
	for a := range k.weight {
		k.weight[a] = math.Exp(k.weight[a] - largest)
		sum += k.weight[a]
	}
	for a := range k.weight {
		k.weight[a] /= sum
	}
}

// steer writes φ of each particle to k.direction.
func (k *steinDescent) steer(known *relaxed, n, slots int) {
	for a := range n {
		for b := range n {
			sum := 0.0
			for j := range slots {
				d := known.z[a*slots+j] - known.z[b*slots+j]
				sum += d * d
			}
			k.distance[a*n+b] = sum
		}
	}
	copy(k.sorted, k.distance)
	slices.Sort(k.sorted)
	h := k.sorted[n*n/2] / (2 * math.Log(float64(n+1)))
	if h == 0 {
		h = 1 // all particles are at one point, and no particle attracts another
	}
	clear(k.direction)
	for b := range n {
		out := k.direction[b*slots : (b+1)*slots]
		for a := range n {
			w := k.weight[a] * math.Exp(-k.distance[a*n+b]/(2*h))
			for j := range out {
				i := a*slots + j
				out[j] += w * (known.score[i] - (known.z[i]-known.z[b*slots+j])/h)
			}
		}
	}
}

// SteinDescent is Stein variational descent over the signs of real numbers. Its particles move
// together.
type SteinDescent struct {
	// StepSize is ε of a step of the real numbers behind the slots.
	StepSize float64 `option:"step-size" default:"0.01" exclusiveMinimum:"0"`
	// Smoothing is t, the temperature of the sigmoid that stands for a sign.
	Smoothing float64 `option:"smoothing" default:"2" exclusiveMinimum:"0"`
}

var _ Sampler = SteinDescent{}

func (s SteinDescent) Kernel(target Target, _ *rand.Rand) (Kernel, error) {
	return newKernel(s, target, untuned, func(s SteinDescent) (mover, error) {
		r, err := newRelaxation("d-svgd", target, s.StepSize, s.Smoothing)
		if err != nil {
			return nil, err
		}
		return &steinDescent{relaxation: r}, nil
	})
}

func (SteinDescent) Describe() Description {
	return Description{
		Name: "d-svgd", Title: "Stein variational descent over the signs of real numbers",
		Paper:  "Han et al., Stein Variational Inference for Discrete Distributions, AISTATS 2020",
		Target: "particles that stand for exp(U), the better the more there are",
		Cost:   "1 energy and 1 relaxed gradient", Interacting: true,
	}
}
