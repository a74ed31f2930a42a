// Package floats reads weights in the formats that they are stored in, and finds those that no model can calculate
// with: those that are no numbers, and those so large that sums overflow.
package floats

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"

	"github.com/x448/float16"
)

// Format is how numbers are written, little-endian.
type Format int

// The formats of weights.
const (
	Half     Format = iota + 1 // 16 bits, IEEE 754
	Brain                      // the upper 16 bits of Single
	Single                     // 32 bits
	Double                     // 64 bits
	noFormat                   // one more than there are
)

// size is the bytes of a number.
func (f Format) size() int64 { return [noFormat]int64{0, 2, 2, 4, 8}[f] }

// Float32s reads numbers, rounded to the nearest where they have 64 bits.
func (f Format) Float32s(raw []byte) []float32 {
	values := make([]float32, len(raw)/int(f.size()))
	for i := range values {
		switch f {
		case Half:
			values[i] = float16.Frombits(binary.LittleEndian.Uint16(raw[2*i:])).Float32()
		case Brain:
			values[i] = math.Float32frombits(uint32(binary.LittleEndian.Uint16(raw[2*i:])) << 16)
		case Single:
			values[i] = math.Float32frombits(binary.LittleEndian.Uint32(raw[4*i:]))
		case Double:
			values[i] = float32(math.Float64frombits(binary.LittleEndian.Uint64(raw[8*i:])))
		}
	}
	return values
}

// largest is far above any weight of a model, and its square is far below what single precision holds.
const largest = 1e15

// First is the place and the value of the first number of raw that no weight can be; -1: there is none.
func First(f Format, raw []byte) (int, float64) {
	switch f {
	case Half: // a largest exponent is infinity or no number; all else is below 65,536
		for i := 0; i+2 <= len(raw); i += 2 {
			if bits := binary.LittleEndian.Uint16(raw[i:]); bits&0x7c00 == 0x7c00 {
				if bits&0x3ff != 0 {
					return i / 2, math.NaN()
				}
				return i / 2, math.Inf(1 - int(bits>>15)*2)
			}
		}
	case Brain:
		for i := 0; i+2 <= len(raw); i += 2 {
			bits := uint32(binary.LittleEndian.Uint16(raw[i:])) << 16
			if x := float64(math.Float32frombits(bits)); !(math.Abs(x) <= largest) {
				return i / 2, x
			}
		}
	case Single:
		for i := 0; i+4 <= len(raw); i += 4 {
			if x := math.Float32frombits(binary.LittleEndian.Uint32(raw[i:])); !(x <= largest && x >= -largest) {
				return i / 4, float64(x)
			}
		}
	case Double:
		for i := 0; i+8 <= len(raw); i += 8 {
			if x := math.Float64frombits(binary.LittleEndian.Uint64(raw[i:])); !(math.Abs(x) <= largest) {
				return i / 8, x
			}
		}
	}
	return -1, 0
}

// Check reads length bytes from an offset on. The error says which element is the first that no weight can be, and
// what to do.
func Check(r io.ReaderAt, offset, length int64, f Format) error {
	block := make([]byte, min(1<<16, length))
	for at := int64(0); at < length; at += int64(len(block)) {
		block = block[:min(int64(len(block)), length-at)]
		if _, err := io.ReadFull(io.NewSectionReader(r, offset+at, int64(len(block))), block); err != nil {
			return err
		}
		if i, x := First(f, block); i >= 0 {
			return fmt.Errorf("element %d is %.6g: the weights are damaged, or of another type; "+
				"fetch or export the model again", at/f.size()+int64(i), x)
		}
	}
	return nil
}
