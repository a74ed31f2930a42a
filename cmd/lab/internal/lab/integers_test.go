package lab

import (
	"math"
	"testing"
)

// grid lists the states of two slots below bound.
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

// TestIntegerMeans: means are those of an enumeration; without a coupling they
// are λ.
func TestIntegerMeans(t *testing.T) {
	for _, m := range (integers{3, 4.5, 0}).means() {
		if math.Abs(m-4.5) > 1e-9 {
			t.Errorf("a Poisson number of mean 4.5 has %v", m)
		}
	}
	target := integers{2, 3, 0.5}
	whole, first := 0.0, 0.0
	for _, s := range twoSlots(40) {
		p := math.Exp(target.energy(s))
		whole += p
		first += p * float64(s[0])
	}
	means := target.means()
	if math.Abs(means[0]-first/whole) > 1e-9 || math.Abs(means[1]-means[0]) > 1e-9 {
		t.Errorf("means %v, the enumeration has %v", means, first/whole)
	}
	// A derivative is that of U between two whole numbers, in the middle.
	one := integers{1, 3, 0}
	if d := one.derivative([]int{0}, 0); math.Abs(d-math.Log(3)-0.5772156649) > 1e-9 { // Euler's constant
		t.Errorf("the derivative at 0 is %v", d)
	}
}

// TestIntegers: DMALA comes to the exact means, and DULA with a large step does
// not.
func TestIntegers(t *testing.T) {
	report := studied(t, study(t, "integers", "rate", "0.5", "step-sizes", "2", "chains", "8", "steps", "3000",
		"slots", "4"),
		StudyOptions{Seed: 1})
	for _, c := range report.Cells {
		apart := math.Abs(c.Numbers["mean"]-c.Numbers["exact"]) / c.Errors["mean"]
		if exact := c.Labels.value("sampler") == "dmala"; exact && apart > 4 || !exact && apart < 4 {
			t.Errorf("%v: the mean is %v errors away", c.Labels, apart)
		}
	}
}
