package metrics

import (
	"math"
	"testing"
)

// The values are those of the formula with Python's statistics.NormalDist.
func TestWilson(t *testing.T) {
	for _, test := range []struct{ p, n, low, high float64 }{{0.1, 10, 0.01787621, 0.40415003}, {0, 25, 0, 0.13319225},
		{1, 25, 0.86680775, 1}, {0.5, 100, 0.40383153, 0.59616847}} {
		low, high := Wilson(test.p, test.n, 0.95)
		if !(math.Abs(low-test.low) < 1e-6 && math.Abs(high-test.high) < 1e-6) {
			t.Errorf("%v of %v: %.8f to %.8f, want %.8f to %.8f", test.p, test.n, low, high, test.low, test.high)
		}
	}
}
