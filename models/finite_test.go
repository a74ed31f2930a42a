package models_test

import (
	"encoding/binary"
	"fmt"
	"math"
	"testing"

	"infill/internal/check"
	"infill/internal/modelstest"
	"infill/internal/safetensors"
	"infill/models"
)

// Weights that are no numbers, or overflow, are refused when the model is opened or imported, with the tensor and the
// first of them.
func TestUnfitWeights(t *testing.T) {
	good := check.Must(models.Open(tiny(t, false)))(t)
	first := good.Config.Tensors()[0]
	for _, x := range []float32{float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1)), 1e30} {
		dir := tiny(t, false)
		rewrite(t, dir, func(d *safetensors.Data) bool {
			if d.Name != first.Name {
				return true
			}
			content := binary.LittleEndian.AppendUint32(make([]byte, 4*9), math.Float32bits(x))
			content = append(content, make([]byte, 4*first.Shape[0]*first.Shape[1]-len(content))...)
			d.DType = safetensors.F32
			d.Content = modelstest.Bytes(content)
			return true
		})
		_, opened := models.Open(dir)
		_, imported := (&models.Store{Dir: t.TempDir()}).Import(t.Context(), dir, "org/unfit")
		for _, err := range []error{opened, imported} {
			want := fmt.Sprintf("tensor %s: element 9 is %g:", first.Name, x)
			check.Says(t, err, want, "model.safetensors")
		}
	}
	// What was looked at is remembered where the model is stored.
	stored, err := (&models.Store{Dir: t.TempDir()}).Import(t.Context(), good.Dir, "org/tiny")
	if err != nil || !stored.Manifest.FiniteWeights {
		t.Errorf("stored: %v, looked at: %t", err, err == nil && stored.Manifest.FiniteWeights)
	}
}
