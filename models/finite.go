package models

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"slices"

	"infill/models/internal/safetensors"
	"infill/models/regular"
)

// largestWeight is far above any weight of a model, and its square is far below what single precision holds.
const largestWeight = 1e15

// checkFinite reads the weights that the graph reads, and refuses the first that is no number, or so large that sums overflow.
// What passed is remembered in the manifest.
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
		if err := finiteTensor(t); err != nil {
			return err
		}
	}
	b.Manifest.FiniteWeights = true
	return nil
}

func finiteTensor(t safetensors.Tensor) error {
	file, err := regular.Open(t.Path)
	if err != nil {
		return err
	}
	defer file.Close()
	size := t.DType.Size()
	block := make([]byte, 1<<16)
	for at := int64(0); at < t.Length; {
		part := block[:min(int64(len(block)), t.Length-at)]
		if _, err := io.ReadFull(io.NewSectionReader(file, t.Offset+at, int64(len(part))), part); err != nil {
			return fmt.Errorf("%s: tensor %s: %w", t.Path, t.Name, err)
		}
		if i, x := firstUnfit(t.DType, part); i >= 0 {
			return fmt.Errorf("%s: tensor %s: element %d is %.6g: the weights are damaged, or of another type; fetch or export the model anew", t.Path, t.Name, at/size+int64(i), x)
		}
		at += int64(len(part))
	}
	return nil
}

// firstUnfit is the first element of raw numbers that no weight can be; -1: there is none.
func firstUnfit(dtype safetensors.DType, raw []byte) (int, float64) {
	switch dtype {
	case safetensors.F16: // a largest exponent is infinity or no number; all else is below 65,536
		for i := 0; i+2 <= len(raw); i += 2 {
			if bits := binary.LittleEndian.Uint16(raw[i:]); bits&0x7c00 == 0x7c00 {
				if bits&0x3ff != 0 {
					return i / 2, math.NaN()
				}
				return i / 2, math.Inf(1 - int(bits>>15)*2)
			}
		}
	case safetensors.BF16:
		for i := 0; i+2 <= len(raw); i += 2 {
			if x := float64(math.Float32frombits(uint32(binary.LittleEndian.Uint16(raw[i:])) << 16)); !(math.Abs(x) <= largestWeight) {
				return i / 2, x
			}
		}
	case safetensors.F32:
		for i := 0; i+4 <= len(raw); i += 4 {
			if x := math.Float32frombits(binary.LittleEndian.Uint32(raw[i:])); !(x <= largestWeight && x >= -largestWeight) {
				return i / 4, float64(x)
			}
		}
	case safetensors.F64:
		for i := 0; i+8 <= len(raw); i += 8 {
			if x := math.Float64frombits(binary.LittleEndian.Uint64(raw[i:])); !(math.Abs(x) <= largestWeight) {
				return i / 8, x
			}
		}
	}
	return -1, 0
}
