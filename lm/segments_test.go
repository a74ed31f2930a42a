package lm_test

import (
	"encoding/binary"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"infill/internal/check"
	"infill/lm"
	"infill/models"
)

// TestSegments: what stands behind the first [SEP] has the embedding of the
// second segment. An equal network without segments has the embedding of a
// token's segment in that of its position.
func TestSegments(t *testing.T) {
	const separator = 3
	pair, text := []int{2, 7, 9, separator, 10, 4, 12, separator}, []int{2, 7, 9, 8, 10, 4, 12, separator}
	b := writeBundle(t, 30, 0.4)
	shifted := writeBundle(t, 30, 0.4)
	stored := func(name string) (models.Tensor, []float32) {
		tensor, _ := shifted.Tensor("bert.embeddings." + name + ".weight")
		file, err := os.Open(tensor.Path)
		check.OK(t, err)
		defer file.Close()
		values := make([]float32, tensor.Length/4)
		section := io.NewSectionReader(file, tensor.Offset, tensor.Length)
		check.OK(t, binary.Read(section, binary.LittleEndian, values))
		return tensor, values
	}
	run := func(b *models.Bundle, separator int, ids []int) []float32 {
		m, err := lm.Open(t.Context(), b, lm.Options{Device: "cpu", MaskID: tinyMask, SeparatorID: separator})
		check.OK(t, err)
		defer m.Close()
		logp, err := m.LogProbabilities(t.Context(), []lm.Row{{IDs: ids, Positions: []int{1, 5}}})
		check.OK(t, err)
		return slices.Concat(logp[0]...)
	}
	differ := func(a, b []float32) float64 {
		worst := 0.0
		for i := range a {
			worst = max(worst, math.Abs(float64(a[i]-b[i])))
		}
		return worst
	}
	_, segments := stored("token_type_embeddings")
	at, positions := stored("position_embeddings")
	width := len(segments) / 2
	for i := 4 * width; i < len(positions); i++ { // behind the separator
		positions[i] += segments[width+i%width] - segments[i%width]
	}
	file, err := os.OpenFile(at.Path, os.O_WRONLY, 0)
	check.OK(t, err)
	err = binary.Write(io.NewOffsetWriter(file, at.Offset), binary.LittleEndian, positions)
	check.OK(t, errors.Join(err, file.Close()))
	if d := differ(run(b, separator, pair), run(shifted, 0, pair)); d > 1e-5 {
		t.Errorf("a pair differs by %v from the network whose positions have the segments", d)
	}
	if d := differ(run(b, separator, pair), run(b, 0, pair)); d < 1e-3 {
		t.Errorf("the second segment changes a pair by %v alone", d)
	}
	if d := differ(run(b, separator, text), run(b, 0, text)); d != 0 {
		t.Errorf("a single text differs by %v", d)
	}
	// A manifest says that the model was trained with one.
	manifest := *b.Manifest
	manifest.Segments = 1
	check.OK(t, os.WriteFile(filepath.Join(b.Dir, "manifest.json"), manifest.Encode(), 0o600))
	one, err := models.Open(b.Dir)
	check.OK(t, err)
	if d := differ(run(one, separator, pair), run(b, 0, pair)); d != 0 {
		t.Errorf("with one segment a pair differs by %v", d)
	}
}
