// Package graphs writes the ONNX graphs by which the program runs a masked
// language model. [Conditionals] computes log-probabilities at chosen
// positions; [Gradient] also computes the gradient of their sum by word
// embeddings.
//
// The graphs take rows of token ids. A row is one text in which some slots are
// masked. A [Model] writes the nodes between ids and log-probabilities.
package graphs

import "infill/internal/onnx"

// Names of the graphs' inputs and outputs; shapes are in the documentation of
// [Conditionals] and [Gradient].
const (
	InputIDs            = "ids"
	InputQueries        = "queries"
	InputTargets        = "targets"
	InputCandidates     = "candidates"
	InputChosen         = "chosen"
	InputPositions      = "positions"
	InputSpread         = "spread"
	InputKept           = "kept"
	InputLengths        = "lengths"
	InputSlots          = "slots"
	InputWeights        = "weights"
	InputSlotCandidates = "slot_candidates"
	InputChosenSlots    = "chosen_slots"

	OutputTarget          = "target_log_probability"
	OutputCandidates      = "candidate_log_probability"
	OutputVocabulary      = "log_probability"
	OutputSlotCandidates  = "candidate_gradient"
	OutputSlotsVocabulary = "gradient"
)

// Model is a masked language model that can be written into a graph.
type Model interface {
	// Forward appends the model's forward pass over the rows. It sets Words,
	// Table, State and Seed of the Pass only if differentiable is true.
	Forward(g *onnx.Graph, rows Rows, differentiable bool) (Pass, error)
}

// Rows are texts of one length, or packed, with equally many queries.
type Rows struct {
	IDs     *onnx.Value // [rows × tokens], or [packed]
	Queries *onnx.Value // [rows × queries]: r·tokens + position, for row r, or an index of the packed
	Targets *onnx.Value // [rows·queries × 1], one token for each query
	// Separator is the token that ends the first text of a pair; segment 1
	// begins after it. If 0, all is segment 0.
	Separator int
	// Packing is nil if all rows have one length.
	Packing *Packing

	Rows, Tokens, PerRow onnx.Dim
}

// Packing says where the tokens of rows of several lengths stand: one behind the
// other, without padding, but for attention, where each row has as many tokens as
// Rows.Tokens says. So products compute nothing for padding.
type Packing struct {
	Tokens    onnx.Dim    // of all rows together
	Positions *onnx.Value // [packed], of each token in its row
	Spread    *onnx.Value // [rows × tokens], the packed index of each token; any at padding
	Kept      *onnx.Value // [packed], r·tokens + position of each token
	// [rows × 1 × 1 × tokens], added to attention scores: very small at padding, else
	// 0
	Bias *onnx.Value
}

// Asked returns the number of queries of all rows together.
func (r Rows) Asked() onnx.Dim { return r.Rows.Times(r.PerRow) }

// Second returns 0 for the tokens up to the first separator of each row, and 1
// for those after it, [rows × tokens × 1] or [packed × 1].
func (r Rows) Second(g *onnx.Graph) *onnx.Value {
	one := onnx.Fixed(1)
	ids := r.IDs
	if r.Packing != nil {
		ids = g.Gather(ids, r.Packing.Spread, 0)
	}
	distance := g.Sub(g.Cast(g.Reshape(ids, r.Rows, one, r.Tokens), onnx.Float), g.Scalar(float64(r.Separator)))
	separates := g.Relu(g.Sub(g.Scalar(1), g.Mul(distance, distance))) // 1 at separators, as ids are whole numbers
	at := g.Cast(g.Range(r.Tokens), onnx.Float)
	step := func(x *onnx.Value) *onnx.Value { // 1 where the whole number x is above 0
		return g.Sub(g.Scalar(1), g.Relu(g.Sub(g.Scalar(1), g.Relu(x))))
	}
	before := step(g.Sub(g.Reshape(at, r.Tokens, one), g.Reshape(at, one, r.Tokens)))
	second := step(g.ReduceSum(g.Mul(separates, before), false, 2))
	if r.Packing != nil {
		second = g.Reshape(second, r.Rows.Times(r.Tokens), one)
		return g.Gather(second, r.Packing.Kept, 0)
	}
	return g.Reshape(second, r.Rows, r.Tokens, one)
}

