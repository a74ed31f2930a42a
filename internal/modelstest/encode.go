package modelstest

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/x448/float16"

	"infill/internal/safetensors"
)

// Encode gives the stored bytes of floating-point numbers, rounded to the nearest (ties to even) where dtype is
// narrower.
func Encode(dtype safetensors.DType, values []float64) ([]byte, error) {
	raw := make([]byte, 0, int64(len(values))*dtype.Size())
	for _, v := range values {
		switch dtype {
		case safetensors.F16:
			raw = binary.LittleEndian.AppendUint16(raw, float16.Fromfloat32(float32(v)).Bits())
		case safetensors.BF16:
			raw = binary.LittleEndian.AppendUint16(raw, bfloat16(float32(v)))
		case safetensors.F32:
			raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(float32(v)))
		case safetensors.F64:
			raw = binary.LittleEndian.AppendUint64(raw, math.Float64bits(v))
		default:
			return nil, fmt.Errorf("element type %q holds no floating-point numbers that can be written", dtype)
		}
	}
	return raw, nil
}

// bfloat16 rounds to the nearest, ties to even; a NaN stays one.
func bfloat16(v float32) uint16 {
	b := math.Float32bits(v)
	if v != v {
		return uint16(b>>16) | 1<<6
	}
	return uint16((uint64(b) + 0x7fff + uint64(b>>16&1)) >> 16)
}
