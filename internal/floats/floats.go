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
func (f Format) size() int { return [noFormat]int{0, 2, 2, 4, 8}[f] }

// number is the number at the beginning of raw.
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

// Float32s reads numbers, rounded to the nearest where they have 64 bits.
func (f Format) Float32s(raw []byte) []float32 {
	values := make([]float32, len(raw)/f.size())
	for i := range values {
		values[i] = float32(f.number(raw[i*f.size():]))
	}
	return values
}

// largest is far above any weight of a model, and its square is far below what single precision holds.
const largest = 1e15

// First is the place and the value of the first number of raw that no weight can be; -1: there is none.
func First(f Format, raw []byte) (int, float64) {
	size := f.size()
	for i := range len(raw) / size {
		if x := f.number(raw[i*size:]); !(math.Abs(x) <= largest) {
			return i, x
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
				"fetch or export the model again", at/int64(f.size())+int64(i), x)
		}
	}
	return nil
}
