// Package imported runs masked language models that others have exported as
// ONNX graphs: it gives them the inputs and outputs of the graphs of package
// bert, and adds the gradient by differentiating what was exported.
//
// The exported graph takes token ids, and perhaps a mask of attended
// positions, segments and positions, and gives the logits of every token at
// every position. A model whose operators cannot be differentiated has
// [Conditionals] all the same, and serves every sampler that needs no
// gradient through the context.
package imported

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"infill/lm/internal/bert"
	"infill/lm/internal/onnx"
	"infill/models"
)

// Conditionals is the graph of log-probabilities, with the inputs and outputs
// of [bert.Conditionals].
func Conditionals(b *models.Bundle) (*onnx.Graph, error) {
	m, err := open(b.Graph, filepath.Base(b.Graph))
	if err != nil {
		return nil, err
	}
	return m.conditionals(b.Name+" conditionals", b.Config.VocabularySize)
}

// Gradient is [Conditionals] with a backward pass, with the inputs and outputs
// of [bert.Gradient]. A *onnx.NoRuleError names an operator that has none.
func Gradient(b *models.Bundle) (*onnx.Graph, error) {
	m, err := open(b.Graph, filepath.Base(b.Graph))
	if err != nil {
		return nil, err
	}
	return m.gradient(b.Name+" gradient", b.Config.VocabularySize)
}

// Energy is the graph of energies, with the inputs and outputs of [bert.Energy].
func Energy(b *models.Bundle, mask int) (*onnx.Graph, error) {
	m, err := open(b.Graph, filepath.Base(b.Graph))
	if err != nil {
		return nil, err
	}
	g := onnx.New(b.Name + " energy")
	rows := bert.NewSlotRows(g, mask)
	logits, err := m.logits(g, slotInputs(rows), b.Config.VocabularySize)
	if err != nil {
		return nil, err
	}
	rows.OutputEnergy(g.LogSoftmax(logits))
	return g, g.Err()
}

// EnergyGradient is [Energy] with the gradient, as [bert.EnergyGradient]. A
// *onnx.NoRuleError names an operator that has none.
func EnergyGradient(b *models.Bundle, mask int) (*onnx.Graph, error) {
	m, err := open(b.Graph, filepath.Base(b.Graph))
	if err != nil {
		return nil, err
	}
	g := onnx.New(b.Name + " energy and gradient")
	rows := bert.NewSlotRows(g, mask)
	in := slotInputs(rows)
	logits, err := m.logits(g, in, b.Config.VocabularySize)
	if err != nil {
		return nil, err
	}
	logProbability := g.LogSoftmax(logits)
	rows.OutputEnergy(logProbability)
	embedding, gradient, err := m.backward(g, in, logits, logProbability)
	if err != nil {
		return nil, err
	}
	rows.OutputGradient(logProbability, gradient, embedding)
	return g, g.Err()
}

func slotInputs(rows bert.SlotRows) shared {
	return shared{ids: rows.IDs, queries: rows.Queries, targets: rows.Targets, rows: rows.Rows, tokens: rows.Tokens, asked: rows.Rows}
}

// open decodes the graph in a file, which refers to itself by name.
func open(path, name string) (*model, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	decoded, err := onnx.Decode(file, info.Size(), name)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	m := &model{Model: decoded, path: path}
	if err := m.check(); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return m, nil
}

// model is an exported graph that can be a masked language model.
type model struct {
	*onnx.Model
	path   string
	output onnx.ModelValue // the logits
}

// meanings lists what exporters call the inputs.
func meanings() map[string]string {
	return map[string]string{
		"input_ids": "ids", "ids": "ids", "input": "ids",
		"attention_mask": "mask", "input_mask": "mask",
		"token_type_ids": "segments", "segment_ids": "segments",
		"position_ids": "positions",
	}
}

