package safetensors

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/bits"
	"slices"
	"unicode/utf8"
)

// maxRank bounds the number of dimensions, so that a header with very long
// shapes costs little.
const maxRank = 32

const metadataKey = "__metadata__"

// entry describes a tensor in a header.
type entry struct {
	DType   DType   `json:"dtype"`
	Shape   []int   `json:"shape"`
	Offsets []int64 `json:"data_offsets"`
}

// parseHeader checks a header, whose tensors must lie in the bytes [dataStart,
// fileSize) of the file.
func parseHeader(header []byte, dataStart, fileSize int64) (*File, error) {
	if len(header) == 0 || header[0] != '{' {
		return nil, errors.New("not a safetensors file: the header does not begin with {")
	}
	// encoding/json would turn invalid bytes into U+FFFD, so that different
	// names could become equal.
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

// parseTensor reads the entry of one tensor. Offset of the result counts from
// the start of the data.
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
