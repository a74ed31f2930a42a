package onnx

import (
	"fmt"
	"slices"
)

// Cast converts x to the element type to.
func (g *Graph) Cast(x *Value, to DType) *Value {
	if x.DType == to {
		return x
	}
	return g.op("Cast", []*Value{x}, Attribute{"to", int64(to)})
}

// op appends an operator of the ONNX standard with one output. If the inputs do
// not fit it, the graph fails.
func (g *Graph) op(op string, inputs []*Value, attributes ...Attribute) *Value {
	out := g.Apply(op, 1, inputs, attributes...)[0]
	if out.Unranked {
		g.fail("%s: %s do not fit", op, inputs)
		*out = Value{Name: out.Name, DType: inputs[0].DType, Shape: inputs[0].Shape}
	}
	return out
}

// of does what [Graph.op] does, without attributes.
func (g *Graph) of(op string, inputs ...*Value) *Value { return g.op(op, inputs) }

// These apply the operator of their name to each element.
func (g *Graph) Neg(x *Value) *Value  { return g.of("Neg", x) }
func (g *Graph) Exp(x *Value) *Value  { return g.of("Exp", x) }
func (g *Graph) Erf(x *Value) *Value  { return g.of("Erf", x) }
func (g *Graph) Cos(x *Value) *Value  { return g.of("Cos", x) }
func (g *Graph) Sin(x *Value) *Value  { return g.of("Sin", x) }
func (g *Graph) Tanh(x *Value) *Value { return g.of("Tanh", x) }
func (g *Graph) Relu(x *Value) *Value { return g.of("Relu", x) }

// Gelu returns xΦ(x), Φ the normal distribution function, or its tanh
// approximation (Hendrycks and Gimpel 2016).
func (g *Graph) Gelu(x *Value, tanh bool) *Value {
	if tanh {
		return g.op("Gelu", []*Value{x}, Attribute{"approximate", "tanh"})
	}
	return g.of("Gelu", x)
}

// These apply the operator of their name to the elements of values, which
// broadcast. The remainder of whole numbers, Mod, has the sign of b.
func (g *Graph) Add(a, b *Value) *Value      { return g.of("Add", a, b) }
func (g *Graph) Sub(a, b *Value) *Value      { return g.of("Sub", a, b) }
func (g *Graph) Mul(a, b *Value) *Value      { return g.of("Mul", a, b) }
func (g *Graph) Div(a, b *Value) *Value      { return g.of("Div", a, b) }
func (g *Graph) Mod(a, b *Value) *Value      { return g.of("Mod", a, b) }
func (g *Graph) Max(values ...*Value) *Value { return g.of("Max", values...) }

// Range returns the whole numbers from 0 to n−1.
func (g *Graph) Range(n Dim) *Value {
	scalar := func(x *Value) *Value { return g.node("Reshape", Int64, nil, []*Value{x, g.Ints()}) }
	return g.node("Range", Int64, Shape{n}, []*Value{scalar(g.Ints(0)), scalar(g.Sizes(Shape{n})), scalar(g.Ints(1))})
}

// MatMul returns the matrix product over the last two dimensions of a and b;
// the leading dimensions broadcast.
func (g *Graph) MatMul(a, b *Value) *Value { return g.of("MatMul", a, b) }

// GemmOptions are the parameters of [Graph.Gemm]. Alpha and Beta of 0 are 1.
type GemmOptions struct {
	Alpha, Beta    float64
	TransA, TransB bool
}

// Gemm returns Alpha·op(a)·op(b) + Beta·c for matrices a and b, where op may
// transpose. c broadcasts and may be nil.
func (g *Graph) Gemm(a, b, c *Value, o GemmOptions) *Value {
	inputs := []*Value{a, b}
	if c != nil {
		inputs = append(inputs, c)
	}
	var attributes []Attribute
	set := func(name string, value any, needed bool) {
		if needed {
			attributes = append(attributes, Attribute{name, value})
		}
	}
	set("alpha", float32(o.Alpha), o.Alpha != 0 && o.Alpha != 1)
	set("beta", float32(o.Beta), o.Beta != 0 && o.Beta != 1)
	set("transA", int64(1), o.TransA)
	set("transB", int64(1), o.TransB)
	return g.op("Gemm", inputs, attributes...)
}

// QuantizeLinear returns x/scale + zero as whole numbers of the type of zero,
// rounded to the nearest, halves to the even, and cut to the range of the type.
// scale and zero have an element for each index of axis.
func (g *Graph) QuantizeLinear(x, scale, zero *Value, axis int) *Value {
	return g.op("QuantizeLinear", []*Value{x, scale, zero}, Attribute{"axis", int64(axis)})
}

