package onnx

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"

	"infill/internal/wire"
)

// Model is an ONNX model as in a file. [Graph.Inline] puts it into a graph.
type Model struct {
	IR      int64
	Opsets  map[string]int64 // version of each domain of operators; "" is the standard's own
	Inputs  []ModelValue     // inputs that are not initializers
	Outputs []ModelValue

	constants []modelConstant
	nodes     []modelNode
	functions map[string]bool // operators that the model itself defines, as domain.name
}

// ModelValue is an input or an output as a model declares it. In Shape, −1 is a
// dimension that is not fixed. A nil Shape is unknown.
type ModelValue struct {
	Name  string
	DType DType
	Shape []int64
}

type modelNode struct {
	op, domain      string
	inputs, outputs []string
	attributes      []Attribute
}

type modelConstant struct {
	name   string
	tensor Tensor
}

// Bounds on the sizes that a model may claim, far above any real one.
const (
	maxRank       = 16
	maxNodes      = 1 << 20
	maxAttribute  = 16 << 20 // bytes of an attribute's list
	smallConstant = 4096     // bytes; longer constants stay in their file
	maxInline     = 1 << 31  // bytes: protobuf's own bound on a message
)

// decoder reads the messages of the named file.
type decoder struct{ file string }

// Decode reads an ONNX model of size bytes. file is the name of that file in
// the graph. Decode locates weights without reading them: constants of more
// than a few kilobytes stay in the file, or in the external files that the
// model names. Decode checks every length before it allocates memory. The error
// names the first part that cannot be run, such as an operator that holds a
// graph, or a sparse constant.
func Decode(r io.ReaderAt, size int64, file string) (*Model, error) {
	d := decoder{file}
	m := &Model{Opsets: map[string]int64{}, functions: map[string]bool{}}
	graphs := 0
	err := wire.Open(r, size, "an ONNX model").Message(wire.Fields{
		1: wire.Int(&m.IR),
		7: func(f wire.Field) error {
			graphs++
			return d.graph(f, m)
		},
		8: func(f wire.Field) error {
			domain := ""
			version := int64(0)
			err := f.Message(wire.Fields{1: wire.Text(&domain), 2: wire.Int(&version)})
			m.Opsets[standard(domain)] = version
			return err
		},
		// Field 25 is a function that the model defines. Only the name matters:
		// exporters leave many functions unused.
		25: func(f wire.Field) error {
			var name, domain string
			err := f.Message(wire.Fields{1: wire.Text(&name), 10: wire.Text(&domain)})
			m.functions[domain+"."+name] = true
			return err
		},
	})
	switch {
	case err != nil:
		return nil, fmt.Errorf("onnx: %w", err)
	case graphs != 1 || m.Opsets[""] == 0:
		return nil, errors.New("onnx: not an ONNX model: it has no graph, or no version")
	}
	return m, nil
}

// standard returns "" for "ai.onnx", the second name of the standard's domain,
// and other domains unchanged.
func standard(domain string) string {
	if domain == "ai.onnx" {
		return ""
	}
	return domain
}

func (d decoder) graph(f wire.Field, m *Model) error {
	values := func(to *[]ModelValue) func(wire.Field) error {
		return func(f wire.Field) error {
			v, err := value(f)
			*to = append(*to, v)
			return err
		}
	}
	err := f.Message(wire.Fields{
		1: func(f wire.Field) error {
			if len(m.nodes) == maxNodes {
				return fmt.Errorf("more than %d nodes", maxNodes)
			}
			n, err := d.node(f)
			if err != nil {
				return fmt.Errorf("node %d (%.60s): %w", len(m.nodes), n.op, err)
			}
			m.nodes = append(m.nodes, n)
			return nil
		},
		5: func(f wire.Field) error {
			c, err := d.tensor(f)
			if err != nil {
				return fmt.Errorf("constant %.100q: %w", c.name, err)
			}
			m.constants = append(m.constants, c)
			return nil
		},
		11: values(&m.Inputs),
		12: values(&m.Outputs),
		15: func(wire.Field) error { return errors.New("sparse constants are not read") },
	})
	// Before IR version 4, files listed every initializer as an input as well.
	m.Inputs = slices.DeleteFunc(m.Inputs, func(v ModelValue) bool {
		return slices.ContainsFunc(m.constants, func(c modelConstant) bool { return c.name == v.Name })
	})
	return err
}

