package onnx

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"path/filepath"

	"infill/internal/finite"
	"infill/internal/regular"
)

// CheckFinite reads the constants of a model in a folder, and refuses the first that no weight can be. The error names
// the file, the constant and the element. What a graph hides positions with is no weight: a single infinite or very
// large number.
func (m *Model) CheckFinite(dir, file string) error {
	var open struct {
		name string
		*os.File
	}
	defer func() { open.Close() }()
	path := filepath.Join(dir, file)
	for _, c := range m.constants {
		if c.location == nil {
			if err := c.tensor.finite(); err != nil {
				return fmt.Errorf("%s: constant %.100s: %w", path, c.name, err)
			}
			continue
		}
		format := formats()[c.dtype]
		if format == 0 {
			continue
		}
		at := filepath.Join(dir, filepath.FromSlash(c.location.File))
		if open.name != c.location.File {
			open.Close() // a nil file says so
			var err error
			if open.File, err = regular.Open(at); err != nil {
				return err
			}
			open.name = c.location.File
		}
		if err := finite.Check(open, c.location.Offset, c.location.Length, format); err != nil {
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

// formats are those of the types that can hold what is no number.
func formats() map[DType]finite.Format {
	return map[DType]finite.Format{Float16: finite.Half, BFloat16: finite.Brain, Float: finite.Single,
		Double: finite.Double}
}

// finite refuses a tensor with an element that no weight can be.
func (t *Tensor) finite() error {
	format, raw := formats()[t.dtype()], t.Raw
	if format == 0 {
		return nil
	}
	if t.dtype() == Float {
		for _, x := range t.Floats {
			raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(x))
		}
	}
	if n := t.dtype().size(); int64(len(raw)) == n {
		if _, x := finite.First(format, raw); !math.IsNaN(x) {
			return nil
		}
	}
	return finite.Check(bytes.NewReader(raw), 0, int64(len(raw)), format)
}
