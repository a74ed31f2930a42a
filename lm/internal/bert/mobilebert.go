package bert

import (
	"infill/lm/internal/graphs"
	"infill/lm/internal/onnx"
	"infill/models"
)

// trigram is a linear map of the embeddings of the next token, the token and the one before, zeros standing beyond the
// ends (Sun et al. 2020, section 3.1).
func (m *builder) trigram(words *onnx.Value, in graphs.Rows) *onnx.Value {
	e, l := m.bundle.Config.EmbeddingSize, m.layout.Trigram
	flat := func(x *onnx.Value) *onnx.Value {
		return m.Reshape(x, in.Rows.Times(in.Tokens), onnx.Fixed(int64(e)))
	}
	y := m.weight(l.Bias)
	for k, x := range []*onnx.Value{m.shift(words, 1, in), words, m.shift(words, -1, in)} {
		columns := m.Gather(m.weight(l.Weight), m.Ints(numbers(k*e, (k+1)*e)...), 1)
		y = m.Gemm(flat(x), columns, y, onnx.GemmOptions{TransB: true})
	}
	return m.Reshape(y, in.Rows, in.Tokens, onnx.Fixed(int64(l.Out)))
}

// numbers is the whole numbers from a to b−1.
func numbers(a, b int) []int64 {
	list := make([]int64, 0, b-a)
	for i := a; i < b; i++ {
		list = append(list, int64(i))
	}
	return list
}

// mobileLayer is a layer of MobileBERT: a transformer layer of the bottleneck's width between two linear maps, with
// values from the full width and several feed-forward blocks.
func (m *builder) mobileLayer(l models.Layer, all, asked span, in graphs.Rows) *onnx.Value {
	activation := m.bundle.Config.Activation
	narrow := m.normalize(m.linear(asked.hidden, l.Narrow, 1, 1), l.NarrowNorm)
	keys := m.normalize(m.linear(all.hidden, l.Shared, 1, 1), l.SharedNorm)
	queries := keys
	if asked.at != nil {
		queries = m.normalize(m.linear(asked.hidden, l.Shared, 1, 1), l.SharedNorm)
	}
	context := m.attend(l, queries, keys, all.hidden, in, asked.perRow)
	x := m.normalize(m.Add(m.linear(context, l.Mixed, 1, 1), narrow), l.AttentionNorm)
	last := models.Layer{Up: l.Up, Down: l.Down, OutputNorm: l.OutputNorm}
	for _, block := range append(l.Before[:len(l.Before):len(l.Before)], last) {
		y := m.linear(m.activate(m.linear(x, block.Up, 1, 1), activation), block.Down, 1, 1)
		x = m.normalize(m.Add(y, x), block.OutputNorm)
	}
	return m.normalize(m.Add(m.linear(x, l.Widen, 1, 1), asked.hidden), l.WidenNorm)
}

// mobileLogits multiplies by an output matrix in two parts: the word embeddings, and columns of their own. The states
// are transposed, since rows are what can be taken apart.
func (m *builder) mobileLogits(state *onnx.Value) (states []*onnx.Value, logits *onnx.Value) {
	c := m.bundle.Config
	columns := m.Transpose(state, 1, 0)
	first := m.Gather(columns, m.Ints(numbers(0, c.EmbeddingSize)...), 0)
	second := m.Gather(columns, m.Ints(numbers(c.EmbeddingSize, c.HiddenSize)...), 0)
	logits = m.Gemm(second, m.weight(m.layout.DecoderRest.Weight), m.weight(m.layout.Decoder.Bias),
		onnx.GemmOptions{TransA: true})
	logits = m.Gemm(first, m.weight(m.layout.Decoder.Weight), logits, onnx.GemmOptions{TransA: true, TransB: true})
	return []*onnx.Value{first, second}, logits
}

// mobileSeeds is seeds for the two parts; seed is that of the first, not yet transposed.
func (m *builder) mobileSeeds(seed, p, targets *onnx.Value) []*onnx.Value {
	rest := m.weight(m.layout.DecoderRest.Weight)
	expected := m.Gemm(rest, p, nil, onnx.GemmOptions{TransB: true})
	return []*onnx.Value{m.Transpose(seed, 1, 0), m.Sub(m.Gather(rest, targets, 1), expected)}
}
