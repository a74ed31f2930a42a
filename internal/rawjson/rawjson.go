// Package rawjson reads and writes JSON objects whose keys keep their order.
package rawjson

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

type Field struct {
	Key   string
	Value Value
}

// Object is a JSON object whose keys keep their order.
type Object []Field

func (o Object) Get(key string) Value {
	for _, f := range o {
		if f.Key == key {
			return f.Value
		}
	}
	return nil
}

func (o Object) Without(keys ...string) Object {
	return slices.DeleteFunc(slices.Clone(o), func(f Field) bool { return slices.Contains(keys, f.Key) })
}

// Rename returns the object with the names of its keys instead, of those that have one.
func (o Object) Rename(names map[string]string) Object {
	o = slices.Clone(o)
	for i, f := range o {
		o[i].Key = cmp.Or(names[f.Key], f.Key)
	}
	return o
}

// Given returns the value of key; nil if there is none, or null.
func (o Object) Given(key string) Value {
	v := o.Get(key)
	if v.IsNull() {
		return nil
	}
	return v
}

func (o Object) Text(key string) (string, error) {
	v := o.Get(key)
	if v == nil {
		return "", o.missing(key)
	}
	if !v.IsText() {
		return "", fmt.Errorf(`%q is not a string: write {%[1]q: "..."}`, key)
	}
	text, err := v.Text()
	if err != nil {
		return "", fmt.Errorf("%q %w", key, err)
	}
	return text, nil
}

// missing returns the error for a key that is not there. It names those that are.
func (o Object) missing(key string) error {
	const most = 8
	var keys []string
	for _, f := range o {
		keys = append(keys, fmt.Sprintf("%.80q", f.Key))
	}
	if len(keys) > most {
		keys = append(keys[:most], "…")
	}
	there := ""
	if len(keys) > 0 {
		there = " among its keys " + strings.Join(keys, ", ")
	}
	return fmt.Errorf(`no %q%s: write {%[1]q: "..."}`, key, there)
}

// Whole returns an error for half of a surrogate pair, and for what is not
// UTF-8: the decoder would make either U+FFFD. The caller adds the subject.
func Whole(text []byte) error {
	if !utf8.Valid(text) {
		return errors.New("is not valid UTF-8")
	}
	text = append(bytes.ReplaceAll(text, []byte(`\\`), []byte(" ")), `\u`...)
	high := false // whether the escape before this one is the first half of a pair
	for part := range bytes.SplitSeq(text, []byte(`\u`)) {
		unit, _ := strconv.ParseUint(string(part[:min(4, len(part))]), 16, 16)
		low := unit>>10 == 0xdc00>>10
		if low != high || unit>>10 == 0xd800>>10 && len(part) > 4 {
			return errors.New("has half of a surrogate pair: write both halves, or the character itself")
		}
		high = unit>>10 == 0xd800>>10
	}
	return nil
}

var ErrNone = errors.New("the line is not a JSON object")

// Parse reads a line that is a JSON object. Of a wrong line, it returns the
// fields that can be told, so that an answer can have the id.
func Parse(line []byte) (Object, error) {
	v, err := scan(line)
	if err != nil {
		return nil, fmt.Errorf("the line %w", err)
	}
	if !v.IsObject() {
		return nil, ErrNone
	}
	err = v.check()
	if errors.Is(err, ErrSyntax) {
		broken := func(f Field) bool { return !utf8.Valid(f.Value) }
		return slices.DeleteFunc(v.Object(), broken), fmt.Errorf("the line %w", err)
	}
	if err != nil {
		return v.Object(), fmt.Errorf("the object %w", err)
	}
	return v.Object(), nil
}

// Pairs returns the object whose keys (strings) and values alternate in pairs.
func Pairs(pairs ...any) (o Object, err error) {
	for i := 0; i < len(pairs) && err == nil; i += 2 {
		var value Value
		value, err = Encode(pairs[i+1])
		o = append(o, Field{pairs[i].(string), value})
	}
	return o, err
}

// Keys returns the keys that a struct of type T has as JSON.
func Keys[T any]() (keys []string) {
	of := reflect.TypeFor[T]()
	for i := range of.NumField() {
		key, _, _ := strings.Cut(of.Field(i).Tag.Get("json"), ",")
		if key != "" && key != "-" {
			keys = append(keys, key)
		}
	}
	return keys
}

// Types returns the kind of the value of each key of a struct: "text", "integer",
// "unsigned", "number" or "boolean". A list or an object is "text", as a table has it.
func Types[T any]() map[string]string {
	kinds := map[reflect.Kind]string{reflect.Int: "integer", reflect.Int64: "integer", reflect.Uint64: "unsigned",
		reflect.Float64: "number", reflect.Bool: "boolean"}
	types := map[string]string{}
	of := reflect.TypeFor[T]()
	for i := range of.NumField() {
		field := of.Field(i).Type
		if field.Kind() == reflect.Pointer {
			field = field.Elem()
		}
		key, _, _ := strings.Cut(of.Field(i).Tag.Get("json"), ",")
		types[key] = cmp.Or(kinds[field.Kind()], "text")
	}
	return types
}

// Beside returns the names of the user's columns, and of the column with the text, beside
// a result: those that the result has, too, become input_NAME.
func Beside(columns []string, text string, taken func(name string) bool) map[string]string {
	columns = append(slices.Clone(columns), text)
	names := map[string]string{}
	for _, column := range columns {
		name := column
		for taken(name) || name != column && slices.Contains(columns, name) {
			name = "input_" + name
		}
		names[column] = name
	}
	return names
}

// Plain returns a value as a cell: a string's text, "" for null, else JSON.
func Plain(value Value) string {
	if value.IsNull() {
		return ""
	}
	text, err := value.Text()
	if err != nil {
		return string(value)
	}
	return text
}

func (o Object) Append(b []byte) []byte {
	size := 2
	for _, f := range o {
		size += len(f.Key) + len(f.Value) + len(`"":,`)
	}
	b = append(slices.Grow(b, size), '{')
	for i, f := range o {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(append(b, Quote(f.Key)...), ':')
		b = append(b, f.Value...)
	}
	return append(b, '}')
}

// Quote returns text as a JSON string, without escapes for HTML.
func Quote(text string) Value {
	special := func(r rune) bool { // what Encode escapes or mends
		return r < ' ' || r == '"' || r == '\\' || r == '\u2028' || r == '\u2029' || r == utf8.RuneError
	}
	if strings.IndexFunc(text, special) < 0 {
		return Value(`"` + text + `"`)
	}
	value, _ := Encode(text) // any text can be encoded
	return value
}

// Encode returns v as JSON in one line, without escapes for HTML.
func Encode(v any) (Value, error) { return EncodeIndent(v, "", "") }

// EncodeIndent is json.MarshalIndent without escapes for HTML.
func EncodeIndent(v any, prefix, indent string) (Value, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent(prefix, indent)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

func WriteLine(w io.Writer, v any) error {
	text, err := Encode(v)
	if err != nil {
		return err
	}
	_, err = w.Write(append(text, '\n'))
	return err
}