// names returns a reader of a text field that appends the text to list.
func names(list *[]string) func(wire.Field) error {
	return func(f wire.Field) error {
		var s string
		err := wire.Text(&s)(f)
		*list = append(*list, s)
		return err
	}
}

func (d decoder) node(f wire.Field) (modelNode, error) {
	var n modelNode
	err := f.Message(wire.Fields{
		1: names(&n.inputs), 2: names(&n.outputs), 4: wire.Text(&n.op), 7: wire.Text(&n.domain),
		5: func(f wire.Field) error {
			a, err := d.attribute(f)
			if err != nil {
				return fmt.Errorf("attribute %.60q: %w", a.Name, err)
			}
			n.attributes = append(n.attributes, a)
			return nil
		},
	})
	n.domain = standard(n.domain)
	return n, err
}

func (d decoder) attribute(f wire.Field) (Attribute, error) {
	var (
		a       Attribute
		kind    uint64
		float   uint32
		integer int64
		tensor  *Tensor
		texts   = []string{}
		floats  = []float32{}
		ints    = []int64{}
	)
	text := func(f wire.Field) error {
		b, err := f.Bytes(maxAttribute)
		texts = append(texts, string(b))
		return err
	}
	graph := func(wire.Field) error { return errors.New("it holds a graph, which is not read") }
	err := f.Message(wire.Fields{
		1: wire.Text(&a.Name), 2: wire.Bits(&float), 3: wire.Int(&integer), 4: text, 9: text, 20: wire.Int(&kind),
		5: func(f wire.Field) error {
			c, err := d.tensor(f)
			tensor = &c.tensor
			if err == nil && tensor.At != nil {
				err = errors.New("the tensor is too large for an attribute")
			}
			return err
		},
		6: graph, 10: graph, 11: graph,
		7: func(f wire.Field) error {
			return f.Packed(protowire.Fixed32Type, maxAttribute,
				func(x uint64) { floats = append(floats, math.Float32frombits(uint32(x))) })
		},
		8: func(f wire.Field) error {
			return f.Packed(protowire.VarintType, maxAttribute, func(x uint64) { ints = append(ints, int64(x)) })
		},
	})
	switch {
	case err != nil:
		return a, err
	case kind == attributeTensor && tensor == nil:
		return a, errors.New("the tensor is missing")
	case kind == attributeString:
		a.Value = strings.Join(texts[max(0, len(texts)-1):], "")
		return a, nil
	}
	values := map[uint64]any{attributeFloat: math.Float32frombits(float), attributeInt: integer,
		attributeTensor: tensor, attributeFloats: floats, attributeInts: ints, attributeStrings: texts}
	a.Value = values[kind]
	if a.Value == nil {
		return a, fmt.Errorf("attributes of type %d are not read", kind)
	}
	return a, nil
}

// tensor reads a TensorProto message.
func (d decoder) tensor(f wire.Field) (modelConstant, error) {
	var (
		c        modelConstant
		t        = &c.tensor
		raw      *wire.Field
		entries  = map[string]string{}
		location int64
	)
	unread := func(wire.Field) error { return errors.New("segments and strings are not read") }
	err := f.Message(wire.Fields{
		1: func(f wire.Field) error {
			return f.Packed(protowire.VarintType, 10*maxRank, func(x uint64) { t.Shape = append(t.Shape, int64(x)) })
		},
		2: wire.Int(&t.DType), 8: wire.Text(&c.name), 14: wire.Int(&location),
		3: unread, 6: unread,
		9: func(f wire.Field) error {
			raw = &f
			return nil
		},
		13: func(f wire.Field) error {
			var key, value string
			err := f.Message(wire.Fields{1: wire.Text(&key), 2: wire.Text(&value)})
			entries[key] = value
			return err
		},
	})
	if err != nil {
		return c, err
	}
	bytes, err := t.bytes()
	if err != nil {
		return c, err
	}
	switch {
	case location == 1:
		t.At, err = externalLocation(entries, bytes)
		return c, err
	case raw != nil && raw.To-raw.From == bytes && bytes > smallConstant:
		t.At = &Location{File: d.file, Offset: raw.From, Length: bytes}
		return c, nil
	case raw != nil:
		t.Raw, err = raw.Bytes(max(bytes, smallConstant))
	default:
		t.Raw, err = t.typed(f, bytes)
	}
	if err == nil && int64(len(t.Raw)) != bytes {
		err = fmt.Errorf("%d bytes of data, shape %v of type %s needs %d", len(t.Raw), t.Shape, t.DType, bytes)
	}
	return c, err
}

