// Package network evaluates small residual networks on onnxruntime as energies
// of images, with gradients by pixels and by weights. Weights are inputs
// of the graphs, so they can change from call to call.
package network

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"infill/internal/onnx"
	"infill/internal/ort"
)

// Shape is the architecture of the papers' deep energies (discrete Langevin,
// appendix I.4): a convolution, residual blocks, the mean over all pixels, and
// a linear map. A block has two 3 × 3 convolutions with swish; each of the
// first Downsampling blocks halves the sides. The papers have 64 features and 8
// blocks, two of which halve the sides.
type Shape struct {
	Rows, Columns int // of an image, in pixels
	Features      int
	Blocks        int
	Downsampling  int
	// Levels is how many greys, from 0 to 1, a pixel may have; 0 is 2.
	Levels int
}

// Energy evaluates U(x) of images, for one goroutine at a time.
type Energy struct {
	shape    Shape
	layout   []tensor
	weights  []float32
	runtime  *ort.Runtime
	sessions [3]*ort.Session // indexed by the type what
	images   []float32       // scratch space
	energies []float32
	gradient []float32
}

type tensor struct {
	name  string
	shape []int64
	first int // index of its first entry in the vector of all weights
	// fan is the number of inputs of a unit with these weights, 0 for biases.
	fan int
}

func (t tensor) size() int {
	n := 1
	for _, d := range t.shape {
		n *= int(d)
	}
	return n
}

// what says which result a session computes.
type what int

const (
	energies what = iota
	pixels
	weights
)

// Open makes an energy whose weights are 0. It runs on the given number of
// threads, or on all cores if that is 0. Open finds or downloads the
// onnxruntime library. Energy makes each session at its first use.
func Open(ctx context.Context, s Shape, threads int) (*Energy, error) {
	if s.Rows < 2 || s.Columns < 2 || s.Features < 1 || s.Blocks < 0 || s.Downsampling < 0 ||
		s.Downsampling > s.Blocks {
		return nil, fmt.Errorf("a network over %d × %d pixels with %d features and %d blocks, %d of which halve the "+
			"sides: sides are at least 2, and no more blocks halve than there are",
			s.Rows, s.Columns, s.Features, s.Blocks, s.Downsampling)
	}
	path, err := ort.Locate(ctx, "cpu", nil)
	if err != nil {
		return nil, err
	}
	e := &Energy{shape: s}
	e.runtime, err = ort.Open(ctx, ort.Options{LibraryPath: path, Device: "cpu", Threads: threads})
	if err != nil {
		return nil, err
	}
	b := newBuilder(s)
	b.energy()
	e.layout = b.layout
	last := e.layout[len(e.layout)-1]
	e.weights = make([]float32, last.first+last.size())
	return e, nil
}

// Close releases the sessions and the runtime.
func (e *Energy) Close() error {
	var failed error
	for _, s := range e.sessions {
		if s != nil {
			failed = errors.Join(failed, s.Close())
		}
	}
	return errors.Join(failed, e.runtime.Close())
}

// Weights returns the number of weights.
func (e *Energy) Weights() int { return len(e.weights) }

// Initialise draws weights as PyTorch's convolutions do: uniformly within
// ±1/√inputs. Biases have the same bound as the weights of their layer.
func (e *Energy) Initialise(r *rand.Rand, weights []float64) {
	bound := 0.0
	for _, t := range e.layout {
		if t.fan > 0 {
			bound = 1 / math.Sqrt(float64(t.fan))
		}
		for i := range t.size() {
			weights[t.first+i] = bound * (2*r.Float64() - 1)
		}
	}
}

// Set sets the weights; there must be e.Weights() of them.
func (e *Energy) Set(weights []float64) {
	for i, w := range weights {
		e.weights[i] = float32(w)
	}
}

// Energies writes U of every image to energy [images]. images holds the level
// of each pixel, from 0, [images × pixels].
func (e *Energy) Energies(ctx context.Context, images []int, energy []float64) error {
	return e.run(ctx, energies, e.floats(images), nil, energy, nil)
}

// PixelGradient writes U to energy [images], and ∂U/∂grey of each pixel, whose
// range is from 0 to 1, to gradient [images × pixels].
func (e *Energy) PixelGradient(ctx context.Context, images []int, energy, gradient []float64) error {
	return e.run(ctx, pixels, e.floats(images), nil, energy, gradient)
}

// WeightGradient adds scale times the mean over the images of ∂U/∂weights to
// gradient [Weights].
func (e *Energy) WeightGradient(ctx context.Context, images []int, scale float64, gradient []float64) error {
	n := len(images) / (e.shape.Rows * e.shape.Columns)
	seeds := make([]float32, n)
	for i := range seeds {
		seeds[i] = float32(scale / float64(n))
	}
	return e.run(ctx, weights, e.floats(images), seeds, nil, gradient)
}

func (e *Energy) floats(images []int) []float32 {
	e.images = e.images[:0]
	white := float32(max(e.shape.Levels, 2) - 1)
	for _, v := range images {
		e.images = append(e.images, float32(v)/white)
	}
	return e.images
}

