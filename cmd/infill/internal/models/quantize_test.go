package models

import (
	"math"
	"testing"
)

// The error of a mean is that between lists: the tokens of a text depend on each
// other.
func TestMeanOf(t *testing.T) {
	for _, c := range []struct {
		lists      [][]float64
		value, err float64
	}{
		{[][]float64{{1}, {3}}, 2, 1}, // the standard deviation is √2, of two
		{[][]float64{{1, 3}, {3, 1}}, 2, 0},
		{[][]float64{{1, 1, 1}, {5}}, 2, 1.5}, // lists of another length weigh as much as they are long
	} {
		m := meanOf(c.lists)
		if m.value != c.value || math.Abs(m.err-c.err) > 1e-12 {
			t.Errorf("%v: %+v, want %v ± %v", c.lists, m, c.value, c.err)
		}
	}
}