// Pass holds the results of a forward pass.
type Pass struct {
	LogProbability *onnx.Value // [rows·queries × vocabulary], nats
	Table          *onnx.Value // the word embeddings [vocabulary × width]
	Words          *onnx.Value // the row of Table for each token of the texts [rows × tokens × width]
	// State is what log-probabilities are computed from, and Seed the derivative
	// by it of the sum of the targets' log-probabilities.
	State, Seed *onnx.Value
}

// Conditionals builds the graph of log-probabilities. Its inputs, all int64,
// are
//
//	ids         [rows × tokens]     token ids
//	queries     [rows × queries]    r·tokens + position, for positions of row r
//	targets     [rows·queries × 1]  a token for every query
//	candidates  [rows·queries × candidates]  any number of tokens for every query, perhaps 0
//	chosen      [chosen]            queries whose whole distribution is wanted
//
// Its outputs, float32, in nats, log-softmax over the whole vocabulary, are
//
//	target_log_probability     [rows·queries × 1]
//	candidate_log_probability  [rows·queries × candidates]
//	log_probability            [chosen × vocabulary]
func Conditionals(name string, m Model) (*onnx.Graph, error) {
	g := onnx.New(name + " conditionals")
	_, _, err := conditionals(g, m, onnx.Symbol("rows"), nil, false)
	return g, err
}

// PackedConditionals is [Conditionals] of rows of any lengths, whose tokens stand
// one behind the other: ids are [packed], and queries are packed indices. It has
// further inputs, int64, see [Packing]; tokens is the width of attention:
//
//	positions  [packed]         position of each token in its row
//	spread     [rows × tokens]  packed index of each token; any at padding
//	kept       [packed]         r·tokens + position of each token
//	lengths    [rows]           tokens of each row
func PackedConditionals(name string, m Model) (*onnx.Graph, error) {
	g := onnx.New(name + " conditionals")
	_, _, err := conditionals(g, m, onnx.Symbol("rows"), nil, true)
	return g, err
}

// conditionals appends the inputs and outputs of [Conditionals]. In between, it
// calls more, which may add inputs.
func conditionals(g *onnx.Graph, m Model, rows onnx.Dim, more func(Rows), packed bool) (Rows, Pass, error) {
	r := Rows{Rows: rows, Tokens: onnx.Symbol("tokens"), PerRow: onnx.Symbol("queries")}
	if packed {
		all := onnx.Symbol("packed")
		r.IDs = g.Input(InputIDs, onnx.Int64, all)
		r.Packing = &Packing{Tokens: all}
	} else {
		r.IDs = g.Input(InputIDs, onnx.Int64, rows, r.Tokens)
	}
	r.Queries = g.Input(InputQueries, onnx.Int64, rows, r.PerRow)
	r.Targets = g.Input(InputTargets, onnx.Int64, r.Asked(), onnx.Fixed(1))
	candidates := g.Input(InputCandidates, onnx.Int64, r.Asked(), onnx.Symbol("candidates"))
	chosen := g.Input(InputChosen, onnx.Int64, onnx.Symbol("chosen"))
	if more != nil {
		more(r)
	}
	if packed {
		p := r.Packing
		p.Positions = g.Input(InputPositions, onnx.Int64, p.Tokens)
		p.Spread = g.Input(InputSpread, onnx.Int64, rows, r.Tokens)
		p.Kept = g.Input(InputKept, onnx.Int64, p.Tokens)
		p.Bias = bias(g, r, g.Input(InputLengths, onnx.Int64, rows))
	}
	p, err := m.Forward(g, r, more != nil)
	if err != nil {
		return r, p, err
	}
	g.Output(OutputTarget, g.GatherElements(p.LogProbability, r.Targets, 1))
	g.Output(OutputCandidates, g.GatherElements(p.LogProbability, candidates, 1))
	g.Output(OutputVocabulary, g.Gather(p.LogProbability, chosen, 0))
	return r, p, g.Err()
}

