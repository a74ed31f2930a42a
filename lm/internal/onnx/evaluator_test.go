package onnx_test

// What evaluates ONNX graphs here in double precision, one element at a time: the oracle for differentiation rules and
// for graphs of models. It is written to be checked by eye, and is slow.

import (
	"fmt"
	"math"
	"slices"

	"infill/lm/internal/onnx"
)

// Array is a tensor in double precision, row-major. Integers are held as whole numbers.
type Array struct {
	Shape []int
	Data  []float64
}

// New is an array of zeros.
func New(shape ...int) Array { return Array{shape, make([]float64, size(shape))} }

// Of is an array of the given elements.
func Of(data []float64, shape ...int) Array {
	if len(data) != size(shape) {
		panic(fmt.Sprintf("reference: %d elements for shape %v", len(data), shape))
	}
	return Array{shape, data}
}

func size(shape []int) int {
	n := 1
	for _, s := range shape {
		n *= s
	}
	return n
}

// Evaluate computes the graph's outputs, in order. Inputs are named; external reads an external initializer and may be
// nil when there is none. The error names an operator that is not known here.
func Evaluate(g *onnx.Graph, inputs map[string]Array, external func(onnx.Initializer) (Array, error)) ([]Array, error) {
	values := map[*onnx.Value]Array{}
	for _, v := range g.Inputs {
		a, ok := inputs[v.Name]
		if !ok {
			return nil, fmt.Errorf("reference: input %s is missing", v.Name)
		}
		values[v] = a
	}
	for _, i := range g.Initializers {
		if i.Tensor == nil {
			a, err := external(i)
			if err != nil {
				return nil, err
			}
			values[i.Value] = a
			continue
		}
		values[i.Value] = constant(i.Tensor, intsArray(i.Tensor.Shape)...)
	}
	for _, n := range g.Nodes {
		var in []Array
		for _, v := range n.Inputs {
			in = append(in, values[v])
		}
		out, err := apply(n, in)
		if err != nil {
			return nil, fmt.Errorf("reference: %s (%s): %w", n.Op, n.Outputs[0].Name, err)
		}
		for i, v := range n.Outputs {
			values[v] = out[i]
		}
	}
	outputs := make([]Array, len(g.Outputs))
	for i, v := range g.Outputs {
		outputs[i] = values[v]
	}
	return outputs, nil
}

func intsArray(x []int64) []int {
	y := make([]int, len(x))
	for i, v := range x {
		y[i] = int(v)
	}
	return y
}

func wholeArray(a Array) []int {
	y := make([]int, len(a.Data))
	for i, v := range a.Data {
		y[i] = int(max(-1e15, min(v, 1e15))) // the largest int64, for "to the end", is no float64
	}
	return y
}

func attribute[T any](n *onnx.Node, name string, otherwise T) T {
	if v, ok := n.Attribute(name).(T); ok {
		return v
	}
	return otherwise
}

// elementwise operators of one input.
var unary = map[string]func(float64) float64{
	"Neg": func(x float64) float64 { return -x }, "Exp": math.Exp, "Log": math.Log, "Sqrt": math.Sqrt,
	"Erf": math.Erf, "Tanh": math.Tanh, "Cos": math.Cos, "Sin": math.Sin,
	"Identity": func(x float64) float64 { return x },
	"Cast":     func(x float64) float64 { return x },
	"Sigmoid":  func(x float64) float64 { return 1 / (1 + math.Exp(-x)) },
	"Relu":     func(x float64) float64 { return max(x, 0) },
	"Abs":      math.Abs, "Ceil": math.Ceil, "Floor": math.Floor,
	"Reciprocal": func(x float64) float64 { return 1 / x },
	"Not":        func(x float64) float64 { return truth(x == 0) },
	"IsNaN":      func(x float64) float64 { return truth(math.IsNaN(x)) },
	"Sign": func(x float64) float64 {
		switch {
		case x > 0:
			return 1
		case x < 0:
			return -1
		}
		return 0
	},
}

