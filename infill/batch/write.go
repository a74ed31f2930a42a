package batch

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"infill/infill"
	"infill/internal/object"
)

// This file has the one writer of tables: which columns there are, and in which
// order.

// shape says what the records of a run have in common: the largest number of
// blanks, and the methods that filled them.
type shape struct {
	blanks  int
	methods []string
}

func (s *shape) see(r *rows) {
	if r.Method != "" && !slices.Contains(s.methods, r.Method) {
		s.methods = append(s.methods, r.Method)
	}
	for _, words := range r.Blanks {
		s.blanks = max(s.blanks, len(words))
	}
}

// columns returns the columns of a table of records with that shape.
func (l layout) columns(s shape) (names []string) {
	if s.methods == nil {
		s.methods = []string{l.Method}
	}
	add := func(list []string) {
		for _, name := range list {
			own := slices.Contains(l.Own, name)
			if !own || l.Method == "" || ofMethods(name, s.methods) {
				names = append(names, name)
			}
		}
	}
	add(l.Before)
	for i := range s.blanks {
		names = append(names, blankName(i))
	}
	for i := range s.blanks {
		names = append(names, entropyName(i))
	}
	add(l.After)
	return names
}

func blankName(i int) string   { return fmt.Sprintf("blank_%d", i+1) }
func entropyName(i int) string { return fmt.Sprintf("entropy_%d", i+1) }

// ofMethods reports whether a table of fills by these methods has the column.
func ofMethods(column string, methods []string) bool {
	fills := func(method string) bool { return slices.Contains(infill.MethodOf(method).Columns(), column) }
	return !slices.Contains(infill.SpecialColumns(), column) || slices.ContainsFunc(methods, fills)
}

// writer writes rows as lines of the output.
type writer struct {
	form    Form
	columns []string // of a table
	own     []string // as layout.Own
	blanks  int      // as shape.blanks
}

// head writes the line above all others, if the form has one.
func (t *writer) head(w io.Writer) error {
	if !t.form.table() {
		return nil
	}
	_, err := w.Write(tableLine(t.form, slices.Clone(t.columns)))
	return err
}

// write writes the lines of a record.
func (t *writer) write(w io.Writer, r *rows) error {
	var b bytes.Buffer
	switch {
	case t.form.table():
		err := t.table(&b, r)
		if err != nil {
			return err
		}
	case t.form == formText && len(r.Lines) == 0:
		b.WriteString("\n") // so that output and input have as many lines
	}
	for _, line := range r.Lines {
		if t.form == formText {
			line = json.RawMessage(object.Plain(object.Value(line)))
		}
		b.Write(line)
		b.WriteByte('\n')
	}
	_, err := w.Write(b.Bytes())
	return err
}

func (t *writer) table(b *bytes.Buffer, r *rows) error {
	if len(r.Cells) == 0 {
		return nil
	}
	copied, err := object.Parse(r.Copied)
	if err != nil {
		return err
	}
	cell := map[string]string{}
	for _, field := range copied {
		cell[field.Key] = object.Plain(field.Value)
	}
	for n, cells := range r.Cells {
		for i, name := range t.own {
			cell[name] = cells[i]
		}
		for i := range t.blanks {
			cell[blankName(i)] = ""
			cell[entropyName(i)] = ""
		}
		if r.Blanks != nil {
			for i, word := range r.Blanks[n] {
				cell[blankName(i)] = word
			}
		}
		for i, bits := range r.Entropies {
			cell[entropyName(i)] = bits
		}
		line := make([]string, len(t.columns))
		for i, name := range t.columns {
			line[i] = cell[name]
		}
		b.Write(tableLine(t.form, line))
	}
	return nil
}

// tableLine returns a line of a table. It may change cells.
func tableLine(form Form, cells []string) []byte {
	var b bytes.Buffer
	if form == formCSV {
		w := csv.NewWriter(&b)
		w.Write(cells) //nolint:errcheck // a write to a bytes.Buffer cannot fail
		w.Flush()
		return b.Bytes()
	}
	for i, cell := range cells {
		if strings.ContainsAny(cell, "\"\t\r\n") { // readers of other programs take quotes so
			cells[i] = `"` + strings.ReplaceAll(cell, `"`, `""`) + `"`
		}
	}
	return []byte(strings.Join(cells, "\t") + "\n")
}
