package batch

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"unicode/utf8"

	"infill/internal/object"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"
)

// table is a Parquet file that is read row by row.
type table struct {
	file    *os.File
	parquet *parquet.File
	input
	fields []field
	groups []parquet.RowGroup
	rows   parquet.Rows // of the first of groups; nil before
	buffer []parquet.Row
	ready  []parquet.Row
	number int64
}

var _ source = (*table)(nil)

// openTable opens a Parquet file, of which some columns hold texts.
func openTable(path string, texts ...string) (t *table, err error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			file.Close()
		}
	}()
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	err = guarded(func() error {
		p, err := parquet.OpenFile(file, info.Size())
		if err != nil {
			return err
		}
		t = &table{file: file, parquet: p, buffer: make([]parquet.Row, 64)}
		// The library cannot read a group without rows, the only one of an empty table.
		t.groups = slices.DeleteFunc(slices.Clone(p.RowGroups()),
			func(g parquet.RowGroup) bool { return g.NumRows() == 0 })
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("%s is no Parquet file that can be read (%w): get it again", path, err)
	}
	if t.fields, err = fieldsOf(t.parquet.Schema()); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	for i, f := range t.fields {
		if f.of.Kind() != parquet.ByteArray || logical(f.of) != nil || slices.Contains(texts, f.name) {
			continue
		}
		err := guarded(func() (err error) {
			t.fields[i].bytes, err = t.holdsBytes(f.index)
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("%s: column %q cannot be read (%w): the file is damaged, get it again", path, f.name,
				err)
		}
	}
	return t, nil
}

// holdsBytes reports whether any value of a column is not UTF-8. Older programs do not say that a column holds text,
// and a column is text or bytes as a whole.
func (t *table) holdsBytes(index int) (bool, error) {
	values := make([]parquet.Value, 64)
	for _, group := range t.groups {
		pages := group.ColumnChunks()[index].Pages()
		defer pages.Close()
		for {
			page, err := pages.ReadPage()
			if err == io.EOF {
				break
			}
			if err != nil {
				return false, err
			}
			for n, from := 0, page.Values(); err != io.EOF; {
				if n, err = from.ReadValues(values); err != nil && err != io.EOF {
					return false, err
				}
				if slices.ContainsFunc(values[:n], func(v parquet.Value) bool { return !utf8.Valid(v.ByteArray()) }) {
					return true, nil
				}
			}
			parquet.Release(page)
		}
	}
	return false, nil
}

// guarded turns a panic of the library over a damaged file into an error.
func guarded(do func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%v", p)
		}
	}()
	return do()
}

func (t *table) close() {
	if t.rows != nil {
		t.rows.Close()
	}
	t.file.Close()
}

func (t *table) about() input         { return t.input }
func (t *table) total() (int64, bool) { return t.Records, true }

// names are those of the top level.
func (t *table) names() []string {
	var names []string
	for _, f := range t.fields {
		names = append(names, f.name)
	}
	return names
}

// types are those that the columns keep in Parquet.
func (t *table) types() map[string]string {
	types := map[string]string{}
	for _, f := range t.fields {
		types[f.name] = f.written()
	}
	return types
}

// next implements source.
func (t *table) next(wanted bool) (r Record, err error) {
	if err := guarded(t.fill); err != nil {
		if err == io.EOF {
			return r, err
		}
		return r, fmt.Errorf("row %d cannot be read (%w): the file is damaged, get it again", t.number+1, err)
	}
	t.number++
	r = Record{Number: t.number}
	if !wanted {
		t.ready = t.ready[1:]
		return r, nil
	}
	err = guarded(func() error {
		for _, f := range t.fields {
			at, _ := slices.BinarySearchFunc(t.ready[0], f.index,
				func(v parquet.Value, index int) int { return cmp.Compare(v.Column(), index) })
			value, err := f.cellOf(t.ready[0][at])
			if err != nil {
				return fmt.Errorf("column %q: %w", f.name, err)
			}
			raw, err := object.Encode(value)
			if err != nil {
				return fmt.Errorf("column %q: %w", f.name, err)
			}
			r.Object = append(r.Object, object.Field{Key: f.name, Value: raw})
		}
		return nil
	})
	t.ready = t.ready[1:]
	if err != nil {
		r.Object, r.Err = nil, &RejectError{err}
	}
	return r, nil
}