// elementwise operators of two inputs.
var binaryOf = map[string]func(a, b float64) float64{
	"Add": func(a, b float64) float64 { return a + b },
	"Sub": func(a, b float64) float64 { return a - b },
	"Mul": func(a, b float64) float64 { return a * b },
	"Div": func(a, b float64) float64 { return a / b },
	"Mod": func(a, b float64) float64 { return a - b*math.Floor(a/b) }, // of whole numbers
	"Pow": math.Pow, "Max": math.Max, "Min": math.Min,
	"Equal":          func(a, b float64) float64 { return truth(a == b) },
	"Less":           func(a, b float64) float64 { return truth(a < b) },
	"LessOrEqual":    func(a, b float64) float64 { return truth(a <= b) },
	"Greater":        func(a, b float64) float64 { return truth(a > b) },
	"GreaterOrEqual": func(a, b float64) float64 { return truth(a >= b) },
	"And":            func(a, b float64) float64 { return truth(a != 0 && b != 0) },
	"Or":             func(a, b float64) float64 { return truth(a != 0 || b != 0) },
}

func apply(n *onnx.Node, in []Array) ([]Array, error) {
	if f, ok := unary[n.Op]; ok {
		out := New(in[0].Shape...)
		for i, x := range in[0].Data {
			out.Data[i] = f(x)
		}
		return []Array{out}, nil
	}
	if f, ok := binaryOf[n.Op]; ok && len(in) == 2 {
		return []Array{zip(in[0], in[1], f)}, nil
	}
	axis := int(attribute(n, "axis", int64(0)))
	if axis < 0 && len(in) > 0 {
		axis += len(in[0].Shape)
	}
	switch n.Op {
	case "Gelu":
		return []Array{gelu(in[0], attribute(n, "approximate", ""))}, nil
	case "MatMul":
		return []Array{matMul(in[0], in[1])}, nil
	case "Gemm":
		return []Array{gemm(n, in)}, nil
	case "Transpose":
		order := intsArray(attribute(n, "perm", []int64(nil)))
		if len(order) == 0 {
			for i := range in[0].Shape {
				order = append([]int{i}, order...)
			}
		}
		return []Array{transpose(in[0], order)}, nil
	case "Shape":
		out := Array{}
		from, to := bound(int(attribute(n, "start", int64(0))), len(in[0].Shape)),
			bound(int(attribute(n, "end", int64(len(in[0].Shape)))), len(in[0].Shape))
		for _, s := range in[0].Shape[from:max(from, to)] {
			out.Data = append(out.Data, float64(s))
		}
		out.Shape = []int{len(out.Data)}
		return []Array{out}, nil
	case "Reshape":
		return []Array{reshape(in[0], wholeArray(in[1]))}, nil
	case "Concat":
		return []Array{concat(in, axis)}, nil
	case "Slice":
		return []Array{slice(in)}, nil
	case "Range":
		out := Array{}
		for x := in[0].Data[0]; x < in[1].Data[0]; x += in[2].Data[0] {
			out.Data = append(out.Data, x)
		}
		out.Shape = []int{len(out.Data)}
		return []Array{out}, nil
	case "Expand":
		return []Array{zip(in[0], New(wholeArray(in[1])...), func(a, _ float64) float64 { return a })}, nil
	case "ConstantOfShape":
		out := New(wholeArray(in[0])...)
		if t, ok := n.Attribute("value").(*onnx.Tensor); ok {
			for i := range out.Data {
				out.Data[i] = constant(t, 1).Data[0]
			}
		}
		return []Array{out}, nil
	case "Gather":
		return []Array{gather(in[0], in[1], axis)}, nil
	case "GatherElements":
		out := New(in[1].Shape...)
		elements(in[0], in[1], axis, func(from, at int) { out.Data[at] = in[0].Data[from] })
		return []Array{out}, nil
	case "ScatterElements":
		out := Of(slices.Clone(in[0].Data), in[0].Shape...)
		elements(in[0], in[1], axis, func(to, at int) { out.Data[to] += in[2].Data[at] })
		return []Array{out}, nil
	case "ScatterND":
		return []Array{scatterAdd(in[0], in[1], in[2])}, nil
	case "Softmax", "LogSoftmax":
		return []Array{softmax(in[0], n.Op == "LogSoftmax")}, nil
	case "LayerNormalization":
		return layerNormalization(n, in), nil
	case "ReduceSum", "ReduceMean":
		axes := []int{}
		if len(in) > 1 {
			axes = wholeArray(in[1])
		}
		for i, a := range axes {
			if a < 0 {
				axes[i] += len(in[0].Shape)
			}
		}
		if len(axes) == 0 && attribute(n, "noop_with_empty_axes", int64(0)) == 0 {
			for i := range in[0].Shape {
				axes = append(axes, i)
			}
		}
		return []Array{reduce(in[0], axes, attribute(n, "keepdims", int64(1)) == 1, n.Op == "ReduceMean")}, nil
	}
	return applyImported(n, in)
}

