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

func blockGibbsEntry() entry {
	return entry{
		Description: Description{
			Name: "gibbs-x", Title: "Gibbs on blocks of slots, by exact energies",
			Paper: "Zhang, Liu and Liu, A Langevin-like Sampler for Discrete Distributions, ICML 2022, section 7",
			Exact: true, Target: onlyExp, Cost: "Π_{j∈B} K_j energies", OnText: &OnText{},
		},
		settings: func() settings { return &ballSettings{block: slotCount{byDefault: 1}, whole: true} },
	}
}
