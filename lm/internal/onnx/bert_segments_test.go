package onnx_test

import (
	"math"
	"os"
	"path/filepath"
	"testing"

	"infill/lm/internal/bert"
	"infill/lm/internal/bert/berttest"
	"infill/lm/internal/graphs"
	"infill/lm/internal/onnx"
	"infill/models"
)

// TestSegments: what stands behind the first [SEP] has the embedding of the second segment. An equal network without
// segments has the embedding of a token's segment in that of its position.
func TestSegments(t *testing.T) {
	const separator = 3
	pair := Array{Shape: []int{1, 8}, Data: []float64{2, 7, 9, separator, 10, 4, 12, separator}}
	single := Array{Shape: []int{1, 8}, Data: []float64{2, 7, 9, 8, 10, 4, 12, separator}}
	inputs := func(ids Array) map[string]Array {
		return map[string]Array{graphs.InputIDs: ids,
			graphs.InputQueries:    {Shape: []int{1, 2}, Data: []float64{1, 5}},
			graphs.InputTargets:    {Shape: []int{2, 1}, Data: []float64{7, 11}},
			graphs.InputCandidates: New(2, 0), graphs.InputChosen: New(0)}
	}
	b := berttest.Write(t, t.TempDir(), berttest.Shape{Spread: 0.4})
	run := func(b *models.Bundle, separator int, ids Array,
		change func(name string, w Array)) []float64 {
		g := must[*onnx.Graph](t)(graphs.Conditionals("segments", bert.Model{Bundle: b, Separator: separator}))
		return evaluateBundle(t, b, g, inputs(ids), change)[graphs.OutputTarget].Data
	}
	differ := func(a, b []float64) float64 {
		return max(math.Abs(a[0]-b[0]), math.Abs(a[1]-b[1]))
	}
	const positions, segments = "bert.embeddings.position_embeddings.weight",
		"bert.embeddings.token_type_embeddings.weight"
	var rows []float64
	run(b, 0, pair, func(name string, w Array) {
		if name == segments {
			rows = w.Data
		}
	})
	width := len(rows) / 2
	second := func(name string, w Array) {
		if name != positions {
			return
		}
		for i := 4 * width; i < len(w.Data); i++ { // behind the separator
			w.Data[i] += rows[width+i%width] - rows[i%width]
		}
	}
	if d := differ(run(b, separator, pair, nil), run(b, 0, pair, second)); d > 1e-12 {
		t.Errorf("a pair differs by %v from the network whose positions have the segments", d)
	}
	if d := differ(run(b, separator, pair, nil), run(b, 0, pair, nil)); d < 1e-3 {
		t.Errorf("the second segment changes a pair by %v alone", d)
	}
	if d := differ(run(b, separator, single, nil), run(b, 0, single, nil)); d != 0 {
		t.Errorf("a single text differs by %v", d)
	}
	// A manifest says that the model was trained with one.
	manifest := *b.Manifest
	manifest.Segments = 1
	if err := os.WriteFile(filepath.Join(b.Dir, "manifest.json"), manifest.Encode(), 0o600); err != nil {
		t.Fatal(err)
	}
	one, err := models.Open(b.Dir)
	if err != nil {
		t.Fatal(err)
	}
	if d := differ(run(one, separator, pair, nil), run(b, 0, pair, nil)); d != 0 {
		t.Errorf("with one segment a pair differs by %v", d)
	}
}
