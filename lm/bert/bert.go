// Package bert writes the BERT family of masked language models (Devlin et
// al. 2019) as ONNX graphs: log-probabilities at chosen positions
// ([Conditionals]), and the same with the gradient of their sum with respect
// to word embeddings ([Gradient]).
//
// The graphs take rows of token ids, a row being one text in which some slots
// are masked, and compute no more than is asked for: the last layer and the
// vocabulary head run only at the queried positions. Weights stay in the
// bundle's own file; the graph refers to them by offset.
package bert

import (
	"fmt"
	"math"
	"path/filepath"

	"infill/lm/onnx"
	"infill/models"
	"infill/models/safetensors"
)

// Names of the graphs' inputs and outputs; shapes are in the documentation of
// [Conditionals] and [Gradient].
const (
	InputIDs            = "ids"
	InputQueries        = "queries"
	InputTargets        = "targets"
	InputCandidates     = "candidates"
	InputChosen         = "chosen"
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

// WordEmbeddings is the tensor of word embeddings, [vocabulary × hidden].
const WordEmbeddings = "bert.embeddings.word_embeddings.weight"

// Conditionals is the graph of log-probabilities. Inputs, all int64:
//
//	ids         [rows × tokens]     token ids, no padding
//	queries     [rows × queries]    r·tokens + position, for positions of row r
//	targets     [rows·queries × 1]  a token for every query
//	candidates  [rows·queries × candidates]  any number of tokens for every query, none at all included
//	chosen      [chosen]            queries whose whole distribution is wanted
//
// Outputs, float32, in nats, log-softmax over the whole vocabulary:
//
//	target_log_probability     [rows·queries × 1]
//	candidate_log_probability  [rows·queries × candidates]
//	log_probability            [chosen × vocabulary]
func Conditionals(b *models.Bundle) (*onnx.Graph, error) {
	m := newBuilder(b, b.Name+" conditionals")
	in := m.inputs(onnx.Symbol("rows"))
	_, hidden := m.encode(in, false)
	_, logProbability := m.head(hidden)
	m.logProbabilities(in, logProbability)
	return m.finish()
}

// Gradient is [Conditionals] with a backward pass. Its rows come in groups:
// rows = chains·terms, chain by chain. For every chain c and slot j it gives
//
//	Σ_t Σ_q weights[c, t, j] · ∂ log f(target)/∂(embedding at slot j of row (c, t)) · E_v
//
// the part of ∂U/∂θ_j[v] that goes through the context (E is the word
// embedding matrix). Further inputs:
//
//	slots            int64    [chains·terms × slots]      r·tokens + position
//	weights          float32  [chains × terms × slots × 1]
//	slot_candidates  int64    [slots × slot candidates]   tokens
//	chosen_slots     int64    [chosen slots]              chain·slots + slot: those whose gradient is wanted for every token
//
// Further outputs, float32, nats:
//
//	candidate_gradient  [slots × chains × slot candidates]
//	gradient            [chosen slots × vocabulary]
func Gradient(b *models.Bundle) (*onnx.Graph, error) {
	m := newBuilder(b, b.Name+" gradient")
	chains, terms, slots := onnx.Symbol("chains"), onnx.Symbol("terms"), onnx.Symbol("slots")
	rows := chains.Times(terms)
	in := m.inputs(rows)
	at := m.Input(InputSlots, onnx.Int64, rows, slots)
	weights := m.Input(InputWeights, onnx.Float, chains, terms, slots, onnx.Fixed(1))
	candidates := m.Input(InputSlotCandidates, onnx.Int64, slots, onnx.Symbol("slot_candidates"))
	chosen := m.Input(InputChosenSlots, onnx.Int64, onnx.Symbol("chosen_slots"))

	words, hidden := m.encode(in, true)
	state, logProbability := m.head(hidden)
	m.logProbabilities(in, logProbability)

	// ∂ log softmax(D·h)_target / ∂h = D_target − Σ_v p_v D_v
	targets := m.Reshape(in.targets, in.positions())
	decoder := m.decoder()
	seed := m.Gemm(m.Exp(logProbability), decoder, m.Gather(decoder, targets, 0), onnx.GemmOptions{Alpha: -1})
	gradients, err := m.Differentiate([]*onnx.Value{state}, []*onnx.Value{seed}, []*onnx.Value{words})
	if err != nil {
		return nil, err
	}
	h := m.width()
	atSlots := m.Gather(m.Reshape(gradients[0], in.rows.Times(in.tokens), h), at, 0)
	byTerm := m.Mul(m.Reshape(atSlots, chains, terms, slots, h), weights)
	sum := m.ReduceSum(byTerm, false, 1) // [chains slots hidden]

	embedding := m.weight(WordEmbeddings)
	rowsOfE := m.Gather(embedding, candidates, 0) // [slots candidates hidden]
	m.Output(OutputSlotCandidates, m.MatMul(m.Transpose(sum, 1, 0, 2), m.Transpose(rowsOfE, 0, 2, 1)))
	flat := m.Reshape(sum, chains.Times(slots), h)
	m.Output(OutputSlotsVocabulary, m.Gemm(m.Gather(flat, chosen, 0), embedding, nil, onnx.GemmOptions{TransB: true}))
	return m.finish()
}

// inputs are those that both graphs share.
type inputs struct {
	ids, queries, targets, candidates, chosen *onnx.Value
	rows, tokens, perRow                      onnx.Dim
}

// positions is the number of queries in all.
func (in inputs) positions() onnx.Dim { return in.rows.Times(in.perRow) }

// builder is one graph in the making.
type builder struct {
	*onnx.Graph
	bundle  *models.Bundle
	weights map[string]*onnx.Value
	err     error
}

func newBuilder(b *models.Bundle, name string) *builder {
	return &builder{Graph: onnx.New(name), bundle: b, weights: map[string]*onnx.Value{}}
}

func (m *builder) finish() (*onnx.Graph, error) {
	if m.err == nil {
		m.err = m.Err()
	}
	return m.Graph, m.err
}

func (m *builder) width() onnx.Dim { return onnx.Fixed(int64(m.bundle.Config.HiddenSize)) }

func (m *builder) inputs(rows onnx.Dim) inputs {
	in := inputs{rows: rows, tokens: onnx.Symbol("tokens"), perRow: onnx.Symbol("queries")}
	in.ids = m.Input(InputIDs, onnx.Int64, rows, in.tokens)
	in.queries = m.Input(InputQueries, onnx.Int64, rows, in.perRow)
	in.targets = m.Input(InputTargets, onnx.Int64, in.positions(), onnx.Fixed(1))
	in.candidates = m.Input(InputCandidates, onnx.Int64, in.positions(), onnx.Symbol("candidates"))
	in.chosen = m.Input(InputChosen, onnx.Int64, onnx.Symbol("chosen"))
	return in
}

// weight is a tensor of the bundle, as float32.
func (m *builder) weight(name string) *onnx.Value {
	if v, ok := m.weights[name]; ok {
		return v
	}
	t, ok := m.bundle.Tensor(name)
	if !ok && m.err == nil {
		m.err = fmt.Errorf("bundle %s: tensor %s is missing", m.bundle.Name, name)
	}
	stored := map[safetensors.DType]onnx.DType{
		safetensors.F16: onnx.Float16, safetensors.BF16: onnx.BFloat16, safetensors.F32: onnx.Float, safetensors.F64: onnx.Double,
	}
	dtype, ok := stored[t.DType]
	if !ok && m.err == nil {
		m.err = fmt.Errorf("bundle %s: tensor %s has elements of type %s", m.bundle.Name, name, t.DType)
	}
	file, err := filepath.Rel(m.bundle.Dir, t.Path)
	if err != nil && m.err == nil {
		m.err = err
	}
	shape := make([]int64, len(t.Shape))
	for i, n := range t.Shape {
		shape[i] = int64(n)
	}
	v := m.Cast(m.External(name, dtype, shape, onnx.Location{File: filepath.ToSlash(file), Offset: t.Offset, Length: t.Length}), onnx.Float)
	m.weights[name] = v
	return v
}

func (m *builder) decoder() *onnx.Value {
	if m.bundle.Config.TieWordEmbeddings {
		return m.weight(WordEmbeddings)
	}
	return m.weight("cls.predictions.decoder.weight")
}

// linear is scale·(x·Wᵀ) + bias for x [positions × in], times post.
func (m *builder) linear(x *onnx.Value, name string, scale, post float64) *onnx.Value {
	return m.Gemm(x, m.weight(name+".weight"), m.weight(name+".bias"),
		onnx.GemmOptions{Alpha: scale * post, Beta: post, TransB: true})
}

func (m *builder) normalize(x *onnx.Value, name string) *onnx.Value {
	return m.LayerNormalization(x, m.weight(name+".weight"), m.weight(name+".bias"), m.bundle.Config.LayerNormEpsilon)
}

// encode is the embeddings and the transformer layers. It returns the word
// embeddings [rows × tokens × hidden] and the last hidden state at the queries
// [rows·queries × hidden]. Only the graph with a backward pass is split in a
// way that is cheap to differentiate.
func (m *builder) encode(in inputs, differentiable bool) (words, hidden *onnx.Value) {
	h, all := m.width(), in.rows.Times(in.tokens)
	words = m.Gather(m.weight(WordEmbeddings), in.ids, 0)
	positions := m.Prefix(m.weight("bert.embeddings.position_embeddings.weight"), in.tokens)
	segment := m.Gather(m.weight("bert.embeddings.token_type_embeddings.weight"), m.Ints(0), 0)
	x := m.Add(words, m.Add(positions, segment))
	x = m.Reshape(m.normalize(x, "bert.embeddings.LayerNorm"), all, h)

	queries := m.Reshape(in.queries, in.positions())
	for i := range m.bundle.Config.Layers {
		asked, perRow := x, in.tokens
		if i == m.bundle.Config.Layers-1 {
			// What the last layer computes elsewhere, nobody reads.
			asked, perRow = m.Gather(x, queries, 0), in.perRow
		}
		x = m.layer(fmt.Sprintf("bert.encoder.layer.%d.", i), x, asked, in, perRow, differentiable)
	}
	return words, x
}

// layer is a transformer layer with layer normalisation after each block, at
// the positions asked for (perRow of every row), attending to all.
func (m *builder) layer(prefix string, x, asked *onnx.Value, in inputs, perRow onnx.Dim, differentiable bool) *onnx.Value {
	c := m.bundle.Config
	heads, size := onnx.Fixed(int64(c.Heads)), onnx.Fixed(int64(c.HiddenSize/c.Heads))
	split := func(x *onnx.Value, perRow onnx.Dim, order ...int) *onnx.Value {
		return m.Transpose(m.Reshape(x, in.rows, perRow, heads, size), order...)
	}
	scale := 1 / math.Sqrt(float64(c.HiddenSize/c.Heads))
	q := split(m.linear(asked, prefix+"attention.self.query", 1, scale), perRow, 0, 2, 1, 3)
	k := split(m.linear(x, prefix+"attention.self.key", 1, 1), in.tokens, 0, 2, 3, 1)
	v := split(m.linear(x, prefix+"attention.self.value", 1, 1), in.tokens, 0, 2, 1, 3)
	mixed := m.MatMul(m.Softmax(m.MatMul(q, k)), v)
	context := m.Reshape(m.Transpose(mixed, 0, 2, 1, 3), in.rows.Times(perRow), m.width())

	x = m.normalize(m.Add(m.linear(context, prefix+"attention.output.dense", 1, 1), asked), prefix+"attention.output.LayerNorm")
	return m.normalize(m.Add(m.feedForward(x, prefix, differentiable), x), prefix+"output.LayerNorm")
}

func (m *builder) feedForward(x *onnx.Value, prefix string, differentiable bool) *onnx.Value {
	if m.bundle.Config.Activation == models.GELU && differentiable {
		// gelu(x) = s(1 + erf s)/√2 with s = x/√2. The factors ride along with
		// the matrix products, and erf s serves the derivative too.
		s := m.linear(x, prefix+"intermediate.dense", 1, math.Sqrt(0.5))
		return m.linear(m.Mul(s, m.Add(m.Erf(s), m.Scalar(1))), prefix+"output.dense", math.Sqrt(0.5), 1)
	}
	return m.linear(m.activate(m.linear(x, prefix+"intermediate.dense", 1, 1)), prefix+"output.dense", 1, 1)
}

func (m *builder) activate(x *onnx.Value) *onnx.Value {
	switch m.bundle.Config.Activation {
	case models.GELU:
		return m.Gelu(x, false)
	case models.GELUTanh:
		return m.Gelu(x, true)
	case models.ReLU:
		return m.Relu(x)
	}
	if m.err == nil {
		m.err = fmt.Errorf("bundle %s: activation %q is not known", m.bundle.Name, m.bundle.Config.Activation)
	}
	return x
}

// head maps hidden states to log-probabilities [positions × vocabulary]; state
// is what the output matrix multiplies.
func (m *builder) head(hidden *onnx.Value) (state, logProbability *onnx.Value) {
	const head = "cls.predictions."
	state = m.normalize(m.activate(m.linear(hidden, head+"transform.dense", 1, 1)), head+"transform.LayerNorm")
	return state, m.LogSoftmax(m.Gemm(state, m.decoder(), m.weight(head+"bias"), onnx.GemmOptions{TransB: true}))
}

func (m *builder) logProbabilities(in inputs, logProbability *onnx.Value) {
	m.Output(OutputTarget, m.GatherElements(logProbability, in.targets, 1))
	m.Output(OutputCandidates, m.GatherElements(logProbability, in.candidates, 1))
	m.Output(OutputVocabulary, m.Gather(logProbability, in.chosen, 0))
}
