package onnx

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"
)

// Model is an ONNX model as a file holds it, names and all. [Graph.Inline] makes it part of a graph.
type Model struct {
	Producer string
	IR       int64
	Opsets   map[string]int64 // domain to version; "" is the standard's own
	Inputs   []ModelValue     // those that are not initializers
	Outputs  []ModelValue

	constants []modelConstant
	nodes     []modelNode
	functions map[string]bool // operators that the model defines itself, as domain.name
}

// ModelValue is an input or an output as a model declares it. Dimensions that
// are not fixed are −1; a nil Shape is none at all.
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

// modelConstant is an initializer: its data, or where they lie.
type modelConstant struct {
	name     string
	dtype    DType
	shape    []int64
	tensor   *Tensor
	location *Location
}

// Bounds on what a model may claim, far above any real one.
const (
	maxDepth      = 8       // messages within messages
	maxText       = 1 << 16 // bytes of a name
	maxRank       = 16
	maxNodes      = 1 << 20
	maxAttribute  = 16 << 20 // bytes of an attribute's list
	smallConstant = 4096     // bytes from which constants stay in their file
	maxInline     = 1 << 31  // bytes: protobuf's own bound on a message
)

// Decode reads an ONNX model of size bytes; file is the name under which the graph can refer to its weights. Weights
// are not read, but found: constants of more than a few kilobytes stay where they are, in this file or in the external
// files that it names. Every length is checked before anything is allocated. What cannot be run is refused by name:
// operators that hold graphs, sparse constants.
func Decode(r io.ReaderAt, size int64, file string) (*Model, error) {
	d := &decoder{window: window{r: r}, file: file}
	m := &Model{Opsets: map[string]int64{}, functions: map[string]bool{}}
	graphs := 0
	err := d.each(part{0, size}, 0, func(f field) error {
		switch f.number {
		case 1:
			m.IR = int64(f.varint)
		case 2:
			return d.text(f, &m.Producer)
		case 7:
			graphs++
			return d.graph(f, m)
		case 8:
			return d.opset(f, m.Opsets)
		case 25:
			return d.function(f, m.functions)
		}
		return nil
	})
	switch {
	case err != nil:
		return nil, fmt.Errorf("onnx: %w", err)
	case graphs != 1 || m.Opsets[""] == 0:
		return nil, errors.New("onnx: not an ONNX model: it has no graph, or no version")
	}
	return m, nil
}

// part is the bytes from..to of the file.
type part struct{ from, to int64 }

// field is one field of a message: a number, or a part.
type field struct {
	number protowire.Number
	kind   protowire.Type
	varint uint64
	part
	depth int
}

// window reads single bytes of a large file in blocks.
type window struct {
	r     io.ReaderAt
	at    int64
	block []byte
}

// bytes gives n bytes at an offset, n at most the size of a block; fewer at the end of the file.
func (w *window) bytes(at int64, n int) ([]byte, error) {
	const block = 64 << 10
	if at < w.at || at+int64(n) > w.at+int64(len(w.block)) {
		if w.block == nil {
			w.block = make([]byte, 0, block)
		}
		got, err := w.r.ReadAt(w.block[:block], at)
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, err
		}
		w.at, w.block = at, w.block[:got]
	}
	b := w.block[at-w.at:]
	return b[:min(n, len(b))], nil
}

type decoder struct {
	window
	file string
}

var errTruncated = errors.New("not an ONNX model, or a damaged one: a field reaches past the end")

// each visits the fields of a message.
func (d *decoder) each(p part, depth int, visit func(field) error) error {
	if depth > maxDepth {
		return errors.New("messages are nested too deeply")
	}
	for p.from < p.to {
		head, err := d.bytes(p.from, int(min(20, p.to-p.from)))
		if err != nil {
			return err
		}
		number, kind, n := protowire.ConsumeTag(head)
		if n < 0 {
			return errTruncated
		}
		f := field{number: number, kind: kind, depth: depth + 1}
		rest := head[n:]
		switch kind {
		case protowire.VarintType:
			var k int
			if f.varint, k = protowire.ConsumeVarint(rest); k < 0 {
				return errTruncated
			}
			n += k
		case protowire.Fixed32Type:
			x, k := protowire.ConsumeFixed32(rest)
			if k < 0 {
				return errTruncated
			}
			f.varint, n = uint64(x), n+k
		case protowire.Fixed64Type:
			x, k := protowire.ConsumeFixed64(rest)
			if k < 0 {
				return errTruncated
			}
			f.varint, n = x, n+k
		case protowire.BytesType:
			length, k := protowire.ConsumeVarint(rest)
			if k < 0 {
				return errTruncated
			}
			f.from = p.from + int64(n+k)
			if length > uint64(max(0, p.to-f.from)) {
				return errTruncated
			}
			f.to = f.from + int64(length)
			n = int(f.from - p.from)
			p.from = f.to - int64(n)
		default:
			return errTruncated
		}
		p.from += int64(n)
		if err := visit(f); err != nil {
			return err
		}
	}
	return nil
}

