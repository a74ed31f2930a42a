// R-MALA is relaxed Metropolis-adjusted Langevin, with which Grathwohl et al.,
// "Oops I Took A Gradient" (ICML 2021), compare their sampler. Binary slots are
// the signs of z. z takes Langevin steps along a smooth surrogate s, and each
// step is accepted against the target p itself:
//
//	z' ~ N(z + ε ∇log s(z), 2ε I),  x = [z > 0]
//	p(z) ∝ N(z; 0, I) exp(U(x)),  s(z) = N(z; 0, I) exp(U(sigmoid(z/t)))
//
// Target: π exactly, over x. Step size: ε of the continuous step, 0.001 by
// default, not the α of the package. Smoothing: t, 0.1 by default. Cost: one
// energy and one relaxed gradient a step. All slots must be binary.

package samplers

import (
	"context"
	"math/rand/v2"
)

type relaxedMALA struct{ *relaxation }

var (
	_ mover     = relaxedMALA{}
	_ stepSizer = relaxedMALA{}
)

// transition is a Langevin step of z, accepted by the target's energy, the
// prior of z and the densities of the move and of the move back.
func (k relaxedMALA) transition(ctx context.Context, state *State, sources []source, info *Info) error {
	chains := state.Chains()
	slots := state.Slots()
	info.reset(chains, slots)
	known := k.known(state)
	for i, z := range known.z {
		k.z[i] = normalAround(z+k.epsilon*known.score[i], 2*k.epsilon, sources[i/slots])
	}
	if err := k.evaluateProposals(ctx, info); err != nil {
		return err
	}
	if err := k.surrogate(ctx, k.z, k.score); err != nil {
		return err
	}
	info.Cost = Cost{Energies: chains, Gradients: chains}
	for c, src := range sources {
		lo := c * slots
		hi := (c + 1) * slots
		ratio := k.energy[c] - state.Energy[c] + (squares(known.z[lo:hi])-squares(k.z[lo:hi]))/2 +
			k.logMove(k.z[lo:hi], k.score[lo:hi], known.z[lo:hi]) -
			k.logMove(known.z[lo:hi], known.score[lo:hi], k.z[lo:hi])
		k.settle(c, state, info, ratio, src)
	}
	return nil
}

// logMove returns a step's log density but a constant; score is at from.
func (k relaxedMALA) logMove(from, score, to []float64) float64 {
	sum := 0.0
	for i, z := range from {
		d := to[i] - z - k.epsilon*score[i]
		sum += d * d
	}
	return -sum / (4 * k.epsilon)
}

// RelaxedMALA is relaxed MALA over the signs of real numbers. A warm-up adapts the step size if
// it is zero.
type RelaxedMALA struct {
	// StepSize is ε of a step of the real numbers behind the slots.
	StepSize float64 `option:"step-size" default:"0.001" exclusiveMinimum:"0"`
	// Smoothing is t, the temperature of the sigmoid that stands for a sign.
	Smoothing float64 `option:"smoothing" default:"0.1" exclusiveMinimum:"0"`
}

var _ Sampler = RelaxedMALA{}

func (s RelaxedMALA) Kernel(target Target, _ *rand.Rand) (Kernel, error) {
	return newKernel(s, target, unlessSaid(s.StepSize != 0, tuneContinuous), func(s RelaxedMALA) (mover, error) {
		r, err := newRelaxation("r-mala", target, s.StepSize, s.Smoothing)
		if err != nil {
			return nil, err
		}
		return relaxedMALA{r}, nil
	})
}

func (RelaxedMALA) Describe() Description {
	return Description{
		Name: "r-mala", Title: "relaxed MALA over the signs of real numbers",
		Paper: "Grathwohl et al., Oops I Took A Gradient, ICML 2021",
		Exact: true, Target: onlyExp, Cost: "1 energy and 1 relaxed gradient",
	}
}