// check refuses graphs whose inputs or outputs are not those of a masked
// language model.
func (m *model) check() error {
	var ids bool
	for _, v := range m.Inputs {
		meaning, ok := meanings()[v.Name]
		if !ok {
			return fmt.Errorf("input %q is not one of a masked language model (%s)", v.Name, strings.Join(sortedNames(), ", "))
		}
		ids = ids || meaning == "ids"
		if slices.ContainsFunc(v.Shape, func(d int64) bool { return d >= 0 }) || len(v.Shape) != 2 {
			return fmt.Errorf("input %s has the shape %v: two dynamic axes are needed, rows and tokens; export the model with dynamic axes", v.Name, v.Shape)
		}
		switch v.DType {
		case onnx.Int64, onnx.Int32, onnx.Float, onnx.Bool:
		default:
			return fmt.Errorf("input %s holds %s", v.Name, v.DType)
		}
	}
	if !ids {
		return fmt.Errorf("it has no input input_ids")
	}
	var names []string
	for _, v := range m.Outputs {
		names = append(names, v.Name)
		if v.Name == "logits" || v.Name == "prediction_scores" || len(m.Outputs) == 1 {
			m.output = v
		}
	}
	if m.output.Name == "" {
		return fmt.Errorf("it has no output logits: is it a masked language model? (outputs: %s)", strings.Join(names, ", "))
	}
	return nil
}

