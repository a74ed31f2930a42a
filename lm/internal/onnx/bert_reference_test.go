package onnx_test

import (
	"path/filepath"
	"slices"
	"testing"

	"infill/lm/internal/bert/berttest"
	"infill/models"
)

// Every family against its reference implementation, in double precision: the
// log-probabilities and gradients of rows with one masked slot.
func TestReference(t *testing.T) {
	// The stored values have twelve digits; the normalisation's epsilon and the
	// rotary frequencies are single-precision numbers in the graph.
	const tolerance = 1e-6
	for _, r := range berttest.References(t, filepath.Join("..", "bert", "testdata")) {
		t.Run(r.Name, func(t *testing.T) {
			if worst := difference(t, r); !(worst <= tolerance) {
				t.Errorf("largest difference %.1g, more than %g", worst, tolerance)
			}
		})
	}
}

// Every family has reference values.
func TestEveryFamilyHasAReference(t *testing.T) {
	var found []string
	for _, r := range berttest.References(t, filepath.Join("..", "bert", "testdata")) {
		found = append(found, r.Bundle.Config.ModelType)
	}
	for _, family := range models.Families() {
		// CamemBERT is RoBERTa under another name, with the same tensors.
		if family != "camembert" && !slices.Contains(found, family) {
			t.Errorf("family %s has no reference values", family)
		}
	}
}
