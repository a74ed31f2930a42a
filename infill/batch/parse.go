package batch

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"infill/internal/object"
)

// parse reads what a record holds.
func (s *streamed) parse(r *Record) {
	raw := r.raw
	if r.offset == 0 {
		raw = bytes.TrimPrefix(raw, []byte(byteOrderMark))
	}
	if r.Blank = len(bytes.TrimSpace(raw)) == 0; r.Blank {
		return
	}
	var err error
	switch s.of.Form {
	case JSONL:
		if r.Object, err = object.Parse(raw); err != nil {
			r.Err = &RejectError{err}
		}
	case Text:
		if !utf8.Valid(raw) {
			r.Err = reject("the line is not valid UTF-8")
			return
		}
		if returns(raw) {
			r.Err = &RejectError{ErrReturn}
			return
		}
		r.Object = Object{{Key: s.column, Value: object.Quote(string(raw))}}
	case CSV, TSV:
		cells, err := cells(s.of.Form, raw)
		switch {
		case err != nil:
			r.Err = &RejectError{err}
		case len(cells) != len(s.columns):
			r.Err = reject("%d cells, the header has %d", len(cells), len(s.columns))
		default:
			for i, cell := range cells {
				r.Object = append(r.Object, Field{Key: s.columns[i], Value: object.Quote(cell)})
			}
		}
	}
}

// ErrReturn is a line that is several to other programs.
var ErrReturn = errors.New("a carriage return stands within the line: end lines with a line feed, with or without a carriage return before it")

// returns tells whether a carriage return without its line feed stands within a line.
func returns(line []byte) bool {
	line = bytes.ReplaceAll(bytes.TrimRight(line, "\r"), []byte("\r\n"), nil)
	return bytes.IndexByte(line, '\r') >= 0
}

// cells cuts a record of CSV or TSV.
func cells(form Form, raw []byte) ([]string, error) {
	if !utf8.Valid(raw) {
		return nil, fmt.Errorf("the line is not valid UTF-8")
	}
	if form == TSV {
		return strings.Split(string(raw), "\t"), nil
	}
	// The reader makes \n of \r\n, also within a cell.
	reader := csv.NewReader(bytes.NewReader(bytes.ReplaceAll(raw, []byte("\r\n"), []byte("\r\r\n"))))
	reader.FieldsPerRecord = -1
	cells, err := reader.Read()
	if err != nil {
		var parse *csv.ParseError
		if errors.As(err, &parse) {
			return nil, fmt.Errorf("the line is not CSV: %w at byte %d", parse.Err, parse.Column)
		}
		return nil, fmt.Errorf("the line is not CSV: %w", err)
	}
	if _, err := reader.Read(); err != io.EOF {
		return nil, fmt.Errorf("the line is not CSV: a quote has no end")
	}
	return cells, nil
}

// readColumns reads the header of CSV or TSV.
func readColumns(f File, r Record) ([]string, error) {
	raw := bytes.TrimPrefix(r.raw, []byte(byteOrderMark))
	if r.Err != nil {
		return nil, fmt.Errorf("%s: line 1: %w", f.Path, r.Err)
	}
	if len(bytes.TrimSpace(raw)) == 0 {
		return nil, fmt.Errorf("%s: line 1 is empty: it must name the columns", f.Path)
	}
	if returns(raw) {
		return nil, fmt.Errorf("%s: line 1: %w", f.Path, ErrReturn)
	}
	columns, err := cells(f.Form, raw)
	if err != nil {
		return nil, fmt.Errorf("%s: line 1: %w", f.Path, err)
	}
	seen := map[string]bool{}
	for _, name := range columns {
		if seen[name] {
			return nil, fmt.Errorf("%s: two columns are called %q: rename one", f.Path, name)
		}
		seen[name] = true
	}
	return columns, nil
}

// noColumn says that a file has no column of a name.
func noColumn(f File, column string, columns []string) error {
	for i, c := range columns {
		columns[i] = fmt.Sprintf("%q", c)
	}
	return fmt.Errorf("%s has no column %q: name one of its columns by --column: %s", f.Path, column, strings.Join(columns, ", "))
}