// read gives the bytes of a field, of at most limit bytes.
func (d *decoder) read(f field, limit int64) ([]byte, error) {
	if f.kind != protowire.BytesType {
		return nil, errors.New("not an ONNX model: a field has the wrong type")
	}
	if f.to-f.from > limit {
		return nil, fmt.Errorf("a field of %d bytes, more than the %d that it can sensibly have", f.to-f.from, limit)
	}
	b := make([]byte, f.to-f.from)
	n, err := d.r.ReadAt(b, f.from)
	if n == len(b) {
		return b, nil
	}
	if err == nil || errors.Is(err, io.EOF) {
		err = errTruncated
	}
	return nil, err
}

func (d *decoder) text(f field, to *string) error {
	b, err := d.read(f, maxText)
	if err != nil {
		return err
	}
	// Errors name it.
	if !utf8.Valid(b) || bytes.ContainsFunc(b, unicode.IsControl) {
		return fmt.Errorf("not an ONNX model, or a damaged one: the name %.60q", b)
	}
	*to = string(b)
	return nil
}

func (d *decoder) message(f field, visit func(field) error) error {
	if f.kind != protowire.BytesType {
		return errors.New("not an ONNX model: a field has the wrong type")
	}
	return d.each(f.part, f.depth, visit)
}

func (d *decoder) opset(f field, opsets map[string]int64) error {
	domain, version := "", int64(0)
	err := d.message(f, func(f field) error {
		switch f.number {
		case 1:
			return d.text(f, &domain)
		case 2:
			version = int64(f.varint)
		}
		return nil
	})
	if domain == "ai.onnx" {
		domain = ""
	}
	opsets[domain] = version
	return err
}

// function reads the name of a FunctionProto. What it does is not read: exporters leave many behind that no node uses.
func (d *decoder) function(f field, functions map[string]bool) error {
	var name, domain string
	err := d.message(f, func(f field) error {
		switch f.number {
		case 1:
			return d.text(f, &name)
		case 10:
			return d.text(f, &domain)
		}
		return nil
	})
	functions[domain+"."+name] = true
	return err
}

func (d *decoder) graph(f field, m *Model) error {
	err := d.message(f, func(f field) error {
		switch f.number {
		case 1:
			if len(m.nodes) == maxNodes {
				return fmt.Errorf("more than %d nodes", maxNodes)
			}
			n, err := d.node(f)
			if err != nil {
				return fmt.Errorf("node %d (%.60s): %w", len(m.nodes), n.op, err)
			}
			m.nodes = append(m.nodes, n)
		case 5:
			c, err := d.tensor(f)
			if err != nil {
				return fmt.Errorf("constant %.100q: %w", c.name, err)
			}
			m.constants = append(m.constants, c)
		case 11, 12:
			v, err := d.value(f)
			if err != nil {
				return err
			}
			if f.number == 11 {
				m.Inputs = append(m.Inputs, v)
			} else {
				m.Outputs = append(m.Outputs, v)
			}
		case 15:
			return errors.New("sparse constants are not read")
		}
		return nil
	})
	// Before IR version 4 every initializer was an input as well.
	m.Inputs = slices.DeleteFunc(m.Inputs, func(v ModelValue) bool {
		return slices.ContainsFunc(m.constants, func(c modelConstant) bool { return c.name == v.Name })
	})
	return err
}

func (d *decoder) node(f field) (modelNode, error) {
	var n modelNode
	err := d.message(f, func(f field) error {
		var s string
		switch f.number {
		case 1, 2:
			err := d.text(f, &s)
			if f.number == 1 {
				n.inputs = append(n.inputs, s)
			} else {
				n.outputs = append(n.outputs, s)
			}
			return err
		case 4:
			return d.text(f, &n.op)
		case 5:
			a, err := d.attribute(f)
			if err != nil {
				return fmt.Errorf("attribute %.60q: %w", a.Name, err)
			}
			n.attributes = append(n.attributes, a)
		case 7:
			return d.text(f, &n.domain)
		}
		return nil
	})
	if n.domain == "ai.onnx" {
		n.domain = ""
	}
	return n, err
}

