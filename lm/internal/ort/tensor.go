package ort

import (
	"fmt"
	"math"
)

// ElementType is the type of a tensor's elements.
type ElementType uint8

// The element types that sessions read and write.
const (
	ElementUnknown ElementType = iota
	ElementFloat32
	ElementFloat64
	ElementInt32
	ElementInt64
	ElementBool
)

func (e ElementType) String() string {
	switch e {
	case ElementFloat32:
		return "float32"
	case ElementFloat64:
		return "float64"
	case ElementInt32:
		return "int32"
	case ElementInt64:
		return "int64"
	case ElementBool:
		return "bool"
	}
	return "unknown"
}

// Tensor is a shape over a slice of the caller's, row-major. Nothing is copied: a session reads inputs from the slice and writes
// outputs into it. A scalar has the shape []int64{} and one element. The zero Tensor belongs to no session.
type Tensor struct {
	shape   []int64
	element ElementType
	// allocated marks an output that onnxruntime sizes.
	allocated bool

	float32s []float32
	float64s []float64
	int32s   []int32
	int64s   []int64
	bools    []bool
}

// Float32 is a tensor over data, which must hold exactly the product of shape.
func Float32(shape []int64, data []float32) Tensor {
	return Tensor{shape: shape, element: ElementFloat32, float32s: data}
}

// Float64 is a tensor over data, which must hold exactly the product of shape.
func Float64(shape []int64, data []float64) Tensor {
	return Tensor{shape: shape, element: ElementFloat64, float64s: data}
}

// Int32 is a tensor over data, which must hold exactly the product of shape.
func Int32(shape []int64, data []int32) Tensor {
	return Tensor{shape: shape, element: ElementInt32, int32s: data}
}

// Int64 is a tensor over data, which must hold exactly the product of shape.
func Int64(shape []int64, data []int64) Tensor {
	return Tensor{shape: shape, element: ElementInt64, int64s: data}
}

// Bool is a tensor over data, which must hold exactly the product of shape.
func Bool(shape []int64, data []bool) Tensor {
	return Tensor{shape: shape, element: ElementBool, bools: data}
}

// Allocated is an output whose shape is known only after the run. Run replaces it by a tensor over a new slice,
// at the cost of one copy. It cannot be an input.
func Allocated(element ElementType) Tensor {
	return Tensor{element: element, allocated: true}
}

// Shape is the tensor's shape, nil before the run for an allocated output; callers must not change it.
func (t Tensor) Shape() []int64 { return t.shape }

// Element is the type of the elements.
func (t Tensor) Element() ElementType { return t.element }

// Float32s is the slice under a Float32 tensor, nil under any other.
func (t Tensor) Float32s() []float32 { return t.float32s }

// Float64s is the slice under a Float64 tensor, nil under any other.
func (t Tensor) Float64s() []float64 { return t.float64s }

// Int32s is the slice under an Int32 tensor, nil under any other.
func (t Tensor) Int32s() []int32 { return t.int32s }

// Int64s is the slice under an Int64 tensor, nil under any other.
func (t Tensor) Int64s() []int64 { return t.int64s }

// Bools is the slice under a Bool tensor, nil under any other.
func (t Tensor) Bools() []bool { return t.bools }

func (t Tensor) length() int {
	return len(t.float32s) + len(t.float64s) + len(t.int32s) + len(t.int64s) + len(t.bools) // one of them is set
}

// check compares the tensor with the graph's declaration, so that a mistake is named before C code sees the memory.
func (t Tensor) check(declared Value) error {
	if t.element == ElementUnknown {
		return fmt.Errorf("the tensor has no element type; make it with ort.Float32, ort.Int64 and so on")
	}
	if declared.Element != ElementUnknown && t.element != declared.Element {
		return fmt.Errorf("the tensor holds %v, the graph declares %v", t.element, declared.Element)
	}
	if t.allocated {
		return nil
	}
	elements := int64(1)
	for _, dimension := range t.shape {
		if dimension < 0 || (dimension > 0 && elements > math.MaxInt64/dimension) {
			return fmt.Errorf("impossible shape %v", t.shape)
		}
		elements *= dimension
	}
	if int64(t.length()) != elements {
		return fmt.Errorf("shape %v needs %d elements, the slice has %d", t.shape, elements, t.length())
	}
	if declared.Shape == nil {
		return nil
	}
	if len(t.shape) != len(declared.Shape) {
		return fmt.Errorf("shape %v, the graph declares %v", t.shape, declared.Shape)
	}
	for i, dimension := range declared.Shape {
		if dimension >= 0 && dimension != t.shape[i] {
			return fmt.Errorf("shape %v, the graph declares %v", t.shape, declared.Shape)
		}
	}
	return nil
}
