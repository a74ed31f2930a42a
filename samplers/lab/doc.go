// Package lab compares samplers on distributions that are known exactly:
// several kernels of the package samplers side by side, on one target, from
// the same starts, with what the papers report of them. [Compare] runs one
// comparison, [RunPreset] repeats a figure of a paper. It knows nothing of
// language and nothing of terminals.
//
// # What is measured
//
// An observable is a number of one slot: the spin of an Ising site, a visible
// unit of an RBM, or the indicator of one category of a slot. With m_c(n) the
// mean of an observable over the first n steps of chain c, and μ its exact
// mean,
//
//	log RMSE(n) = ½ ln ( mean over chains and observables of (m_c(n) - μ)² )
//
// as in the code of the discrete Langevin paper (Zhang, Liu and Liu, ICML
// 2022): every chain by itself against the truth, natural logarithm, no step
// left out but the warm-up.
//
// The effective sample size is that of [samplers.EffectiveSampleSize] (Geyer's
// initial positive sequence) of one observable in one chain, over the steps
// left when the first part is discarded. An observable that never changed
// counts as one draw, as in that paper. Its mean over observables is taken in
// each chain.
//
// Every mean stands with its standard error from the spread between chains,
// which are independent where steps are not. It is absent for fewer than two
// chains: it is then unknown, not zero.
//
// # Budgets
//
// Equal steps, equal target evaluations and equal seconds are three different
// comparisons, and [Comparison] shows all three. An evaluation is one state
// given to the target, whether for its energy, its energy and gradient or one
// conditional; these cost differently, so the counts stand apart too. Seconds
// are processor time of the steps alone, without observing (wall-clock time
// where the system does not tell the former); run nothing beside a comparison
// in the same process. They are the only numbers that differ between two runs
// of one seed, and they are noisy.
package lab
