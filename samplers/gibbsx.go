package samplers

// BlockGibbs draws blocks of slots from their exact conditional: Gibbs-X of
// the discrete Langevin paper, with X slots chosen uniformly each step and all
// their joint values listed:
//
//	B ~ Uniform,  θ_B ∝ exp(U(θ_B, θ_{-B}))
//
// Target: π exactly, on any target: unlike [Gibbs] it asks the energy and not
// the target's conditionals, so on a masked language model too. No step size,
// no rejection. Cost: Π_{j∈B} K_j energies a step, so restrict the categories:
// 2^20 states a block are the limit.
type BlockGibbs struct{ *HammingBall }

var _ Kernel = (*BlockGibbs)(nil)

// NewBlockGibbs makes the sampler. It uses Block (X, default 1) of the
// options.
func NewBlockGibbs(target Target, o Options) (*BlockGibbs, error) {
	o.Radius = 0
	k, err := newHammingBall("gibbs-x", target, o, 1, 0)
	if err != nil {
		return nil, err
	}
	return &BlockGibbs{k}, nil
}

func blockGibbsEntry() entry {
	return entry{
		Description: Description{
			Name: "gibbs-x", Title: "Gibbs on blocks of slots, by exact energies",
			Paper: "Zhang, Liu and Liu, A Langevin-like Sampler for Discrete Distributions, ICML 2022, section 7",
			Exact: true, Target: onlyExp, Cost: "Π_{j∈B} K_j energies",
		},
		uses:   []option{blockOption},
		nature: "it draws blocks from their exact conditional",
		make:   func(t Target, o Options) (Kernel, error) { return NewBlockGibbs(t, o) },
	}
}
