// Package bert writes masked language models of BERT's descent into ONNX
// graphs.
//
// One package serves every family, because the models differ little:
// DistilBERT, ELECTRA, RoBERTa and ALBERT differ from BERT (Devlin et al. 2019)
// in names, in sizes and in which weights are shared. A models.Layout says how,
// and transformer.go builds all of them. ModernBERT, whose layers normalise
// before their blocks, and DeBERTa have a file each.
//
// The graph computes no more than it is asked for: the last layer and the
// vocabulary head run only at the queried positions. Weights stay in the
// bundle's own file; the graph refers to them by offset.
package bert

import (
	"cmp"
	"fmt"
	"path/filepath"

	"infill/internal/graphs"
	"infill/internal/onnx"
	"infill/models"
)

// Model is a bundle that can be written into graphs.
type Model struct {
	*models.Bundle
	Separator int // see [graphs.Rows]; a model that knows one segment ignores it
}

var _ graphs.Model = Model{}

func (b Model) Forward(g *onnx.Graph, in graphs.Rows, differentiable bool) (graphs.Pass, error) {
	if in.Packing != nil && !b.Packed() {
		return graphs.Pass{}, fmt.Errorf("bundle %s: a %s takes no packed rows", b.Name, b.Config.ModelType)
	}
	in.Separator = b.separator()
	m := b.builder(g)
	words, hidden := m.transformer(in, differentiable)
	state := m.activate(m.linear(hidden, m.layout.HeadDense, 1, 1), m.bundle.Config.HeadActivation)
	state = m.normalize(state, m.layout.HeadNorm)
	p := graphs.Pass{LogProbability: m.LogSoftmax(m.linear(state, m.layout.Decoder, 1, 1))}
	if differentiable {
		p.Words, p.Table, p.State, p.Seed = words, m.weight(m.layout.Words.Name), state, m.seed(in, p.LogProbability)
	}
	return p, cmp.Or(m.err, g.Err())
}

// separator is the separator of rows: none if the model knows one segment.
func (b Model) separator() int {
	if b.Config.Segments > 1 {
		return b.Separator
	}
	return 0
}

func (b Model) builder(g *onnx.Graph) *builder {
	m := &builder{Graph: g, bundle: b.Bundle, layout: b.Config.Layout(), weights: map[string]*onnx.Value{},
		spreads: map[string]string{}, steps: map[input]steps{}, least: map[*onnx.Value]float64{}}
	for _, s := range b.Config.Spreads() {
		for _, matrix := range s.Matrices {
			m.spreads[matrix] = s.Name
		}
	}
	return m
}

// Packed reports whether the model takes packed rows. ModernBERT and DeBERTa do
// not: their attention adds no bias.
func (b Model) Packed() bool {
	c := b.Config
	return c.PreNorm == nil && c.Relative == nil
}

type builder struct {
	*onnx.Graph
	bundle  *models.Bundle
	layout  models.Layout
	weights map[string]*onnx.Value
	// spreads has the name of the models.Spread of each matrix that has one.
	// steps has the inputs of matrices in int8, and least the lower bounds of
	// inputs, where these are known.
	spreads map[string]string
	steps   map[input]steps
	least   map[*onnx.Value]float64
	// largest has the largest absolute inputs of spreads, by the matrices.
	largest map[string][]*onnx.Value
	err     error
}

func (m *builder) fail(format string, arguments ...any) {
	m.err = cmp.Or(m.err, fmt.Errorf("bundle %s: "+format, append([]any{m.bundle.Name}, arguments...)...))
}

func (m *builder) weight(name string) *onnx.Value { return m.rows(name, 0, -1) }

// rows returns the n rows from first on of the named tensor as float32, or, if
// n is negative, all rows from first on.
func (m *builder) rows(name string, first, n int) *onnx.Value {
	key := fmt.Sprintf("float %s[%d:%d]", name, first, n)
	v, ok := m.weights[key]
	if !ok {
		v = m.Cast(m.stored(name, first, n), onnx.Float)
		m.weights[key] = v
	}
	return v
}

