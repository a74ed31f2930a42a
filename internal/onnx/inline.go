package onnx

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"infill/internal/floats"
)

// oldestOpset is the oldest version of operators that Inline reads.
const oldestOpset = 11

// Inline appends an imported model to the graph and returns the model's outputs
// by name. inputs gives, by name, the values that replace the model's inputs.
//
// Inline upgrades operators to the version in which graphs are written, and
// turns arithmetic in half precision into single precision (weights stay as
// they are stored). It works out types and shapes symbolically, shape
// arithmetic included, because the rules of differentiation rely on them.
// Unknown operators stay as they are; values that depend on their outputs have
// no known shape, and no gradient.
func (g *Graph) Inline(m *Model, inputs map[string]*Value) (map[string]*Value, error) {
	in := &inliner{graph: g, opset: m.Opsets[""], values: map[string]*Value{}, budget: budgetOf(m)}
	if in.opset < oldestOpset {
		return nil, fmt.Errorf("onnx: the model's operators have version %d; %d or later is needed: export it again",
			in.opset, oldestOpset)
	}
	// Nodes of a newer version stay as they are, and what is added has not changed.
	g.domains[""] = max(g.domains[""], in.opset)
	g.ir = max(g.ir, m.IR)
	for _, v := range m.Inputs {
		in.values[v.Name] = inputs[v.Name]
		if in.values[v.Name] == nil {
			return nil, fmt.Errorf("onnx: the model has an input %q, which nothing is known to stand for", v.Name)
		}
	}
	for _, c := range m.constants {
		in.constant(c)
	}
	for i, n := range m.nodes {
		if m.functions[n.domain+"."+n.op] {
			return nil, fmt.Errorf("onnx: node %d, %.60s (%.100s): it is a function of the model's own: export the "+
				"model with functions inlined", i, n.op, strings.Join(n.outputs, ", "))
		}
		if version, ok := m.Opsets[n.domain]; ok && n.domain != "" {
			g.domains[n.domain] = max(g.domains[n.domain], version)
		}
		if err := in.node(n); err != nil {
			return nil, fmt.Errorf("onnx: node %d, %.60s (%.100s): %w", i, n.op, strings.Join(n.outputs, ", "), err)
		}
	}
	outputs := map[string]*Value{}
	for _, v := range m.Outputs {
		outputs[v.Name] = in.values[v.Name]
		if outputs[v.Name] == nil {
			return nil, fmt.Errorf("onnx: nothing computes the output %q", v.Name)
		}
	}
	return outputs, g.err
}

type inliner struct {
	graph  *Graph
	opset  int64
	values map[string]*Value
	budget budget
}

// budget bounds the elements of a graph's values, because a few numbers in a
// file can ask for all memory there is.
type budget struct {
	constant int64 // elements of a value of fixed size, which onnxruntime may compute before a run
	along    int64 // elements for each row, or for each token
	both     int64 // elements for each pair of rows or tokens
}

// budgetOf returns bounds that are far above the needs of real models, but at
// most a small multiple of m's weights.
func budgetOf(m *Model) budget {
	b := budget{constant: 16 << 20, along: 1 << 20, both: 1 << 17}
	total := int64(0)
	for _, c := range m.constants {
		size := int64(1)
		for _, d := range c.tensor.Shape {
			size = saturated(size, d)
			b.along = max(b.along, d)
			b.both = max(b.both, d)
		}
		total += min(size, math.MaxInt64-total)
	}
	b.constant = max(b.constant, saturated(2, total))
	return b
}

// affords returns an error if an output of n would be absurdly large.
func (in *inliner) affords(n *Node) error {
	for _, v := range n.Outputs {
		if v.Unranked {
			continue
		}
		size := v.Shape.product()
		limit := in.budget.constant
		switch strings.Count(size.symbols, "*") {
		case 0:
			if size.symbols != "" {
				limit = in.budget.along
			}
		default:
			limit = in.budget.both
		}
		if size.factor > limit {
			return fmt.Errorf("its output of the shape %.200s is larger than anything that a model with such weights "+
				"needs (%d elements at most)", v.Shape, limit)
		}
	}
	return nil
}