// typed reads the fields for typed data as raw data, in a pass of their own: in a
// file the data can precede their type.
func (t Tensor) typed(f wire.Field, bytes int64) (content []byte, err error) {
	size := t.DType.size()
	data := func(kind protowire.Type) func(wire.Field) error {
		return func(f wire.Field) error {
			return f.Packed(kind, maxInline, func(x uint64) {
				if int64(len(content)) <= bytes {
					content = append(content, binary.LittleEndian.AppendUint64(nil, x)[:size]...)
				}
			})
		}
	}
	err = f.Message(wire.Fields{
		4: data(protowire.Fixed32Type), 5: data(protowire.VarintType), 7: data(protowire.VarintType),
		10: data(protowire.Fixed64Type), 11: data(protowire.VarintType),
	})
	return content, err
}

// bytes returns the number of bytes that the elements of t take.
func (t Tensor) bytes() (int64, error) {
	n := t.DType.size()
	if n == 0 {
		return 0, fmt.Errorf("elements of %s are not read", t.DType)
	}
	if len(t.Shape) > maxRank {
		return 0, fmt.Errorf("%d dimensions", len(t.Shape))
	}
	for _, d := range t.Shape {
		if d < 0 || d > 0 && n > math.MaxInt64/d {
			return 0, fmt.Errorf("impossible shape %v", t.Shape)
		}
		n *= d
	}
	return n, nil
}

// externalLocation reads where the data of a constant are in another file.
func externalLocation(entries map[string]string, bytes int64) (*Location, error) {
	l := &Location{File: entries["location"], Length: bytes}
	// Anyone may have written it: the path must not leave the model's folder.
	if l.File == "" || path.IsAbs(l.File) || strings.ContainsAny(l.File, "\\:\x00") || path.Clean(l.File) != l.File ||
		strings.HasPrefix(l.File, "..") {
		return nil, fmt.Errorf("external file %.100q is not a path beside the model", l.File)
	}
	for key, to := range map[string]*int64{"offset": &l.Offset, "length": &l.Length} {
		if text := entries[key]; text != "" {
			n, err := strconv.ParseInt(text, 10, 64)
			if err != nil || n < 0 {
				return nil, fmt.Errorf("external data: %s %.40q", key, text)
			}
			*to = n
		}
	}
	if l.Length != bytes {
		return nil, fmt.Errorf("external data of %d bytes where the shape needs %d", l.Length, bytes)
	}
	if l.Offset > math.MaxInt64-l.Length {
		return nil, fmt.Errorf("external data at offset %d", l.Offset)
	}
	return l, nil
}

// Files returns the external files of the constants, but file, the model's own,
// each with the bytes that it must have at least.
func (m *Model) Files(file string) map[string]int64 {
	files := map[string]int64{}
	for _, c := range m.constants {
		if at := c.tensor.At; at != nil && at.File != file {
			files[at.File] = max(files[at.File], at.Offset+at.Length)
		}
	}
	return files
}

// value reads a ValueInfoProto message. For a sequence or a map it returns no
// type, so a later use of it fails.
func value(f wire.Field) (ModelValue, error) {
	var v ModelValue
	dimension := func(f wire.Field) error {
		if len(v.Shape) == maxRank {
			return nil
		}
		size := int64(-1)
		err := f.Message(wire.Fields{1: wire.Int(&size)})
		v.Shape = append(v.Shape, size)
		return err
	}
	shape := func(f wire.Field) error {
		v.Shape = []int64{}
		return f.Message(wire.Fields{1: dimension})
	}
	tensor := func(f wire.Field) error { return f.Message(wire.Fields{1: wire.Int(&v.DType), 2: shape}) }
	kind := func(f wire.Field) error { return f.Message(wire.Fields{1: tensor}) }
	err := f.Message(wire.Fields{1: wire.Text(&v.Name), 2: kind})
	return v, err
}
