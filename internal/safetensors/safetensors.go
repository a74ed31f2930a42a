// Package safetensors reads and writes the safetensors format: an 8-byte
// little-endian header length, a JSON header that gives every tensor's type,
// shape and place, and the tensors' bytes, row-major and little-endian (format:
// https://huggingface.co/docs/safetensors).
//
// The package mainly finds where tensors are: onnxruntime reads weights from
// the file itself, by offset, so this package loads a tensor only if a caller
// asks for it. The header may come from anyone. So the package checks all of
// it against the size of the file before it allocates memory of a size that
// the header claims.
package safetensors

import (
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/bits"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"infill/internal/floats"
	"infill/internal/regular"
)

// DType is the type of a tensor's elements, named as in the format.
type DType string

// These are the element types that other packages name.
const (
	Bool, Uint8, Int8, Int16, Int32, Int64 DType = "BOOL", "U8", "I8", "I16", "I32", "I64"
	F16, BF16, F32, F64                    DType = "F16", "BF16", "F32", "F64"
)

// sizes has the bytes of an element, where elements fill whole bytes.
var sizes = map[DType]int64{Bool: 1, Uint8: 1, Int8: 1, "F8_E4M3": 1, "F8_E5M2": 1, "U16": 2, Int16: 2, F16: 2,
	BF16: 2, "U32": 4, Int32: 4, F32: 4, "U64": 8, Int64: 8, F64: 8}

// Size returns the number of bytes of one element, or 0 for an unknown type.
func (d DType) Size() int64 { return sizes[d] }

// Tensor says where the elements of one tensor are.
type Tensor struct {
	Name  string
	DType DType
	Shape []int // empty for a scalar
	// Offset counts from the start of the file, not of the data; both are bytes.
	Offset, Length int64
	Path           string // the file with the elements, without links
}

// File is a checked file, or several of one index, and keeps none open.
type File struct {
	Path    string
	tensors map[string]Tensor
}

// MaxHeaderBytes bounds the header. At about 100 bytes for each, 40,000 tensors fit.
const MaxHeaderBytes = 4 << 20

// Open reads and checks the header of a safetensors file. An error names the
// file and says what is wrong with it.
func Open(path string) (*File, error) {
	f, err := regular.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	file, err := Parse(f, info.Size())
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	file.Path = path
	resolved, err := filepath.EvalSymlinks(path)
	if err != nil {
		return nil, err
	}
	for name, t := range file.tensors {
		t.Path = resolved
		file.tensors[name] = t
	}
	return file, nil
}

// Parse reads and checks the header of a safetensors file of size bytes.
func Parse(r io.ReaderAt, size int64) (*File, error) {
	const prefix = 8
	if size < prefix {
		return nil, fmt.Errorf("not a safetensors file: %d bytes are too few for the length of a header", size)
	}
	var length [prefix]byte
	if _, err := io.ReadFull(io.NewSectionReader(r, 0, prefix), length[:]); err != nil {
		return nil, fmt.Errorf("cannot read the length of the header: %w", err)
	}
	n := binary.LittleEndian.Uint64(length[:])
	if n > uint64(size-prefix) {
		return nil, fmt.Errorf("damaged, cut short or not a safetensors file: the header claims %d bytes, the file "+
			"has %d after its length", n, size-prefix)
	}
	if n > MaxHeaderBytes {
		return nil, fmt.Errorf("the header claims %d bytes, more than the %d that are accepted", n, MaxHeaderBytes)
	}
	header := make([]byte, n)
	if _, err := io.ReadFull(io.NewSectionReader(r, prefix, int64(n)), header); err != nil {
		return nil, fmt.Errorf("cannot read the header: %w", err)
	}
	return parseHeader(header, prefix+int64(n), size)
}

// Tensor returns the tensor with the given name, or false if there is none.
func (f *File) Tensor(name string) (Tensor, bool) {
	t, ok := f.tensors[name]
	return t, ok
}

// Names returns the names of the tensors, in the order of their bytes.
func (f *File) Names() []string {
	return slices.SortedFunc(maps.Keys(f.tensors), func(a, b string) int {
		x := f.tensors[a]
		y := f.tensors[b]
		return cmp.Or(cmp.Compare(x.Offset, y.Offset), cmp.Compare(x.Length, y.Length), strings.Compare(a, b))
	})
}

// Format returns the format of floating-point elements, or 0 for other types.
func (d DType) Format() floats.Format {
	return map[DType]floats.Format{F16: floats.Half, BF16: floats.Brain, F32: floats.Single, F64: floats.Double}[d]
}

// Float32s reads a tensor of F16, BF16, F32 or F64 elements, row-major. It
// rounds F64 to the nearest float32.
func (f *File) Float32s(name string) ([]float32, error) {
	t, ok := f.tensors[name]
	if !ok {
		return nil, fmt.Errorf("%s: no tensor %q", f.Path, name)
	}
	if t.DType.Format() == 0 {
		return nil, fmt.Errorf("%s: tensor %q holds %s, not floating-point numbers", f.Path, name, t.DType)
	}
	raw, err := t.Bytes()
	if err != nil {
		return nil, err
	}
	return t.DType.Format().Float32s(raw), nil
}