// field is a column that is read, the index of its values in a row, and their type.
type field struct {
	name  string
	index int
	of    parquet.Type
	bytes bool // not text, although its type says neither
}

// fieldsOf are the columns. One that is a list, a map or a group is an error.
func fieldsOf(schema *parquet.Schema) (fields []field, err error) {
	for _, f := range schema.Fields() {
		if !f.Leaf() || f.Repeated() {
			return nil, fmt.Errorf("column %q is a list, a map or a group, which is not read: write it as JSON text, "+
				"or leave it out", f.Name())
		}
		leaf, _ := schema.Lookup(f.Name())
		fields = append(fields, field{name: f.Name(), index: leaf.ColumnIndex, of: f.Type()})
	}
	return fields, nil
}

// fill makes a row ready.
func (t *table) fill() error {
	for len(t.ready) == 0 {
		if len(t.groups) == 0 {
			return io.EOF
		}
		if t.rows == nil {
			t.rows = t.groups[0].Rows()
		}
		n, err := t.rows.ReadRows(t.buffer)
		if err != nil && err != io.EOF {
			return err
		}
		if t.ready = t.buffer[:n]; n == 0 {
			if err := t.rows.Close(); err != nil {
				return err
			}
			t.rows, t.groups = nil, t.groups[1:]
		}
	}
	return nil
}

// kind is what a column of an output holds.
type kind int

const (
	nothing kind = iota // null everywhere
	boolean
	integer // all of which a number can hold as well
	large   // integers of 64 bits
	number
	words // strings, and all that is mixed, has parts or more digits, as JSON
)

// kindOf is that of a JSON value.
func kindOf(value json.RawMessage) kind {
	switch {
	case len(value) == 0 || value[0] == 'n':
		return nothing
	case value[0] == 't' || value[0] == 'f':
		return boolean
	case value[0] == '"' || value[0] == '[' || value[0] == '{':
		return words
	}
	const exact = 1 << 53 // up to which a float64 has all integers
	if whole, err := strconv.ParseInt(string(value), 10, 64); err == nil {
		if whole < -exact || whole > exact {
			return large
		}
		return integer
	}
	if _, err := strconv.ParseFloat(string(value), 64); err != nil || !bytes.ContainsAny(value, ".eE") {
		return words
	}
	const most = 17 // digits of a float64
	digits := 0
	for _, c := range bytes.TrimLeft(value, "-0.") {
		if c == 'e' || c == 'E' {
			break
		}
		if c != '.' {
			digits++
		}
	}
	if digits > most {
		return words
	}
	return number
}

// both is the kind that holds two.
func (k kind) both(other kind) kind {
	low, high := min(k, other), max(k, other)
	switch {
	case low == high || low == nothing:
		return high
	case low == integer && (high == large || high == number):
		return high
	}
	return words
}

// ordered is a group whose columns keep their order, where that of the library sorts
// them by name. The library asks for them over and over.
type ordered struct {
	parquet.Group
	fields []parquet.Field
}

func (o ordered) Fields() []parquet.Field { return o.fields }

// tableWriter writes Parquet.
type tableWriter struct {
	*parquet.GenericWriter[any]
	columns []column
}

