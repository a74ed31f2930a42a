// Package berttest makes small BERT bundles with random weights for tests.
package berttest

import (
	"cmp"
	"fmt"
	"testing"

	"infill/internal/modelstest"
	"infill/models"
)

// MaskID is [MASK] in every bundle made here.
const MaskID = 4

// Shape is what a bundle's config.json says; zero values get the smallest sensible size.
type Shape struct {
	Vocabulary, Hidden, Layers, Intermediate int
	Activation                               string  // "gelu" when empty
	Untied                                   bool    // the output matrix is not the embedding matrix
	Spread                                   float64 // standard deviation of the weights; 0.02 when zero
}

// Write fills dir with a bundle of random float32 weights.
func Write(t testing.TB, dir string, s Shape) *models.Bundle {
	t.Helper()
	config := fmt.Sprintf(
		`{"model_type": "bert", "architectures": ["BertForMaskedLM"], "vocab_size": %d, "hidden_size": %d, "num_hidden_layers": %d,
	  "num_attention_heads": 2, "intermediate_size": %d, "hidden_act": %q, "max_position_embeddings": 16, "tie_word_embeddings": %t}`,
		cmp.Or(s.Vocabulary, 30), cmp.Or(s.Hidden, 8), cmp.Or(s.Layers, 2), cmp.Or(s.Intermediate, 12),
		cmp.Or(s.Activation, "gelu"), !s.Untied)
	must(t, modelstest.Write(dir, config, modelstest.Options{Spread: s.Spread, Seed: 1}))
	bundle, err := models.Open(dir)
	must(t, err)
	return bundle
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