// index is the position of an element of a broadcast array, given its coordinates in the larger shape.
func (a Array) index(coordinates []int) int {
	k := 0
	for i, s := range a.Shape {
		c := coordinates[len(coordinates)-len(a.Shape)+i]
		if s == 1 {
			c = 0
		}
		k = k*s + c
	}
	return k
}

// each visits all coordinates of a shape in row-major order.
func each(shape []int, visit func(k int, coordinates []int)) {
	c := make([]int, len(shape))
	for k := range size(shape) {
		visit(k, c)
		for i := len(shape) - 1; i >= 0; i-- {
			if c[i]++; c[i] < shape[i] {
				break
			}
			c[i] = 0
		}
	}
}

func broadcast(a, b []int) []int {
	out := make([]int, max(len(a), len(b)))
	for i := range out {
		out[i] = 1
		for _, s := range [][]int{a, b} {
			if k := i - (len(out) - len(s)); k >= 0 && s[k] != 1 {
				out[i] = s[k]
			}
		}
	}
	return out
}

func zip(a, b Array, f func(a, b float64) float64) Array {
	out := New(broadcast(a.Shape, b.Shape)...)
	each(out.Shape, func(k int, c []int) { out.Data[k] = f(a.Data[a.index(c)], b.Data[b.index(c)]) })
	return out
}

func gelu(x Array, approximate string) Array {
	out := New(x.Shape...)
	for i, v := range x.Data {
		if approximate == "tanh" {
			out.Data[i] = v / 2 * (1 + math.Tanh(math.Sqrt(2/math.Pi)*(v+0.044715*v*v*v)))
		} else {
			out.Data[i] = v / 2 * math.Erfc(-v/math.Sqrt2)
		}
	}
	return out
}

func matMul(a, b Array) Array {
	ra, rb := len(a.Shape)-2, len(b.Shape)-2
	m, k, n := a.Shape[ra], a.Shape[ra+1], b.Shape[rb+1]
	batch := broadcast(a.Shape[:ra], b.Shape[:rb])
	out := New(append(slices.Clone(batch), m, n)...)
	left, right := Array{Shape: a.Shape[:ra]}, Array{Shape: b.Shape[:rb]}
	each(batch, func(at int, c []int) {
		x, y := a.Data[left.index(c)*m*k:], b.Data[right.index(c)*k*n:]
		for i := range m {
			row := out.Data[at*m*n+i*n : at*m*n+(i+1)*n]
			for l := range k {
				for j := range n {
					row[j] += x[i*k+l] * y[l*n+j]
				}
			}
		}
	})
	return out
}

func gemm(n *onnx.Node, in []Array) Array {
	a, b := in[0], in[1]
	if attribute(n, "transA", int64(0)) == 1 {
		a = transpose(a, []int{1, 0})
	}
	if attribute(n, "transB", int64(0)) == 1 {
		b = transpose(b, []int{1, 0})
	}
	alpha, beta := float64(attribute(n, "alpha", float32(1))), float64(attribute(n, "beta", float32(1)))
	out := matMul(a, b)
	for i := range out.Data {
		out.Data[i] *= alpha
	}
	if len(in) == 3 {
		return zip(out, in[2], func(y, c float64) float64 { return y + beta*c })
	}
	return out
}

