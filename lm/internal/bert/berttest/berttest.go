// Package berttest makes small BERT bundles with random weights for tests.
package berttest

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	"infill/internal/modelstest"
	"infill/lm/internal/onnx"
	"infill/lm/internal/onnx/reference"
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

// Weights reads the weights of a graph of a bundle in dir, for
// reference.Evaluate: 32-bit numbers, from where the graph says they lie.
func Weights(dir string) func(onnx.Initializer) (reference.Array, error) {
	return func(i onnx.Initializer) (reference.Array, error) {
		if i.Value.DType != onnx.Float {
			return reference.Array{}, fmt.Errorf("%s: only 32-bit weights are read here", i.Value)
		}
		file, err := os.Open(filepath.Join(dir, i.Location.File))
		if err != nil {
			return reference.Array{}, err
		}
		defer file.Close()
		values := make([]float32, i.Location.Length/4)
		if err := binary.Read(io.NewSectionReader(file, i.Location.Offset, i.Location.Length), binary.LittleEndian,
			values); err != nil {
			return reference.Array{}, err
		}
		w := reference.Array{Data: make([]float64, len(values))}
		for k, x := range values {
			w.Data[k] = float64(x)
		}
		for _, d := range i.Value.Shape {
			n, _ := d.Size()
			w.Shape = append(w.Shape, int(n))
		}
		return w, nil
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
