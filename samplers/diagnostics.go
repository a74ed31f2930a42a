package samplers

import (
	"math"

	"gonum.org/v1/gonum/dsp/fourier"
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"

	"infill/internal/logmath"
)

// EffectiveSampleSize estimates how many independent draws the draws of one
// scalar are worth; draws is [chains][draws]. The estimate is C·n/τ for C
// chains of n draws. Here τ = -1 + 2 Σ_k (ρ_2k + ρ_2k+1), up to the first pair
// that is not positive (Geyer, Practical Markov Chain Monte Carlo, 1992), and
// at least 1/log₁₀(C·n). The autocorrelations ρ are of all chains (Vehtari et
// al., Bayesian Analysis 2021, section 3.2), so chains that disagree lower the
// result. Antithetic chains may be worth more than C·n draws.
//
// The result is NaN if a chain has fewer than 4 draws, if chains differ in
// length, if a draw is not finite, or if all draws are equal.
func EffectiveSampleSize(draws [][]float64) float64 {
	c, n := shape(draws)
	if n < 4 {
		return math.NaN()
	}
	means := make([]float64, c)
	within := 0.0
	for i, chain := range draws {
		means[i] = stat.Mean(chain, nil)
		within += autocovariance(chain, means[i], 0) * float64(n) / float64(n-1) / float64(c)
	}
	total := within * float64(n-1) / float64(n)
	if c > 1 {
		total += stat.Variance(means, nil)
	}
	if !(total > 0) {
		return math.NaN()
	}
	var slow [][]float64 // autocovariances of each chain at all lags, if many lags are needed
	rho := func(lag int) float64 {
		if lag == maxDirectLag {
			slow = autocovariances(draws, means)
		}
		mean := 0.0
		for i, chain := range draws {
			if lag < maxDirectLag {
				mean += autocovariance(chain, means[i], lag) / float64(c)
			} else {
				mean += slow[i][lag] / float64(c)
			}
		}
		// The autocovariances divide by n, but within divides by n-1: bring
		// both to the same scale.
		return 1 - (within-mean*float64(n)/float64(n-1))/total
	}
	tau := -1.0
	for lag := 0; lag+1 < n; lag += 2 {
		even := 1.0
		if lag > 0 {
			even = rho(lag)
		}
		pair := even + rho(lag+1)
		if !(pair > 0) {
			break
		}
		tau += 2 * pair
	}
	size := float64(c * n)
	// For a strongly antithetic chain, an estimate beyond this bound is not reliable.
	return size / math.Max(tau, 1/math.Log10(size))
}

// autocovariance returns the autocovariance of x at a lag, divided by n (which
// makes the sequence positive definite).
func autocovariance(x []float64, mean float64, lag int) float64 {
	sum := 0.0
	for t, v := range x[lag:] {
		sum += (v - mean) * (x[t] - mean)
	}
	return sum / float64(len(x))
}

// maxDirectLag is the lag from which the autocovariances of all lags are
// computed together. Smaller lags cost less one by one. It is even because the
// loop over lags takes pairs that begin with an even lag.
const maxDirectLag = 64

// autocovariances returns the autocovariances of each chain at all lags,
// [chains][lags]. It uses the fast Fourier transform of a chain with at least
// as many zeros appended, so that the chain's end does not meet its start.
func autocovariances(draws [][]float64, means []float64) [][]float64 {
	all := make([][]float64, len(draws))
	n := len(draws[0])
	size := 1
	for size < 2*n {
		size *= 2
	}
	transform := fourier.NewFFT(size)
	padded := make([]float64, size)
	for i, chain := range draws {
		clear(padded)
		for t, v := range chain {
			padded[t] = v - means[i]
		}
		spectrum := transform.Coefficients(nil, padded)
		for k, x := range spectrum {
			spectrum[k] = complex(real(x)*real(x)+imag(x)*imag(x), 0)
		}
		all[i] = transform.Sequence(nil, spectrum)[:n]
		floats.Scale(1/float64(n)/float64(size), all[i])
	}
	return all
}

// LargestRHat is the largest split R-hat of chains that agree (Gelman et al.,
// Bayesian Data Analysis, 3rd ed., section 11.5).
const LargestRHat = 1.1

// SplitRHat returns the potential scale reduction √(var⁺/W) with every chain
// cut in two halves (Gelman et al., Bayesian Data Analysis, 3rd ed., section
// 11.4); draws is [chains][draws]. The halves agree if the result is near 1,
// and do not agree if it is above LargestRHat. An odd length loses its middle
// draw.
// The result is NaN as in EffectiveSampleSize, and +Inf if the draws within
// each half are all equal but the halves differ.
func SplitRHat(draws [][]float64) float64 {
	_, n := shape(draws)
	half := n / 2
	if half < 2 {
		return math.NaN()
	}
	var means []float64
	within := 0.0
	for _, chain := range draws {
		for _, part := range [][]float64{chain[:half], chain[n-half:]} {
			mean, variance := stat.MeanVariance(part, nil)
			means = append(means, mean)
			within += variance / float64(2*len(draws))
		}
	}
	between := stat.Variance(means, nil)
	return math.Sqrt(float64(half-1)/float64(half) + between/within)
}

// shape returns the number of chains and of draws in each. n is 0 if the chains
// differ in length, hold a value that is not finite, or hold one value alone: the
// variance of equal numbers need not be 0, as their mean may differ from them in its
// last digit.
func shape(draws [][]float64) (chains, n int) {
	if len(draws) == 0 || len(draws[0]) == 0 {
		return len(draws), 0
	}
	n = len(draws[0])
	equal := true
	for _, chain := range draws {
		if len(chain) != n {
			return len(draws), 0
		}
		for _, v := range chain {
			if !logmath.Finite(v) {
				return len(draws), 0
			}
			equal = equal && v == draws[0][0]
		}
	}
	if equal {
		return len(draws), 0
	}
	return len(draws), n
}

// Acceptance counts accepted proposals and changed slots over the steps of a
// run. Its zero value is ready to use. [MeanAndError] sums up its numbers.
type Acceptance struct {
	steps    int
	accepted []int
	changed  []int
}

// Observe adds a step: whether the proposal of each chain was accepted, and the
// number of slots that changed, as in [Info], [chains].
func (a *Acceptance) Observe(accepted []bool, changed []int) {
	if a.steps == 0 {
		a.accepted = make([]int, len(accepted))
		a.changed = make([]int, len(changed))
	}
	a.steps++
	for c, yes := range accepted {
		if yes {
			a.accepted[c]++
		}
		a.changed[c] += changed[c]
	}
}

// Steps returns the number of observed steps.
func (a *Acceptance) Steps() int { return a.steps }

// Rates returns the fraction of accepted proposals of each chain, [chains]. It
// is empty before the first step.
func (a *Acceptance) Rates() []float64 { return a.perStep(a.accepted) }

// ChangedSlots returns the mean number of slots that a step changes in each
// chain, [chains]. It is empty before the first step.
func (a *Acceptance) ChangedSlots() []float64 { return a.perStep(a.changed) }

func (a *Acceptance) perStep(counts []int) []float64 {
	rates := make([]float64, len(counts))
	for c, n := range counts {
		rates[c] = float64(n) / float64(a.steps)
	}
	return rates
}

// MeanAndError returns the mean over chains and its standard error. The error
// is NaN for a single chain. It comes from the spread between chains, because
// chains are independent and the states of a chain are not.
func MeanAndError(byChain []float64) (mean, standardError float64) {
	mean, deviation := stat.MeanStdDev(byChain, nil)
	return mean, stat.StdErr(deviation, float64(len(byChain)))
}
