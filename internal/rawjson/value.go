package rawjson

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"infill/internal/lines"
)

// Value is a JSON value that Read has checked, without white space. Its methods
// read these bytes, so that no other decoder sees another value in them.
type Value json.RawMessage

var _ json.Marshaler = Value(nil)

// maxDepth is the largest number of objects and lists around a value.
const maxDepth = 64

// ErrSyntax is the error of a text that is not JSON in UTF-8. Other errors of
// Read are of JSON that says something twice, or too deep.
var ErrSyntax = errors.New("is not JSON")

// syntaxError is an ErrSyntax with a text of its own.
type syntaxError string

func (e syntaxError) Error() string        { return string(e) }
func (e syntaxError) Is(target error) bool { return target == ErrSyntax }

// Read reads a JSON value and checks all of it: the syntax, the bytes, that no
// object at any depth has a key twice, and that it is at most 64 levels deep.
// It skips a byte-order mark. The caller puts the subject before the error's
// text, as in "the line is not JSON". The caller bounds the size of the text.
func Read(text []byte) (Value, error) {
	v, err := scan(text)
	if err != nil {
		return nil, err
	}
	return v, v.check()
}

// scan returns the value of a text whose syntax is right, without white space outside of
// strings, so that it can be written in one line as it is.
func scan(text []byte) (Value, error) {
	var compact bytes.Buffer
	text = bytes.TrimPrefix(text, []byte(lines.ByteOrderMark))
	err := json.Compact(&compact, text)
	if err == nil {
		return compact.Bytes(), nil
	}
	var raw json.RawMessage
	err = json.Unmarshal(text, &raw) // whose error tells the place
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		return nil, syntaxError(fmt.Sprintf("is not JSON: %v at byte %d", err, syntax.Offset))
	}
	return nil, syntaxError(fmt.Sprintf("is not JSON: %v", err))
}

// check checks what Read promises beside the syntax.
func (v Value) check() error {
	if !utf8.Valid(v) {
		return syntaxError("is not valid UTF-8")
	}
	return v.checkKeys(0)
}

// twiceError is the error of an object that has two of a key. keys lead to it.
type twiceError struct{ keys []string }

func (e *twiceError) Error() string { return fmt.Sprintf("has two keys %q", strings.Join(e.keys, ".")) }

// checkKeys checks the keys of a value at a depth.
func (v Value) checkKeys(depth int) error {
	if !v.IsObject() && !v.IsList() {
		return nil
	}
	if depth == maxDepth {
		return fmt.Errorf("is nested more than %d deep", maxDepth)
	}
	seen := map[string]bool{}
	for key, value := range v.parts() {
		name := ""
		if v.IsObject() {
			var err error
			name, err = key.Text()
			if err != nil {
				return syntaxError(err.Error())
			}
			if seen[name] {
				return &twiceError{[]string{name}}
			}
			seen[name] = true
		}
		err := value.checkKeys(depth + 1)
		twice, ok := err.(*twiceError)
		if ok && v.IsObject() {
			twice.keys = slices.Insert(twice.keys, 0, name)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// parts returns keys and values of an object, or of a list with nil keys.
func (v Value) parts() iter.Seq2[Value, Value] {
	return func(yield func(key, value Value) bool) {
		rest := v[1:]
		for rest[0] != '}' && rest[0] != ']' {
			var key Value
			if v.IsObject() {
				n := extent(rest)
				key = rest[:n]
				rest = rest[n+1:] // behind the colon
			}
			n := extent(rest)
			if !yield(key, rest[:n:n]) {
				return
			}
			rest = rest[n:]
			if rest[0] == ',' {
				rest = rest[1:]
			}
		}
	}
}

// extent returns the length of the value at the start of a Value.
func extent(text Value) int {
	depth := 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '"':
			i += quoted(text[i:]) - 1
		case '{', '[':
			depth++
		case '}', ']':
			if depth == 0 {
				return i
			}
			depth--
		case ',':
			if depth == 0 {
				return i
			}
			continue
		default:
			continue // a part of a number or a word, which ends before one of the characters above
		}
		if depth == 0 {
			return i + 1
		}
	}
	return len(text)
}

// quoted returns the length of the string at the start of a Value.
func quoted(text Value) int {
	for i := 1; ; i++ {
		switch text[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
}

// IsNull reports whether there is no value: null, or no bytes at all.
func (v Value) IsNull() bool { return len(v) == 0 || string(v) == "null" }

func (v Value) IsObject() bool { return len(v) > 0 && v[0] == '{' }

func (v Value) IsList() bool { return len(v) > 0 && v[0] == '[' }

func (v Value) IsText() bool { return len(v) > 0 && v[0] == '"' }

// Object returns the keys and values of an object; nil for other values.
func (v Value) Object() Object {
	if !v.IsObject() {
		return nil
	}
	o := Object{}
	for key, value := range v.parts() {
		name, _ := key.Text() // Read has checked the keys
		o = append(o, Field{name, value})
	}
	return o
}

func (v Value) List() []Value {
	if !v.IsList() {
		return nil
	}
	list := []Value{}
	for _, value := range v.parts() {
		list = append(list, value)
	}
	return list
}

// Text returns the value of a string. It returns an error for any other value,
// and for half of a surrogate pair, which would become U+FFFD.
func (v Value) Text() (string, error) {
	if !v.IsText() {
		return "", errors.New("is not a string")
	}
	if bytes.IndexByte(v, '\\') < 0 {
		return string(v[1 : len(v)-1]), nil
	}
	err := Whole(v)
	if err != nil {
		return "", err
	}
	var text string
	err = json.Unmarshal(v, &text)
	return text, err
}

// Whole returns the value of a whole number, which may be written 3, 3.0 or
// 3e0. ok is false for any other value, and from ±2^53 on.
func (v Value) Whole() (n int, ok bool) {
	x, err := strconv.ParseFloat(string(v), 64)
	const most = 1 << 53
	if err != nil || x != math.Trunc(x) || math.Abs(x) >= most {
		return 0, false
	}
	return int(x), true
}

func (v Value) MarshalJSON() ([]byte, error) { return json.RawMessage(v).MarshalJSON() }
