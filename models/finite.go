package models

import (
	"fmt"
	"slices"

	"infill/internal/floats"
	"infill/internal/regular"
)

// checkFinite reads the weights that the graph reads, and refuses the first that no weight can be. What passed is
// remembered in the manifest.
func (b *Bundle) checkFinite() error {
	if b.Manifest.FiniteWeights {
		return nil
	}
	body, head := b.Config.tensors()
	for _, want := range slices.Concat(body, head) {
		t, ok := findTensor(b.weights, want.Name)
		if !ok || t.Path == "" { // to be converted: it is looked at when it is stored
			return nil
		}
		file, err := regular.Open(t.Path)
		if err != nil {
			return err
		}
		err = floats.Check(file, t.Offset, t.Length, t.DType.Format())
		file.Close()
		if err != nil {
			return fmt.Errorf("%s: tensor %s: %w", t.Path, t.Name, err)
		}
	}
	b.Manifest.FiniteWeights = true
	return nil
}
