// Package network runs small residual energies of binary images on onnxruntime, with gradients of the pixels, which
// samplers need, and of the weights, which trainings need. The graphs and their derivatives are those of package lm's
// own models: weights are inputs here, so that they can change from call to call.
package network

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"infill/lm/internal/onnx"
	"infill/lm/internal/ort"
)

// Shape is the architecture, that of Gibbs with Gradients (Grathwohl et al. 2021) and of the discrete Langevin paper's
// deep energies (appendix I.4): a convolution, residual blocks of two convolutions of 3 × 3 with swish, of which the
// first Downsampling halve the sides, the mean over what is left of the image, and a linear map to one number. The
// papers take 64 features, 8 blocks, and halve twice.
type Shape struct {
	Rows, Columns int // of the images
	Features      int
	Blocks        int
	Downsampling  int
}

// Energy is U(x) of images for weights that can be set. It is not safe for concurrent use.
type Energy struct {
	shape    Shape
	layout   []tensor
	weights  []float32
	runtime  *ort.Runtime
	sessions [3]*ort.Session // by what
	images   []float32       // scratch
	energies []float32
	gradient []float32
}

// tensor is one of the weights.
type tensor struct {
	name  string
	shape []int64
	first int // in the vector of all weights
	// fan is the number of inputs of what it is a weight of; 0 for biases.
	fan int
}

func (t tensor) size() int {
	n := 1
	for _, d := range t.shape {
		n *= int(d)
	}
	return n
}

// what a session works out.
type what int

const (
	energies what = iota
	pixels
	weights
)

// Open makes an energy with weights 0, on that many threads, 0 for all cores. It finds or fetches the onnxruntime
// library. Sessions are made at the first use.
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
	if e.runtime, err = ort.Open(ctx, ort.Options{LibraryPath: path, Device: "cpu", Threads: threads}); err != nil {
		return nil, err
	}
	b := newBuilder(s)
	b.energy()
	e.layout = b.layout
	last := e.layout[len(e.layout)-1]
	e.weights = make([]float32, last.first+last.size())
	return e, nil
}

// Close releases the sessions.
func (e *Energy) Close() error {
	var failed error
	for _, s := range e.sessions {
		if s != nil {
			failed = errors.Join(failed, s.Close())
		}
	}
	return errors.Join(failed, e.runtime.Close())
}

// Weights is the number of weights.
func (e *Energy) Weights() int { return len(e.weights) }

// Initialise draws weights as PyTorch's convolutions do: uniformly within
// ±1/√inputs, biases within that of their layer.
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

// Set sets the weights, [Weights].
func (e *Energy) Set(weights []float64) {
	for i, w := range weights {
		e.weights[i] = float32(w)
	}
}

// Energies writes U of every image of 0 and 1, [images × pixels], to energy [images].
func (e *Energy) Energies(ctx context.Context, images []int, energy []float64) error {
	return e.run(ctx, energies, e.floats(images), nil, energy, nil)
}

// PixelGradient writes U, and ∂U/∂pixels to gradient [images × pixels].
func (e *Energy) PixelGradient(ctx context.Context, images []int, energy, gradient []float64) error {
	return e.run(ctx, pixels, e.floats(images), nil, energy, gradient)
}

// WeightGradient adds scale times the mean over the images of ∂U/∂weights to gradient [Weights].
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
	for _, v := range images {
		e.images = append(e.images, float32(v))
	}
	return e.images
}

// run runs a session. Gradients of pixels are written, those of weights added.
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
	layout := e.layout
	if w == weights {
		layout = layout[:len(layout)-1] // the last is added to U: its gradient is that of U itself
	}
	for _, t := range layout {
		inputs = append(inputs, ort.Float32(t.shape, e.weights[t.first:t.first+t.size()]))
	}
	var outputs []ort.Tensor
	if w == weights {
		inputs = append(inputs, ort.Float32([]int64{int64(n)}, seeds))
		e.gradient = slices.Grow(e.gradient[:0], len(e.weights))[:len(e.weights)]
		for _, t := range layout {
			outputs = append(outputs, ort.Float32(t.shape, e.gradient[t.first:t.first+t.size()]))
		}
	} else {
		e.energies = slices.Grow(e.energies[:0], n)[:n]
		outputs = append(outputs, ort.Float32([]int64{int64(n)}, e.energies))
		if w == pixels {
			e.gradient = slices.Grow(e.gradient[:0], len(images))[:len(images)]
			outputs = append(outputs, ort.Float32([]int64{int64(n), int64(area)}, e.gradient))
		}
	}
	if err := session.Run(ctx, inputs, outputs); err != nil {
		return err
	}
	for i := range energy {
		energy[i] = float64(e.energies[i])
	}
	switch w {
	case pixels:
		for i := range gradient {
			gradient[i] = float64(e.gradient[i])
		}
	case weights:
		last := len(e.weights) - 1
		e.gradient[last] = 0
		for _, s := range seeds {
			e.gradient[last] += s
		}
		for i := range gradient {
			gradient[i] += float64(e.gradient[i])
		}
	}
	return nil
}

// session makes the session of a graph when it is first asked for.
func (e *Energy) session(w what) (*ort.Session, error) {
	if e.sessions[w] != nil {
		return e.sessions[w], nil
	}
	b := newBuilder(e.shape)
	u := b.energy()
	inputs, outputs := []string{"images"}, []string{"energy"}
	of := b.values
	if w == weights {
		of = of[:len(of)-1] // as in run
	}
	for i := range of {
		inputs = append(inputs, b.layout[i].name)
	}
	switch w {
	case energies:
		b.Output("energy", u)
	case pixels:
		b.Output("energy", u)
		ones := b.Expand(b.Scalar(1), u.Shape)
		d, err := b.Differentiate([]*onnx.Value{u}, []*onnx.Value{ones}, []*onnx.Value{b.images})
		if err != nil {
			return nil, err
		}
		b.Output("gradient", d[0])
		outputs = append(outputs, "gradient")
	case weights:
		seeds := b.Input("seeds", onnx.Float, b.count)
		inputs, outputs = append(inputs, "seeds"), nil
		d, err := b.Differentiate([]*onnx.Value{u}, []*onnx.Value{seeds}, of)
		if err != nil {
			return nil, err
		}
		for i, v := range d {
			name := "d-" + b.layout[i].name
			b.Output(name, v)
			outputs = append(outputs, name)
		}
	}
	model, err := b.Encode()
	if err != nil {
		return nil, err
	}
	e.sessions[w], err = e.runtime.NewSession(model, ort.SessionOptions{Inputs: inputs, Outputs: outputs})
	return e.sessions[w], err
}
