package batch

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"infill/infill"
	"infill/internal/ask"
	"infill/internal/rawjson"
)

// This file has the one writer of tables: their columns and lines.

type Layout struct {
	// Own are the columns that a run adds, in the order of Rows.Cells.
	Own []string `json:"own"`
	// Copied are the columns of the input, in the order of Rows.Copied. Of one name, Own
	// comes first.
	Copied []string `json:"copied,omitempty"`
	// Before and After are Own and Copied, on either side of the blanks.
	Before []string `json:"before"`
	After  []string `json:"after"`
	// Method is the method of fills where no record has another. "" says that
	// all of Own are wanted, else those of the methods that the run used.
	Method string `json:"method,omitempty"`
	// Wanted are the columns that are written, in this order; nil for all.
	Wanted []string `json:"wanted,omitempty"`
}

// check returns an *infill.OptionError if the output lacks a column that is wanted.
func (l Layout) check() error {
	all := slices.Concat(l.Before, l.After)
	ofBlanks := len(l.Before) > 0
	if ofBlanks {
		all = slices.Concat(l.Before, []string{"blank_1", "tokens_1", "entropy_1"}, l.After)
	}
	for i, name := range l.Wanted {
		if slices.Contains(l.Wanted[:i], name) {
			return &infill.OptionError{Option: "columns", Reason: fmt.Sprintf("column %q is named twice", name)}
		}
		if !slices.Contains(all, name) && !(ofBlanks && blankColumn.MatchString(name)) {
			return &infill.OptionError{Option: "columns",
				Reason: fmt.Sprintf("the output has no column %q: its columns are %s", name, quoted(all))}
		}
	}
	return nil
}

// pick leaves the wanted keys in lines of JSON, in the order wanted.
func (l Layout) pick(lines []json.RawMessage) {
	if l.Wanted == nil {
		return
	}
	for i, line := range lines {
		all := rawjson.Value(line).Object()
		var picked rawjson.Object
		for _, name := range l.Wanted {
			value := all.Get(name)
			if value != nil {
				picked = append(picked, rawjson.Field{Key: name, Value: value})
			}
		}
		lines[i] = picked.Append(nil)
	}
}

type Rows struct {
	// Lines are objects for JSON lines, and strings for plain text. For a
	// table, each is a list: Layout.Own, what each blank holds, and its tokens.
	Lines []json.RawMessage `json:"rows,omitempty"`
	// Blanks is their number, Entropies the cells of all rows, [blanks].
	Blanks    int      `json:"blanks,omitempty"`
	Entropies []string `json:"entropies,omitempty"`
	Method    string   `json:"method,omitempty"` // as Layout.Method
	// Copied are the cells of the columns of the input, which are the same in all rows,
	// [Layout.Copied]. Those at its end may be missing.
	Copied []string `json:"copied,omitempty"`
	// Unproven reports whether the fills of a search are not proven, and Excluded
	// what infill.Result.Excluded does of them.
	Unproven bool `json:"unproven,omitempty"`
	Excluded bool `json:"excluded,omitempty"`
	// Missing is the number of rows that were wanted and could not be made.
	Missing int `json:"missing,omitempty"`
}

func (r *Rows) addCells(cells []string) {
	line := []byte{'['}
	for i, cell := range cells {
		if i > 0 {
			line = append(line, ',')
		}
		line = append(line, rawjson.Quote(cell)...)
	}
	r.Lines = append(r.Lines, append(line, ']'))
}

func cellsUnder(names []string, o rawjson.Object) []string {
	cells := make([]string, len(names))
	for i, name := range names {
		cells[i] = rawjson.Plain(o.Get(name))
	}
	return cells
}

// shape says how many blanks records have at most, and which methods.
type shape struct {
	blanks  int
	methods []string
}

func (s *shape) see(r *Rows) {
	if r.Method != "" && !slices.Contains(s.methods, r.Method) {
		s.methods = append(s.methods, r.Method)
	}
	s.blanks = max(s.blanks, r.Blanks)
}

func (l Layout) columns(s shape) []string {
	if l.Wanted != nil {
		return l.Wanted
	}
	if s.methods == nil {
		s.methods = []string{l.Method}
	}
	names := slices.Clone(l.Before)
	for _, kind := range []string{"blank_", "tokens_", "entropy_"} {
		for i := range s.blanks {
			names = append(names, kind+strconv.Itoa(i+1))
		}
	}
	return slices.DeleteFunc(append(names, l.After...), func(name string) bool {
		return l.Method != "" && slices.Contains(l.Own, name) && !ask.HasColumn(name, s.methods)
	})
}

// cells adds the cells of a line of rows by their columns.
func (l Layout) cells(to map[string]string, r *Rows, line []string) {
	for i, cell := range r.Copied {
		to[l.Copied[i]] = cell
	}
	for i, cell := range line[:min(len(line), len(l.Own))] {
		to[l.Own[i]] = cell
	}
	ofBlanks := func(kind string, cells []string) {
		for i, cell := range cells[:min(len(cells), r.Blanks)] {
			to[kind+strconv.Itoa(i+1)] = cell
		}
	}
	rest := line[min(len(line), len(l.Own)):]
	ofBlanks("blank_", rest)
	ofBlanks("tokens_", rest[min(len(rest), r.Blanks):])
	ofBlanks("entropy_", r.Entropies)
}

// ColumnType is the type of a column of fills, for tables that have types.
type ColumnType struct {
	Name string `json:"name"`
	// Type is "text", "integer", "unsigned", "number" or "boolean"; "template" for the
	// column of the texts and "copied" for another column of the input.
	Type string `json:"type"`
}

