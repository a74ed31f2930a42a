package samplers

import (
	"math/rand/v2"
	"testing"

	"infill/internal/targets"
)

func smallTable(t *testing.T) *targets.Table {
	t.Helper()
	table, err := targets.NewTable([]int{2, 3}, rand.New(rand.NewPCG(4, 1)),
		targets.TableOptions{Scale: 1.5, GradientError: 0.4})
	if err != nil {
		t.Fatal(err)
	}
	return table
}

func atTemperature(t *testing.T, target Target, temperature float64) Target {
	t.Helper()
	w, err := Temper(target, temperature)
	if err != nil {
		t.Fatal(err)
	}
	return w
}
