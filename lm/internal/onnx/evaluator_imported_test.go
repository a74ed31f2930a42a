package onnx_test

import (
	little "encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/x448/float16"

	"infill/lm/internal/onnx"
)

// constant is the elements of a tensor.
func constant(t *onnx.Tensor, shape ...int) Array {
	a := Array{Shape: shape}
	for _, x := range t.Floats {
		a.Data = append(a.Data, float64(x))
	}
	for _, x := range t.Ints {
		a.Data = append(a.Data, float64(x))
	}
	number := map[onnx.DType]func(b []byte) float64{
		onnx.Bool:  func(b []byte) float64 { return float64(b[0]) },
		onnx.Uint8: func(b []byte) float64 { return float64(b[0]) },
		onnx.Int32: func(b []byte) float64 { return float64(int32(little.LittleEndian.Uint32(b))) },
		onnx.Float16: func(b []byte) float64 {
			return float64(float16.Frombits(little.LittleEndian.Uint16(b)).Float32())
		},
		onnx.Double: func(b []byte) float64 { return math.Float64frombits(little.LittleEndian.Uint64(b)) },
	}[t.DType]
	if n := size(shape); len(t.Raw) > 0 {
		for b := range slices.Chunk(t.Raw, len(t.Raw)/n) {
			a.Data = append(a.Data, number(b))
		}
	}
	return a
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// applyImported evaluates the operators that only imported graphs have.
func applyImported(n *onnx.Node, in []Array) ([]Array, error) {
	switch n.Op {
	case "Where":
		out := New(broadcast(in[0].Shape, broadcast(in[1].Shape, in[2].Shape))...)
		each(out.Shape, func(k int, c []int) {
			from := in[2]
			if in[0].Data[in[0].index(c)] != 0 {
				from = in[1]
			}
			out.Data[k] = from.Data[from.index(c)]
		})
		return []Array{out}, nil
	case "Pad":
		pads, rank := wholeArray(in[1]), len(in[0].Shape)
		out := Array{}
		for i, s := range in[0].Shape {
			out.Shape = append(out.Shape, s+pads[i]+pads[i+rank])
		}
		out = New(out.Shape...)
		each(out.Shape, func(k int, c []int) {
			from, inside := slices.Clone(c), true
			for i, s := range in[0].Shape {
				from[i] -= pads[i]
				inside = inside && from[i] >= 0 && from[i] < s
			}
			if inside {
				out.Data[k] = in[0].Data[in[0].index(from)]
			} else if len(in) > 2 {
				out.Data[k] = in[2].Data[0]
			}
		})
		return []Array{out}, nil
	case "GatherND": // of single elements
		out := New(in[1].Shape[:len(in[1].Shape)-1]...)
		for k := range out.Data {
			at := 0
			for i, s := range in[0].Shape {
				at = at*s + int(in[1].Data[k*len(in[0].Shape)+i])
			}
			out.Data[k] = in[0].Data[at]
		}
		return []Array{out}, nil
	case "Unsqueeze":
		shape, axes := []int{}, wholeArray(in[1])
		rank, k := len(in[0].Shape)+len(axes), 0
		for i := range rank {
			if slices.Contains(axes, i) || slices.Contains(axes, i-rank) {
				shape = append(shape, 1)
			} else {
				shape = append(shape, in[0].Shape[k])
				k++
			}
		}
		return []Array{Of(in[0].Data, shape...)}, nil
	case "Squeeze":
		shape, axes := []int{}, []int{}
		if len(in) > 1 {
			axes = wholeArray(in[1])
		}
		for i, s := range in[0].Shape {
			if !(slices.Contains(axes, i) || slices.Contains(axes, i-len(in[0].Shape)) || len(in) == 1 && s == 1) {
				shape = append(shape, s)
			}
		}
		return []Array{Of(in[0].Data, shape...)}, nil
	case "Flatten":
		axis := int(attribute(n, "axis", int64(1)))
		return []Array{Of(in[0].Data, size(in[0].Shape[:axis]), size(in[0].Shape[axis:]))}, nil
	case "NonZero":
		rank := len(in[0].Shape)
		found := make([][]float64, rank)
		each(in[0].Shape, func(k int, c []int) {
			if in[0].Data[k] != 0 {
				for i := range rank {
					found[i] = append(found[i], float64(c[i]))
				}
			}
		})
		return []Array{Of(slices.Concat(found...), rank, len(found[0]))}, nil
	case "Split":
		return split(n, in)
	case "ReduceMax":
		return []Array{largest(in[0], wholeArray(in[1])[0])}, nil
	}
	return nil, fmt.Errorf("unknown operator")
}

func concat(in []Array, axis int) Array {
	out := Array{Shape: slices.Clone(in[0].Shape)}
	out.Shape[axis] = 0
	for _, a := range in {
		out.Shape[axis] += a.Shape[axis]
	}
	for o := range size(in[0].Shape[:axis]) {
		for _, a := range in {
			block := size(a.Shape[axis:])
			out.Data = append(out.Data, a.Data[o*block:(o+1)*block]...)
		}
	}
	return out
}

// largest is the maxima along an axis, which goes.
func largest(x Array, axis int) Array {
	out := New(append(slices.Clone(x.Shape[:axis]), x.Shape[axis+1:]...)...)
	inner := size(x.Shape[axis+1:])
	for i := range out.Data {
		at := i/inner*x.Shape[axis]*inner + i%inner
		out.Data[i] = x.Data[at]
		for k := range x.Shape[axis] {
			out.Data[i] = max(out.Data[i], x.Data[at+k*inner])
		}
	}
	return out
}

func split(n *onnx.Node, in []Array) ([]Array, error) {
	axis := int(attribute(n, "axis", int64(0)))
	x := in[0]
	if axis < 0 {
		axis += len(x.Shape)
	}
	sizes := make([]int, len(n.Outputs))
	for i := range sizes {
		sizes[i] = x.Shape[axis] / len(sizes)
	}
	if len(in) > 1 {
		sizes = wholeArray(in[1])
	}
	out, inner, at := make([]Array, len(sizes)), size(x.Shape[axis+1:]), 0
	for i, s := range sizes {
		out[i].Shape = slices.Clone(x.Shape)
		out[i].Shape[axis] = s
		for o := range size(x.Shape[:axis]) {
			from := (o*x.Shape[axis] + at) * inner
			out[i].Data = append(out[i].Data, x.Data[from:from+s*inner]...)
		}
		at += s
	}
	return out, nil
}

// bound is a start or an end clamped to n elements; negative ones count from the end.
func bound(at, n int) int {
	if at < 0 {
		at += n
	}
	return min(max(at, 0), n)
}

func slice(in []Array) Array {
	x, starts, ends := in[0], wholeArray(in[1]), wholeArray(in[2])
	for k := range starts {
		axis, step := k, 1
		if len(in) > 3 {
			axis = wholeArray(in[3])[k]
		}
		if len(in) > 4 {
			step = wholeArray(in[4])[k]
		}
		if axis < 0 {
			axis += len(x.Shape)
		}
		n := x.Shape[axis]
		var taken []float64
		if from, to := starts[k], ends[k]; step > 0 {
			for i := bound(from, n); i < bound(to, n); i += step {
				taken = append(taken, float64(i))
			}
		} else {
			if from < 0 {
				from += n
			}
			if to < 0 {
				to = max(to+n, -1)
			}
			for i := min(from, n-1); i > to; i += step {
				taken = append(taken, float64(i))
			}
		}
		x = gather(x, Of(taken, len(taken)), axis)
	}
	return x
}