func (d *decoder) attribute(f field) (Attribute, error) {
	var (
		a       Attribute
		kind    uint64
		float   float32
		integer int64
		text    string
		tensor  *Tensor
		floats  = []float32{}
		ints    = []int64{}
		texts   = []string{}
	)
	err := d.message(f, func(f field) error {
		switch f.number {
		case 1:
			return d.text(f, &a.Name)
		case 2:
			float = math.Float32frombits(uint32(f.varint))
		case 3:
			integer = int64(f.varint)
		case 4:
			b, err := d.read(f, maxAttribute)
			text = string(b)
			return err
		case 5:
			c, err := d.tensor(f)
			if err != nil {
				return err
			}
			if c.tensor == nil {
				return errors.New("the tensor is too large for an attribute")
			}
			tensor = c.tensor
		case 6, 10, 11:
			return errors.New("it holds a graph, which is not read")
		case 7:
			return d.packed(f, protowire.Fixed32Type, maxAttribute,
				func(x uint64) { floats = append(floats, math.Float32frombits(uint32(x))) })
		case 8:
			return d.packed(f, protowire.VarintType, maxAttribute, func(x uint64) { ints = append(ints, int64(x)) })
		case 9:
			b, err := d.read(f, maxAttribute)
			texts = append(texts, string(b))
			return err
		case 20:
			kind = f.varint
		}
		return nil
	})
	switch kind {
	case attributeFloat:
		a.Value = float
	case attributeInt:
		a.Value = integer
	case attributeString:
		a.Value = text
	case attributeTensor:
		if tensor == nil && err == nil {
			err = errors.New("the tensor is missing")
		}
		a.Value = tensor
	case attributeFloats:
		a.Value = floats
	case attributeInts:
		a.Value = ints
	case attributeStrings:
		a.Value = texts
	default:
		if err == nil {
			err = fmt.Errorf("attributes of type %d are not read", kind)
		}
	}
	return a, err
}

// packed visits the numbers of a repeated field, which may come one by one or together.
func (d *decoder) packed(f field, kind protowire.Type, limit int64, visit func(uint64)) error {
	if f.kind == kind {
		visit(f.varint)
		return nil
	}
	b, err := d.read(f, limit)
	if err != nil {
		return err
	}
	for len(b) > 0 {
		var x uint64
		n := -1
		switch kind {
		case protowire.VarintType:
			x, n = protowire.ConsumeVarint(b)
		case protowire.Fixed32Type:
			var y uint32
			y, n = protowire.ConsumeFixed32(b)
			x = uint64(y)
		case protowire.Fixed64Type:
			x, n = protowire.ConsumeFixed64(b)
		}
		if n < 0 {
			return errTruncated
		}
		visit(x)
		b = b[n:]
	}
	return nil
}

