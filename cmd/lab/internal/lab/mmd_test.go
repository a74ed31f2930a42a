package lab

import (
	"math"
	"testing"

	"gonum.org/v1/gonum/stat"

	"infill/samplers"
)

func randomStates(n, slots int, p float64) []int {
	r := samplers.Streams(2, "states", 1)[0]
	states := make([]int, n*slots)
	for i := range states {
		if r.Float64() < p {
			states[i] = 1
		}
	}
	return states
}

// TestDiscrepancyOfEqualSets is zero, also in another order, also over more slots than a word has bits.
func TestDiscrepancyOfEqualSets(t *testing.T) {
	for _, slots := range []int{3, 64, 130} {
		states := randomStates(20, slots, 0.3)
		turned := append(append([]int{}, states[5*slots:]...), states[:5*slots]...)
		x, y := newBinarySet(slots, states), newBinarySet(slots, turned)
		value, _ := squaredDiscrepancy(x, y)
		if !(value < 1e-14) {
			t.Errorf("%d slots: %v", slots, value)
		}
		other := newBinarySet(slots, randomStates(21, slots, 0.8))
		if value, _ := squaredDiscrepancy(other, y); !(value > 0.005) {
			t.Errorf("%d slots: %v between different laws", slots, value)
		}
	}
}

// TestDiscrepancyByHand: {00, 11} and {00}: the kernel is 1 or 1/e, so ½(1 + 1/e) + 1 - 2·½(1 + 1/e) = ½ - ½/e.
func TestDiscrepancyByHand(t *testing.T) {
	y := newBinarySet(2, []int{0, 0})
	value, _ := squaredDiscrepancy(newBinarySet(2, []int{0, 0, 1, 1}), y)
	near(t, "MMD²", value, 0.5-0.5/math.E, 1e-14)
	if _, e := squaredDiscrepancy(y, y); !math.IsNaN(e) {
		t.Errorf("the error of one state is %v, want NaN", e)
	}
}

// TestJackknife: the shortcut equals leaving each state out in turn.
func TestJackknife(t *testing.T) {
	const slots, n = 9, 12
	states := randomStates(n, slots, 0.4)
	y := newBinarySet(slots, randomStates(30, slots, 0.6))
	_, got := squaredDiscrepancy(newBinarySet(slots, states), y)
	var left []float64
	for i := range n {
		rest := append(append([]int{}, states[:i*slots]...), states[(i+1)*slots:]...)
		value, _ := squaredDiscrepancy(newBinarySet(slots, rest), y)
		left = append(left, value)
	}
	centre, sum := stat.Mean(left, nil), 0.0
	for _, v := range left {
		sum += (v - centre) * (v - centre)
	}
	near(t, "standard error", got, math.Sqrt(sum*(n-1)/n), 1e-12)
}