func newTableWriter(w io.Writer, columns []column) *tableWriter {
	group := parquet.Group{}
	for _, c := range columns {
		group[c.Name] = parquet.Optional(parquetTypes[c.parquetType()])
	}
	byName := map[string]parquet.Field{}
	for _, f := range group.Fields() {
		byName[f.Name()] = f
	}
	var fields []parquet.Field
	for _, c := range columns {
		fields = append(fields, byName[c.Name])
	}
	const rows = 1 << 16 // of a group: what is held in memory
	return &tableWriter{parquet.NewGenericWriter[any](w, parquet.NewSchema("infill", ordered{group, fields}),
		parquet.Compression(&parquet.Zstd), parquet.MaxRowsPerRowGroup(rows)), columns}
}

// write adds a row of the columns' values.
func (w *tableWriter) write(values []json.RawMessage) error {
	row := make(parquet.Row, len(w.columns))
	for i, c := range w.columns {
		value, err := valueOf(values[i], c.parquetType())
		if err != nil {
			return fmt.Errorf("column %q: %w", c.Name, err)
		}
		if value.IsNull() {
			row[i] = value.Level(0, 0, i)
		} else {
			row[i] = value.Level(0, 1, i)
		}
	}
	_, err := w.WriteRows([]parquet.Row{row})
	return err
}

func (w *tableWriter) close() error { return w.GenericWriter.Close() }

// The types that columns of the result have in Parquet, by their names.
const (
	parquetBoolean = "BOOLEAN"
	parquetInteger = "INT(64,true)"
	parquetNumber  = "DOUBLE"
	parquetWords   = "STRING"
)

// parquetTypes are the types that a file is written with, by the names that the library gives them.
var parquetTypes = func() map[string]parquet.Node {
	types := map[string]parquet.Node{}
	for _, n := range []parquet.Node{parquet.Leaf(parquet.BooleanType), parquet.Leaf(parquet.Int32Type),
		parquet.Leaf(parquet.Int64Type), parquet.Int(8), parquet.Int(16), parquet.Int(32), parquet.Int(64),
		parquet.Uint(8), parquet.Uint(16), parquet.Uint(32), parquet.Uint(64), parquet.Leaf(parquet.FloatType),
		parquet.Leaf(parquet.DoubleType), parquet.String()} {
		types[n.Type().String()] = n
	}
	return types
}()

// written is the type that a column keeps. What comes as text is text; a float64 has 15 digits of any decimal number.
func (f field) written() string {
	if _, ok := parquetTypes[f.of.String()]; ok {
		return f.of.String()
	}
	if d, ok := logical(f.of).(*format.DecimalType); ok && d.Precision <= 15 {
		return parquetNumber
	}
	return parquetWords
}

// parquetType is the type that a column is written with: its own, or else the one that holds all its values.
func (c column) parquetType() string {
	if c.Type != "" {
		return c.Type
	}
	switch c.Kind {
	case boolean:
		return parquetBoolean
	case integer, large:
		return parquetInteger
	case number:
		return parquetNumber
	}
	return parquetWords
}

// valueOf is a JSON value in a type of Parquet. It is an error where the type does not hold it.
func valueOf(raw json.RawMessage, name string) (parquet.Value, error) {
	if kindOf(raw) == nothing {
		return parquet.NullValue(), nil
	}
	t, s := parquetTypes[name].Type(), text(raw)
	bits := t.Length()
	switch t.Kind() {
	case parquet.Boolean:
		v, err := strconv.ParseBool(s)
		return parquet.BooleanValue(v), err
	case parquet.Float, parquet.Double:
		v, err := strconv.ParseFloat(s, bits) // the words for what is infinite among them
		if bits == 32 {
			return parquet.FloatValue(float32(v)), err
		}
		return parquet.DoubleValue(v), err
	case parquet.Int32, parquet.Int64:
		v, err := strconv.ParseInt(s, 10, bits)
		if l, ok := logical(t).(*format.IntType); ok && !l.IsSigned {
			var u uint64
			u, err = strconv.ParseUint(s, 10, bits)
			v = int64(u)
		}
		if t.Kind() == parquet.Int32 {
			return parquet.Int32Value(int32(v)), err
		}
		return parquet.Int64Value(v), err
	}
	return parquet.ByteArrayValue([]byte(s)), nil
}
