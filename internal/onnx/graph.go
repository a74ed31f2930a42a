package onnx

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
)

// DType is an element type, numbered as in onnx.proto's TensorProto.DataType.
type DType int32

// These are the element types that this package knows.
const (
	Float    DType = 1
	Uint8    DType = 2
	Int8     DType = 3
	Int32    DType = 6
	Int64    DType = 7
	Bool     DType = 9
	Float16  DType = 10
	Double   DType = 11
	BFloat16 DType = 16
)

// dtypes lists the element types with their names and the bytes of one element.
var dtypes = map[DType]struct {
	name string
	size int64
}{
	Float: {"float", 4}, Uint8: {"uint8", 1}, Int8: {"int8", 1}, Int32: {"int32", 4}, Int64: {"int64", 8},
	Bool: {"bool", 1}, Float16: {"float16", 2}, Double: {"double", 8}, BFloat16: {"bfloat16", 2},
}

// size returns the bytes of an element, 0 for a type that is not known here.
func (t DType) size() int64 { return dtypes[t].size }

func (t DType) String() string { return cmp.Or(dtypes[t].name, fmt.Sprintf("type %d", int32(t))) }

// Value is a tensor of a graph: an input, an initializer or a node's output.
type Value struct {
	Name  string
	DType DType
	Shape Shape
	// Unranked is true if the shape is unknown, as for the output of an
	// operator that this package does not know.
	Unranked bool

	from *Node // the node that computes the value; nil for an input or a constant
}

func (v *Value) String() string { return fmt.Sprintf("%s %s%s", v.Name, v.DType, v.Shape) }

// Attribute is a node's attribute. Value is an int64, float32, string, []int64,
// []float32, []string or a *Tensor.
type Attribute struct {
	Name  string
	Value any
}

// tensor returns the attribute's value, or false if it is not numeric.
func (a Attribute) tensor() (Tensor, bool) {
	switch v := a.Value.(type) {
	case *Tensor:
		return *v, true
	case float32:
		return Floats(nil, v), true
	case int64:
		return Ints(nil, v), true
	case []float32:
		return Floats([]int64{int64(len(v))}, v...), true
	case []int64:
		return Ints([]int64{int64(len(v))}, v...), true
	}
	return Tensor{}, false
}

// Node is one use of an operator. An optional input that is left out is nil.
type Node struct {
	Op, Domain string
	Inputs     []*Value
	Outputs    []*Value
	Attributes []Attribute
}

// Attribute returns the value of an attribute, or nil if the node has none.
func (n *Node) Attribute(name string) any { return attribute(n.Attributes, name) }

func attribute(list []Attribute, name string) any {
	i := slices.IndexFunc(list, func(a Attribute) bool { return a.Name == name })
	if i < 0 {
		return nil
	}
	return list[i].Value
}

func (n *Node) intAttribute(name string, otherwise int64) int64 {
	if v, ok := n.Attribute(name).(int64); ok {
		return v
	}
	return otherwise
}

func (n *Node) floatAttribute(name string, otherwise float32) float32 {
	if v, ok := n.Attribute(name).(float32); ok {
		return v
	}
	return otherwise
}

// Tensor is data, row-major and little-endian, in Raw or in a file at At.
type Tensor struct {
	DType DType
	Shape []int64
	Raw   []byte
	At    *Location
}

// Floats returns a tensor of numbers in single precision.
func Floats(shape []int64, list ...float32) Tensor {
	t := Tensor{DType: Float, Shape: shape, Raw: []byte{}}
	for _, x := range list {
		t.Raw = binary.LittleEndian.AppendUint32(t.Raw, math.Float32bits(x))
	}
	return t
}

// Ints returns a tensor of whole numbers, int64.
func Ints(shape []int64, list ...int64) Tensor {
	t := Tensor{DType: Int64, Shape: shape, Raw: []byte{}}
	for _, x := range list {
		t.Raw = binary.LittleEndian.AppendUint64(t.Raw, uint64(x))
	}
	return t
}

// Location says in which file, and where in it, the bytes of a tensor are.
type Location struct {
	File           string // relative to SessionOptions.ExternalDir
	Offset, Length int64  // bytes
}

// Initializer is a constant of the graph.
type Initializer struct {
	Value  *Value
	Tensor Tensor
}

