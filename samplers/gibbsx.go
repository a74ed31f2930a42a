// Gibbs-X draws blocks of slots from their exact conditional: Gibbs-X of the
// discrete Langevin paper. In each step, X slots are chosen uniformly, and the
// energies of all their joint values are computed:
//
//	B ~ Uniform,  θ_B ∝ exp(U(θ_B, θ_{-B}))
//
// Target: π exactly, on any target. This holds on a masked language
// model as well: unlike gibbs, gibbs-x uses the energy and not the
// target's conditionals. There is no step size and no rejection. Cost:
// Π_{j∈B} K_j energies a step. So restrict the categories: 2^20 states a
// block are the limit.

package samplers

import "math/rand/v2"

// BlockGibbs is Gibbs on blocks of slots, by exact energies.
type BlockGibbs struct {
	// Block is the number of slots that are drawn together; 0 for one.
	Block int `option:"block" minimum:"1"`
}

var _ Sampler = BlockGibbs{}

func (s BlockGibbs) Kernel(target Target, _ *rand.Rand) (Kernel, error) {
	return newKernel(s, target, untuned, func(s BlockGibbs) (mover, error) {
		block, err := slotsOf("block", s.Block, 1, len(target.Categories()))
		if err != nil {
			return nil, err
		}
		k, err := newBall("gibbs-x", target, block, 0, true)
		if err != nil {
			return nil, err
		}
		return k, nil
	})
}

func (BlockGibbs) Describe() Description {
	return Description{
		Name: "gibbs-x", Title: "Gibbs on blocks of slots, by exact energies",
		Paper: "Zhang, Liu and Liu, A Langevin-like Sampler for Discrete Distributions, ICML 2022, section 7",
		Exact: true, Target: onlyExp, Cost: "Π_{j∈B} K_j energies", OnText: &OnText{},
	}
}