// Bytes reads the elements of the tensor as they are stored.
func (t Tensor) Bytes() ([]byte, error) {
	file, err := regular.Open(t.Path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	raw := make([]byte, t.Length)
	if _, err := file.ReadAt(raw, t.Offset); err != nil {
		return nil, fmt.Errorf("%s: tensor %q: %w", t.Path, t.Name, err)
	}
	return raw, nil
}

// maxRank bounds dimensions, so that headers of long shapes cost little.
const maxRank = 32

const metadataKey = "__metadata__"

type entry struct {
	DType   DType   `json:"dtype"`
	Shape   []int   `json:"shape"`
	Offsets []int64 `json:"data_offsets"`
}

// parseHeader checks a header of tensors in the bytes [dataStart, fileSize).
func parseHeader(header []byte, dataStart, fileSize int64) (*File, error) {
	if len(header) == 0 || header[0] != '{' {
		return nil, errors.New("not a safetensors file: the header does not begin with {")
	}
	// With invalid bytes as U+FFFD, different names could become equal.
	if !utf8.Valid(header) {
		return nil, errors.New("damaged header: not valid UTF-8")
	}
	var entries map[string]json.RawMessage
	if err := json.Unmarshal(header, &entries); err != nil {
		return nil, fmt.Errorf("damaged header: not valid JSON: %w", err)
	}
	file := &File{tensors: map[string]Tensor{}}
	for _, name := range slices.Sorted(maps.Keys(entries)) {
		if name == metadataKey { // metadata are free text
			if err := json.Unmarshal(entries[name], new(map[string]string)); err != nil {
				return nil, fmt.Errorf("damaged header: %s: %w", metadataKey, err)
			}
			continue
		}
		t, err := parseTensor(name, entries[name], fileSize-dataStart)
		if err != nil {
			return nil, fmt.Errorf("damaged header: tensor %.100q: %w", name, err)
		}
		t.Offset += dataStart
		file.tensors[name] = t
	}
	// In this format, every byte of the data belongs to exactly one tensor.
	next := dataStart
	for _, name := range file.Names() {
		t := file.tensors[name]
		switch {
		case t.Offset < next:
			return nil, fmt.Errorf("damaged header: tensor %.100q begins at byte %d, inside the tensor before it, "+
				"which ends at %d", name, t.Offset, next)
		case t.Offset > next:
			return nil, fmt.Errorf("damaged header: no tensor holds the bytes %d to %d, before tensor %.100q", next,
				t.Offset, name)
		}
		next += t.Length
	}
	if next != fileSize {
		return nil, fmt.Errorf("damaged: the tensors end at byte %d, the file at %d", next, fileSize)
	}
	return file, nil
}

// parseTensor reads a tensor's entry; its Offset is from the start of the data.
func parseTensor(name string, encoded []byte, dataSize int64) (Tensor, error) {
	var e entry
	t := Tensor{Name: name}
	if err := json.Unmarshal(encoded, &e); err != nil {
		return t, fmt.Errorf("not a type, a shape and two offsets: %w", err)
	}
	switch {
	case e.Shape == nil:
		return t, errors.New("shape is missing")
	case len(e.Shape) > maxRank:
		return t, fmt.Errorf("shape: more than %d numbers", maxRank)
	case len(e.Offsets) != 2:
		return t, fmt.Errorf("data_offsets has %d numbers, not 2", len(e.Offsets))
	}
	size, err := byteSize(e.DType, e.Shape)
	if err != nil {
		return t, err
	}
	begin := e.Offsets[0]
	end := e.Offsets[1]
	if begin < 0 || begin > end || end > dataSize {
		return t, fmt.Errorf("data_offsets [%d, %d] are outside the file, which has %d bytes of data", begin, end,
			dataSize)
	}
	if size != end-begin {
		return t, fmt.Errorf("shape %v of %s takes %d bytes, data_offsets give %d", e.Shape, e.DType, size, end-begin)
	}
	return Tensor{Name: name, DType: e.DType, Shape: e.Shape, Offset: begin, Length: size}, nil
}

// byteSize returns the number of bytes of a tensor. If that number, or a
// product of dimensions, overflows, it returns an error.
func byteSize(d DType, shape []int) (int64, error) {
	size := uint64(d.Size())
	zero := false
	if size == 0 {
		return 0, fmt.Errorf("element type %.100q is not known", d)
	}
	for _, n := range shape {
		high, low := bits.Mul64(size, uint64(n))
		switch {
		case n < 0:
			return 0, fmt.Errorf("shape %v has a negative dimension", shape)
		case n == 0:
			zero = true
		case high != 0 || low > 1<<62:
			return 0, fmt.Errorf("shape %v of %s is more than 64 bits can count", shape, d)
		default:
			size = low
		}
	}
	if zero {
		return 0, nil
	}
	return int64(size), nil
}
