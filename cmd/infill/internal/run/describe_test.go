package run

import (
	"testing"

	"infill/internal/batch"
)

// The bar says how far a run is, how fast, and how many lines were left out.
func TestDescribe(t *testing.T) {
	for want, at := range map[string]batch.Progress{
		"0 of 20":                  {Total: 20},
		"5 of 20 (2.5/s), 6s left": {Done: 5, Total: 20, PerSecond: 2.5},
		"5 of 20 (0.005/s), 50m00s left, 2 left out": {Done: 5, Total: 20, PerSecond: 0.005, Rejected: 2},
	} {
		if got := describe(at); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
