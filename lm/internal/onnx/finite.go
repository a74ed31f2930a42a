package onnx

import (
	"bytes"
	"fmt"
	"math"
	"path/filepath"

	"infill/internal/floats"
)

// CheckFinite reads the constants of a model in a folder, and refuses the first that no weight can be. The error names
// the file, the constant and the element. What a graph hides positions with is no weight: a single infinite or very
// large number.
func (m *Model) CheckFinite(dir, file string) error {
	path := filepath.Join(dir, file)
	for _, c := range m.constants {
		at := path
		if c.tensor.At != nil {
			at = filepath.Join(dir, filepath.FromSlash(c.tensor.At.File))
		}
		if err := c.tensor.finite(dir); err != nil {
			return fmt.Errorf("%s: constant %.100s: %w", at, c.name, err)
		}
	}
	for _, n := range m.nodes {
		for _, a := range n.attributes {
			t, _ := a.tensor()
			if err := t.finite(dir); err != nil {
				return fmt.Errorf("%s: attribute %.60s of %s %.100s: %w", path, a.Name, n.op, append(n.outputs, "")[0],
					err)
			}
		}
	}
	return nil
}

// finite refuses a tensor with an element that no weight can be.
func (t Tensor) finite(dir string) error {
	format := dtypes[t.DType].format
	if format == 0 {
		return nil
	}
	if t.At != nil {
		file, err := t.At.open(dir)
		if err != nil {
			return err
		}
		defer file.Close()
		return floats.Check(file, t.At.Offset, t.At.Length, format)
	}
	if int64(len(t.Raw)) == t.DType.size() {
		if _, x := floats.First(format, t.Raw); !math.IsNaN(x) {
			return nil
		}
	}
	return floats.Check(bytes.NewReader(t.Raw), 0, int64(len(t.Raw)), format)
}
