package models_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"infill/internal/modelstest"
	"infill/models"
)

// Weights that are no numbers, or overflow, are refused when the model is opened or imported, with the tensor and the
// first of them.
func TestUnfitWeights(t *testing.T) {
	good, err := models.Open(tiny(t, false))
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range []float32{float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1)), 1e30} {
		dir, n := t.TempDir(), 0
		if err := modelstest.Alter(dir, good, func(w float32) float32 {
			if n++; n == 10 {
				return x
			}
			return w
		}); err != nil {
			t.Fatal(err)
		}
		_, opened := models.Open(dir)
		_, imported := (&models.Store{Dir: t.TempDir()}).Import(t.Context(), dir, "org/unfit")
		for _, err := range []error{opened, imported} {
			want := fmt.Sprintf("tensor %s: element 9 is %g:", good.Config.Tensors()[0].Name, x)
			if err == nil || !strings.Contains(err.Error(), want) ||
				!strings.Contains(err.Error(), "model.safetensors") {
				t.Errorf("%g: %v, want %q", x, err, want)
			}
		}
	}
	// What was looked at is remembered where the model is stored.
	stored, err := (&models.Store{Dir: t.TempDir()}).Import(t.Context(), good.Dir, "org/tiny")
	if err != nil || !stored.Manifest.FiniteWeights {
		t.Errorf("stored: %v, looked at: %t", err, err == nil && stored.Manifest.FiniteWeights)
	}
}
