package network

import (
	"fmt"

	"infill/lm/internal/onnx"
)

// builder writes the graph of an energy. Activations are [pixels × images ×
// features], so that a convolution is a gathering of rows and a matrix product.
type builder struct {
	*onnx.Graph
	shape  Shape
	count  onnx.Dim // images
	images *onnx.Value
	layout []tensor
	values []*onnx.Value // of the layout
}

func newBuilder(s Shape) *builder {
	b := &builder{Graph: onnx.New("energy"), shape: s, count: onnx.Symbol("images")}
	b.images = b.Input("images", onnx.Float, b.count, onnx.Fixed(int64(s.Rows*s.Columns)))
	return b
}

// weight declares the next of the weights.
func (b *builder) weight(name string, fan int, shape ...int64) *onnx.Value {
	t := tensor{name: name, shape: shape, fan: fan}
	if n := len(b.layout); n > 0 {
		t.first = b.layout[n-1].first + b.layout[n-1].size()
	}
	var dims onnx.Shape
	for _, d := range shape {
		dims = append(dims, onnx.Fixed(d))
	}
	v := b.Input(name, onnx.Float, dims...)
	b.layout, b.values = append(b.layout, t), append(b.values, v)
	return v
}

// energy is U, [images].
func (b *builder) energy() *onnx.Value {
	s, features := b.shape, b.shape.Features
	rows, columns := s.Rows, s.Columns
	area := onnx.Fixed(int64(rows * columns))
	h := b.Reshape(b.Transpose(b.images, 1, 0), area, b.count, onnx.Fixed(1))
	h = b.convolution("in", h, 3, rows, columns, 1, 1, features)
	for i := range s.Blocks {
		stride := 1
		if i < s.Downsampling {
			stride = 2
		}
		name := fmt.Sprintf("block%d", i)
		f := b.swish(b.convolution(name+"-first", h, 3, rows, columns, stride, features, features))
		short := h
		if stride > 1 {
			short = b.convolution(name+"-short", h, 1, rows, columns, stride, features, features)
		}
		rows, columns = (rows+stride-1)/stride, (columns+stride-1)/stride
		f = b.convolution(name+"-second", f, 3, rows, columns, 1, features, features)
		h = b.swish(b.Add(f, short))
	}
	mean := b.ReduceMean(h, false, 0)
	u := b.MatMul(mean, b.weight("out", features, int64(features), 1))
	u = b.Reshape(u, b.count)
	return b.Add(u, b.weight("out-bias", 0, 1)) // the last of the weights
}

func (b *builder) swish(x *onnx.Value) *onnx.Value {
	return b.Mul(x, b.Apply("Sigmoid", 1, []*onnx.Value{x})[0])
}

// convolution is one of side × side with zeros around the image, over x of rows × columns pixels.
func (b *builder) convolution(name string, x *onnx.Value, side, rows, columns, stride, from, to int) *onnx.Value {
	places, out := patches(side, rows, columns, stride)
	padded := x
	if side > 1 {
		zero := b.Expand(b.Scalar(0), onnx.Shape{onnx.Fixed(1), b.count, onnx.Fixed(int64(from))})
		padded = b.Concat(0, x, zero)
	}
	taps := int64(side * side)
	index := b.Constant("places", onnx.Tensor{Shape: []int64{int64(out), taps}, Ints: places})
	gathered := b.Transpose(b.Gather(padded, index, 0), 0, 2, 1, 3) // [out × images × taps × from]
	all := b.count.Times(onnx.Fixed(int64(out)))
	flat := b.Reshape(gathered, all, onnx.Fixed(taps*int64(from)))
	y := b.MatMul(flat, b.weight(name, side*side*from, taps*int64(from), int64(to)))
	y = b.Add(y, b.weight(name+"-bias", 0, int64(to)))
	return b.Reshape(y, onnx.Fixed(int64(out)), b.count, onnx.Fixed(int64(to)))
}

// patches lists for every pixel of the result the pixels under the filter; one past the last stands for zero.
func patches(side, rows, columns, stride int) (places []int64, out int) {
	for r := 0; r < rows; r += stride {
		for c := 0; c < columns; c += stride {
			out++
			for dr := -side / 2; dr <= side/2; dr++ {
				for dc := -side / 2; dc <= side/2; dc++ {
					at := rows * columns
					if y, x := r+dr, c+dc; y >= 0 && y < rows && x >= 0 && x < columns {
						at = y*columns + x
					}
					places = append(places, int64(at))
				}
			}
		}
	}
	return places, out
}