// unknownElement stands for an unknown element in Graph.content.
var unknownElement = Dim{0, "?"}

// constant adds a constant. In half precision, it is cast to single precision.
func (in *inliner) constant(c modelConstant) {
	v := in.graph.initializer(c.name, c.tensor)
	if v.DType == Float16 || v.DType == BFloat16 {
		v = in.graph.Cast(v, Float)
	}
	in.values[c.name] = v
}

// wholes returns the elements of whole numbers, nil for others.
func (t Tensor) wholes() (list []int64) {
	if !whole(t.DType) {
		return nil
	}
	for b := range slices.Chunk(t.Raw, int(t.DType.size())) {
		switch t.DType {
		case Int64:
			list = append(list, int64(binary.LittleEndian.Uint64(b)))
		case Int32:
			list = append(list, int64(int32(binary.LittleEndian.Uint32(b))))
		case Bool:
			list = append(list, int64(b[0]))
		}
	}
	return list
}

// widened returns half precision in single precision, and others unchanged.
func widened(t Tensor) Tensor {
	if t.DType != Float16 {
		return t
	}
	return Floats(t.Shape, floats.Half.Float32s(t.Raw)...)
}

func (n *modelNode) attribute(name string) any { return attribute(n.attributes, name) }

func (n *modelNode) set(name string, value any) {
	n.attributes = slices.DeleteFunc(slices.Clone(n.attributes), func(a Attribute) bool { return a.Name == name })
	if value != nil {
		n.attributes = append(n.attributes, Attribute{name, value})
	}
}

// node adds a node of a file to the graph, in the version that graphs are
// written in. It checks that inputs are computed before it and outputs once,
// and refuses operators that a masked language model has no use for.
func (in *inliner) node(n modelNode) error {
	if len(n.outputs) == 0 {
		return errors.New("it has no output")
	}
	inputs := make([]*Value, len(n.inputs))
	for i, name := range n.inputs {
		if name == "" {
			continue
		}
		inputs[i] = in.values[name]
		if inputs[i] == nil {
			return fmt.Errorf("its input %.100q is not computed before it", name)
		}
	}
	for len(inputs) > 0 && inputs[len(inputs)-1] == nil {
		inputs = inputs[:len(inputs)-1]
	}
	if n.domain == "" {
		if least := operators()[n.op].inputs; len(inputs) < least || slices.Contains(inputs[:least], nil) {
			return fmt.Errorf("it needs %d inputs", least)
		}
		if done, err := in.upgrade(&n, &inputs); done || err != nil {
			return err
		}
	}
	node := &Node{Op: n.op, Domain: n.domain, Inputs: inputs, Attributes: n.attributes}
	for len(n.outputs) > 1 && n.outputs[len(n.outputs)-1] == "" {
		n.outputs = n.outputs[:len(n.outputs)-1]
	}
	for _, name := range n.outputs {
		v := &Value{Unranked: true}
		if name != "" {
			if in.values[name] != nil {
				return fmt.Errorf("its output %.100q is computed twice", name)
			}
			v = in.graph.value(name, 0, nil)
			v.Unranked = true
			in.values[name] = v
		}
		node.Outputs = append(node.Outputs, v)
	}
	in.graph.add(node)
	switch {
	case n.domain == "" && slices.Contains(strings.Fields(makers), n.op):
		return errors.New("an operator that makes values of any size, which no masked language model needs")
	case strings.HasPrefix(n.op, "DynamicQuantize"): // such operators of ONNX and of onnxruntime
		return errors.New("an operator that rounds by the largest number of all texts of a call, so that a text's " +
			"probabilities change with the others: export the model without dynamic quantization, in fp32")
	}
	in.graph.infer(node, in.budget.along)
	return in.affords(node)
}

