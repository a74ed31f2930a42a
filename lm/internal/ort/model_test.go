package ort

import (
	"strconv"

	"google.golang.org/protobuf/encoding/protowire"
)

// The tests write their ONNX graphs byte by byte, apart from the graph builder of lm/onnx, so that a mistake there
// cannot hide here.

func textField(b []byte, number protowire.Number, s string) []byte {
	return protowire.AppendString(protowire.AppendTag(b, number, protowire.BytesType), s)
}

func messageField(b []byte, number protowire.Number, m []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(b, number, protowire.BytesType), m)
}

func varintField(b []byte, number protowire.Number, v int64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(b, number, protowire.VarintType), uint64(v))
}

// TensorProto.DataType
const (
	float   = 1
	int64s  = 7
	boolean = 9
)

// declared is an input or an output of a graph: its name, and its ValueInfoProto.
type declared struct {
	name  string
	bytes []byte
}

// valueInfo declares an input or output; a dimension below 0 is left open.
func valueInfo(name string, element int64, shape ...int64) declared {
	var dimensions []byte
	for i, size := range shape {
		dimension := varintField(nil, 1, size)
		if size < 0 {
			dimension = textField(nil, 2, "d"+strconv.Itoa(i))
		}
		dimensions = messageField(dimensions, 1, dimension)
	}
	tensor := messageField(varintField(nil, 1, element), 2, dimensions)
	return declared{name, messageField(textField(nil, 1, name), 2, messageField(nil, 1, tensor))}
}

// node is a NodeProto; attributes are ready AttributeProto messages.
func node(operator string, inputs, outputs []string, attributes ...[]byte) []byte {
	var b []byte
	for _, name := range inputs {
		b = textField(b, 1, name)
	}
	for _, name := range outputs {
		b = textField(b, 2, name)
	}
	b = textField(b, 4, operator)
	for _, attribute := range attributes {
		b = messageField(b, 5, attribute)
	}
	return b
}

// subgraph is an attribute that is a graph.
func subgraph(name string, graph []byte) []byte {
	return varintField(messageField(textField(nil, 1, name), 6, graph), 20, 5)
}

// initializer is a TensorProto with its data inside.
func initializer(name string, element int64, data []byte, shape ...int64) []byte {
	return messageField(tensorHead(name, element, shape), 9, data)
}

// externalInitializer is a TensorProto whose data lies in a file.
func externalInitializer(name string, element int64, location string, offset, length int64, shape ...int64) []byte {
	b := tensorHead(name, element, shape)
	for _, entry := range [][2]string{{"location", location}, {"offset", strconv.FormatInt(offset, 10)},
		{"length", strconv.FormatInt(length, 10)}} {
		b = messageField(b, 13, textField(textField(nil, 1, entry[0]), 2, entry[1]))
	}
	return varintField(b, 14, 1)
}

func tensorHead(name string, element int64, shape []int64) []byte {
	var b []byte
	for _, size := range shape {
		b = varintField(b, 1, size)
	}
	return textField(varintField(b, 2, element), 8, name)
}

type graph struct {
	nodes, initializers [][]byte
	inputs, outputs     []declared
}

func names(list []declared) []string {
	var names []string
	for _, d := range list {
		names = append(names, d.name)
	}
	return names
}

func (g graph) bytes() []byte {
	var b []byte
	for _, node := range g.nodes {
		b = messageField(b, 1, node)
	}
	b = textField(b, 2, "test")
	for _, initializer := range g.initializers {
		b = messageField(b, 5, initializer)
	}
	for _, input := range g.inputs {
		b = messageField(b, 11, input.bytes)
	}
	for _, output := range g.outputs {
		b = messageField(b, 12, output.bytes)
	}
	return b
}

// model is a ModelProto of IR version 8, operator set 17.
func (g graph) model() []byte {
	return messageField(messageField(varintField(nil, 1, 8), 7, g.bytes()), 8, varintField(nil, 2, 17))
}

// matMul is y = a·b, float32.
func matMul(rows, inner, columns int64) graph {
	return graph{
		nodes:   [][]byte{node("MatMul", []string{"a", "b"}, []string{"y"})},
		inputs:  []declared{valueInfo("a", float, rows, inner), valueInfo("b", float, inner, columns)},
		outputs: []declared{valueInfo("y", float, rows, columns)},
	}
}

// double is y = x + x, float32, of any length.
func double() graph {
	return graph{
		nodes:   [][]byte{node("Add", []string{"x", "x"}, []string{"y"})},
		inputs:  []declared{valueInfo("x", float, -1)},
		outputs: []declared{valueInfo("y", float, -1)},
	}
}

// counter adds 1 to x as often as the input "times" [1] says: a run that lasts as long as a test wants.
func counter() graph {
	body := graph{
		nodes: [][]byte{
			node("Identity", []string{"go"}, []string{"goes"}),
			node("Add", []string{"v", "one"}, []string{"w"}),
		},
		initializers: [][]byte{initializer("one", float, []byte{0, 0, 0x80, 0x3f}, 1)},
		inputs:       []declared{valueInfo("i", int64s), valueInfo("go", boolean), valueInfo("v", float, 1)},
		outputs:      []declared{valueInfo("goes", boolean), valueInfo("w", float, 1)},
	}
	return graph{
		nodes:   [][]byte{node("Loop", []string{"times", "", "x"}, []string{"y"}, subgraph("body", body.bytes()))},
		inputs:  []declared{valueInfo("times", int64s, 1), valueInfo("x", float, 1)},
		outputs: []declared{valueInfo("y", float, 1)},
	}
}
