// Package wire reads protobuf messages by tables of their fields. The files may
// be large, and come from anyone. So the package checks every length before it
// allocates memory, and reads only the fields in a table.
package wire

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"unicode"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"
)

const maxText = 1 << 16 // largest size of a name in bytes, far above any real one

// Field is one field of a message, or a whole file. Its value is a number, or
// bytes of the file, perhaps a message.
type Field struct {
	Kind     protowire.Type
	Number   uint64 // value of a numeric field; the bits of a float
	From, To int64  // byte range, in the file, of any other field
	file     io.ReaderAt
	what     string
}

// Fields maps the number of each field to read to a function that reads the field.
type Fields map[protowire.Number]func(Field) error

// Open returns a file of size bytes as a field that is one message. what names
// the kind of file in errors.
func Open(r io.ReaderAt, size int64, what string) Field {
	return Field{Kind: protowire.BytesType, To: size, file: r, what: what}
}

func (f Field) damaged(format string, arguments ...any) error {
	return fmt.Errorf("not %s, or a damaged one: "+format, append([]any{f.what}, arguments...)...)
}

func (f Field) truncated() error { return f.damaged("a field reaches past the end") }

// want returns an error if the field has another kind than the format says.
func (f Field) want(kind protowire.Type) error {
	if f.Kind != kind {
		return f.damaged("a field of wire type %d where %d belongs", f.Kind, kind)
	}
	return nil
}

// Message calls the function in fields for each field, in their order.
func (f Field) Message(fields Fields) error {
	if err := f.want(protowire.BytesType); err != nil {
		return err
	}
	buffer := make([]byte, 20) // room for a tag and a number
	for f.From < f.To {
		head, err := f.read(buffer[:min(20, f.To-f.From)])
		if err != nil {
			return err
		}
		number, kind, n := protowire.ConsumeTag(head)
		if n < 0 {
			return f.truncated()
		}
		value, k := consume(kind, head[n:])
		if k < 0 {
			return f.truncated()
		}
		f.From += int64(n + k)
		field := Field{Kind: kind, Number: value, file: f.file, what: f.what}
		if kind == protowire.BytesType {
			if value > uint64(f.To-f.From) {
				return f.truncated()
			}
			field.Number = 0
			field.From = f.From
			field.To = f.From + int64(value)
			f.From = field.To
		}
		read := fields[number]
		if read != nil {
			if err := read(field); err != nil {
				return err
			}
		}
	}
	return nil
}

func (f Field) read(b []byte) ([]byte, error) {
	n, err := f.file.ReadAt(b, f.From)
	if n < len(b) && (err == nil || errors.Is(err, io.EOF)) {
		return nil, f.truncated()
	}
	if n < len(b) {
		return nil, err
	}
	return b, nil
}

// consume reads a number, or the length of bytes, from b. n is the bytes read,
// or negative if b is invalid.
func consume(kind protowire.Type, b []byte) (x uint64, n int) {
	switch kind {
	case protowire.VarintType, protowire.BytesType:
		return protowire.ConsumeVarint(b)
	case protowire.Fixed32Type:
		y, n := protowire.ConsumeFixed32(b)
		return uint64(y), n
	case protowire.Fixed64Type:
		return protowire.ConsumeFixed64(b)
	}
	return 0, -1
}

// Bytes returns the bytes of a field. For more than limit bytes, it returns an error.
func (f Field) Bytes(limit int64) ([]byte, error) {
	if err := f.want(protowire.BytesType); err != nil {
		return nil, err
	}
	if f.To-f.From > limit {
		return nil, fmt.Errorf("a field of %d bytes, more than the %d that it can sensibly have", f.To-f.From, limit)
	}
	return f.read(make([]byte, f.To-f.From))
}

// Packed calls visit for each number of a repeated field, single or packed.
func (f Field) Packed(kind protowire.Type, limit int64, visit func(uint64)) error {
	if f.Kind == kind {
		visit(f.Number)
		return nil
	}
	b, err := f.Bytes(limit)
	for err == nil && len(b) > 0 {
		x, n := consume(kind, b)
		if n < 0 {
			return f.truncated()
		}
		visit(x)
		b = b[n:]
	}
	return err
}

// Text returns a function that reads a name into *to. It refuses names that
// errors could not print safely.
func Text(to *string) func(Field) error {
	return func(f Field) error {
		b, err := f.Bytes(maxText)
		if err != nil {
			return err
		}
		if !utf8.Valid(b) || bytes.ContainsFunc(b, unicode.IsControl) {
			return f.damaged("the name %.60q", b)
		}
		*to = string(b)
		return nil
	}
}

// Int returns a reader of a whole number.
func Int[T ~int | ~int32 | ~int64 | ~uint64](to *T) func(Field) error {
	return func(f Field) error {
		*to = T(f.Number)
		return f.want(protowire.VarintType)
	}
}

// Bits returns a reader of the bits of a single-precision number.
func Bits(to *uint32) func(Field) error {
	return func(f Field) error {
		*to = uint32(f.Number)
		return f.want(protowire.Fixed32Type)
	}
}