func transpose(x Array, order []int) Array {
	shape := make([]int, len(order))
	for i, o := range order {
		shape[i] = x.Shape[o]
	}
	out, from := New(shape...), make([]int, len(order))
	each(shape, func(k int, c []int) {
		for i, o := range order {
			from[o] = c[i]
		}
		out.Data[k] = x.Data[x.index(from)]
	})
	return out
}

func reshape(x Array, to []int) Array {
	to = slices.Clone(to)
	known, open := 1, -1
	for i, s := range to {
		switch s {
		case 0:
			to[i] = x.Shape[i]
		case -1:
			open = i
			continue
		}
		known *= to[i]
	}
	if open >= 0 {
		to[open] = len(x.Data) / known
	}
	return Of(x.Data, to...)
}

func gather(x, indices Array, axis int) Array {
	outer, inner := size(x.Shape[:axis]), size(x.Shape[axis+1:])
	out := Array{Shape: slices.Concat(x.Shape[:axis], indices.Shape, x.Shape[axis+1:])}
	for o := range outer {
		for _, i := range wholeArray(indices) {
			if i < 0 {
				i += x.Shape[axis]
			}
			at := (o*x.Shape[axis] + i) * inner
			out.Data = append(out.Data, x.Data[at:at+inner]...)
		}
	}
	return out
}

// elements visits, for every element at position `at` of indices, the position in x that it names along axis.
func elements(x, indices Array, axis int, visit func(position, at int)) {
	each(indices.Shape, func(k int, c []int) {
		to := slices.Clone(c)
		to[axis] = int(indices.Data[k])
		visit(x.index(to), k)
	})
}

func scatterAdd(x, indices, updates Array) Array {
	out := Of(slices.Clone(x.Data), x.Shape...)
	row := size(x.Shape[1:])
	for k, i := range wholeArray(indices) {
		if i < 0 {
			i += x.Shape[0]
		}
		for j := range row {
			out.Data[i*row+j] += updates.Data[k*row+j]
		}
	}
	return out
}

func softmax(x Array, logarithm bool) Array {
	last := x.Shape[len(x.Shape)-1]
	out := New(x.Shape...)
	for at := 0; at < len(x.Data); at += last {
		row, sum := x.Data[at:at+last], 0.0
		top := slices.Max(row)
		for _, v := range row {
			sum += math.Exp(v - top)
		}
		for i, v := range row {
			out.Data[at+i] = v - top - math.Log(sum)
			if !logarithm {
				out.Data[at+i] = math.Exp(v-top) / sum
			}
		}
	}
	return out
}

func layerNormalization(n *onnx.Node, in []Array) []Array {
	x, last := in[0], in[0].Shape[len(in[0].Shape)-1]
	epsilon := float64(attribute(n, "epsilon", float32(1e-5)))
	out := []Array{New(x.Shape...)}
	for len(out) < len(n.Outputs) {
		out = append(out, New(append(slices.Clone(x.Shape[:len(x.Shape)-1]), 1)...))
	}
	for r := range len(x.Data) / last {
		row, mean, variance := x.Data[r*last:(r+1)*last], 0.0, 0.0
		for _, v := range row {
			mean += v / float64(last)
		}
		for _, v := range row {
			variance += (v - mean) * (v - mean) / float64(last)
		}
		inv := 1 / math.Sqrt(variance+epsilon)
		for i, v := range row {
			y := (v - mean) * inv * in[1].Data[i]
			if len(in) > 2 {
				y += in[2].Data[i]
			}
			out[0].Data[r*last+i] = y
		}
		if len(out) > 1 {
			out[1].Data[r] = mean
		}
		if len(out) > 2 {
			out[2].Data[r] = inv
		}
	}
	return out
}

func reduce(x Array, axes []int, keep, mean bool) Array {
	kept, count := slices.Clone(x.Shape), 1
	var shape []int
	for i, s := range x.Shape {
		if slices.Contains(axes, i) {
			kept[i] = 1
			count *= s
		} else {
			shape = append(shape, s)
		}
	}
	out := New(kept...)
	each(x.Shape, func(k int, c []int) { out.Data[out.index(c)] += x.Data[k] })
	if mean {
		for i := range out.Data {
			out.Data[i] /= float64(count)
		}
	}
	if !keep {
		out.Shape = shape
	}
	return out
}
