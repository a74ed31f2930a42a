package bert

import (
	"infill/lm/internal/onnx"
	"infill/models"
)

// Names of the inputs and outputs of [Energy] and [EnergyGradient]; ids and
// slots are [InputIDs] and [InputSlots].
const (
	OutputEnergy   = "energy"
	OutputGradient = "gradient"
)

// Energy is the graph of the energy of fills, the pseudo-log-likelihood of the
// slots (Zhang, Liu and Liu 2022, appendix I.6), which masks the slots itself,
// with the token mask. Inputs, int64:
//
//	ids    [chains × tokens]  token ids of the filled texts, no padding
//	slots  [slots]            positions of the slots, the same in every text
//
// Output, float32, nats:
//
//	energy  [chains]
//
// It is for export: a target's own rows are made outside of the graph, where it
// is known which of them chains share.
func Energy(b *models.Bundle, mask int) (*onnx.Graph, error) {
	m := newBuilder(b, b.Name+" energy")
	rows := NewSlotRows(m.Graph, mask)
	_, hidden := m.transformer(rows.inputs(), false)
	_, logProbability := m.head(hidden)
	rows.OutputEnergy(logProbability)
	return m.finish()
}

// EnergyGradient is [Energy] with its gradient over one-hot fills, a further
// output, float32, nats:
//
//	gradient  [chains × slots × vocabulary]  ∂U/∂θ_j[v]
func EnergyGradient(b *models.Bundle, mask int) (*onnx.Graph, error) {
	m := newBuilder(b, b.Name+" energy and gradient")
	rows := NewSlotRows(m.Graph, mask)
	in := rows.inputs()
	words, hidden := m.transformer(in, true)
	states, logProbability := m.head(hidden)
	rows.OutputEnergy(logProbability)
	gradients, err := m.Differentiate(states, m.seeds(in, logProbability), []*onnx.Value{words})
	if err != nil {
		return nil, err
	}
	rows.OutputGradient(logProbability, gradients[0], m.weight(m.layout.Words.Name))
	return m.finish()
}

// SlotRows are the rows that the terms of an energy are read from, made inside
// of a graph: row c·slots + i is text c with slot i masked.
type SlotRows struct {
	IDs     *onnx.Value // [chains·slots × tokens]
	Queries *onnx.Value // [chains·slots × 1], r·tokens + the masked slot's position
	Targets *onnx.Value // [chains·slots × 1], the token that the masked slot has in its text

	Rows, Tokens onnx.Dim

	graph         *onnx.Graph
	slots         *onnx.Value // [slots]
	first         *onnx.Value // [chains·slots × 1], where each row begins
	chains, count onnx.Dim
}

// NewSlotRows gives the graph the inputs ids and slots and makes rows of them.
func NewSlotRows(g *onnx.Graph, mask int) SlotRows {
	r := SlotRows{graph: g, chains: onnx.Symbol("chains"), count: onnx.Symbol("slots"), Tokens: onnx.Symbol("tokens")}
	r.Rows = r.chains.Times(r.count)
	one := onnx.Fixed(1)
	ids := g.Input(InputIDs, onnx.Int64, r.chains, r.Tokens)
	r.slots = g.Input(InputSlots, onnx.Int64, r.count)

	repeated := g.Expand(g.Reshape(ids, r.chains, one, r.Tokens), onnx.Shape{r.chains, r.count, r.Tokens})
	filled := g.Reshape(repeated, r.Rows, r.Tokens)
	at := g.Reshape(g.Expand(r.slots, onnx.Shape{r.chains, r.count}), r.Rows, one)
	r.Targets = g.GatherElements(filled, at, 1)
	r.IDs = g.ScatterElements(filled, at, g.Sub(g.Ints(int64(mask)), r.Targets), 1)
	r.first = g.Mul(g.Reshape(g.Range(r.Rows), r.Rows, one), g.Sizes(onnx.Shape{r.Tokens}))
	r.Queries = g.Add(r.first, at)
	return r
}

func (r SlotRows) inputs() inputs {
	return inputs{ids: r.IDs, queries: r.Queries, targets: r.Targets, rows: r.Rows, tokens: r.Tokens, perRow: onnx.Fixed(1)}
}

// OutputEnergy sums log-probabilities at the queries [chains·slots × vocabulary].
func (r SlotRows) OutputEnergy(logProbability *onnx.Value) {
	g := r.graph
	terms := g.Reshape(g.GatherElements(logProbability, r.Targets, 1), r.chains, r.count)
	g.Output(OutputEnergy, g.ReduceSum(terms, false, 1))
}

// OutputGradient puts the gradient together: a slot's own row gives it the
// log-probabilities of its tokens, the other rows what they pass back to the
// slot's embedding. words [chains·slots × tokens × width] is the derivative of
// the sum of the rows' terms with respect to the word embeddings, embedding
// [vocabulary × width] the table of these.
func (r SlotRows) OutputGradient(logProbability, words, embedding *onnx.Value) {
	g, one, width := r.graph, onnx.Fixed(1), embedding.Shape[1]
	at := g.Add(r.first, g.Reshape(r.slots, one, r.count)) // [chains·slots × slots]
	bySlot := g.Gather(g.Reshape(words, r.Rows.Times(r.Tokens), width), at, 0)

	ones := g.Expand(g.Scalar(1), onnx.Shape{r.count, r.count})
	itself := g.Reshape(g.Range(r.count), r.count, one)
	others := g.ScatterElements(ones, itself, g.Expand(g.Scalar(-1), onnx.Shape{r.count, one}), 1)
	byTerm := g.Mul(g.Reshape(bySlot, r.chains, r.count, r.count, width), g.Reshape(others, r.count, r.count, one))
	through := g.Reshape(g.ReduceSum(byTerm, false, 1), r.Rows, width)

	whole := g.Add(g.Gemm(through, embedding, nil, onnx.GemmOptions{TransB: true}), logProbability)
	g.Output(OutputGradient, g.Reshape(whole, r.chains, r.count, embedding.Shape[0]))
}
