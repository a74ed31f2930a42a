package safetensors

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"

	"github.com/x448/float16"

	"infill/internal/regular"
)

// Float64s reads a tensor of F16, BF16, F32 or F64 elements, row-major. All four widen to float64 exactly.
func (f *File) Float64s(name string) ([]float64, error) {
	return floats[float64](f, name)
}

// Float32s reads a tensor of F16, BF16, F32 or F64 elements, row-major. F64 is rounded to the nearest.
func (f *File) Float32s(name string) ([]float32, error) {
	return floats[float32](f, name)
}

func floats[T float32 | float64](f *File, name string) ([]T, error) {
	t, ok := f.tensors[name]
	if !ok {
		return nil, fmt.Errorf("%s: no tensor %q", f.Path, name)
	}
	var decode func([]byte) T
	switch t.DType {
	case F16:
		decode = func(b []byte) T { return T(float16.Frombits(binary.LittleEndian.Uint16(b)).Float32()) }
	case BF16:
		decode = func(b []byte) T { return T(math.Float32frombits(uint32(binary.LittleEndian.Uint16(b)) << 16)) }
	case F32:
		decode = func(b []byte) T { return T(math.Float32frombits(binary.LittleEndian.Uint32(b))) }
	case F64:
		decode = func(b []byte) T { return T(math.Float64frombits(binary.LittleEndian.Uint64(b))) }
	default:
		return nil, fmt.Errorf("%s: tensor %q holds %s, not floating-point numbers", f.Path, name, t.DType)
	}
	raw, err := t.Bytes()
	if err != nil {
		return nil, err
	}
	size := int(t.DType.Size())
	values := make([]T, t.Elements())
	for i := range values {
		values[i] = decode(raw[i*size : (i+1)*size])
	}
	return values, nil
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
