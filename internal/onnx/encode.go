package onnx

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"

	"google.golang.org/protobuf/encoding/protowire"
)

// These are the versions of the written format. Opset 20 introduced Gelu, and
// needs at least IR version 9.
const (
	irVersion    = 9
	opsetVersion = 20
)

// Encode returns the graph as a serialised ONNX ModelProto (onnx.proto). It
// leaves out nodes that no output depends on. If the graph was built with
// mistakes, Encode returns the first as the error.
func (g *Graph) Encode() ([]byte, error) {
	if g.err != nil {
		return nil, g.err
	}
	if len(g.Outputs) == 0 {
		return nil, errors.New("onnx: a graph needs at least one output")
	}
	nodes, used := g.live()
	var graph []byte
	for _, n := range nodes {
		b, err := encodeNode(n)
		if err != nil {
			return nil, err
		}
		graph = message(graph, 1, b)
	}
	graph = text(graph, 2, g.Name)
	for _, i := range g.Initializers {
		if used[i.Value] {
			graph = message(graph, 5, encodeTensor(i.Value.Name, i.Tensor))
		}
	}
	for _, v := range g.Inputs {
		graph = message(graph, 11, encodeValue(v))
	}
	for _, v := range g.Outputs {
		graph = message(graph, 12, encodeValue(v))
	}

	model := number(nil, 1, max(irVersion, g.ir))
	model = text(model, 2, "infill")
	model = message(model, 7, graph)
	domains := map[string]int64{"": opsetVersion}
	for domain, version := range g.domains {
		domains[domain] = max(domains[domain], version)
	}
	for _, domain := range slices.Sorted(maps.Keys(domains)) {
		model = message(model, 8, number(text(nil, 1, domain), 2, domains[domain]))
	}
	return model, nil
}

// live returns, in order, the nodes that the outputs depend on, and the set of
// the values that these nodes read.
func (g *Graph) live() (nodes []*Node, used map[*Value]bool) {
	used = map[*Value]bool{}
	for _, v := range g.Outputs {
		used[v] = true
	}
	for _, n := range slices.Backward(g.Nodes) {
		if slices.ContainsFunc(n.Outputs, func(v *Value) bool { return used[v] }) {
			nodes = append(nodes, n)
			for _, v := range n.Inputs {
				used[v] = true
			}
		}
	}
	slices.Reverse(nodes)
	return nodes, used
}

func encodeNode(n *Node) ([]byte, error) {
	var b []byte
	for _, v := range n.Inputs {
		name := ""
		if v != nil {
			name = v.Name
		}
		b = text(b, 1, name)
	}
	for _, v := range n.Outputs {
		b = text(b, 2, v.Name)
	}
	b = text(b, 3, n.Outputs[0].Name)
	b = text(b, 4, n.Op)
	for _, a := range n.Attributes {
		p, err := encodeAttribute(a)
		if err != nil {
			return nil, fmt.Errorf("onnx: node %s: %w", n.Op, err)
		}
		b = message(b, 5, p)
	}
	return text(b, 7, n.Domain), nil
}

// These are values of the protobuf enum AttributeProto.AttributeType.
const (
	attributeFloat   = 1
	attributeInt     = 2
	attributeString  = 3
	attributeTensor  = 4
	attributeFloats  = 6
	attributeInts    = 7
	attributeStrings = 8
)

func encodeAttribute(a Attribute) ([]byte, error) {
	b := text(nil, 1, a.Name)
	switch v := a.Value.(type) {
	case float32:
		return number(float(b, 2, v), 20, attributeFloat), nil
	case int64:
		return number(number(b, 3, v), 20, attributeInt), nil
	case string:
		return number(text(b, 4, v), 20, attributeString), nil
	case *Tensor:
		return number(message(b, 5, encodeTensor("", *v)), 20, attributeTensor), nil
	case []int64:
		for _, x := range v {
			b = number(b, 8, x)
		}
		return number(b, 20, attributeInts), nil
	case []float32:
		for _, x := range v {
			b = float(b, 7, x)
		}
		return number(b, 20, attributeFloats), nil
	case []string:
		for _, x := range v {
			b = text(b, 9, x)
		}
		return number(b, 20, attributeStrings), nil
	}
	return nil, fmt.Errorf("attribute %s has type %T", a.Name, a.Value)
}

func encodeTensor(name string, t Tensor) []byte {
	var b []byte
	for _, d := range t.Shape {
		b = number(b, 1, d)
	}
	b = text(number(b, 2, int64(t.DType)), 8, name)
	if t.At == nil {
		return message(b, 9, t.Raw)
	}
	for _, e := range [][2]string{
		{"location", t.At.File},
		{"offset", strconv.FormatInt(t.At.Offset, 10)},
		{"length", strconv.FormatInt(t.At.Length, 10)},
	} {
		b = message(b, 13, text(text(nil, 1, e[0]), 2, e[1]))
	}
	return number(b, 14, 1) // DataLocation: EXTERNAL = 1
}

func encodeValue(v *Value) []byte {
	var shape []byte
	for _, d := range v.Shape {
		if n, ok := d.Size(); ok {
			shape = message(shape, 1, number(nil, 1, n))
		} else {
			shape = message(shape, 1, text(nil, 2, d.String()))
		}
	}
	tensor := message(number(nil, 1, int64(v.DType)), 2, shape)
	return message(text(nil, 1, v.Name), 2, message(nil, 1, tensor))
}

func number(b []byte, field protowire.Number, x int64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(b, field, protowire.VarintType), uint64(x))
}

func float(b []byte, field protowire.Number, x float32) []byte {
	return protowire.AppendFixed32(protowire.AppendTag(b, field, protowire.Fixed32Type), math.Float32bits(x))
}

func text(b []byte, field protowire.Number, s string) []byte {
	return protowire.AppendString(protowire.AppendTag(b, field, protowire.BytesType), s)
}

func message(b []byte, field protowire.Number, m []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(b, field, protowire.BytesType), m)
}
