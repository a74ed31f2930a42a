package graphs

import "infill/lm/internal/onnx"

// Energy is the graph of the energy of fills, the pseudo-log-likelihood of the slots (Zhang, Liu and Liu 2022, appendix
// I.6), which masks the slots itself, with the token mask. Inputs, int64:
//
//	ids    [chains × tokens]  token ids of the filled texts, no padding
//	slots  [slots]            positions of the slots, the same in every text
//
// Output, float32, nats:
//
//	energy  [chains]
//
// It is for export: a target's own rows are made outside of the graph, where it is known which of them chains share.
func Energy(name string, m Model, mask int) (*onnx.Graph, error) {
	g := onnx.New(name + " energy")
	_, _, err := energy(g, m, mask, false)
	return g, err
}

// EnergyGradient is [Energy] with its gradient over one-hot fills, a further output, float32, nats:
//
//	gradient  [chains × slots × vocabulary]  ∂U/∂θ_j[v]
//
// A slot's own row gives it the log-probabilities of its tokens, the other rows
// what they pass back to the slot's embedding.
func EnergyGradient(name string, m Model, mask int) (*onnx.Graph, error) {
	g := onnx.New(name + " energy and gradient")
	r, p, err := energy(g, m, mask, true)
	if err != nil {
		return nil, err
	}
	gradient, err := p.backward(g, r.rows)
	if err != nil {
		return nil, err
	}
	one, width := onnx.Fixed(1), p.Table.Shape[1]
	at := g.Add(r.first, g.Reshape(r.slots, one, r.count)) // [chains·slots × slots]
	ones := g.Expand(g.Scalar(1), onnx.Shape{r.count, r.count})
	itself := g.Reshape(g.Range(r.count), r.count, one)
	others := g.ScatterElements(ones, itself, g.Expand(g.Scalar(-1), onnx.Shape{r.count, one}), 1)
	bySlot := g.Reshape(g.Gather(gradient, at, 0), r.chains, r.count, r.count, width)
	byTerm := g.Mul(bySlot, g.Reshape(others, r.count, r.count, one))
	through := g.Reshape(g.ReduceSum(byTerm, false, 1), r.rows.Rows, width)
	whole := g.Add(g.Gemm(through, p.Table, nil, onnx.GemmOptions{TransB: true}), p.LogProbability)
	g.Output(OutputGradient, g.Reshape(whole, r.chains, r.count, p.Table.Shape[0]))
	return g, g.Err()
}

// slotRows are the rows that the terms of an energy are read from, made inside
// of a graph: row c·slots + i is text c with slot i masked.
type slotRows struct {
	rows          Rows
	slots         *onnx.Value // [slots]
	first         *onnx.Value // [chains·slots × 1], where each row begins
	chains, count onnx.Dim
}

// energy gives the graph the inputs ids and slots, makes rows of them, and sums the log-probabilities of their targets.
func energy(g *onnx.Graph, m Model, mask int, differentiable bool) (slotRows, Pass, error) {
	one, tokens := onnx.Fixed(1), onnx.Symbol("tokens")
	r := slotRows{chains: onnx.Symbol("chains"), count: onnx.Symbol("slots")}
	rows := r.chains.Times(r.count)
	ids := g.Input(InputIDs, onnx.Int64, r.chains, tokens)
	r.slots = g.Input(InputSlots, onnx.Int64, r.count)

	repeated := g.Expand(g.Reshape(ids, r.chains, one, tokens), onnx.Shape{r.chains, r.count, tokens})
	filled := g.Reshape(repeated, rows, tokens)
	at := g.Reshape(g.Expand(r.slots, onnx.Shape{r.chains, r.count}), rows, one)
	targets := g.GatherElements(filled, at, 1)
	masked := g.ScatterElements(filled, at, g.Sub(g.Ints(int64(mask)), targets), 1)
	r.first = g.Mul(g.Reshape(g.Range(rows), rows, one), g.Sizes(onnx.Shape{tokens}))
	r.rows = Rows{IDs: masked, Queries: g.Add(r.first, at), Targets: targets, Rows: rows, Tokens: tokens, PerRow: one}

	p, err := m.Forward(g, r.rows, differentiable)
	if err != nil {
		return r, p, err
	}
	terms := g.Reshape(g.GatherElements(p.LogProbability, targets, 1), r.chains, r.count)
	g.Output(OutputEnergy, g.ReduceSum(terms, false, 1))
	return r, p, g.Err()
}
