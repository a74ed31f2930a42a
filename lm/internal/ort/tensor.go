package ort

import (
	"fmt"
	"math"
)

// Tensor is a shape, of one dimension at least, over a slice of the caller's, row-major. Nothing is copied: a session
// reads inputs from the slice and writes outputs into it. The zero Tensor belongs to no session.
type Tensor struct {
	shape    []int64
	whole    bool // of int64s
	float32s []float32
	int64s   []int64
}

// Float32 is a tensor over data, which must hold exactly the product of shape.
func Float32(shape []int64, data []float32) Tensor { return Tensor{shape: shape, float32s: data} }

// Int64 is a tensor over data, which must hold exactly the product of shape.
func Int64(shape []int64, data []int64) Tensor {
	return Tensor{shape: shape, whole: true, int64s: data}
}

// check names a mistake before C code sees the memory. Types and shapes that are not the graph's are found by
// onnxruntime.
func (t Tensor) check() error {
	if len(t.shape) == 0 {
		return fmt.Errorf("the tensor has no dimension")
	}
	elements, length := int64(1), len(t.float32s)+len(t.int64s) // one of them is set
	for _, dimension := range t.shape {
		if dimension < 0 || (dimension > 0 && elements > math.MaxInt64/dimension) {
			return fmt.Errorf("impossible shape %v", t.shape)
		}
		elements *= dimension
	}
	if int64(length) != elements {
		return fmt.Errorf("shape %v needs %d elements, the slice has %d", t.shape, elements, length)
	}
	return nil
}