// run runs w's session. It sets gradients by pixels, and adds those by weights.
func (e *Energy) run(ctx context.Context, w what, images, seeds []float32, energy, gradient []float64) error {
	area := e.shape.Rows * e.shape.Columns
	n := len(images) / area
	if n == 0 || len(images) != n*area {
		return fmt.Errorf("%d pixels do not make whole images of %d × %d, at least one", len(images), e.shape.Rows,
			e.shape.Columns)
	}
	session, err := e.session(w)
	if err != nil {
		return err
	}
	inputs := []ort.Tensor{ort.Float32([]int64{int64(n), int64(area)}, images)}
	for _, t := range e.layout {
		inputs = append(inputs, ort.Float32(t.shape, e.weights[t.first:t.first+t.size()]))
	}
	e.energies = slices.Grow(e.energies[:0], n)[:n]
	e.gradient = slices.Grow(e.gradient[:0], len(gradient))[:len(gradient)]
	outputs := []ort.Tensor{ort.Float32([]int64{int64(n)}, e.energies)}
	switch w {
	case pixels:
		outputs = append(outputs, ort.Float32([]int64{int64(n), int64(area)}, e.gradient))
	case weights:
		inputs = append(inputs, ort.Float32([]int64{int64(n)}, seeds))
		outputs = nil
		for _, t := range e.layout {
			outputs = append(outputs, ort.Float32(t.shape, e.gradient[t.first:t.first+t.size()]))
		}
	}
	if err := session.Run(ctx, inputs, outputs); err != nil {
		return err
	}
	for i := range energy {
		energy[i] = float64(e.energies[i])
	}
	for i, d := range e.gradient {
		if w == pixels {
			gradient[i] = 0
		}
		gradient[i] += float64(d)
	}
	return nil
}

// session returns the session for the result w, and makes it at the first call.
func (e *Energy) session(w what) (*ort.Session, error) {
	if e.sessions[w] != nil {
		return e.sessions[w], nil
	}
	b := newBuilder(e.shape)
	u := b.energy()
	inputs := []string{"images"}
	outputs := []string{"energy"}
	for _, t := range b.layout {
		inputs = append(inputs, t.name)
	}
	of := []*onnx.Value{b.images}
	seeds := b.Expand(b.Scalar(1), u.Shape)
	if w == weights {
		of = b.values
		seeds = b.Input("seeds", onnx.Float, b.count)
		inputs = append(inputs, "seeds")
		outputs = nil
	} else {
		b.Output("energy", u)
	}
	if w != energies {
		derivatives, err := b.Differentiate([]*onnx.Value{u}, []*onnx.Value{seeds}, of)
		if err != nil {
			return nil, err
		}
		for i, d := range derivatives {
			outputs = append(outputs, fmt.Sprint("d-", i))
			b.Output(fmt.Sprint("d-", i), d)
		}
	}
	model, err := b.Encode()
	if err != nil {
		return nil, err
	}
	e.sessions[w], err = e.runtime.NewSession(model, ort.SessionOptions{Inputs: inputs, Outputs: outputs})
	return e.sessions[w], err
}

// builder writes an energy's graph. With activations [pixels × images × features],
// a convolution is a gather of rows and a product.
type builder struct {
	*onnx.Graph
	shape  Shape
	count  onnx.Dim // number of images
	images *onnx.Value
	layout []tensor
	values []*onnx.Value // one value for each tensor of layout
}

func newBuilder(s Shape) *builder {
	b := &builder{Graph: onnx.New("energy"), shape: s, count: onnx.Symbol("images")}
	b.images = b.Input("images", onnx.Float, b.count, onnx.Fixed(int64(s.Rows*s.Columns)))
	return b
}

// weight declares the next array of weights as an input of the graph.
func (b *builder) weight(name string, fan int, shape ...int64) *onnx.Value {
	t := tensor{name: name, shape: shape, fan: fan}
	if n := len(b.layout); n > 0 {
		t.first = b.layout[n-1].first + b.layout[n-1].size()
	}
	v := b.Input(name, onnx.Float, onnx.FixedShape(shape...)...)
	b.layout = append(b.layout, t)
	b.values = append(b.values, v)
	return v
}

// energy builds U [images] from the images.
func (b *builder) energy() *onnx.Value {
	s := b.shape
	features := b.shape.Features
	rows := s.Rows
	columns := s.Columns
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
		rows = (rows + stride - 1) / stride
		columns = (columns + stride - 1) / stride
		f = b.convolution(name+"-second", f, 3, rows, columns, 1, features, features)
		h = b.swish(b.Add(f, short))
	}
	mean := b.ReduceMean(h, false, 0)
	u := b.MatMul(mean, b.weight("out", features, int64(features), 1))
	u = b.Reshape(u, b.count)
	return b.Add(u, b.weight("out-bias", 0, 1)) // its bias comes last in the vector of weights
}

func (b *builder) swish(x *onnx.Value) *onnx.Value {
	return b.Mul(x, b.Apply("Sigmoid", 1, []*onnx.Value{x})[0])
}

// convolution builds a side × side convolution of x, which has rows × columns
// pixels, with zeros around the image.
func (b *builder) convolution(name string, x *onnx.Value, side, rows, columns, stride, from, to int) *onnx.Value {
	places, out := patches(side, rows, columns, stride)
	padded := x
	if side > 1 {
		zero := b.Expand(b.Scalar(0), onnx.Shape{onnx.Fixed(1), b.count, onnx.Fixed(int64(from))})
		padded = b.Concat(0, x, zero)
	}
	taps := int64(side * side)
	index := b.Constant("places", onnx.Ints([]int64{int64(out), taps}, places...))
	gathered := b.Transpose(b.Gather(padded, index, 0), 0, 2, 1, 3) // [out × images × taps × from]
	all := b.count.Times(onnx.Fixed(int64(out)))
	flat := b.Reshape(gathered, all, onnx.Fixed(taps*int64(from)))
	y := b.MatMul(flat, b.weight(name, side*side*from, taps*int64(from), int64(to)))
	y = b.Add(y, b.weight(name+"-bias", 0, int64(to)))
	return b.Reshape(y, onnx.Fixed(int64(out)), b.count, onnx.Fixed(int64(to)))
}

// patches lists, for each of the out pixels of the result, the pixels under the
// filter; rows·columns stands for a zero.
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
