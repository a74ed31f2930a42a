package chains

import (
	"math"
	"testing"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mathext"

	"infill/internal/logmath"
)

// integers is a distribution over slots that hold 0, 1, 2 and so on without
// end: Poisson numbers that pull on their neighbours,
//
//	U(θ) = Σ (θ_i ln λ - ln θ_i!) - c/2 Σ (θ_i - θ_{i+1})²
//
// Its domain is infinite, as in appendix C of the discrete Langevin paper.
type integers struct {
	slots          int
	rate, coupling float64 // λ and c
}

func (t integers) energy(state []int) (u float64) {
	for i, n := range state {
		u += t.alone(n)
		if i > 0 {
			u += t.between(state[i-1], n)
		}
	}
	return u
}

func (t integers) alone(n int) float64 {
	gamma, _ := math.Lgamma(float64(n + 1))
	return float64(n)*math.Log(t.rate) - gamma
}

func (t integers) between(a, b int) float64 { return -t.coupling / 2 * float64((a-b)*(a-b)) }

// derivative returns ∂U/∂θ_i, with the gamma function in place of the
// factorial.
func (t integers) derivative(state []int, i int) float64 {
	d := math.Log(t.rate) - mathext.Digamma(float64(state[i]+1))
	for _, j := range []int{i - 1, i + 1} {
		if j >= 0 && j < t.slots {
			d -= t.coupling * float64(state[i]-state[j])
		}
	}
	return d
}

// windowed is the discrete Langevin proposal within a window: slot i goes from
// θ_i to θ_i + d, |d| at most window, with
//
//	q_i(d | θ) ∝ exp(½ U'_i d - d²/(2α)),  θ_i + d ≥ 0
//
// DULA takes all proposals; DMALA, which is adjusted, accepts by
// Metropolis–Hastings and targets exp U. The paper leaves infinite domains to
// future work, so this is a test's and no sampler.
type windowed struct {
	of       integers
	alpha    float64
	window   int
	adjusted bool
}

// logLaw returns log q_i of the changes from -window to window.
func (k windowed) logLaw(state []int, i int) []float64 {
	slope := k.of.derivative(state, i) / 2
	law := make([]float64, 2*k.window+1)
	for at := range law {
		d := at - k.window
		law[at] = math.Inf(-1)
		if state[i]+d >= 0 {
			law[at] = slope*float64(d) - float64(d*d)/(2*k.alpha)
		}
	}
	floats.AddConst(-logmath.LogSumExp(law), law)
	return law
}

// logProposal returns log q(to | from): -Inf if a slot changes by more than the
// window.
func (k windowed) logProposal(from, to []int) (logq float64) {
	for i, n := range to {
		at := n - from[i] + k.window
		if at < 0 || at > 2*k.window {
			return math.Inf(-1)
		}
		logq += k.logLaw(from, i)[at]
	}
	return logq
}

// logAcceptance returns log of the probability to accept a proposal.
func (k windowed) logAcceptance(from, to []int) float64 {
	if !k.adjusted {
		return 0
	}
	return math.Min(0, k.of.energy(to)-k.of.energy(from)+k.logProposal(to, from)-k.logProposal(from, to))
}

// twoSlots lists the states of two slots below bound.
func twoSlots(bound int) (states [][]int) {
	for a := range bound {
		for b := range bound {
			states = append(states, []int{a, b})
		}
	}
	return states
}

// TestWindowed: by enumeration of two slots, the proposals from each state sum
// to 1, DMALA leaves exp U as it is, and DULA has another law.
func TestWindowed(t *testing.T) {
	const bound = 30 // beyond, a Poisson number of mean 3 has less than 1e-18
	target := integers{2, 3, 0.2}
	states := twoSlots(bound)
	for _, window := range []int{1, 2} {
		moved := 0.0 // of DULA, ‖πP - π‖₁
		for _, adjusted := range []bool{false, true} {
			k := windowed{target, 1.5, window, adjusted}
			law, next, whole := map[[2]int]float64{}, map[[2]int]float64{}, 0.0
			for _, s := range states {
				law[[2]int(s)] = math.Exp(target.energy(s))
				whole += law[[2]int(s)]
			}
			for _, from := range states {
				p := law[[2]int(from)] / whole
				left := 1.0
				proposed := 0.0
				for a := from[0] - window; a <= from[0]+window; a++ {
					for b := from[1] - window; b <= from[1]+window; b++ {
						if a < 0 || b < 0 {
							continue
						}
						q := math.Exp(k.logProposal(from, []int{a, b}))
						proposed += q
						taken := q * math.Exp(k.logAcceptance(from, []int{a, b}))
						left -= taken
						next[[2]int{a, b}] += p * taken
					}
				}
				if math.Abs(proposed-1) > 1e-12 {
					t.Fatalf("proposals from %v sum to %v", from, proposed)
				}
				next[[2]int(from)] += p * left
			}
			distance := 0.0
			for _, s := range states {
				distance += math.Abs(next[[2]int(s)] - law[[2]int(s)]/whole)
			}
			if adjusted && distance > 1e-12 {
				t.Errorf("window %d: DMALA moves exp U by %v", window, distance)
			}
			moved = max(moved, distance)
		}
		if moved < 1e-3 {
			t.Errorf("window %d: DULA moves exp U by %v, so the test sees nothing", window, moved)
		}
	}
}

// TestDerivative: it is that of U between two whole numbers, in the middle.
func TestDerivative(t *testing.T) {
	one := integers{1, 3, 0}
	if d := one.derivative([]int{0}, 0); math.Abs(d-math.Log(3)-0.5772156649) > 1e-9 { // Euler's constant
		t.Errorf("the derivative at 0 is %v", d)
	}
}