// bias returns 0 where a row has a token and −1e9 or less at padding. The
// result is meant to be added to attention scores.
func bias(g *onnx.Graph, r Rows, lengths *onnx.Value) *onnx.Value {
	one := onnx.Fixed(1)
	at := g.Cast(g.Reshape(g.Range(r.Tokens), one, one, one, r.Tokens), onnx.Float)
	length := g.Cast(g.Reshape(lengths, r.Rows, one, one, one), onnx.Float)
	beyond := g.Relu(g.Add(g.Sub(at, length), g.Scalar(1))) // 0 at tokens, 1 or more at padding
	return g.Mul(beyond, g.Scalar(-1e9))
}

// Gradient builds the graph of [Conditionals] with a backward pass. Its rows
// come in groups: rows = chains·terms, chain by chain. For every chain c and
// slot j the graph computes
//
//	Σ_t Σ_q weights[c, t, j] · ∂ log f(target)/∂(embedding at slot j of row (c, t)) · E_v
//
// which is the part of ∂U/∂θ_j[v] that goes through the context (E is the word
// embedding matrix). Further inputs:
//
//	slots            int64    [chains·terms × slots]      r·tokens + position
//	weights          float32  [chains × terms × slots × 1]
//	slot_candidates  int64    [slots × slot candidates]   tokens
//	chosen_slots     int64    [chosen slots]              chain·slots + slot: whose gradient is wanted for every token
//
// Further outputs, float32, nats:
//
//	candidate_gradient  [slots × chains × slot candidates]
//	gradient            [chosen slots × vocabulary]
func Gradient(name string, m Model) (*onnx.Graph, error) {
	g := onnx.New(name + " gradient")
	chains := onnx.Symbol("chains")
	terms := onnx.Symbol("terms")
	slots := onnx.Symbol("slots")
	var at, weights, candidates, chosen *onnx.Value
	r, p, err := conditionals(g, m, chains.Times(terms), func(r Rows) {
		at = g.Input(InputSlots, onnx.Int64, r.Rows, slots)
		weights = g.Input(InputWeights, onnx.Float, chains, terms, slots, onnx.Fixed(1))
		candidates = g.Input(InputSlotCandidates, onnx.Int64, slots, onnx.Symbol("slot_candidates"))
		chosen = g.Input(InputChosenSlots, onnx.Int64, onnx.Symbol("chosen_slots"))
	}, false)
	if err != nil {
		return nil, err
	}
	gradients, err := g.Differentiate([]*onnx.Value{p.State}, []*onnx.Value{p.Seed}, []*onnx.Value{p.Words})
	if err != nil {
		return nil, err
	}
	width := p.Table.Shape[1]
	gradient := g.Reshape(gradients[0], r.Rows.Times(r.Tokens), width) // by the embeddings of the words
	byTerm := g.Mul(g.Reshape(g.Gather(gradient, at, 0), chains, terms, slots, width), weights)
	sum := g.ReduceSum(byTerm, false, 1)        // [chains slots width]
	rowsOfE := g.Gather(p.Table, candidates, 0) // [slots candidates width]
	g.Output(OutputSlotCandidates, g.MatMul(g.Transpose(sum, 1, 0, 2), g.Transpose(rowsOfE, 0, 2, 1)))
	flat := g.Reshape(sum, chains.Times(slots), width)
	g.Output(OutputSlotsVocabulary, g.Gemm(g.Gather(flat, chosen, 0), p.Table, nil, onnx.GemmOptions{TransB: true}))
	return g, g.Err()
}
