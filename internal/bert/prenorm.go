package bert

import (
	"math"
	"slices"

	"infill/internal/graphs"
	"infill/internal/onnx"
	"infill/models"
)

// preNormLayer builds a layer of ModernBERT, which normalises before its
// blocks. Positions enter as rotations of queries and keys, some layers see
// only a window, and the feed-forward block is gated (Shazeer 2020).
func (m *builder) preNormLayer(i int, l models.Layer, all, asked span, in graphs.Rows) *onnx.Value {
	c := m.bundle.Config
	theta := c.PreNorm.GlobalTheta
	window := c.PreNorm.Window[i]
	if window > 0 {
		theta = c.PreNorm.LocalTheta
	}
	keys := m.normalize(all.hidden, l.AttentionNorm)
	queries := keys
	if asked.at != nil {
		queries = m.normalize(asked.hidden, l.AttentionNorm)
	}
	frequencies := m.frequencies(theta)
	here := m.positionsOf(asked, in)
	there := m.positionsOf(span{perRow: in.Tokens}, in)
	q := m.split(m.linear(queries, l.Query, 1, m.scale()), in.Rows, asked.perRow, 0, 2, 1, 3)
	k := m.split(m.linear(keys, l.Key, 1, 1), in.Rows, in.Tokens, 0, 2, 1, 3)
	v := m.split(m.linear(keys, l.Value, 1, 1), in.Rows, in.Tokens, 0, 2, 1, 3)
	q = m.rotate(q, here, frequencies)
	k = m.rotate(k, there, frequencies)
	scores := m.MatMul(q, m.Transpose(k, 0, 1, 3, 2))
	if window > 0 {
		scores = m.Add(scores, m.outside(here, there, window))
	}
	context := m.join(m.MatMul(m.Softmax(scores), v), in.Rows, asked.perRow)

	x := m.Add(asked.hidden, m.linear(context, l.Mixed, 1, 1))
	normal := m.normalize(x, l.OutputNorm)
	inner := m.Mul(m.activate(m.linear(normal, l.Up, 1, 1), c.Activation), m.linear(normal, l.Gate, 1, 1))
	return m.Add(x, m.linear(inner, l.Down, 1, 1))
}

// positionsOf returns span s's positions in their rows: [rows or 1, 1, perRow, 1].
func (m *builder) positionsOf(s span, in graphs.Rows) *onnx.Value {
	one := onnx.Fixed(1)
	if s.at == nil {
		return m.Reshape(m.Cast(m.Range(in.Tokens), onnx.Float), one, one, in.Tokens, one)
	}
	within := m.Mod(s.at, m.Sizes(onnx.Shape{in.Tokens}))
	return m.Reshape(m.Cast(within, onnx.Float), in.Rows, one, s.perRow, one)
}

// frequencies returns θ^(−2d/size), d from 0 to size/2 − 1, size that of a
// head, rounded as in the reference code.
func (m *builder) frequencies(theta float64) []float32 {
	size := m.headSize()
	list := make([]float32, size/2)
	for d := range list {
		list[d] = 1 / float32(math.Pow(theta, 2*float64(d)/float64(size)))
	}
	return list
}

// rotate turns each pair (d, d + size/2) of x [rows heads perRow size] by the
// angle position·frequency (Su et al. 2021). The result is x∘cos + swap(x)∘sin,
// where swap puts the negated second half before the first. swap is a product
// with a constant matrix, so that the backward pass needs no rule for it.
func (m *builder) rotate(x, positions *onnx.Value, frequencies []float32) *onnx.Value {
	half := len(frequencies)
	size := 2 * half
	swap := make([]float32, size*size)
	for d := range half {
		swap[(d+half)*size+d] = -1
		swap[d*size+d+half] = 1
	}
	angles := m.Mul(positions, m.Constant("frequency", onnx.Floats([]int64{int64(size)},
		slices.Concat(frequencies, frequencies)...)))
	swapped := m.MatMul(x, m.Constant("swap", onnx.Floats([]int64{int64(size), int64(size)}, swap...)))
	return m.Add(m.Mul(x, m.Cos(angles)), m.Mul(swapped, m.Sin(angles)))
}

// outside returns a mask [rows or 1, 1, here, there]: 0 if |i − j| ≤ window,
// else at most −1e6, to which softmax gives probability 0. |i − j| > window
// makes (i − j)² − window² at least 1.
func (m *builder) outside(here, there *onnx.Value, window int) *onnx.Value {
	distance := m.Sub(here, m.Transpose(there, 0, 1, 3, 2))
	beyond := m.Relu(m.Sub(m.Mul(distance, distance), m.Scalar(float64(window*window))))
	return m.Mul(beyond, m.Scalar(-1e6))
}