// types returns the types of a table's columns; nil without fills.
func (l Layout) types(s shape) (list []ColumnType) {
	if l.Before == nil {
		return nil
	}
	l.Wanted = nil
	for _, name := range l.columns(s) {
		list = append(list, ColumnType{name, l.typeOf(name)})
	}
	return list
}

func (l Layout) typeOf(name string) string {
	kind, _, ofBlank := strings.Cut(name, "_")
	switch {
	case ofBlank && blankColumn.MatchString(name):
		return map[string]string{"blank": "text", "tokens": "integer", "entropy": "number"}[kind]
	case slices.Contains(l.Copied, name):
		return "copied"
	case name == "template" || types[name] == "":
		return "template"
	}
	return types[name]
}

type writer struct {
	to      io.Writer
	form    Form
	layout  Layout
	columns []string          // of a table
	named   map[string]string // the cells of the line in work by their columns
	cells   []string          // those in the order of columns
	whole   []byte            // the line in work
	table   *cellWriter       // nil for another form
}

// newWriter returns a writer of records that have together the shape used.
func newWriter(to io.Writer, form Form, l Layout, used shape) *writer {
	t := &writer{to: to, form: form, layout: l, named: map[string]string{}}
	if form.table() {
		t.columns = l.columns(used)
		t.cells = make([]string, len(t.columns))
		t.table = newCellWriter(to, form)
	}
	return t
}

// head writes the line above all others, if the form has one.
func (t *writer) head() error {
	if !t.form.table() {
		return nil
	}
	return t.table.write(t.columns)
}

func (t *writer) write(r *Rows) error {
	if t.form == formText && len(r.Lines) == 0 {
		return t.line(nil) // so that output and input have as many lines
	}
	for _, line := range r.Lines {
		var err error
		switch {
		case t.form.table():
			list := rawjson.Value(line).List()
			values := make([]string, len(list))
			for i, value := range list {
				values[i] = rawjson.Plain(value)
			}
			clear(t.named)
			t.layout.cells(t.named, r, values)
			for i, name := range t.columns {
				t.cells[i] = t.named[name]
			}
			err = t.table.write(t.cells)
		case t.form == formText:
			err = t.line([]byte(rawjson.Plain(rawjson.Value(line))))
		default:
			err = t.line(line)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (t *writer) line(line []byte) error {
	t.whole = append(append(t.whole[:0], line...), '\n')
	_, err := t.to.Write(t.whole)
	return err
}

// cellWriter writes lines of cells, each in one write.
type cellWriter struct {
	to  io.Writer
	b   bytes.Buffer
	csv *csv.Writer // to b; nil for TSV
}

func newCellWriter(to io.Writer, form Form) *cellWriter {
	c := &cellWriter{to: to}
	if form == formCSV {
		c.csv = csv.NewWriter(&c.b)
	}
	return c
}

func (c *cellWriter) write(line []string) error {
	c.b.Reset()
	switch {
	case c.csv != nil && len(line) == 1 && line[0] == "": // an empty line would be no row
		c.b.WriteString("\"\"\n")
	case c.csv != nil:
		c.csv.Write(line) //nolint:errcheck // a write to a bytes.Buffer cannot fail
		c.csv.Flush()
	default:
		c.tsv(line)
	}
	_, err := c.to.Write(c.b.Bytes())
	return err
}

// tsv puts a cell in quotes only if need be, as other programs take them.
func (c *cellWriter) tsv(line []string) {
	for i, cell := range line {
		if i > 0 {
			c.b.WriteByte('\t')
		}
		if strings.ContainsAny(cell, "\"\t\r\n") {
			cell = `"` + strings.ReplaceAll(cell, `"`, `""`) + `"`
		}
		c.b.WriteString(cell)
	}
	c.b.WriteByte('\n')
}

func WriteCSV(w io.Writer, rows ...[]string) error {
	to := newCellWriter(w, formCSV)
	for _, row := range rows {
		err := to.write(row)
		if err != nil {
			return err
		}
	}
	return nil
}

// Sheet holds the rows of a table in a temporary file until all columns are known.
type Sheet struct {
	file   *os.File
	buffer *bufio.Writer
	copied []string // the names of all copied columns, in the order first seen
	used   shape
}

// NewSheet returns a Sheet without rows. Write removes its file.
func NewSheet() (*Sheet, error) {
	file, err := os.CreateTemp("", "infill-*.jsonl")
	if err != nil {
		return nil, err
	}
	return &Sheet{file: file, buffer: bufio.NewWriter(file)}, nil
}

// Add adds the rows of a record, with columns that are the same in all of them.
func (s *Sheet) Add(r Rows, copied rawjson.Object) error {
	for _, field := range copied {
		if !slices.Contains(s.copied, field.Key) {
			s.copied = append(s.copied, field.Key)
		}
	}
	r.Copied = cellsUnder(s.copied, copied)
	s.used.see(&r)
	return rawjson.WriteLine(s.buffer, r)
}

// Write writes the rows as CSV. order orders columns, given the copied ones.
func (s *Sheet) Write(to io.Writer, order func(copied []string) Layout) (err error) {
	defer func() { err = errors.Join(err, s.file.Close(), os.Remove(s.file.Name())) }()
	err = s.buffer.Flush()
	if err != nil {
		return err
	}
	_, err = s.file.Seek(0, io.SeekStart)
	if err != nil {
		return err
	}
	l := order(s.copied)
	l.Copied = s.copied
	table := newWriter(to, formCSV, l, s.used)
	err = table.head()
	for lines := json.NewDecoder(s.file); err == nil && lines.More(); {
		var r Rows
		err = lines.Decode(&r)
		if err == nil {
			err = table.write(&r)
		}
	}
	return err
}
