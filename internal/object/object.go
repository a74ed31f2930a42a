// Package object reads and writes JSON objects whose keys keep their order.
package object

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// Field is a key of an object with its value.
type Field struct {
	Key   string
	Value json.RawMessage
}

// Object is a JSON object whose keys keep their order.
type Object []Field

// Get returns the value of a key, nil if there is none.
func (o Object) Get(key string) json.RawMessage {
	for _, f := range o {
		if f.Key == key {
			return f.Value
		}
	}
	return nil
}

// Text returns the text that stands under a key.
func (o Object) Text(key string) (string, error) {
	value := o.Get(key)
	if value == nil {
		return "", fmt.Errorf(`no %q: write {%[1]q: "..."}`, key)
	}
	var text *string
	if err := json.Unmarshal(value, &text); err != nil || text == nil {
		return "", fmt.Errorf(`%q is not a string: write {%[1]q: "..."}`, key)
	}
	return *text, nil
}

// ErrNone is JSON that is another thing than an object.
var ErrNone = errors.New("the line is not a JSON object")

// halfPair finds the escape of half a surrogate pair in valid JSON, as `\ud800`, for which decoders put U+FFFD; ""
// if there is none.
func halfPair(text []byte) string {
	escape := func(at int) (unit uint64, ok bool) {
		if at+6 > len(text) || text[at] != '\\' || text[at+1] != 'u' {
			return 0, false
		}
		unit, err := strconv.ParseUint(string(text[at+2:at+6]), 16, 16)
		return unit, err == nil
	}
	for at := 0; at < len(text); {
		next := bytes.IndexByte(text[at:], '\\')
		if next < 0 {
			break
		}
		at += next
		unit, ok := escape(at)
		if !ok {
			at += 2 // the escape of one character, also of the backslash
			continue
		}
		if utf16.IsSurrogate(rune(unit)) {
			if low, _ := escape(at + 6); utf16.DecodeRune(rune(unit), rune(low)) == utf8.RuneError {
				return string(text[at : at+6])
			}
			at += 6
		}
		at += 6
	}
	return ""
}

// CheckPairs is an error where what, valid JSON, has half of a surrogate pair.
func CheckPairs(what string, text []byte) error {
	if half := halfPair(text); half != "" {
		return fmt.Errorf("%s has half of a character, %s: write both halves of the pair, or the character itself",
			what, half)
	}
	return nil
}

// Parse reads an object. Its errors say what is wrong with the line.
func Parse(line []byte) (Object, error) {
	// The decoder would put U+FFFD for bad bytes, and the text come back changed.
	if !utf8.Valid(line) {
		return nil, errors.New("the line is not valid UTF-8")
	}
	syntax := func(err error) error {
		var at *json.SyntaxError
		if errors.As(err, &at) {
			return fmt.Errorf("the line is not JSON: %w at byte %d", err, at.Offset)
		}
		return fmt.Errorf("the line is not JSON: %w", err)
	}
	if !json.Valid(line) {
		var any json.RawMessage
		return nil, syntax(json.Unmarshal(line, &any))
	}
	if err := CheckPairs("the line", line); err != nil {
		return nil, err
	}
	if line = bytes.TrimSpace(line); line[0] != '{' {
		return nil, ErrNone
	}
	d := json.NewDecoder(bytes.NewReader(line))
	if _, err := d.Token(); err != nil {
		return nil, syntax(err)
	}
	var o Object
	seen := map[string]bool{}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return nil, syntax(err)
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return nil, syntax(err)
		}
		name := key.(string) // a key is nothing else
		if seen[name] {
			return nil, fmt.Errorf("the object has two keys %q", name)
		}
		seen[name] = true
		o = append(o, Field{name, value})
	}
	return o, nil
}

var (
	_ json.Marshaler   = Object(nil)
	_ json.Unmarshaler = (*Object)(nil)
)

// MarshalJSON implements json.Marshaler.
func (o Object) MarshalJSON() ([]byte, error) { return o.Append(nil), nil }

// UnmarshalJSON implements json.Unmarshaler.
func (o *Object) UnmarshalJSON(text []byte) (err error) {
	*o, err = Parse(text)
	return err
}

// Append writes the object as JSON in one line.
func (o Object) Append(b []byte) []byte {
	b = append(b, '{')
	for i, f := range o {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(append(b, Quote(f.Key)...), ':')
		if bytes.ContainsAny(f.Value, " \t\r\n") {
			var compact bytes.Buffer
			if json.Compact(&compact, f.Value) == nil {
				b = append(b, compact.Bytes()...)
				continue
			}
		}
		b = append(b, f.Value...)
	}
	return append(b, '}')
}

// Quote writes a text as a JSON string without the escapes that are for HTML.
func Quote(text string) json.RawMessage {
	value, err := Encode(text)
	if err != nil {
		panic(err) // there is JSON for every text
	}
	return value
}

// Encode writes a value as JSON in one line without the escapes that are for HTML.
func Encode(v any) (json.RawMessage, error) { return EncodeIndent(v, "", "") }

// EncodeIndent is Encode on lines of its own, as json.MarshalIndent.
func EncodeIndent(v any, prefix, indent string) (json.RawMessage, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent(prefix, indent)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// WriteLine writes a value as JSON in a line, in one write.
func WriteLine(w io.Writer, v any) error {
	text, err := Encode(v)
	if err != nil {
		return err
	}
	_, err = w.Write(append(text, '\n'))
	return err
}

// Identified is a value whose JSON, an object, has the user's own id before its fields; nil for no id.
type Identified struct {
	ID    json.RawMessage
	Value any
}

// MarshalJSON implements json.Marshaler.
func (i Identified) MarshalJSON() ([]byte, error) {
	value, err := Encode(i.Value)
	if err != nil || i.ID == nil {
		return value, err
	}
	return slices.Concat([]byte(`{"id":`), i.ID, []byte(","), value[1:]), nil
}
