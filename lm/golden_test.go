package lm_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"infill/internal/check"
	"infill/lm"
	"infill/models"
)

const maskID = 103 // of the built-in model, and of mini-uncased

// The models of testdata/golden: the built-in one, which is also the first, and
// a smaller one that only tests use.
var goldenModels = []struct{ name, open string }{{models.BuiltInName, ""}, {"mini-uncased", "../testdata/mini-uncased"}}

// goldenEnergy is one energy of a case; see testdata/golden/README.md.
type goldenEnergy struct {
	Energy   []float64
	Top      goldenTop   `json:"gradient_top"`
	At       goldenAt    `json:"gradient_at"`
	Sum      [][]float64 `json:"gradient_sum"`
	Squares  [][]float64 `json:"gradient_square_sum"`
	LogProbs goldenTop   `json:"log_prob_top"`
}

type goldenTop struct {
	IDs    [][][]int
	Values [][][]float64
}

type goldenAt struct {
	IDs    []int
	Values [][][]float64
}

type goldenCase struct {
	Template    string
	Slots       []int
	IDs         [][]int
	PLL, Filled goldenEnergy
}

func goldenOf(t testing.TB, model string) []goldenCase {
	t.Helper()
	data := check.Must(os.ReadFile(filepath.Join("..", "testdata", "golden", model+".json")))(t)
	var cases []goldenCase
	check.OK(t, json.Unmarshal(data, &cases))
	if len(cases) == 0 {
		t.Fatal("no golden cases")
	}
	return cases
}

func openBundle(t testing.TB, bundle *models.Bundle, mask int) *lm.MaskedLM {
	t.Helper()
	m := check.Must(lm.Open(context.Background(), bundle, lm.Options{Device: "cpu", MaskID: mask}))(t)
	t.Cleanup(func() {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	})
	return m
}

// Energies, gradients and conditionals equal values of an independent
// implementation in double precision.
func TestGolden(t *testing.T) {
	for _, of := range goldenModels {
		t.Run(of.name, func(t *testing.T) {
			bundle := check.Must(models.Open(of.open))(t)
			compareGolden(t, openBundle(t, bundle, maskID), goldenOf(t, of.name))
		})
	}
}

func compareGolden(t *testing.T, m *lm.MaskedLM, cases []goldenCase) {
	ctx := context.Background()
	for _, c := range cases {
		for energy, want := range map[lm.Energy]goldenEnergy{lm.PLL: c.PLL, lm.Filled: c.Filled} {
			t.Run(fmt.Sprintf("%s/%s", energy, c.Template), func(t *testing.T) {
				slots, v := len(c.Slots), m.Vocabulary()
				target := targetOf(t, m, c.IDs[0], c.Slots,
					lm.TargetOptions{Energy: energy, Support: vocabularySupport(v, slots)})
				var states []int
				for _, ids := range c.IDs {
					for _, s := range c.Slots {
						states = append(states, ids[s])
					}
				}
				value, gradient := make([]float64, len(c.IDs)), make([]float64, len(states)*v)
				check.OK(t, target.EnergyGradient(ctx, states, value, gradient))
				for chain := range c.IDs {
					check.Nats(t, "energy", value[chain], want.Energy[chain], slots)
					for j := range slots {
						g := gradient[(chain*slots+j)*v:][:v]
						for k, id := range want.Top.IDs[chain][j] {
							check.Derivative(t, fmt.Sprintf("∂U/∂θ_%d[%d]", j, id), g[id], want.Top.Values[chain][j][k])
						}
						sum, squares := 0.0, 0.0
						for _, x := range g {
							sum, squares = sum+x, squares+x*x
						}
						check.Derivative(t, "Σ gradient", sum, want.Sum[chain][j])
						check.Derivative(t, "Σ gradient²", squares, want.Squares[chain][j])
						for k, id := range want.At.IDs {
							check.Derivative(t, fmt.Sprintf("∂U/∂θ_%d[%d]", j, id), g[id], want.At.Values[chain][j][k])
						}
					}
				}
				if energy != lm.PLL {
					return
				}
				logp := make([]float64, len(c.IDs)*v)
				for j := range slots {
					which := make([]int, len(c.IDs))
					for chain := range which {
						which[chain] = j
					}
					check.OK(t, target.LogConditionals(ctx, states, which, logp))
					for chain := range c.IDs {
						for k, id := range want.LogProbs.IDs[chain][j] {
							check.Nats(t, fmt.Sprintf("log p_%d(%d)", j, id), logp[chain*v+id],
								want.LogProbs.Values[chain][j][k], 1)
						}
					}
				}
			})
		}
	}
}
