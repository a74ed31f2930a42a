// LB-1 is the locally balanced sampler of Zanella, "Informed proposals for
// local MCMC in discrete spaces" (JASA 2020), with window 1, as in the discrete
// Langevin paper. It is Gibbs with gradients, but with exact energy differences
// instead of the gradient's estimates:
//
//	q(j, v | θ) ∝ g(exp(U(θ with slot j := v) - U(θ))),  v ≠ θ_j
//
// Target: π exactly, on any target: no gradient is needed. There is no step
// size. Cost of a step: the energies of the proposal and of its
// Σ_j (K_j - 1) neighbours. The energies around the present position are
// known from the step before.

package samplers

import (
	"context"
	"math"
	"math/rand/v2"

	"infill/internal/logmath"
)

// evaluationBatch bounds the states in one call of kernels that list them.
const evaluationBatch = 4096

// differences is a target whose gradient at a category of a slot is the energy
// of the state with this category in the slot. So the differences of its
// gradient are exact energy differences.
type differences struct {
	Target
	neighbours int // the number of neighbours of a state
	states     []int
	energy     []float64
	entry      []int // index in the gradient of each energy
}

func newDifferences(target Target) *differences {
	d := &differences{Target: target}
	for _, k := range target.Categories() {
		d.neighbours += k - 1
	}
	return d
}

// EnergyGradient writes U to energy, and U of every neighbour to gradient. It
// writes -Inf for a neighbour whose energy is NaN or infinite, because such a
// proposal is rejected.
func (d *differences) EnergyGradient(ctx context.Context, states []int, energy, gradient []float64) error {
	if err := d.Energy(ctx, states, energy); err != nil {
		return err
	}
	categories := d.Categories()
	slots := len(categories)
	wide := width(categories)
	d.states = d.states[:0]
	d.entry = d.entry[:0]
	for i, current := range states {
		chain := i / slots
		j := i % slots
		for v := range categories[j] {
			if v == current {
				gradient[i*wide+v] = energy[chain]
				continue
			}
			d.states = append(d.states, states[chain*slots:(chain+1)*slots]...)
			d.states[len(d.states)-slots+j] = v
			d.entry = append(d.entry, i*wide+v)
			if len(d.entry) == evaluationBatch {
				if err := d.flush(ctx, gradient); err != nil {
					return err
				}
			}
		}
	}
	return d.flush(ctx, gradient)
}

// flush evaluates the states gathered so far, and writes their energies to gradient.
func (d *differences) flush(ctx context.Context, gradient []float64) error {
	if len(d.entry) == 0 {
		return nil
	}
	if cap(d.energy) < len(d.entry) {
		d.energy = make([]float64, max(len(d.entry), min(evaluationBatch, 2*len(d.entry))))
	}
	d.energy = d.energy[:len(d.entry)]
	if err := d.Energy(ctx, d.states, d.energy); err != nil {
		return err
	}
	for i, u := range d.energy {
		if !logmath.Finite(u) {
			u = math.Inf(-1)
		}
		gradient[d.entry[i]] = u
	}
	d.states = d.states[:0]
	d.entry = d.entry[:0]
	return nil
}

// LocallyBalanced is the locally balanced proposal with exact differences, window 1.
type LocallyBalanced struct {
	Balance Balance `option:"balance" default:"sqrt"`
}

var _ Sampler = LocallyBalanced{}

func (s LocallyBalanced) Kernel(target Target, _ *rand.Rand) (Kernel, error) {
	return newKernel(s, target, untuned, func(s LocallyBalanced) (mover, error) {
		exact := newDifferences(target)
		k, err := newInformed("lb-1", exact, 0, nil, true)
		if err != nil {
			return nil, err
		}
		k.proposer = gwg{}
		k.scorer = balanced{s.Balance.must()}
		k.cost = Cost{Energies: 1 + exact.neighbours}
		return k, nil
	})
}

func (LocallyBalanced) Describe() Description {
	return Description{
		Name: "lb-1", Title: "locally balanced proposal with exact differences, window 1",
		Paper: "Zanella, Informed Proposals for Local MCMC in Discrete Spaces, JASA 2020",
		Exact: true, Target: onlyExp, Cost: "1 + Σ_j (K_j - 1) energies",
		OnText: &OnText{}, // lb-1 computes every neighbour's energy, so it suits few candidates only
	}
}
