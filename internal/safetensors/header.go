package safetensors

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/bits"
	"strconv"
	"unicode/utf8"
)

// maxRank bounds a shape, so that a header of nothing but dimensions costs nothing.
const maxRank = 32

const metadataKey = "__metadata__"

// parseHeader checks a header whose tensors lie in the bytes [dataStart, fileSize) of the file.
func parseHeader(header []byte, dataStart, fileSize int64) (*File, error) {
	if len(header) == 0 || header[0] != '{' {
		return nil, errors.New("not a safetensors file: the header does not begin with {")
	}
	// encoding/json would turn each invalid byte into U+FFFD and so merge different names.
	if !utf8.Valid(header) {
		return nil, errors.New("damaged header: not valid UTF-8")
	}
	p := parser{decoder: json.NewDecoder(bytes.NewReader(header)), dataSize: fileSize - dataStart}
	p.decoder.UseNumber()
	file := &File{tensors: map[string]Tensor{}}
	// Read token by token: depth, types and repeated keys are checked as they come, which unmarshalling would not do.
	err := p.object("tensor ", func(name string) (err error) {
		if name == metadataKey {
			file.Metadata, err = p.metadata()
			return err
		}
		t, err := p.tensor(name)
		if err != nil {
			return fmt.Errorf("tensor %.100q: %w", name, err)
		}
		t.Offset += dataStart
		file.tensors[name] = t
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("damaged header: %w", err)
	}
	for _, c := range header[p.decoder.InputOffset():] {
		if c != ' ' && c != '\n' && c != '\r' && c != '\t' {
			return nil, fmt.Errorf("damaged header: %q follows the closing }", c)
		}
	}
	file.index()
	// The format has every byte of the data belong to exactly one tensor.
	next := dataStart
	for _, name := range file.names {
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

type parser struct {
	decoder  *json.Decoder
	dataSize int64
}

// object reads an object of distinct keys and calls value after each; value must consume the key's value.
func (p *parser) object(kind string, value func(key string) error) error {
	if err := p.delimiter('{'); err != nil {
		return err
	}
	seen := map[string]bool{}
	for p.decoder.More() {
		key, err := p.text()
		if err != nil {
			return err
		}
		if seen[key] {
			return fmt.Errorf("%s%.100q appears twice", kind, key)
		}
		seen[key] = true
		if err := value(key); err != nil {
			return err
		}
	}
	return p.delimiter('}')
}

func (p *parser) metadata() (map[string]string, error) {
	metadata := map[string]string{}
	err := p.object("key ", func(key string) (err error) {
		metadata[key], err = p.text()
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", metadataKey, err)
	}
	return metadata, nil
}

// tensor reads one entry. Its Offset counts from the start of the data.
func (p *parser) tensor(name string) (Tensor, error) {
	t := Tensor{Name: name}
	var offsets []int64
	err := p.object("", func(key string) (err error) {
		switch key {
		case "dtype":
			var s string
			if s, err = p.text(); err == nil && DType(s).Size() == 0 {
				return fmt.Errorf("element type %.100q is not known", s)
			}
			t.DType = DType(s)
		case "shape":
			var dimensions []int64
			dimensions, err = p.integers(maxRank)
			t.Shape = make([]int, len(dimensions))
			for i, d := range dimensions {
				if t.Shape[i] = int(d); int64(t.Shape[i]) != d {
					return fmt.Errorf("shape: dimension %d is too large for this machine", d)
				}
			}
		case "data_offsets":
			if offsets, err = p.integers(2); err == nil && len(offsets) != 2 {
				return fmt.Errorf("data_offsets has %d numbers, not 2", len(offsets))
			}
		default:
			return fmt.Errorf("unknown key %.100q", key)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
		return nil
	})
	switch {
	case err != nil:
		return t, err
	case t.DType == "":
		return t, errors.New("dtype is missing")
	case t.Shape == nil:
		return t, errors.New("shape is missing")
	case offsets == nil:
		return t, errors.New("data_offsets is missing")
	}
	begin, end := offsets[0], offsets[1]
	if begin > end || end > p.dataSize {
		return t, fmt.Errorf("data_offsets [%d, %d] are outside the file, which has %d bytes of data", begin, end,
			p.dataSize)
	}
	size, ok := byteSize(t.DType, t.Shape)
	if !ok {
		return t, fmt.Errorf("shape %v of %s is more than 64 bits can count", t.Shape, t.DType)
	}
	if size != end-begin {
		return t, fmt.Errorf("shape %v of %s takes %d bytes, data_offsets give %d", t.Shape, t.DType, size, end-begin)
	}
	t.Offset, t.Length = begin, size
	return t, nil
}

// byteSize is the number of bytes of a tensor; false when it, or the product of any of the dimensions, overflows.
func byteSize(d DType, shape []int) (int64, bool) {
	size := uint64(d.Size())
	zero := false
	for _, n := range shape {
		if n == 0 {
			zero = true
			continue
		}
		high, low := bits.Mul64(size, uint64(n))
		if high != 0 || low > 1<<62 {
			return 0, false
		}
		size = low
	}
	if zero {
		return 0, true
	}
	return int64(size), true
}

func (p *parser) delimiter(want json.Delim) error {
	token, err := p.token()
	if err != nil {
		return err
	}
	if token != want {
		return fmt.Errorf("byte %d: %v where %v belongs", p.decoder.InputOffset(), token, want)
	}
	return nil
}

func (p *parser) text() (string, error) {
	token, err := p.token()
	if err != nil {
		return "", err
	}
	s, ok := token.(string)
	if !ok {
		return "", fmt.Errorf("byte %d: %v where a string belongs", p.decoder.InputOffset(), token)
	}
	return s, nil
}

// integers reads an array of at most limit non-negative integers.
func (p *parser) integers(limit int) ([]int64, error) {
	if err := p.delimiter('['); err != nil {
		return nil, err
	}
	values := []int64{}
	for p.decoder.More() {
		token, err := p.token()
		if err != nil {
			return nil, err
		}
		number, ok := token.(json.Number)
		if !ok {
			return nil, fmt.Errorf("byte %d: %v where a number belongs", p.decoder.InputOffset(), token)
		}
		if len(values) == limit {
			return nil, fmt.Errorf("more than %d numbers", limit)
		}
		// ParseUint refuses signs, fractions and exponents, which the format has no use for.
		value, err := strconv.ParseUint(number.String(), 10, 63)
		if err != nil {
			return nil, fmt.Errorf("%.40s is not a size", number)
		}
		values = append(values, int64(value))
	}
	return values, p.delimiter(']')
}

func (p *parser) token() (json.Token, error) {
	token, err := p.decoder.Token()
	if err != nil {
		return nil, fmt.Errorf("byte %d: not valid JSON: %w", p.decoder.InputOffset(), err)
	}
	return token, nil
}
