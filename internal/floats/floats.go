// Package floats reads weights in their stored formats.
package floats

import (
	"encoding/binary"
	"math"

	"github.com/x448/float16"
)

// Format is a format of stored numbers, little-endian.
type Format int

// These are the formats in which weights are stored.
const (
	Half     Format = iota + 1 // 16 bits, IEEE 754
	Brain                      // the upper 16 bits of Single
	Single                     // 32 bits
	Double                     // 64 bits
	noFormat                   // number of formats plus 1
)

func (f Format) size() int { return [noFormat]int{0, 2, 2, 4, 8}[f] }

func (f Format) number(raw []byte) float64 {
	switch f {
	case Half:
		return float64(float16.Frombits(binary.LittleEndian.Uint16(raw)).Float32())
	case Brain:
		return float64(math.Float32frombits(uint32(binary.LittleEndian.Uint16(raw)) << 16))
	case Single:
		return float64(math.Float32frombits(binary.LittleEndian.Uint32(raw)))
	}
	return math.Float64frombits(binary.LittleEndian.Uint64(raw))
}

// Float32s reads raw as numbers. It rounds 64-bit numbers to the nearest float32.
func (f Format) Float32s(raw []byte) []float32 {
	values := make([]float32, len(raw)/f.size())
	for i := range values {
		values[i] = float32(f.number(raw[i*f.size():]))
	}
	return values
}