// MatMulIntegerToFloat returns scale·(a − zero)·b in single precision, for whole
// numbers a [m × k], of which zero stands for 0, and b [k × n]. scale has an
// element for each column of b. The operator is onnxruntime's own.
func (g *Graph) MatMulIntegerToFloat(a, b, scale, zero *Value) *Value {
	const domain = "com.microsoft"
	g.domains[domain] = 1
	if len(a.Shape) != 2 || len(b.Shape) != 2 || !a.Shape[1].fits(b.Shape[0]) {
		g.fail("MatMulIntegerToFloat: %s and %s do not fit", a, b)
		return a
	}
	out := g.node("MatMulIntegerToFloat", Float, Shape{a.Shape[0], b.Shape[1]},
		[]*Value{a, b, g.Scalar(1), scale, zero})
	out.from.Domain = domain
	return out
}

// Transpose permutes dimensions: output dimension i is input order[i].
func (g *Graph) Transpose(x *Value, order ...int) *Value {
	return g.op("Transpose", []*Value{x}, Attribute{"perm", int64s(order)})
}

func int64s(list []int) []int64 {
	out := make([]int64, len(list))
	for i, n := range list {
		out[i] = int64(n)
	}
	return out
}

func (g *Graph) swapLast(x *Value) *Value {
	order := make([]int, len(x.Shape))
	for i := range order {
		order[i] = i
	}
	k := len(order)
	order[k-2], order[k-1] = order[k-1], order[k-2]
	return g.Transpose(x, order...)
}

// size returns the size of a symbol, an int64 tensor of shape [1], read off a
// value with the symbol as a dimension.
func (g *Graph) size(symbol string) *Value {
	key := "size of " + symbol
	if v, ok := g.made[key]; ok {
		return v
	}
	if h, ok := g.homes[symbol]; ok {
		v := g.node("Shape", Int64, FixedShape(1), []*Value{h.value}, Attribute{"start", int64(h.axis)},
			Attribute{"end", int64(h.axis + 1)})
		g.made[key] = v
		return v
	}
	g.fail("no input has the dimension %s", symbol)
	return g.Ints(1)
}

// Sizes returns the shape s as an int64 tensor of rank 1.
func (g *Graph) Sizes(s Shape) *Value {
	if n, ok := s.Sizes(); ok {
		return g.Ints(n...)
	}
	return g.target(s, -1)
}

// target returns s as a shape tensor. The dimension at index inferred, if that
// is not negative, is written as −1, so that the operator infers it.
func (g *Graph) target(s Shape, inferred int) *Value {
	key := fmt.Sprint("target", s, inferred)
	if v, ok := g.made[key]; ok {
		return v
	}
	var parts []*Value
	for i, d := range s {
		if i == inferred {
			parts = append(parts, g.Ints(-1))
		} else {
			parts = append(parts, g.dimension(d))
		}
	}
	v := g.Concat(0, parts...)
	g.made[key] = v
	return v
}

// dimension returns the size of d as an int64 tensor of shape [1].
func (g *Graph) dimension(d Dim) *Value {
	if n, fixed := d.Size(); fixed {
		return g.Ints(n)
	}
	names := d.names()
	v := g.size(names[0])
	for _, s := range names[1:] {
		v = g.Mul(v, g.size(s))
	}
	if d.factor != 1 {
		v = g.Mul(v, g.Ints(d.factor))
	}
	return v
}

// Reshape gives x another shape with the same number of elements.
func (g *Graph) Reshape(x *Value, s ...Dim) *Value {
	shape := Shape(s)
	if x.Shape.product() != shape.product() {
		g.fail("Reshape: %s to %s", x, shape)
	}
	if slices.Equal(x.Shape, shape) {
		return x
	}
	// 0 keeps a dimension, and −1 takes all remaining elements. With these,
	// most shapes need no arithmetic when the graph runs.
	sizes := make([]int64, len(s))
	open := []int{}
	for i, d := range s {
		n, fixed := d.Size()
		switch {
		case fixed:
			sizes[i] = n
		case i < len(x.Shape) && x.Shape[i] == d:
			sizes[i] = 0
		default:
			sizes[i] = -1
			open = append(open, i)
		}
	}
	to := g.Ints(sizes...)
	if len(open) > 1 {
		to = g.target(shape, open[0])
	}
	return g.node("Reshape", x.DType, shape, []*Value{x, to})
}

// Concat joins parts along axis.
func (g *Graph) Concat(axis int, parts ...*Value) *Value {
	if len(parts) == 1 {
		return parts[0]
	}
	return g.op("Concat", parts, Attribute{"axis", int64(axis)})
}

