package bert

import (
	"math"

	"infill/internal/graphs"
	"infill/internal/onnx"
	"infill/models"
)

// transformer builds the embeddings and the layers. It returns the word
// embeddings [rows × tokens × width], or [packed × width], and the last hidden state at the queries
// [rows·queries × hidden]. If differentiable is true, it builds the activations
// from operators with cheap derivatives.
func (m *builder) transformer(in graphs.Rows, differentiable bool) (words, hidden *onnx.Value) {
	words = m.embeddings(m.layout.Words.Name, in.IDs)
	x := m.embed(words, in)
	queries := m.Reshape(in.Queries, in.Asked())
	c := m.bundle.Config
	embedded := x
	for i, layer := range m.layout.Layers {
		all := span{hidden: x, perRow: in.Tokens}
		asked := all
		if i == c.Layers-1 {
			// Only the queries need the last layer's result.
			asked = span{hidden: m.Gather(x, queries, 0), perRow: in.PerRow, at: in.Queries}
		}
		switch {
		case c.PreNorm != nil:
			x = m.preNormLayer(i, layer, all, asked, in)
		case c.Relative != nil:
			x = m.layer(layer, asked, m.disentangled(layer, all, asked, in), differentiable)
			if i == 0 && c.Relative.Convolution > 0 {
				x = m.convolved(x, embedded, asked, queries, in)
			}
		default:
			x = m.layer(layer, asked, m.attend(layer, all, asked, in), differentiable)
		}
	}
	return words, m.normalize(x, m.layout.FinalNorm)
}

// span holds the hidden states [rows·perRow × hidden] at perRow positions of
// every row: at all positions if at is nil, which may be packed, else at the
// positions in at [rows × perRow].
type span struct {
	hidden *onnx.Value
	perRow onnx.Dim
	at     *onnx.Value
}

// embed adds embeddings of positions, segments and tasks, and normalises.
func (m *builder) embed(words *onnx.Value, in graphs.Rows) *onnx.Value {
	var rest *onnx.Value
	if t := m.layout.Positions; t.Name != "" && in.Packing != nil {
		rest = m.Gather(m.rows(t.Name, t.First, t.Rows), in.Packing.Positions, 0)
	} else if t.Name != "" {
		rest = m.Prefix(m.rows(t.Name, t.First, t.Rows), in.Tokens)
	}
	for _, t := range []models.Table{m.layout.Segments, m.layout.Tasks} {
		if t.Name == "" {
			continue
		}
		first := m.Gather(m.weight(t.Name), m.Ints(0), 0)
		if t == m.layout.Segments && in.Separator > 0 {
			second := m.Sub(m.Gather(m.weight(t.Name), m.Ints(1), 0), first)
			first = m.Add(first, m.Mul(in.Second(m.Graph), second))
		}
		if rest != nil {
			first = m.Add(rest, first)
		}
		rest = first
	}
	x := words
	if rest != nil {
		x = m.Add(x, rest)
	}
	x = m.normalize(x, m.layout.EmbeddingNorm)
	if in.Packing == nil {
		x = m.Reshape(x, in.Rows.Times(in.Tokens), x.Shape[2])
	}
	if m.layout.Projection.Weight != "" {
		x = m.linear(x, m.layout.Projection, 1, 1)
	}
	return x
}

// layer builds what follows attention, with the result context, at the positions
// in asked. Each block has a norm behind it.
func (m *builder) layer(l models.Layer, asked span, context *onnx.Value, differentiable bool) *onnx.Value {
	c := m.bundle.Config
	x := m.normalize(m.Add(m.linear(context, l.Mixed, 1, 1), asked.hidden), l.AttentionNorm)
	var y *onnx.Value
	if c.Activation == "gelu" && differentiable {
		// gelu(x) = s(1 + erf s)/√2 with s = x/√2. The matrix products apply
		// the two factors √½, and the derivative uses erf s again.
		s := m.linear(x, l.Up, 1, math.Sqrt(0.5))
		y = m.linear(m.Mul(s, m.Add(m.Erf(s), m.Scalar(1))), l.Down, math.Sqrt(0.5), 1)
	} else {
		y = m.linear(m.activate(m.linear(x, l.Up, 1, 1), c.Activation), l.Down, 1, 1)
	}
	return m.normalize(m.Add(y, x), l.OutputNorm)
}

// attend builds attention (Vaswani et al. 2017) up to the output matrix.
func (m *builder) attend(l models.Layer, all, asked span, in graphs.Rows) *onnx.Value {
	q := m.linear(asked.hidden, l.Query, 1, m.scale())
	k := m.linear(all.hidden, l.Key, 1, 1)
	v := m.linear(all.hidden, l.Value, 1, 1)
	everywhere := asked.at == nil
	p := in.Packing
	if p != nil {
		k = m.Gather(k, p.Spread, 0)
		v = m.Gather(v, p.Spread, 0)
	}
	if p != nil && everywhere {
		q = m.Gather(q, p.Spread, 0)
	}
	scores := m.MatMul(m.split(q, in.Rows, asked.perRow, 0, 2, 1, 3), m.split(k, in.Rows, in.Tokens, 0, 2, 3, 1))
	if p != nil {
		scores = m.Add(scores, p.Bias)
	}
	context := m.join(m.MatMul(m.Softmax(scores), m.split(v, in.Rows, in.Tokens, 0, 2, 1, 3)), in.Rows, asked.perRow)
	if p != nil && everywhere {
		context = m.Gather(context, p.Kept, 0)
	}
	return context
}

// shift moves x [rows × tokens × width] to the left by the given number of
// positions, and fills up with zeros. It multiplies x by the matrix that has 1
// where j = i + by, that is, where 1 − (i + by − j)² is positive.
func (m *builder) shift(x *onnx.Value, by int, in graphs.Rows) *onnx.Value {
	if by == 0 {
		return x
	}
	at := m.Cast(m.Range(in.Tokens), onnx.Float)
	one := onnx.Fixed(1)
	distance := m.Sub(m.Add(m.Reshape(at, in.Tokens, one), m.Scalar(float64(by))), m.Reshape(at, one, in.Tokens))
	return m.MatMul(m.Relu(m.Sub(m.Scalar(1), m.Mul(distance, distance))), x)
}

func (m *builder) headSize() int { return m.bundle.Config.HiddenSize / m.bundle.Config.Heads }

// scale returns the factor 1/√headSize, which keeps attention scores from
// growing with the size of a head.
func (m *builder) scale() float64 { return 1 / math.Sqrt(float64(m.headSize())) }

// split reshapes x [rows·perRow × hidden], or [rows × perRow × hidden], to [rows perRow heads size], and
// permutes the dimensions by order.
func (m *builder) split(x *onnx.Value, rows, perRow onnx.Dim, order ...int) *onnx.Value {
	heads := onnx.Fixed(int64(m.bundle.Config.Heads))
	size := onnx.Fixed(int64(m.headSize()))
	return m.Transpose(m.Reshape(x, rows, perRow, heads, size), order...)
}

// join turns x [rows heads perRow size] back into [rows·perRow × hidden].
func (m *builder) join(x *onnx.Value, rows, perRow onnx.Dim) *onnx.Value {
	return m.Reshape(m.Transpose(x, 0, 2, 1, 3), rows.Times(perRow), onnx.Fixed(int64(m.bundle.Config.HiddenSize)))
}
