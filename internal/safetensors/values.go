package safetensors

import (
	"fmt"
	"io"

	"infill/internal/floats"
	"infill/internal/regular"
)

// Format is how floating-point elements are stored, 0 for all others.
func (d DType) Format() floats.Format {
	return map[DType]floats.Format{F16: floats.Half, BF16: floats.Brain, F32: floats.Single, F64: floats.Double}[d]
}

// Float32s reads a tensor of F16, BF16, F32 or F64 elements, row-major. F64 is rounded to the nearest.
func (f *File) Float32s(name string) ([]float32, error) {
	t, ok := f.tensors[name]
	if !ok {
		return nil, fmt.Errorf("%s: no tensor %q", f.Path, name)
	}
	format := t.DType.Format()
	if format == 0 {
		return nil, fmt.Errorf("%s: tensor %q holds %s, not floating-point numbers", f.Path, name, t.DType)
	}
	raw, err := t.Bytes()
	if err != nil {
		return nil, err
	}
	return format.Float32s(raw), nil
}

// Bytes reads the tensor's elements as they are stored.
func (t Tensor) Bytes() ([]byte, error) {
	file, err := regular.Open(t.Path)
	if err != nil {
		return nil, fmt.Errorf("tensor %q: %w", t.Name, err)
	}
	defer file.Close()
	raw := make([]byte, t.Length)
	if _, err := io.ReadFull(io.NewSectionReader(file, t.Offset, t.Length), raw); err != nil {
		return nil, fmt.Errorf("%s: tensor %q: %w", t.Path, t.Name, err)
	}
	return raw, nil
}
