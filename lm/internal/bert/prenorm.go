package bert

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"infill/lm/internal/graphs"
	"infill/lm/internal/onnx"
	"infill/models"
)

// preNormLayer is a layer that normalises before its blocks. Families differ in whether positions are rotations of
// queries and keys, which layers see a window, and whether the feed-forward block is gated (Shazeer 2020).
func (m *builder) preNormLayer(i int, l models.Layer, all, asked span, in graphs.Rows) *onnx.Value {
	c, window := m.bundle.Config, 0
	theta := c.PreNorm.GlobalTheta
	if c.PreNorm.Window != nil && c.PreNorm.Window[i] > 0 {
		theta, window = c.PreNorm.LocalTheta, c.PreNorm.Window[i]
	}
	keys := m.normalize(all.hidden, l.AttentionNorm)
	queries := keys
	if asked.at != nil {
		queries = m.normalize(asked.hidden, l.AttentionNorm)
	}
	frequencies := m.frequencies(l, theta)
	here, there := m.positionsOf(asked, in), m.positionsOf(span{perRow: in.Tokens}, in)
	q, k := m.linear(queries, l.Query, 1, m.scale()), m.linear(keys, l.Key, 1, 1)
	if l.QueryNorm.Weight != "" { // which undoes the scale
		q = m.Mul(m.normalize(m.linear(queries, l.Query, 1, 1), l.QueryNorm), m.Scalar(m.scale()))
	}
	q = m.rotate(m.split(q, in.Rows, asked.perRow, 0, 2, 1, 3), here, frequencies)
	k = m.rotate(m.split(m.normalize(k, l.KeyNorm), in.Rows, in.Tokens, 0, 2, 1, 3), there, frequencies)
	v := m.split(m.linear(keys, l.Value, 1, 1), in.Rows, in.Tokens, 0, 2, 1, 3)
	scores := m.MatMul(q, m.Transpose(k, 0, 1, 3, 2))
	if window > 0 {
		scores = m.Add(scores, m.outside(here, there, window))
	}
	context := m.join(m.MatMul(m.Softmax(scores), v), in.Rows, asked.perRow)

	part := 1 / cmp.Or(c.PreNorm.Residual, 1) // of a block's result that is added
	x := m.Add(asked.hidden, m.linear(context, l.Mixed, 1, part))
	normal := m.normalize(x, l.OutputNorm)
	inner := m.activate(m.linear(normal, l.Up, 1, 1), c.Activation)
	if l.Gate.Weight != "" {
		inner = m.Mul(inner, m.linear(normal, l.Gate, 1, 1))
	}
	return m.Add(x, m.linear(inner, l.Down, 1, part))
}

// positionsOf is a span's positions within the row, float [rows or 1, 1, perRow, 1].
func (m *builder) positionsOf(s span, in graphs.Rows) *onnx.Value {
	one := onnx.Fixed(1)
	if s.at == nil {
		return m.Reshape(m.Cast(m.Range(in.Tokens), onnx.Float), one, one, in.Tokens, one)
	}
	within := m.Mod(s.at, m.Sizes(onnx.Shape{in.Tokens}))
	return m.Reshape(m.Cast(within, onnx.Float), in.Rows, one, s.perRow, one)
}

// frequencies are θ^(−2d/size) for the first half of a head's elements, none where θ is 0. Files of ESM-2 have them:
// the reference implementation reads them back, rounded as the weights are.
func (m *builder) frequencies(l models.Layer, theta float64) []float32 {
	if theta == 0 {
		return nil
	}
	size := m.headSize()
	for _, prefix := range []string{strings.TrimSuffix(l.Query.Weight, "query.weight"),
		"esm.encoder.layer.*.attention.self."} { // written so by transformers 5, once for all layers
		stored, err := m.bundle.Float32s(prefix + "rotary_embeddings.inv_freq")
		if err == nil && len(stored) == size/2 {
			return stored
		}
	}
	list := make([]float32, size/2)
	for d := range list {
		// rounded as the reference implementation rounds it
		list[d] = 1 / float32(math.Pow(theta, 2*float64(d)/float64(size)))
	}
	return list
}

// rotate turns each pair (d, d + size/2) of x [rows heads perRow size] by the angle position·frequency (Su et al.
// 2021): x∘cos + swap(x)∘sin, where swap puts the negated second half before the first. As a product with a constant
// matrix, swap needs no rule of its own in the backward pass. Without frequencies nothing turns.
func (m *builder) rotate(x, positions *onnx.Value, frequencies []float32) *onnx.Value {
	if frequencies == nil {
		return x
	}
	half := len(frequencies)
	size := 2 * half
	swap := make([]float32, size*size)
	for d := range half {
		swap[(d+half)*size+d] = -1
		swap[d*size+d+half] = 1
	}
	angles := m.Mul(positions, m.Constant("frequency", onnx.Tensor{Shape: []int64{int64(size)},
		Floats: slices.Concat(frequencies, frequencies)}))
	swapped := m.MatMul(x, m.Constant("swap", onnx.Tensor{Shape: []int64{int64(size), int64(size)}, Floats: swap}))
	return m.Add(m.Mul(x, m.Cos(angles)), m.Mul(swapped, m.Sin(angles)))
}

// outside is 0 if |i − j| ≤ window, and so low elsewhere that softmax makes it 0; [rows or 1, 1, here, there]. |i −
// j| > window makes (i − j)² − window² at least 1.
func (m *builder) outside(here, there *onnx.Value, window int) *onnx.Value {
	distance := m.Sub(here, m.Transpose(there, 0, 1, 3, 2))
	beyond := m.Relu(m.Sub(m.Mul(distance, distance), m.Scalar(float64(window*window))))
	return m.Mul(beyond, m.Scalar(-1e6))
}
