package bert_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
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
	for _, r := range berttest.References(t, "testdata") {
		t.Run(r.Name, func(t *testing.T) {
			if worst := r.Difference(t); !(worst <= tolerance) {
				t.Errorf("largest difference %.1g, more than %g", worst, tolerance)
			}
		})
	}
}

// The rotary frequencies of ESM-2 are those of its file, whatever its configuration says.
func TestStoredFrequencies(t *testing.T) {
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("testdata/esm")); err != nil {
		t.Fatal(err)
	}
	config, err := os.ReadFile("testdata/esm/config.json")
	if err != nil {
		t.Fatal(err)
	}
	other := strings.Replace(string(config), `"rope_theta": 10000.0`, `"rope_theta": 500.0`, 1)
	if err := os.WriteFile(filepath.Join(dir, "config.json"), []byte(other), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, r := range berttest.References(t, "testdata") {
		if r.Name != "esm" {
			continue
		}
		if r.Bundle, err = models.Open(dir); err != nil {
			t.Fatal(err)
		}
		if worst := r.Difference(t); !(worst <= 1e-6) {
			t.Errorf("largest difference %.1g", worst)
		}
	}
}

// Every family has reference values.
func TestEveryFamilyHasAReference(t *testing.T) {
	var found []string
	for _, r := range berttest.References(t, "testdata") {
		found = append(found, r.Bundle.Config.ModelType)
	}
	for _, family := range models.Families() {
		// CamemBERT is RoBERTa under another name, with the same tensors.
		if family != "camembert" && !slices.Contains(found, family) {
			t.Errorf("family %s has no reference values", family)
		}
	}
}