// stored returns what rows returns, with elements of the type that the file has.
func (m *builder) stored(name string, first, n int) *onnx.Value {
	t, ok := m.bundle.Tensor(name)
	if !ok {
		m.fail("tensor %s is missing", name)
	}
	if n < 0 && ok {
		n = t.Shape[0] - first
	}
	key := fmt.Sprintf("%s[%d:%d]", name, first, n)
	if v, ok := m.weights[key]; ok {
		return v
	}
	dtype, ok := map[string]onnx.DType{"F16": onnx.Float16, "BF16": onnx.BFloat16, "F32": onnx.Float,
		"F64": onnx.Double, "I8": onnx.Int8}[t.DType]
	if !ok {
		m.fail("tensor %s has elements of type %s", name, t.DType)
	}
	shape := make([]int64, len(t.Shape))
	for i, d := range t.Shape {
		shape[i] = int64(d)
	}
	at := onnx.Location{File: filepath.Base(t.Path), Offset: t.Offset, Length: t.Length}
	if len(shape) > 0 && int64(n) != shape[0] {
		if int64(first+n) > shape[0] {
			m.fail("tensor %s has shape %v, rows %d to %d are needed", name, t.Shape, first, first+n)
		}
		row := t.Length / shape[0]
		shape[0] = int64(n)
		at.Offset = at.Offset + int64(first)*row
		at.Length = int64(n) * row
	}
	v := m.External(name, dtype, shape, at)
	m.weights[key] = v
	return v
}

// linear returns post·(scale·(x·Wᵀ) + bias), W and bias from l, for x
// [positions × in].
func (m *builder) linear(x *onnx.Value, l models.Linear, scale, post float64) *onnx.Value {
	var bias *onnx.Value
	if l.Bias != "" {
		bias = m.rows(l.Bias, l.First, l.Out)
	}
	if m.int8(l.Weight) {
		return m.product(x, l, bias, scale, post)
	}
	m.observe(x, m.spreads[l.Weight])
	return m.Gemm(x, m.rows(l.Weight, l.First, l.Out), bias,
		onnx.GemmOptions{Alpha: scale * post, Beta: post, TransB: true})
}

// normalize applies the norm n to x, and leaves x if n has no weight.
func (m *builder) normalize(x *onnx.Value, n models.Norm) *onnx.Value {
	if n.Weight == "" {
		return x
	}
	var bias *onnx.Value
	if n.Bias != "" {
		bias = m.weight(n.Bias)
	}
	return m.LayerNormalization(x, m.weight(n.Weight), bias, m.bundle.Config.LayerNormEpsilon)
}

func (m *builder) activate(x *onnx.Value, kind string) *onnx.Value {
	switch kind {
	case "gelu":
		return m.atLeast(-0.17, m.Gelu(x, false))
	case "gelu_tanh":
		return m.atLeast(-0.1701, m.Gelu(x, true))
	case "relu":
		return m.atLeast(0, m.Relu(x))
	case "tanh":
		return m.Tanh(x)
	case "silu": // since x/(1 + exp −x) = x/2·(1 + tanh x/2)
		half := m.Mul(x, m.Scalar(0.5))
		return m.atLeast(-0.2785, m.Mul(half, m.Add(m.Tanh(half), m.Scalar(1))))
	}
	m.fail("activation %q is not known", kind)
	return x
}

// seed returns the derivative of the targets' log-probabilities with respect to
// the state h, which the output matrix D multiplies: ∂ log softmax(D·h)_target
// / ∂h = D_target − Σ_v p_v D_v.
func (m *builder) seed(in graphs.Rows, logProbability *onnx.Value) *onnx.Value {
	targets := m.Reshape(in.Targets, in.Asked())
	p := m.Exp(logProbability)
	decoder := m.weight(m.layout.Decoder.Weight)
	return m.Gemm(p, decoder, m.Gather(decoder, targets, 0), onnx.GemmOptions{Alpha: -1})
}
