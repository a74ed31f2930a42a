// Package samplers draws from unnormalised distributions over discrete slots,
// by Markov chain Monte Carlo and by the chain rule. It knows nothing of
// language. It sees only a Target, π(θ) ∝ exp(U(θ)), over slots that each have
// their own number of categories.
//
// # Words
//
// A slot is one discrete variable, θ_j, with categories numbered from 0. A
// chain is one Markov chain over θ. The chains of a batch advance in
// lockstep, so that a target can evaluate them together. A kernel is the
// transition of one sampler. The energy U is an unnormalised log-probability
// in nats: higher is better.
//
// # Use
//
//	kernel, err := samplers.DMALA{Balance: samplers.RatioBalance}.Kernel(target, nil)
//	streams := samplers.Streams(seed, "label", chains)
//	plan := samplers.Plan{Streams: streams, WarmUp: 100, Steps: 1000}
//	run, err := samplers.Sample(ctx, kernel, samplers.RandomPositions(target, streams), plan, observe)
//
// A [Sampler] is a struct whose fields are its settings; [Parse] reads one from a
// text, and [All] lists them. Describe says what a sampler targets and what it
// costs. Each sampler's file begins with its paper, its equations and the meaning of
// its step size. [Search] finds the likeliest states of a [Law] and proves them, and
// [Draw] makes independent draws from laws; neither runs chains.
//
// # Contracts
//
// All arrays are row-major and belong to the caller. A step of this package's
// kernels allocates nothing once a kernel has seen a batch of that size. A kernel
// keeps scratch memory, so only one goroutine at a time may use it. It spreads
// large batches over GOMAXPROCS goroutines itself. Every chain has its own random stream, so its
// path depends neither on the other chains nor on the number of processors.
//
// A proposal whose energy is NaN, +Inf or -Inf (forbidden), or whose gradient
// holds a NaN or +Inf, is rejected. Unadjusted samplers reject it too. A kernel of
// your own does so itself.
//
// # Step size
//
// All step sizes follow the convention of the discrete Langevin proposal over
// one-hot vectors (Zhang, Liu and Liu, ICML 2022, appendix B). Two different
// one-hot vectors are at squared distance 2, so changing a slot costs 1/α nats
// in the proposal's logit. Kernels whose step size means something else say so.
package samplers
