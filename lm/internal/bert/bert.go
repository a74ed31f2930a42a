// Package bert writes masked language models of BERT's descent as ONNX graphs:
// log-probabilities at chosen positions ([Conditionals]), and the same with
// the gradient of their sum with respect to word embeddings ([Gradient]).
//
// One package serves every family, because they are one model with small
// changes: DistilBERT, ELECTRA, RoBERTa and ALBERT differ from BERT (Devlin et
// al. 2019) in names, sizes and which weights are shared, which models.Layout
// says, so that transformer.go builds all of them; ModernBERT, MobileBERT
// and DeBERTa have parts of their own, a file each. What is asked of a model, what leaves it, and the
// backward pass are here, and know no family.
//
// The graphs take rows of token ids, a row being one text in which some slots
// are masked, and compute no more than is asked for: the last layer and the
// vocabulary head run only at the queried positions. Weights stay in the
// bundle's own file; the graph refers to them by offset.
package bert

import (
	"fmt"
	"path/filepath"

	"infill/lm/internal/onnx"
	"infill/models"
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
	_, hidden := m.transformer(in, false)
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

	words, hidden := m.transformer(in, true)
	states, logProbability := m.head(hidden)
	m.logProbabilities(in, logProbability)
	gradients, err := m.Differentiate(states, m.seeds(in, logProbability), []*onnx.Value{words})
	if err != nil {
		return nil, err
	}
	h := onnx.Fixed(int64(m.layout.Words.Width))
	atSlots := m.Gather(m.Reshape(gradients[0], in.rows.Times(in.tokens), h), at, 0)
	byTerm := m.Mul(m.Reshape(atSlots, chains, terms, slots, h), weights)
	sum := m.ReduceSum(byTerm, false, 1) // [chains slots width]

	embedding := m.weight(m.layout.Words.Name)
	rowsOfE := m.Gather(embedding, candidates, 0) // [slots candidates width]
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
	layout  models.Layout
	weights map[string]*onnx.Value
	err     error
}

func newBuilder(b *models.Bundle, name string) *builder {
	return &builder{Graph: onnx.New(name), bundle: b, layout: b.Config.Layout(), weights: map[string]*onnx.Value{}}
}

func (m *builder) finish() (*onnx.Graph, error) {
	if m.err == nil {
		m.err = m.Err()
	}
	return m.Graph, m.err
}

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
func (m *builder) weight(name string) *onnx.Value { return m.rows(name, 0, -1) }

// rows is n rows, from row first, of a tensor of the bundle, as float32; all
// rows from there where n is negative.
func (m *builder) rows(name string, first, n int) *onnx.Value {
	t, ok := m.bundle.Tensor(name)
	if !ok && m.err == nil {
		m.err = fmt.Errorf("bundle %s: tensor %s is missing", m.bundle.Name, name)
	}
	if n < 0 && ok {
		n = t.Shape[0] - first
	}
	key := fmt.Sprintf("%s[%d:%d]", name, first, n)
	if v, ok := m.weights[key]; ok {
		return v
	}
	dtype, ok := map[string]onnx.DType{"F16": onnx.Float16, "BF16": onnx.BFloat16, "F32": onnx.Float, "F64": onnx.Double}[t.Type]
	if !ok && m.err == nil {
		m.err = fmt.Errorf("bundle %s: tensor %s has elements of type %s", m.bundle.Name, name, t.Type)
	}
	file, err := filepath.Rel(m.bundle.Dir, t.Path)
	if err != nil && m.err == nil {
		m.err = err
	}
	shape := make([]int64, len(t.Shape))
	for i, d := range t.Shape {
		shape[i] = int64(d)
	}
	at := onnx.Location{File: filepath.ToSlash(file), Offset: t.Offset, Length: t.Length}
	if len(shape) > 0 && int64(n) != shape[0] {
		if int64(first+n) > shape[0] && m.err == nil {
			m.err = fmt.Errorf("bundle %s: tensor %s has shape %v, rows %d to %d are needed", m.bundle.Name, name, t.Shape, first, first+n)
		}
		row := t.Length / shape[0]
		shape[0], at.Offset, at.Length = int64(n), at.Offset+int64(first)*row, int64(n)*row
	}
	v := m.Cast(m.External(name, dtype, shape, at), onnx.Float)
	m.weights[key] = v
	return v
}

// linear is scale·(x·Wᵀ) + bias for x [positions × in], times post.
func (m *builder) linear(x *onnx.Value, l models.Linear, scale, post float64) *onnx.Value {
	var bias *onnx.Value
	if l.Bias != "" {
		bias = m.rows(l.Bias, l.First, l.Out)
	}
	return m.Gemm(x, m.rows(l.Weight, l.First, l.Out), bias, onnx.GemmOptions{Alpha: scale * post, Beta: post, TransB: true})
}

// normalize is x itself where the norm is not there.
func (m *builder) normalize(x *onnx.Value, n models.Norm) *onnx.Value {
	if n.Weight == "" {
		return x
	}
	if n.Plain {
		return m.Add(m.Mul(x, m.weight(n.Weight)), m.weight(n.Bias))
	}
	var bias *onnx.Value
	if n.Bias != "" {
		bias = m.weight(n.Bias)
	}
	return m.LayerNormalization(x, m.weight(n.Weight), bias, m.bundle.Config.LayerNormEpsilon)
}

func (m *builder) activate(x *onnx.Value, kind string) *onnx.Value {
	switch kind {
	case "gelu":
		return m.Gelu(x, false)
	case "gelu_tanh":
		return m.Gelu(x, true)
	case "relu":
		return m.Relu(x)
	case "tanh":
		return m.Tanh(x)
	}
	if m.err == nil {
		m.err = fmt.Errorf("bundle %s: activation %q is not known", m.bundle.Name, kind)
	}
	return x
}

// head maps hidden states to log-probabilities [positions × vocabulary]; states
// are what the output matrix multiplies, or the parts of it.
func (m *builder) head(hidden *onnx.Value) (states []*onnx.Value, logProbability *onnx.Value) {
	state := m.activate(m.linear(hidden, m.layout.HeadDense, 1, 1), m.bundle.Config.HeadActivation)
	state = m.normalize(state, m.layout.HeadNorm)
	if m.layout.DecoderRest.Weight != "" {
		states, logits := m.mobileLogits(state)
		return states, m.LogSoftmax(logits)
	}
	return []*onnx.Value{state}, m.LogSoftmax(m.linear(state, m.layout.Decoder, 1, 1))
}

// seeds is the derivative of the targets' log-probabilities by head's states:
// ∂ log softmax(D·h)_target / ∂h = D_target − Σ_v p_v D_v.
func (m *builder) seeds(in inputs, logProbability *onnx.Value) []*onnx.Value {
	targets, p := m.Reshape(in.targets, in.positions()), m.Exp(logProbability)
	decoder := m.weight(m.layout.Decoder.Weight)
	seed := m.Gemm(p, decoder, m.Gather(decoder, targets, 0), onnx.GemmOptions{Alpha: -1})
	if m.layout.DecoderRest.Weight != "" {
		return m.mobileSeeds(seed, p, targets)
	}
	return []*onnx.Value{seed}
}

func (m *builder) logProbabilities(in inputs, logProbability *onnx.Value) {
	m.Output(OutputTarget, m.GatherElements(logProbability, in.targets, 1))
	m.Output(OutputCandidates, m.GatherElements(logProbability, in.candidates, 1))
	m.Output(OutputVocabulary, m.Gather(logProbability, in.chosen, 0))
}
