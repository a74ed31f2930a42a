package ort

import (
	"errors"
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"
)

// Value is an input or an output as the graph declares it.
type Value struct {
	Name    string
	Element ElementType // ElementUnknown when the graph does not say, or says a type that this package does not carry
	Shape   []int64     // -1 for a dimension known only at run time; nil when the graph declares no shape; empty for a scalar
}

// signature is what a session needs to know of its graph before it runs.
type signature struct {
	inputs, outputs []Value
}

// Field numbers of onnx.proto (IR version 10), the ONNX project's published schema.
const (
	modelGraph         = 7
	graphInitializer   = 5
	graphInput         = 11
	graphOutput        = 12
	tensorName         = 8
	valueName          = 1
	valueType          = 2
	typeTensor         = 1
	tensorTypeElement  = 1
	tensorTypeShape    = 2
	shapeDimension     = 1
	dimensionValue     = 1
	dimensionParameter = 2
)

var errProtobuf = errors.New("not an ONNX model: the bytes are no protobuf message")

// readSignature finds the inputs and outputs of an ONNX model. onnxruntime_go tells them only at the price of a second session.
func readSignature(model []byte) (signature, error) {
	var s signature
	initializers := map[string]bool{}
	graphs := 0
	err := fields(model, func(number protowire.Number, graph []byte, _ uint64) error {
		if number != modelGraph || graph == nil {
			return nil
		}
		graphs++
		return fields(graph, func(number protowire.Number, message []byte, _ uint64) error {
			switch {
			case number == graphInitializer:
				return fields(message, func(number protowire.Number, name []byte, _ uint64) error {
					if number == tensorName {
						initializers[string(name)] = true
					}
					return nil
				})
			case number == graphInput || number == graphOutput:
				value, err := readValue(message)
				if err != nil {
					return err
				}
				if number == graphInput {
					s.inputs = append(s.inputs, value)
				} else {
					s.outputs = append(s.outputs, value)
				}
			}
			return nil
		})
	})
	if err != nil {
		return s, err
	}
	if graphs != 1 {
		return s, errors.New("not an ONNX model: it has no graph")
	}
	// Old models list initializers among the inputs, as defaults that a caller may override.
	inputs := s.inputs[:0]
	for _, input := range s.inputs {
		if !initializers[input.Name] {
			inputs = append(inputs, input)
		}
	}
	s.inputs = inputs
	return s, nil
}

func readValue(message []byte) (Value, error) {
	var value Value
	err := fields(message, func(number protowire.Number, field []byte, _ uint64) error {
		switch number {
		case valueName:
			value.Name = string(field)
		case valueType:
			return fields(field, func(number protowire.Number, tensor []byte, _ uint64) error {
				if number != typeTensor {
					return nil
				}
				return fields(tensor, func(number protowire.Number, field []byte, varint uint64) error {
					switch number {
					case tensorTypeElement:
						value.Element = elementType(varint)
					case tensorTypeShape:
						value.Shape = []int64{}
						return fields(field, func(number protowire.Number, dimension []byte, _ uint64) error {
							if number != shapeDimension {
								return nil
							}
							size := int64(-1)
							err := fields(dimension, func(number protowire.Number, _ []byte, varint uint64) error {
								if number == dimensionValue {
									size = int64(varint)
								}
								return nil
							})
							value.Shape = append(value.Shape, size)
							return err
						})
					}
					return nil
				})
			})
		}
		return nil
	})
	return value, err
}

// elementType translates TensorProto.DataType.
func elementType(dataType uint64) ElementType {
	switch dataType {
	case 1:
		return ElementFloat32
	case 6:
		return ElementInt32
	case 7:
		return ElementInt64
	case 9:
		return ElementBool
	case 11:
		return ElementFloat64
	}
	return ElementUnknown
}

// fields calls visit for every field of a message: its bytes (never nil) when it is a message, string or packed list, else its varint.
func fields(message []byte, visit func(number protowire.Number, bytes []byte, varint uint64) error) error {
	for len(message) > 0 {
		number, kind, size := protowire.ConsumeTag(message)
		if size < 0 {
			return errProtobuf
		}
		message = message[size:]
		var bytes []byte
		var varint uint64
		switch kind {
		case protowire.BytesType:
			bytes, size = protowire.ConsumeBytes(message)
			if bytes == nil {
				bytes = []byte{}
			}
		case protowire.VarintType:
			varint, size = protowire.ConsumeVarint(message)
		default:
			size = protowire.ConsumeFieldValue(number, kind, message)
		}
		if size < 0 {
			return errProtobuf
		}
		message = message[size:]
		if err := visit(number, bytes, varint); err != nil {
			return err
		}
	}
	return nil
}

// pick finds the named values, in the caller's order; no names means all of them, in the graph's order.
func pick(kind string, declared []Value, names []string) ([]Value, error) {
	if len(names) == 0 {
		if len(declared) == 0 {
			return nil, fmt.Errorf("the graph has no %s", kind)
		}
		return declared, nil
	}
	picked := make([]Value, len(names))
	for i, name := range names {
		at := -1
		for j := range declared {
			if declared[j].Name == name {
				at = j
			}
		}
		if at < 0 {
			known := make([]string, len(declared))
			for j := range declared {
				known[j] = declared[j].Name
			}
			return nil, fmt.Errorf("the graph has no %s %q; it has %q", kind, name, known)
		}
		picked[i] = declared[at]
	}
	return picked, nil
}
