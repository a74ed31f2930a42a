package bert

import (
	"cmp"

	"infill/internal/graphs"
	"infill/internal/onnx"
	"infill/models"
)

// input is a value for matrices in int8, and the name of its spread, or "".
type input struct {
	x      *onnx.Value // [rows × width]
	spread string
}

// steps is a matrix in whole numbers: (bytes − zero)·size, with a size a row.
type steps struct {
	bytes *onnx.Value // uint8 [rows × width]
	zero  *onnx.Value // uint8
	size  *onnx.Value // float [rows × 1]
}

func (m *builder) int8(name string) bool {
	t, _ := m.bundle.Tensor(name)
	return t.DType == "I8"
}

// embeddings returns the rows of the named table for ids.
func (m *builder) embeddings(name string, ids *onnx.Value) *onnx.Value {
	if !m.int8(name) {
		return m.Gather(m.weight(name), ids, 0)
	}
	whole := m.Cast(m.Gather(m.stored(name, 0, -1), ids, 0), onnx.Float)
	scale := m.Gather(m.weight(models.Scale(name)), ids, 0)
	return m.Mul(whole, m.Reshape(scale, append(scale.Shape, onnx.Fixed(1))...))
}

// product does what linear does, for a matrix in int8. The product of whole
// numbers is exact, so that a row of the result depends on its row of x alone.
func (m *builder) product(x *onnx.Value, l models.Linear, bias *onnx.Value, scale, post float64) *onnx.Value {
	a := m.inSteps(input{x, m.spreads[l.Weight]})
	columns := m.times(m.rows(models.Scale(l.Weight), l.First, l.Out), scale*post)
	matrix := m.Transpose(m.stored(l.Weight, l.First, l.Out), 1, 0)
	y := m.Mul(m.MatMulIntegerToFloat(a.bytes, matrix, columns, a.zero), a.size)
	if bias == nil {
		return y
	}
	// Of two dimensions, lest onnxruntime adds the bias in an operator with the
	// GELU that follows, which takes longer than both.
	return m.Add(y, m.Reshape(m.times(bias, post), onnx.Fixed(1), onnx.Fixed(int64(l.Out))))
}

func (m *builder) times(x *onnx.Value, factor float64) *onnx.Value {
	if factor == 1 {
		return x
	}
	return m.Mul(x, m.Scalar(factor))
}

// atLeast returns x, of elements that are at least least, which is not positive.
func (m *builder) atLeast(least float64, x *onnx.Value) *onnx.Value {
	m.least[x] = least
	return x
}

// inSteps returns an input, multiplied by its factors, in whole numbers, whose
// size follows from a row's largest element but its sign.
func (m *builder) inSteps(in input) steps {
	s, ok := m.steps[in]
	if ok {
		return s
	}
	x := in.x
	if in.spread != "" {
		x = m.Mul(x, m.Reshape(m.weight(in.spread), onnx.Fixed(1), x.Shape[1]))
	}
	// below is how many of the 255 steps are for negative elements.
	const tiny = 1e-10 // for rows of zeros
	below := 128
	least, bounded := m.least[x]
	if bounded {
		below = 32
		s.size = m.Max(m.Mul(m.ReduceMax(x, true, 1), m.Scalar(1/float64(255-below))),
			m.Scalar(max(-least/float64(below), tiny)))
	} else {
		largest := m.Max(m.ReduceMax(x, true, 1), m.Neg(m.ReduceMin(x, true, 1)), m.Scalar(127*tiny))
		s.size = m.Mul(largest, m.Scalar(1./127))
	}
	zero := onnx.Tensor{DType: onnx.Uint8, Raw: []byte{byte(below)}}
	s.zero = m.Constant("zero", zero)
	zero.Shape = []int64{1}
	rows := x.Shape[0]
	zeros := m.Expand(m.Constant("zero", zero), onnx.Shape{rows})
	s.bytes = m.QuantizeLinear(x, m.Reshape(s.size, rows), zeros, 0)
	m.steps[in] = s
	return s
}

// LargestInputs builds a graph of the largest absolute value of each channel of
// the inputs of spreads. Its inputs are ids and queries of graphs.Conditionals;
// it has an output [width] for each of models.Config.Spreads, with its name.
func LargestInputs(b *models.Bundle, separator int) (*onnx.Graph, error) {
	g := onnx.New(b.Name + " largest inputs")
	model := Model{Bundle: b, Separator: separator}
	m := model.builder(g)
	m.largest = map[string][]*onnx.Value{}
	in := graphs.Rows{Rows: onnx.Symbol("rows"), Tokens: onnx.Symbol("tokens"), PerRow: onnx.Symbol("queries")}
	in.Separator = model.separator()
	in.IDs = g.Input(graphs.InputIDs, onnx.Int64, in.Rows, in.Tokens)
	in.Queries = g.Input(graphs.InputQueries, onnx.Int64, in.Rows, in.PerRow)
	m.transformer(in, false)
	for _, s := range b.Config.Spreads() {
		g.Output(s.Name, g.Max(m.largest[s.Name]...))
	}
	return g, cmp.Or(m.err, g.Err())
}

// observe notes the largest absolute values of x [rows × width], an input of the
// named spread, if they are asked for.
func (m *builder) observe(x *onnx.Value, spread string) {
	if m.largest == nil || spread == "" {
		return
	}
	largest := m.Max(m.ReduceMax(x, false, 0), m.Neg(m.ReduceMin(x, false, 0)))
	m.largest[spread] = append(m.largest[spread], largest)
}
