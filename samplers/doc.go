// Package samplers draws from unnormalised distributions over discrete slots, by Markov chain Monte Carlo and by
// the chain rule. It knows nothing of language: it sees only a Target, π(θ) ∝ exp(U(θ)), over slots that each
// have their own number of categories.
//
// # Words
//
// A slot is one discrete variable, θ_j, and its categories are numbered from 0 on. A chain is one Markov chain over θ;
// the chains of a batch advance in lockstep, so that a target can evaluate them together. A kernel is the transition of
// one sampler. The energy U is an unnormalised log-probability in nats: higher is better.
//
// # Use
//
//	kernel, err := samplers.New("dmala:balance=ratio", target)
//	streams := samplers.Streams(seed, "label", chains)
//	plan := samplers.Plan{Streams: streams, WarmUp: 100, Steps: 1000}
//	run, err := samplers.Sample(ctx, kernel, samplers.RandomPositions(target, streams), plan, observe)
//
// Names lists the samplers. Describe returns what a sampler targets, what it costs, and its settings. Each
// sampler's file begins with its paper, its equations and the meaning of its step size. A [Spec] is a sampler
// with settings. [Search] finds the likeliest states of a [Law] and proves them, and [Draw] draws from it; neither
// walks.
//
// # Contracts
//
// All arrays are row-major and belong to the caller. A step allocates nothing once a kernel has seen its batch. A
// kernel keeps scratch memory, so one kernel serves one goroutine at a time; it spreads large batches over GOMAXPROCS
// goroutines itself. Every chain draws from its own random stream. So a chain's path depends neither on the
// other chains nor on the number of processors.
//
// A proposal whose energy is NaN, +Inf or -Inf (forbidden), or whose gradient
// holds a NaN or +Inf, is rejected, in unadjusted samplers too.
//
// # Step size
//
// One convention everywhere, that of the discrete Langevin proposal over one-hot vectors (Zhang, Liu and Liu, ICML
// 2022, appendix B): two different one-hot vectors are at squared distance 2, so changing a slot costs 1/α nats in the
// proposal's logit. Kernels with another meaning say so.
package samplers