// Graph is an ONNX graph under construction, which [New] makes.
type Graph struct {
	Name         string
	Inputs       []*Value
	Outputs      []*Value
	Initializers []Initializer
	Nodes        []*Node

	names   map[string]int
	made    map[string]*Value // constants and shapes by their content, so that equal values are made once
	content map[*Value][]Dim  // elements of small whole-number tensors of rank 0 and 1, as far as known
	homes   map[string]home   // for each symbol, the dimension from which its size can be read
	domains map[string]int64  // versions of other domains' operators, and of the standard's if newer than opsetVersion
	ir      int64
	err     error
}

// New returns an empty graph.
func New(name string) *Graph {
	return &Graph{
		Name:    name,
		names:   map[string]int{},
		made:    map[string]*Value{},
		content: map[*Value][]Dim{},
		homes:   map[string]home{},
		domains: map[string]int64{},
	}
}

// Err returns the first mistake made in building, or nil if there was none.
func (g *Graph) Err() error { return g.err }

func (g *Graph) fail(format string, args ...any) {
	g.err = cmp.Or(g.err, fmt.Errorf("onnx graph %q: "+format, append([]any{g.Name}, args...)...))
}

// value returns a new value, named hint, with a number if that is taken.
func (g *Graph) value(hint string, t DType, s Shape) *Value {
	name := hint
	// A name from an imported model can look like a name made here.
	for g.names[name] > 0 {
		name = fmt.Sprintf("%s_%d", hint, g.names[hint])
		g.names[hint]++
	}
	g.names[name]++
	return &Value{Name: name, DType: t, Shape: s}
}

// Input declares an input, whose shape's symbols later shapes can use.
func (g *Graph) Input(name string, t DType, shape ...Dim) *Value {
	if g.names[name] > 0 {
		g.fail("input %s is declared twice", name)
	}
	v := g.value(name, t, shape)
	g.Inputs = append(g.Inputs, v)
	g.addHomes(v)
	return v
}

// Output declares a copy of v as an output, under the given name: inputs and
// constants keep theirs, and a value may be output twice.
func (g *Graph) Output(name string, v *Value) {
	if g.names[name] > 0 {
		g.fail("output %s: the name is taken", name)
	}
	out := g.value(name, v.DType, v.Shape)
	g.add(&Node{Op: "Identity", Inputs: []*Value{v}, Outputs: []*Value{out}})
	g.Outputs = append(g.Outputs, out)
}

// initializer appends a constant. If it is small and holds whole numbers,
// initializer records its elements.
func (g *Graph) initializer(name string, t Tensor) *Value {
	v := g.value(name, t.DType, FixedShape(t.Shape...))
	g.Initializers = append(g.Initializers, Initializer{v, t})
	if len(t.Shape) <= 1 {
		for _, x := range t.wholes() {
			g.content[v] = append(g.content[v], Fixed(x))
		}
	}
	return v
}

// External declares a constant whose bytes are in another file.
func (g *Graph) External(name string, t DType, shape []int64, at Location) *Value {
	return g.initializer(name, Tensor{DType: t, Shape: shape, At: &at})
}

// Constant declares a constant that is stored in the graph.
func (g *Graph) Constant(hint string, c Tensor) *Value {
	key := fmt.Sprint("constant", c.DType, c.Shape, c.Raw)
	if v, ok := g.made[key]; ok {
		return v
	}
	if n, err := c.bytes(); err != nil || n != int64(len(c.Raw)) {
		g.fail("constant %s: %d bytes in shape %v", hint, len(c.Raw), c.Shape)
	}
	g.made[key] = g.initializer(hint, c)
	return g.made[key]
}

// Scalar returns a float constant of rank 0.
func (g *Graph) Scalar(x float64) *Value { return g.Constant("scalar", Floats(nil, float32(x))) }

// Ints returns an int64 constant of rank 1.
func (g *Graph) Ints(x ...int64) *Value {
	return g.Constant("ints", Ints([]int64{int64(len(x))}, x...))
}

func (g *Graph) node(op string, t DType, shape Shape, inputs []*Value, attributes ...Attribute) *Value {
	out := g.value(op, t, shape)
	g.add(&Node{Op: op, Inputs: inputs, Outputs: []*Value{out}, Attributes: attributes})
	g.addHomes(out)
	return out
}

func (g *Graph) add(n *Node) {
	g.Nodes = append(g.Nodes, n)
	for _, v := range n.Outputs {
		v.from = n
	}
}
