package lm_test

import (
	"context"
	"errors"
	"math"
	"testing"

	"infill/internal/check"
	"infill/lm"
	"infill/models"
	"infill/samplers"
)

// onCUDA opens a model on the GPU and on the CPU, with one library, or skips
// the test where no GPU works.
func onCUDA(t testing.TB, bundle *models.Bundle, mask int) (gpu, cpu *lm.MaskedLM) {
	t.Helper()
	ctx := context.Background()
	path, err := lm.LocateLibrary(ctx, "cuda", nil)
	if err = errors.Join(err, lm.FindGPU()); err != nil {
		t.Skip(err)
	}
	open := func(device string) *lm.MaskedLM {
		m := check.Must(lm.Open(ctx, bundle, lm.Options{Device: device, MaskID: mask, Library: path}))(t)
		t.Cleanup(func() {
			if err := m.Close(); err != nil {
				t.Error(err)
			}
		})
		return m
	}
	return open("cuda"), open("cpu")
}

// The GPU gives the CPU's conditionals, energies and gradients, up to rounding.
func TestCUDAAgrees(t *testing.T) {
	builtIn := check.Must(models.Open(""))(t)
	for name, test := range map[string]struct {
		bundle *models.Bundle
		mask   int
	}{
		"built-in": {builtIn, maskID},
		"tiny":     {writeBundle(t, 30, 0.3), tinyMask},
	} {
		t.Run(name, func(t *testing.T) {
			gpu, cpu := onCUDA(t, test.bundle, test.mask)
			ids, slots := []int{2, 7, 4, 11, 4, 4, 9, 3}, []int{2, 4, 5}
			support := [][]int{{5, 6, 7, 8, 9}, {10, 11, 12}, {5, 10, 15, 20}}
			var results [2][]float64
			for i, m := range []*lm.MaskedLM{gpu, cpu} {
				logp := masked(t, m, ids, slots...)
				for _, row := range logp {
					for _, x := range row {
						results[i] = append(results[i], float64(x))
					}
				}
				states := []int{0, 0, 0, 1, 2, 3, 4, 1, 2, 2, 2, 2}
				energy, gradient := make([]float64, 4), make([]float64, 4*3*5)
				made, err := m.NewTarget(ids, slots, lm.TargetOptions{Support: support, Gradient: lm.Full})
				if err == nil {
					err = made.(samplers.GradientTarget).EnergyGradient(t.Context(), states, energy, gradient)
				}
				check.OK(t, err)
				results[i] = append(append(results[i], energy...), gradient...)
			}
			worst := 0.0
			for i, x := range results[0] {
				worst = max(worst, math.Abs(x-results[1][i])/(1+math.Abs(x)))
			}
			t.Logf("%s: largest |gpu − cpu|/(1 + |gpu|) of %d values: %.2g", gpu.Description().Device, len(results[0]),
				worst)
			if !(worst < 1e-4) {
				t.Errorf("the GPU is off by %g", worst)
			}
		})
	}
}
