package infill

import (
	"encoding/json"
	"math"
	"testing"
)

// TestInfiniteStepSize: a result can be written whatever adaptation has found.
func TestInfiniteStepSize(t *testing.T) {
	for size, want := range map[float64]string{0: "null", math.Inf(1): "null", 2.5: "2.5"} {
		got, err := json.Marshal(finite(size))
		if err != nil || string(got) != want {
			t.Errorf("step size %v: %s, error %v; want %s", size, got, err, want)
		}
	}
}