// tensor reads a TensorProto.
func (d *decoder) tensor(f field) (modelConstant, error) {
	var (
		c       modelConstant
		raw     *part
		content []byte // typed data, as raw data would have them
		typed   int64  // bytes of typed data in the file
		entries = map[string]string{}
		outside bool
	)
	put := func(x uint64) {
		switch c.dtype.size() {
		case 1:
			content = append(content, byte(x))
		case 2:
			content = binary.LittleEndian.AppendUint16(content, uint16(x))
		case 4:
			content = binary.LittleEndian.AppendUint32(content, uint32(x))
		case 8:
			content = binary.LittleEndian.AppendUint64(content, x)
		}
	}
	var later []field // data can stand before the type
	err := d.message(f, func(f field) error {
		switch f.number {
		case 1:
			return d.packed(f, protowire.VarintType, 10*maxRank, func(x uint64) { c.shape = append(c.shape, int64(x)) })
		case 2:
			c.dtype = DType(f.varint)
		case 4, 5, 7, 10, 11:
			later = append(later, f)
			if typed += max(1, f.to-f.from); typed > maxInline || len(later) > maxAttribute/8 {
				return errors.New("too much data")
			}
		case 8:
			return d.text(f, &c.name)
		case 9:
			if f.kind != protowire.BytesType {
				return errTruncated
			}
			raw = &f.part
		case 13:
			var key, value string
			err := d.message(f, func(f field) error {
				switch f.number {
				case 1:
					return d.text(f, &key)
				case 2:
					return d.text(f, &value)
				}
				return nil
			})
			entries[key] = value
			return err
		case 14:
			outside = f.varint == 1
		case 3, 6:
			return errors.New("segments and strings are not read")
		}
		return nil
	})
	if err != nil {
		return c, err
	}
	bytes, err := c.bytes()
	if err != nil {
		return c, err
	}
	switch {
	case outside:
		c.location, err = externalLocation(entries, bytes)
		return c, err
	case raw != nil && raw.to-raw.from != bytes:
		return c, fmt.Errorf("%d bytes of data, shape %v of type %s needs %d", raw.to-raw.from, c.shape, c.dtype, bytes)
	case raw != nil && bytes > smallConstant:
		c.location = &Location{File: d.file, Offset: raw.from, Length: bytes}
		return c, nil
	case raw != nil:
		if content, err = d.read(field{kind: protowire.BytesType, part: *raw}, smallConstant); err != nil {
			return c, err
		}
	default:
		for _, f := range later {
			kind := map[protowire.Number]protowire.Type{4: protowire.Fixed32Type, 10: protowire.Fixed64Type}[f.number]
			if err := d.packed(f, kind, maxInline, put); err != nil {
				return c, err
			}
		}
	}
	if int64(len(content)) != bytes {
		return c, fmt.Errorf("%d bytes of data, shape %v of type %s needs %d", len(content), c.shape, c.dtype, bytes)
	}
	c.tensor = newTensor(c.dtype, c.shape, content)
	return c, nil
}

// bytes is how many bytes the elements take.
func (c modelConstant) bytes() (int64, error) {
	n := c.dtype.size()
	if n == 0 {
		return 0, fmt.Errorf("elements of %s are not read", c.dtype)
	}
	if len(c.shape) > maxRank {
		return 0, fmt.Errorf("%d dimensions", len(c.shape))
	}
	for _, d := range c.shape {
		if d < 0 || d > 0 && n > math.MaxInt64/d {
			return 0, fmt.Errorf("impossible shape %v", c.shape)
		}
		n *= d
	}
	return n, nil
}

// newTensor is a constant from its little-endian bytes.
func newTensor(t DType, shape []int64, content []byte) *Tensor {
	c := &Tensor{Shape: shape}
	switch t {
	case Float:
		c.Floats = make([]float32, len(content)/4)
		for i := range c.Floats {
			c.Floats[i] = math.Float32frombits(binary.LittleEndian.Uint32(content[4*i:]))
		}
	case Int64:
		c.Ints = make([]int64, len(content)/8)
		for i := range c.Ints {
			c.Ints[i] = int64(binary.LittleEndian.Uint64(content[8*i:]))
		}
	default:
		c.DType, c.Raw = t, content
	}
	return c
}

// externalLocation reads where a constant lies outside the model.
func externalLocation(entries map[string]string, bytes int64) (*Location, error) {
	l := &Location{File: entries["location"], Length: bytes}
	// It comes from anyone, and must not reach files beyond the model's folder.
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

// Files lists the external files that hold the model's constants, sorted, with
// the number of bytes that each must have at least.
func (m *Model) Files(file string) map[string]int64 {
	files := map[string]int64{}
	for _, c := range m.constants {
		if c.location != nil && c.location.File != file {
			files[c.location.File] = max(files[c.location.File], c.location.Offset+c.location.Length)
		}
	}
	return files
}

// value reads a ValueInfoProto.
func (d *decoder) value(f field) (ModelValue, error) {
	var v ModelValue
	err := d.message(f, func(f field) error {
		switch f.number {
		case 1:
			return d.text(f, &v.Name)
		case 2:
			return d.message(f, func(f field) error {
				if f.number != 1 {
					return nil // a sequence, a map: its use will fail
				}
				return d.message(f, func(f field) error {
					switch f.number {
					case 1:
						v.DType = DType(f.varint)
					case 2:
						v.Shape = []int64{}
						return d.message(f, func(f field) error {
							if f.number != 1 || len(v.Shape) == maxRank {
								return nil
							}
							size := int64(-1)
							err := d.message(f, func(f field) error {
								if f.number == 1 {
									size = int64(f.varint)
								}
								return nil
							})
							v.Shape = append(v.Shape, size)
							return err
						})
					}
					return nil
				})
			})
		}
		return nil
	})
	return v, err
}
