package samplers

import (
	"testing"
)

func atTemperature(t *testing.T, target Target, temperature float64) Target {
	t.Helper()
	w, err := Temper(target, temperature)
	if err != nil {
		t.Fatal(err)
	}
	return w
}