func sortedNames() []string {
	var names []string
	for name := range meanings() {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// shared are the inputs that both graphs have.
type shared struct {
	ids, queries, targets, candidates, chosen *onnx.Value
	rows, tokens                              onnx.Dim
	asked                                     onnx.Dim // queried positions in all
}

func inputs(g *onnx.Graph, rows onnx.Dim) shared {
	in := shared{rows: rows, tokens: onnx.Symbol("tokens")}
	perRow := onnx.Symbol("queries")
	in.asked = rows.Times(perRow)
	in.ids = g.Input(bert.InputIDs, onnx.Int64, rows, in.tokens)
	in.queries = g.Input(bert.InputQueries, onnx.Int64, rows, perRow)
	in.targets = g.Input(bert.InputTargets, onnx.Int64, in.asked, onnx.Fixed(1))
	in.candidates = g.Input(bert.InputCandidates, onnx.Int64, in.asked, onnx.Symbol("candidates"))
	in.chosen = g.Input(bert.InputChosen, onnx.Int64, onnx.Symbol("chosen"))
	return in
}

// bind appends the exported graph and gives its logits.
func (m *model) bind(g *onnx.Graph, in shared) (*onnx.Value, error) {
	filled := func(x int64) *onnx.Value {
		one := &onnx.Tensor{Shape: []int64{1}, Ints: []int64{x}}
		return g.Apply("ConstantOfShape", 1, []*onnx.Value{g.Sizes(in.ids.Shape)}, onnx.Attribute{Name: "value", Value: one})[0]
	}
	bound := map[string]*onnx.Value{}
	for _, v := range m.Inputs {
		var x *onnx.Value
		switch meanings()[v.Name] {
		case "ids":
			x = in.ids
		case "mask": // rows have no padding
			x = filled(1)
		case "segments":
			x = filled(0)
		case "positions":
			x = g.Add(filled(0), g.Range(in.tokens))
		}
		bound[v.Name] = g.Cast(x, v.DType)
	}
	outputs, err := g.Inline(m.Model, bound)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", m.path, err)
	}
	return outputs[m.output.Name], nil
}

// logits is the exported graph's logits at the queried positions
// [queries × vocabulary].
func (m *model) logits(g *onnx.Graph, in shared, vocabulary int) (*onnx.Value, error) {
	logits, err := m.bind(g, in)
	if err != nil {
		return nil, err
	}
	columns := onnx.Fixed(int64(vocabulary))
	if !logits.Unranked && (len(logits.Shape) != 3 || logits.Shape[2] != columns && fixed(logits.Shape[2])) {
		return nil, fmt.Errorf("%s: output %s has the shape %s: a masked language model's is [rows × tokens × %d], the vocabulary", m.path, m.output.Name, logits.Shape, vocabulary)
	}
	queries := g.Reshape(in.queries, in.asked)
	return g.At(logits, in.rows.Times(in.tokens), columns, queries), nil
}

func fixed(d onnx.Dim) bool {
	_, ok := d.Size()
	return ok
}

func outputs(g *onnx.Graph, in shared, logProbability *onnx.Value) {
	g.Output(bert.OutputTarget, g.GatherElements(logProbability, in.targets, 1))
	g.Output(bert.OutputCandidates, g.GatherElements(logProbability, in.candidates, 1))
	g.Output(bert.OutputVocabulary, g.Gather(logProbability, in.chosen, 0))
}

func (m *model) conditionals(name string, vocabulary int) (*onnx.Graph, error) {
	g := onnx.New(name)
	in := inputs(g, onnx.Symbol("rows"))
	logits, err := m.logits(g, in, vocabulary)
	if err != nil {
		return nil, err
	}
	outputs(g, in, g.LogSoftmax(logits))
	return g, g.Err()
}

func (m *model) gradient(name string, vocabulary int) (*onnx.Graph, error) {
	g := onnx.New(name)
	chains, terms, slots := onnx.Symbol("chains"), onnx.Symbol("terms"), onnx.Symbol("slots")
	in := inputs(g, chains.Times(terms))
	at := g.Input(bert.InputSlots, onnx.Int64, in.rows, slots)
	weights := g.Input(bert.InputWeights, onnx.Float, chains, terms, slots, onnx.Fixed(1))
	candidates := g.Input(bert.InputSlotCandidates, onnx.Int64, slots, onnx.Symbol("slot_candidates"))
	chosen := g.Input(bert.InputChosenSlots, onnx.Int64, onnx.Symbol("chosen_slots"))

	logits, err := m.logits(g, in, vocabulary)
	if err != nil {
		return nil, err
	}
	logProbability := g.LogSoftmax(logits)
	outputs(g, in, logProbability)
	embedding, gradient, err := m.backward(g, in, logits, logProbability)
	if err != nil {
		return nil, err
	}
	h := embedding.Shape[1]
	atSlots := g.Gather(g.Reshape(gradient, in.rows.Times(in.tokens), h), at, 0)
	sum := g.ReduceSum(g.Mul(g.Reshape(atSlots, chains, terms, slots, h), weights), false, 1) // [chains slots hidden]
	rowsOfE := g.Gather(embedding, candidates, 0)
	g.Output(bert.OutputSlotCandidates, g.MatMul(g.Transpose(sum, 1, 0, 2), g.Transpose(rowsOfE, 0, 2, 1)))
	flat := g.Reshape(sum, chains.Times(slots), h)
	g.Output(bert.OutputSlotsVocabulary, g.Gemm(g.Gather(flat, chosen, 0), embedding, nil, onnx.GemmOptions{TransB: true}))
	return g, g.Err()
}

// backward is the table of word embeddings [vocabulary × width], and the
// derivative of the sum of the targets' log-probabilities with respect to what
// is looked up in it [rows × tokens × width].
func (m *model) backward(g *onnx.Graph, in shared, logits, logProbability *onnx.Value) (embedding, gradient *onnx.Value, err error) {
	embedding, words, err := m.words(g, in.ids)
	if err != nil {
		return nil, nil, err
	}
	// ∂ log softmax(z)_target / ∂z = one-hot(target) − softmax(z)
	ones := g.Expand(g.Scalar(1), in.targets.Shape)
	seed := g.ScatterElements(g.Neg(g.Exp(logProbability)), in.targets, ones, 1)
	gradients, err := g.Differentiate([]*onnx.Value{logits}, []*onnx.Value{seed}, []*onnx.Value{words})
	if err != nil {
		return nil, nil, err
	}
	return embedding, gradients[0], nil
}

// words finds the word embeddings: the one Gather from a table at the ids. It
// gives the table and what is gathered.
func (m *model) words(g *onnx.Graph, ids *onnx.Value) (table, words *onnx.Value, err error) {
	var found []*onnx.Node
	for _, n := range g.Nodes {
		if n.Domain == "" && n.Op == "Gather" && g.Origin(n.Inputs[1]) == ids && len(n.Inputs[0].Shape) == 2 && g.Constantly(n.Inputs[0]) {
			found = append(found, n)
		}
	}
	if len(found) != 1 {
		return nil, nil, fmt.Errorf("%s: %d tables of word embeddings are looked up at %s, where one is expected: this model has no gradient", m.path, len(found), "input_ids")
	}
	n := found[0]
	if axis, ok := n.Attribute("axis").(int64); ok && axis != 0 {
		return nil, nil, fmt.Errorf("%s: the word embeddings are looked up along axis %d: this model has no gradient", m.path, axis)
	}
	return n.Inputs[0], n.Outputs[0], nil
}