// upgrade rewrites n in the written version; true means that n needs no node.
func (in *inliner) upgrade(n *modelNode, inputs *[]*Value) (done bool, err error) {
	alias := func(v *Value) (bool, error) {
		in.values[n.outputs[0]] = v
		return true, nil
	}
	switch {
	case n.op == "Constant":
		for _, a := range n.attributes {
			if t, ok := a.tensor(); ok {
				in.constant(modelConstant{n.outputs[0], widened(t)})
				return true, nil
			}
		}
		return false, errors.New("its value is of a kind that is not read")
	case n.op == "Identity", n.op == "Dropout" && (len(n.outputs) == 1 || n.outputs[1] == ""):
		return alias((*inputs)[0]) // Dropout drops nothing at inference
	case n.op == "Cast":
		to, ok := n.attribute("to").(int64)
		if !ok {
			return false, errors.New("it does not say to which type")
		}
		if t := DType(to); t == Float16 || t == BFloat16 {
			n.set("to", int64(Float))
			to = int64(Float)
		}
		if (*inputs)[0].DType == DType(to) {
			return alias((*inputs)[0])
		}
	case n.op == "CastLike":
		t := (*inputs)[1].DType
		if t == 0 {
			return false, errors.New("the type to cast to is not known")
		}
		n.op = "Cast"
		n.attributes = []Attribute{{"to", int64(t)}}
		*inputs = (*inputs)[:1]
		if (*inputs)[0].DType == t {
			return alias((*inputs)[0])
		}
	case n.op == "ConstantOfShape":
		if t, ok := n.attribute("value").(*Tensor); ok {
			single := widened(*t)
			n.set("value", &single)
		}
	case n.op == "Softmax", n.op == "LogSoftmax":
		axis, ok := n.attribute("axis").(int64)
		if !ok {
			axis = -1
			if in.opset < 13 {
				axis = 1
			}
		}
		x := (*inputs)[0]
		last := axis == -1 || !x.Unranked && axis == int64(len(x.Shape))-1
		if in.opset < 13 && !last {
			// Before version 13, it ran over axis and all axes after it.
			return false, fmt.Errorf("in version %d it is not over the last axis", in.opset)
		}
		if last {
			axis = -1
		}
		n.set("axis", axis)
	case n.op == "Squeeze", n.op == "Unsqueeze", strings.HasPrefix(n.op, "Reduce"):
		if axes, ok := n.attribute("axes").([]int64); ok {
			n.set("axes", nil)
			*inputs = append((*inputs)[:1:1], in.graph.Ints(axes...))
		}
	case n.op == "Split":
		if sizes, ok := n.attribute("split").([]int64); ok {
			n.set("split", nil)
			*inputs = append((*inputs)[:1:1], in.graph.Ints(sizes...))
		}
		if len(*inputs) == 1 && n.attribute("num_outputs") == nil {
			n.set("num_outputs", int64(len(n.outputs)))
		}
	}
	return false, nil
}

// home is a dimension from which a run can read a symbol's size.
type home struct {
	value *Value
	axis  int
}

// fresh returns a new symbol for dimension axis of v.
func (g *Graph) fresh(v *Value, axis int) Dim {
	name := fmt.Sprintf("?%d", len(g.homes))
	g.homes[name] = home{v, axis}
	return Symbol(name)
}

// addHomes records v's dimensions as homes of symbols that have none yet.
func (g *Graph) addHomes(v *Value) {
	for i, d := range v.Shape {
		if _, ok := g.homes[d.symbols]; !ok && d == Symbol(d.symbols) && d.symbols != "" &&
			!strings.Contains(d.symbols, "*") {
			g.homes[d.symbols] = home{v, i}
		}
	}
}

// Apply appends an operator of the standard with the given number of outputs.
// It infers their types and shapes as for imported operators.
func (g *Graph) Apply(op string, outputs int, inputs []*Value, attributes ...Attribute) []*Value {
	n := &Node{Op: op, Inputs: inputs, Attributes: attributes}
	for range outputs {
		v := g.value(op, 0, nil)
		v.Unranked = true
		n.Outputs = append(n.Outputs, v)
	}
	g.add(n)
	g.infer(n, math.MaxInt64)
	return n.Outputs
}
