package lm_test

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"infill/internal/check"
	"infill/internal/modelstest"
	"infill/internal/safetensors"
	"infill/lm"
	"infill/models"
)

// inInt8 is a copy of a model in int8, whose inputs are spread as text says. It
// skips the test on processors where such a model does not run.
func inInt8(t testing.TB, bundle *models.Bundle, mask int, text []int) *models.Bundle {
	t.Helper()
	if err := lm.CheckInt8(); err != nil {
		t.Skip(err)
	}
	o := lm.Options{Device: "cpu", MaskID: mask}
	largest := check.Must(lm.LargestInputs(t.Context(), bundle, o, [][]int{text}))(t)
	return check.Must(modelstest.Int8(t.Context(), t.TempDir(), bundle, largest))(t)
}

// Every family in int8 computes what its reference implementation does in double
// precision, if that rounds its matrices and their inputs likewise.
func TestInt8Reference(t *testing.T) {
	for _, r := range references(t) {
		t.Run(r.Name, func(t *testing.T) {
			var want reference
			file := filepath.Join("..", "internal", "bert", "testdata", r.Name, "int8.json")
			check.OK(t, json.Unmarshal(check.Must(os.ReadFile(file))(t), &want))
			if len(want.Cases) == 0 {
				t.Fatal("no cases")
			}
			copied := inInt8(t, r.Bundle, want.Mask, want.SpreadBy)
			if err := lm.CheckDevice(copied, "cpu"); err != nil {
				t.Skip(err)
			}
			m := openBundle(t, copied, want.Mask)
			worst := 0.0
			for _, c := range want.Cases {
				for i, slot := range c.Slots {
					got := masked(t, m, c.IDs, slot)[0]
					for token, logp := range c.LogProbability[i] {
						worst = max(worst, math.Abs(float64(got[token])-logp)/(1+math.Abs(logp)))
					}
				}
			}
			t.Logf("largest difference %.1g", worst)
			if !(worst <= 1e-5) {
				t.Errorf("largest difference %.1g, want 1e-5", worst)
			}
		})
	}
}

// A model in int8 runs on the processor, and has no full gradient.
func TestInt8Refused(t *testing.T) {
	r := references(t)[0]
	bundle := inInt8(t, r.Bundle, r.Mask, r.SpreadBy)
	_, err := lm.Open(t.Context(), bundle, lm.Options{Device: "cuda:1", MaskID: r.Mask})
	check.Says(t, err, "model int8 is in int8, which is for processors: use --device cpu, or the model in float "+
		r.Bundle.Dir)
	m := check.Must(lm.Open(t.Context(), bundle, lm.Options{Device: "auto", MaskID: r.Mask}))(t)
	defer m.Close()
	if device := m.Description().Device; device != "cpu" {
		t.Errorf("auto took %s", device)
	}
	ids := r.Cases[0].IDs
	support := [][]int{{5, 6}, {5, 6}}
	gradient := make([]float64, 4)
	energy := make([]float64, 1)
	target := targetOf(t, m, ids, []int{2, 3}, lm.TargetOptions{Support: support})
	check.Says(t, target.EnergyGradient(t.Context(), []int{0, 1}, energy, gradient),
		"model int8 has no gradient", "the model in float "+r.Bundle.Dir, "use the gradient local")
	target = targetOf(t, m, ids, []int{2, 3}, lm.TargetOptions{Support: support, Gradient: lm.Local})
	check.OK(t, target.EnergyGradient(t.Context(), []int{0, 1}, energy, gradient))
	if !(energy[0] < 0) {
		t.Errorf("energy %g", energy[0])
	}
}

// The matrices of the copy are the model's, with columns divided by the factors
// of their inputs, up to half a step of their rows. All other weights are equal.
func TestInt8Weights(t *testing.T) {
	for _, r := range references(t) {
		bundle := check.Must(modelstest.Int8(t.Context(), t.TempDir(), r.Bundle, modelstest.Largest(r.Bundle)))(t)
		if !bundle.Int8() || r.Bundle.Int8() {
			t.Errorf("%s: in int8 %t, its model %t", r.Name, bundle.Int8(), r.Bundle.Int8())
		}
		floats := check.Must(safetensors.Open(filepath.Join(r.Bundle.WeightsDir, "model.safetensors")))(t)
		file := check.Must(safetensors.Open(filepath.Join(bundle.WeightsDir, "model.safetensors")))(t)
		whole := 0
		factors := map[string][]float32{}
		kinds := map[float32]bool{}
		for _, s := range bundle.Config.Spreads() {
			list := check.Must(file.Float32s(s.Name))(t)
			for _, matrix := range s.Matrices {
				factors[matrix] = list
			}
			for _, factor := range list {
				kinds[factor] = true
			}
		}
		if len(kinds) < 2 {
			t.Errorf("%s: the factors %v", r.Name, kinds)
		}
		for _, want := range r.Bundle.Config.Tensors() {
			from, _ := r.Bundle.Tensor(want.Name)
			to, _ := bundle.Tensor(want.Name)
			original := check.Must(floats.Float32s(from.Name))(t)
			if to.DType != "I8" {
				if !slices.Equal(check.Must(file.Float32s(to.Name))(t), original) {
					t.Errorf("%s: %s has changed", r.Name, want.Name)
				}
				continue
			}
			whole++
			steps := check.Must(to.Bytes())(t)
			scales := check.Must(file.Float32s(models.Scale(to.Name)))(t)
			for i, x := range original {
				scale := float64(scales[i/to.Shape[1]])
				if list, ok := factors[to.Name]; ok {
					x /= list[i%to.Shape[1]]
				}
				if d := math.Abs(float64(x) - float64(int8(steps[i]))*scale); !(d <= 0.5001*scale) {
					t.Fatalf("%s: %s[%d]: %g became %d steps of %g", r.Name, want.Name, i, x, int8(steps[i]), scale)
				}
			}
		}
		if whole < 5 {
			t.Errorf("%s: %d matrices in int8", r.Name, whole)
		}
	}
}
