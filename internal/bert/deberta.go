package bert

import (
	"math"

	"infill/internal/graphs"
	"infill/internal/onnx"
	"infill/models"
)

// disentangled builds DeBERTa's attention (He et al. 2021, section 3.1) up to
// the output matrix. A score sums products of query and key: content with
// content, content with the key's distance, and the query's distance with
// content. Both distances use the same row of embeddings, since the table of
// distances is odd.
func (m *builder) disentangled(l models.Layer, all, asked span, in graphs.Rows) *onnx.Value {
	a := m.bundle.Config.Relative
	heads := onnx.Fixed(int64(m.bundle.Config.Heads))
	parts := 1.0
	for _, has := range []bool{a.ContentToPosition, a.PositionToContent} {
		if has {
			parts++
		}
	}
	scale := m.scale() / math.Sqrt(parts)
	q := m.split(m.linear(asked.hidden, l.Query, 1, scale), in.Rows, asked.perRow, 0, 2, 1, 3)
	k := m.split(m.linear(all.hidden, l.Key, 1, 1), in.Rows, in.Tokens, 0, 2, 3, 1)
	v := m.split(m.linear(all.hidden, l.Value, 1, 1), in.Rows, in.Tokens, 0, 2, 1, 3)
	scores := m.MatMul(q, k)

	distances := m.normalize(m.weight(m.layout.Distances.Name), m.layout.DistanceNorm)
	rows := onnx.Fixed(int64(m.layout.Distances.Rows))
	one := onnx.Fixed(1)
	at := m.Expand(m.distance(asked, in), onnx.Shape{in.Rows, heads, asked.perRow, in.Tokens})
	if a.ContentToPosition {
		key := m.split(m.linear(distances, l.PositionKey, 1, 1), one, rows, 0, 2, 3, 1)
		scores = m.Add(scores, m.GatherElements(m.MatMul(q, key), at, 3))
	}
	if a.PositionToContent {
		query := m.split(m.linear(distances, l.PositionQuery, 1, scale), one, rows, 0, 2, 1, 3)
		scores = m.Add(scores, m.GatherElements(m.MatMul(query, k), at, 2))
	}
	return m.join(m.MatMul(m.Softmax(scores), v), in.Rows, asked.perRow)
}

// distance returns, for each asked position i and each position j, the row of
// the distance embeddings: int64 [rows or 1, 1, asked, tokens].
func (m *builder) distance(asked span, in graphs.Rows) *onnx.Value {
	one := onnx.Fixed(1)
	most := m.bundle.Config.MaxPositions
	here := m.Reshape(m.Range(in.Tokens), one, one, in.Tokens, one)
	there := m.Reshape(m.Range(in.Tokens), one, one, one, in.Tokens)
	if asked.at != nil {
		here = m.Reshape(m.Mod(asked.at, m.Sizes(onnx.Shape{in.Tokens})), in.Rows, one, asked.perRow, one)
	}
	table := make([]int64, 2*most-1) // indexed by i − j + most − 1
	for k := range table {
		table[k] = int64(bucket(k-most+1, m.bundle.Config.Relative))
	}
	index := m.Add(m.Sub(here, there), m.Ints(int64(most-1)))
	return m.Gather(m.Ints(table...), index, 0)
}

// bucket returns the row of embeddings for a distance. Up to a.Buckets/2, each
// distance has a row; beyond, more and more distances share one. It rounds as
// the reference implementation does, in single precision.
func bucket(distance int, a *models.RelativeAttention) int {
	sign := 1
	n := distance
	middle := a.Buckets / 2
	if distance < 0 {
		sign = -1
		n = -distance
	}
	if a.Buckets > 0 && n > middle {
		log := func(x float32) float32 { return float32(math.Log(float64(x))) }
		part := log(float32(n)/float32(middle)) / log(float32(a.Farthest-1)/float32(middle))
		n = int(math.Ceil(float64(part*float32(middle-1)))) + middle
	}
	return min(max(sign*n+a.Span, 0), 2*a.Span-1)
}

// convolved normalises x, the first layer's result, plus the activated
// convolution of embedded over the positions.
func (m *builder) convolved(x, embedded *onnx.Value, asked span, queries *onnx.Value, in graphs.Rows) *onnx.Value {
	l := m.layout.Convolution
	a := m.bundle.Config.Relative
	width := onnx.Fixed(int64(l.In))
	text := m.Reshape(embedded, in.Rows, in.Tokens, width)
	y := m.weight(l.Bias)
	for tap := range l.Taps {
		matrix := m.Reshape(m.Gather(m.weight(l.Weight), m.Ints(int64(tap)), 2), onnx.Fixed(int64(l.Out)), width)
		shifted := m.Reshape(m.shift(text, tap-l.Taps/2, in), in.Rows.Times(in.Tokens), width)
		y = m.Gemm(shifted, matrix, y, onnx.GemmOptions{TransB: true})
	}
	if asked.at != nil {
		y = m.Gather(y, queries, 0)
	}
	return m.normalize(m.Add(x, m.activate(y, a.ConvolutionActivation)), m.layout.ConvolutionNorm)
}
