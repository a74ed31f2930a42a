package lm_test

import (
	"context"
	"math"
	"path/filepath"
	"testing"

	"infill/lm"
	"infill/lm/bert/berttest"
)

// Every family on onnxruntime, in single precision, against its reference
// implementation in double precision: conditionals, energy and gradient.
func TestFamilies(t *testing.T) {
	const tolerance = 1e-4
	for _, r := range berttest.References(t, filepath.Join("bert", "testdata")) {
		t.Run(r.Name, func(t *testing.T) {
			m := openBundle(t, r.Bundle, r.Mask)
			if worst := worstDifference(t, m, r); !(worst <= tolerance) {
				t.Errorf("largest difference %.1g, more than %g", worst, tolerance)
			} else {
				t.Logf("largest difference %.1g", worst)
			}
		})
	}
}

// worstDifference is the largest |x − reference|/(1 + |reference|) over
// log-probabilities and gradients.
func worstDifference(t *testing.T, m *lm.MaskedLM, r berttest.Reference) float64 {
	t.Helper()
	ctx, v, width := context.Background(), m.Vocabulary(), r.Bundle.Config.EmbeddingSize
	embedding, err := r.Bundle.Weights.Float64s(r.Bundle.Config.Layout().Words.Name)
	if err != nil {
		t.Fatal(err)
	}
	all := make([]int, v)
	for k := range all {
		all[k] = k
	}
	worst := 0.0
	compare := func(got, want float64) {
		if d := math.Abs(got-want) / (1 + math.Abs(want)); !(d <= worst) {
			worst = d
		}
	}
	for _, c := range r.Cases {
		slots := len(c.Slots)
		support, state, each := make([][]int, slots), make([]int, slots), make([]int, slots)
		for j, s := range c.Slots {
			support[j], state[j], each[j] = all, c.IDs[s], j
		}
		target, err := m.NewTarget(c.IDs, c.Slots, lm.TargetOptions{Support: support})
		if err != nil {
			t.Fatal(err)
		}
		var states []int // the same state for each slot
		for range slots {
			states = append(states, state...)
		}
		logp := make([]float64, slots*v)
		if err := target.LogConditionals(ctx, states, each, logp); err != nil {
			t.Fatal(err)
		}
		energy, gradient, want := make([]float64, 1), make([]float64, slots*v), 0.0
		if err := target.EnergyGradient(ctx, state, energy, gradient); err != nil {
			t.Fatal(err)
		}
		for j := range slots {
			want += c.LogProbability[j][state[j]]
			for k := range v {
				compare(logp[j*v+k], c.LogProbability[j][k])
				slope := c.LogProbability[j][k]
				for i := range slots {
					for d, x := range c.Gradient[i][j] {
						slope += x * embedding[k*width+d]
					}
				}
				compare(gradient[j*v+k], slope)
			}
		}
		compare(energy[0], want)
	}
	return worst
}
