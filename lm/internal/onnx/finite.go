package onnx

import (
	"bytes"
	"encoding/binary"
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
		at, err := path, error(nil)
		if c.location != nil {
			at, err = filepath.Join(dir, filepath.FromSlash(c.location.File)), c.location.finite(dir, c.dtype)
		} else {
			err = c.tensor.finite()
		}
		if err != nil {
			return fmt.Errorf("%s: constant %.100s: %w", at, c.name, err)
		}
	}
	for _, n := range m.nodes {
		for _, a := range n.attributes {
			var err error
			switch x := a.Value.(type) {
			case *Tensor:
				err = x.finite()
			case float32:
				err = (&Tensor{Floats: []float32{x}}).finite()
			case []float32:
				err = (&Tensor{Floats: x}).finite()
			}
			if err != nil {
				return fmt.Errorf("%s: attribute %.60s of %s %.100s: %w", path, a.Name, n.op, append(n.outputs, "")[0],
					err)
			}
		}
	}
	return nil
}

func (l Location) finite(dir string, t DType) error {
	format := dtypes[t].format
	if format == 0 {
		return nil
	}
	file, err := l.open(dir)
	if err != nil {
		return err
	}
	defer file.Close()
	return floats.Check(file, l.Offset, l.Length, format)
}

// finite refuses a tensor with an element that no weight can be.
func (t *Tensor) finite() error {
	format, raw := dtypes[t.dtype()].format, t.Raw
	if format == 0 {
		return nil
	}
	if t.dtype() == Float {
		for _, x := range t.Floats {
			raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(x))
		}
	}
	if n := t.dtype().size(); int64(len(raw)) == n {
		if _, x := floats.First(format, raw); !math.IsNaN(x) {
			return nil
		}
	}
	return floats.Check(bytes.NewReader(raw), 0, int64(len(raw)), format)
}