// Expand repeats x along dimensions of size 1, and adds dimensions in front,
// until the result has shape s.
func (g *Graph) Expand(x *Value, s Shape) *Value {
	if out, ok := broadcast(x.Shape, s); !ok || !slices.Equal(out, s) {
		g.fail("Expand: %s does not broadcast to %s", x, s)
	}
	return g.node("Expand", x.DType, s, []*Value{x, g.Sizes(s)})
}

// Prefix returns the first n rows of x.
func (g *Graph) Prefix(x *Value, n Dim) *Value {
	s := append(Shape{n}, x.Shape[1:]...)
	return g.node("Slice", x.DType, s, []*Value{x, g.Ints(0), g.Sizes(Shape{n}), g.Ints(0)})
}

// Gather takes the entries of x at indices along axis. In the result, the
// dimensions of indices replace that axis.
func (g *Graph) Gather(x, indices *Value, axis int) *Value {
	if axis == 0 {
		return g.op("Gather", []*Value{x, indices})
	}
	return g.op("Gather", []*Value{x, indices}, Attribute{"axis", int64(axis)})
}

// GatherElements takes x[i][indices[i][j]] if x is a matrix and axis is 1, and
// likewise along any other axis.
func (g *Graph) GatherElements(x, indices *Value, axis int) *Value {
	return g.op("GatherElements", []*Value{x, indices}, Attribute{"axis", int64(axis)})
}

// Zeros returns a tensor of zeros of shape s.
func (g *Graph) Zeros(s Shape) *Value {
	return g.node("ConstantOfShape", Float, s, []*Value{g.Sizes(s)})
}

// ScatterAdd returns x with updates added to the rows that indices names. It is
// the transpose of [Graph.Gather] along the first axis.
func (g *Graph) ScatterAdd(x, indices, updates *Value) *Value {
	return g.node("ScatterND", x.DType, x.Shape,
		[]*Value{x, g.Reshape(indices, append(slices.Clone(indices.Shape), Fixed(1))...), updates},
		Attribute{"reduction", "add"})
}

// ScatterElements returns x with updates added to the elements that indices
// names along axis. It is the transpose of [Graph.GatherElements].
func (g *Graph) ScatterElements(x, indices, updates *Value, axis int) *Value {
	return g.node("ScatterElements", x.DType, x.Shape, []*Value{x, indices, updates},
		Attribute{"axis", int64(axis)}, Attribute{"reduction", "add"})
}

// Softmax normalises along the last axis.
func (g *Graph) Softmax(x *Value) *Value {
	return g.op("Softmax", []*Value{x}, Attribute{"axis", int64(-1)})
}

// LogSoftmax returns the logarithm of [Graph.Softmax].
func (g *Graph) LogSoftmax(x *Value) *Value {
	return g.op("LogSoftmax", []*Value{x}, Attribute{"axis", int64(-1)})
}

// LayerNormalization normalises x along the last axis, multiplies by scale and
// adds bias, which may be nil (Ba, Kiros and Hinton 2016).
func (g *Graph) LayerNormalization(x, scale, bias *Value, epsilon float64) *Value {
	inputs := []*Value{x, scale}
	if bias != nil {
		inputs = append(inputs, bias)
	}
	return g.op("LayerNormalization", inputs, Attribute{"axis", int64(-1)}, Attribute{"epsilon", float32(epsilon)})
}

// ReduceSum sums x over axes, none negative. If keep is true, these axes stay
// as dimensions of size 1.
func (g *Graph) ReduceSum(x *Value, keep bool, axes ...int) *Value {
	return g.reduce("ReduceSum", x, keep, axes)
}

// ReduceMean does what [Graph.ReduceSum] does, for means.
func (g *Graph) ReduceMean(x *Value, keep bool, axes ...int) *Value {
	return g.reduce("ReduceMean", x, keep, axes)
}

// ReduceMax does what [Graph.ReduceSum] does, for largest elements.
func (g *Graph) ReduceMax(x *Value, keep bool, axes ...int) *Value {
	return g.reduce("ReduceMax", x, keep, axes)
}

// ReduceMin returns the smallest element along axes.
func (g *Graph) ReduceMin(x *Value, keep bool, axes ...int) *Value {
	return g.reduce("ReduceMin", x, keep, axes)
}

func (g *Graph) reduce(op string, x *Value, keep bool, axes []int) *Value {
	kept := int64(0)
	if keep {
		kept = 1
	}
	return g.op(op, []*Value{x, g.Ints(int64s(axes)...)}, Attribute{"keepdims", kept})
}
