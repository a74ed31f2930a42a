package ort

import (
	"fmt"
	"math"
)

// Tensor gives a slice of the caller's a shape of at least one dimension,
// row-major. Nothing is copied: a session reads inputs from the slice and
// writes outputs into it. The zero Tensor fits no input or output.
type Tensor struct {
	shape    []int64
	whole    bool // whether the data are int64s
	float32s []float32
	int64s   []int64
}

// Float32 returns a tensor over data, as long as the product of shape.
func Float32(shape []int64, data []float32) Tensor { return Tensor{shape: shape, float32s: data} }

// Int64 returns a tensor over data, whose length must be the product of shape.
func Int64(shape []int64, data []int64) Tensor {
	return Tensor{shape: shape, whole: true, int64s: data}
}

// check returns an error for a wrong length, before C code sees the memory.
// onnxruntime itself checks types and shapes against the graph.
func (t Tensor) check() error {
	if len(t.shape) == 0 {
		return fmt.Errorf("the tensor has no dimension")
	}
	elements := int64(1)
	length := len(t.float32s) + len(t.int64s) // one of the two slices is empty
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
