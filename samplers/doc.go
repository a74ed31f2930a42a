// Package samplers draws from unnormalised distributions over discrete slots
// by Markov chain Monte Carlo. It knows nothing of language: all it sees is a
// [Target], π(θ) ∝ exp(U(θ)), over slots that each have their own number of
// categories.
//
// # Words
//
// A slot is one discrete variable, θ_j, and its categories are numbered from
// 0. A chain is one Markov chain over θ; the chains of a batch advance in
// lockstep, so that a target can evaluate them together. A kernel is the
// transition of one sampler. The energy U is an unnormalised log-probability
// in nats: higher is better.
//
// # Use
//
//	kernel, err := samplers.New("dmala", target, samplers.Options{StepSize: 0.4})
//	streams := samplers.Streams(seed, "label", chains)
//	state, err := kernel.Init(ctx, samplers.RandomPositions(target, streams))
//	adaptation, err := samplers.AdaptationFor("dmala", kernel)
//	report, err := samplers.WarmUp(ctx, kernel, state, streams, 100, adaptation)
//	err = samplers.Run(ctx, kernel, state, streams, 1000, observe)
//
// [Names] and [Descriptions] list the kernels; each kernel's type says what it
// targets, what it costs and what its step size means. [Options] add a
// temperature, a stochastic gradient and parallel tempering to any kernel that
// can have them. [Anneal] and [MaskPredict] search and decode instead of
// sampling; [FitFactorised] fits independent binary slots.
//
// # Contracts
//
// All arrays are row-major and belong to the caller. A step allocates nothing
// once a kernel has seen its batch. A kernel keeps scratch memory, so one
// kernel serves one goroutine at a time; it spreads large batches over
// GOMAXPROCS goroutines itself. Every chain draws from its own random stream,
// so a chain's path depends neither on the chains beside it nor on the number
// of processors.
//
// A proposal whose energy is NaN, +Inf or -Inf (forbidden), or whose gradient
// holds a NaN or +Inf, is rejected, in unadjusted samplers too.
//
// # Step size
//
// One convention everywhere, that of the discrete Langevin proposal over
// one-hot vectors (Zhang, Liu and Liu, ICML 2022, appendix B): two different
// one-hot vectors are at squared distance 2, so changing a slot costs 1/α nats
// in the proposal's logit. Kernels with another meaning say so.
package samplers
