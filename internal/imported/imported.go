// Package imported puts masked language models that others have exported as
// ONNX graphs into graphs of package graphs, with derivatives if asked.
//
// The exported graph takes token ids, and perhaps a mask of attended positions,
// segments and positions, and gives the logits of every token at every
// position. A model whose operators cannot be differentiated still has
// log-probabilities, and serves every sampler that needs no gradient through
// the context.
package imported

import (
	"cmp"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"infill/internal/graphs"
	"infill/internal/onnx"
	"infill/internal/regular"
	"infill/models"
)

// Model is an exported graph with a masked language model's inputs and outputs.
type Model struct {
	*onnx.Model
	path       string
	output     onnx.ModelValue // the logits
	vocabulary int             // number of columns of the logits; 0 before columns has run
	separator  int             // see [graphs.Rows].Separator
}

var _ graphs.Model = (*Model)(nil)

// Open reads a bundle's graph. Models with one segment need no separator.
func Open(b *models.Bundle, separator int) (*Model, error) {
	m, err := open(b.Graph)
	if err != nil {
		return nil, err
	}
	m.vocabulary = b.Config.VocabularySize
	if b.Config.Segments > 1 {
		m.separator = separator
	}
	return m, nil
}

// Forward implements graphs.Model. If an operator has no derivative, the error
// is a *onnx.NoRuleError.
func (m *Model) Forward(g *onnx.Graph, in graphs.Rows, differentiable bool) (graphs.Pass, error) {
	logits, err := m.logits(g, in)
	if err != nil {
		return graphs.Pass{}, fmt.Errorf("%s: %w", m.path, err)
	}
	p := graphs.Pass{LogProbability: g.LogSoftmax(logits)}
	if !differentiable {
		return p, nil
	}
	// ∂ log softmax(z)_target / ∂z = one-hot(target) − softmax(z)
	ones := g.Expand(g.Scalar(1), in.Targets.Shape)
	p.State = logits
	p.Seed = g.ScatterElements(g.Neg(g.Exp(p.LogProbability)), in.Targets, ones, 1)
	p.Table, p.Words, err = m.words(g, in.IDs)
	return p, err
}

// open decodes the graph in a file.
func open(path string) (*Model, error) {
	file, err := regular.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	decoded, err := onnx.Decode(file, info.Size(), filepath.Base(path))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	m := &Model{Model: decoded, path: path}
	if err := m.check(); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return m, nil
}

// meanings maps exporters' names of inputs to what they mean.
func meanings() map[string]string {
	return map[string]string{
		"input_ids": "ids", "ids": "ids", "input": "ids",
		"attention_mask": "mask", "input_mask": "mask",
		"token_type_ids": "segments", "segment_ids": "segments",
		"position_ids": "positions",
	}
}

// check refuses other inputs or outputs than a masked language model's.
func (m *Model) check() error {
	var ids bool
	for _, v := range m.Inputs {
		meaning, ok := meanings()[v.Name]
		if !ok {
			return fmt.Errorf("input %q is not one of a masked language model (%s)", v.Name,
				strings.Join(slices.Sorted(maps.Keys(meanings())), ", "))
		}
		ids = ids || meaning == "ids"
		if slices.ContainsFunc(v.Shape, func(d int64) bool { return d >= 0 }) || len(v.Shape) != 2 {
			return fmt.Errorf("input %s has the shape %v: two dynamic axes are needed, rows and tokens; export the "+
				"model with dynamic axes", v.Name, v.Shape)
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
		return fmt.Errorf("it has no output logits: is it a masked language model? (outputs: %s)",
			strings.Join(names, ", "))
	}
	return nil
}

// logits returns the logits at the queried positions, [queries × vocabulary].
func (m *Model) logits(g *onnx.Graph, in graphs.Rows) (*onnx.Value, error) {
	filled := func(x int64) *onnx.Value {
		one := onnx.Ints([]int64{1}, x)
		return g.Apply("ConstantOfShape", 1, []*onnx.Value{g.Sizes(in.IDs.Shape)},
			onnx.Attribute{Name: "value", Value: &one})[0]
	}
	bound := map[string]*onnx.Value{}
	for _, v := range m.Inputs {
		var x *onnx.Value
		switch meanings()[v.Name] {
		case "ids":
			x = in.IDs
		case "mask": // all ones, as rows have no padding
			x = filled(1)
		case "segments":
			x = filled(0)
			if m.separator > 0 {
				in.Separator = m.separator
				x = in.Second(g)
			}
		case "positions":
			x = g.Add(filled(0), g.Range(in.Tokens))
		}
		bound[v.Name] = g.Cast(x, v.DType)
	}
	outputs, err := g.Inline(m.Model, bound)
	if err != nil {
		return nil, err
	}
	logits := outputs[m.output.Name]
	if err := m.columns(logits); err != nil {
		return nil, err
	}
	queries := g.Reshape(in.Queries, in.Asked())
	return g.At(logits, in.Rows.Times(in.Tokens), onnx.Fixed(int64(m.vocabulary)), queries), nil
}

// columns sets m.vocabulary if it is 0, and returns an error if the shape of
// the logits disagrees with it.
func (m *Model) columns(logits *onnx.Value) error {
	found := 0
	if s := m.output.Shape; len(s) == 3 && s[2] > 0 {
		found = int(s[2])
	}
	if s := logits.Shape; len(s) == 3 {
		if n, ok := s[2].Size(); ok {
			found = int(n)
		}
	}
	m.vocabulary = cmp.Or(m.vocabulary, found)
	const is = "a masked language model's is [rows × tokens × vocabulary]"
	switch {
	case !logits.Unranked && len(logits.Shape) != 3, found != 0 && found != m.vocabulary:
		return fmt.Errorf("output %s has the shape %s, the vocabulary %d tokens: %s", m.output.Name, logits.Shape,
			m.vocabulary, is)
	case m.vocabulary == 0:
		return fmt.Errorf("output %s does not tell how many tokens it is over: %s", m.output.Name, is)
	}
	return nil
}

// words finds the word embeddings: the only Gather from a constant table at
// ids. It returns table and gathered rows.
func (m *Model) words(g *onnx.Graph, ids *onnx.Value) (table, words *onnx.Value, err error) {
	var found []*onnx.Node
	for _, n := range g.Nodes {
		if n.Domain == "" && n.Op == "Gather" && g.Origin(n.Inputs[1]) == ids && len(n.Inputs[0].Shape) == 2 &&
			g.Constantly(n.Inputs[0]) {
			found = append(found, n)
		}
	}
	if len(found) != 1 {
		return nil, nil, fmt.Errorf("%s: %d tables of word embeddings are looked up at %s, where one is expected: "+
			"this model has no gradient", m.path, len(found), "input_ids")
	}
	n := found[0]
	if axis, ok := n.Attribute("axis").(int64); ok && axis != 0 {
		return nil, nil,
			fmt.Errorf("%s: the word embeddings are looked up along axis %d: this model has no gradient", m.path, axis)
	}
	return n.Inputs[0], n.Outputs[0], nil
}
