package batch

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"infill/internal/object"
)

// maxRecord is the longest record that is read, in bytes, far above what a model
// takes in. Longer ones are left out without holding them in memory.
const maxRecord = 1 << 20

// Record is a record of the input.
type Record struct {
	Number int64         // from 1, in the whole input; a header does not count
	Line   int64         // of the file, from 1, where it begins
	Raw    []byte        // as it stands in the file, without its end
	Object object.Object // of plain text one field, the work's column
	// Blank reports whether the line is empty or only white space.
	Blank bool
	// Err, a *RejectError, says why there is no Object.
	Err error
}

// excerpt is the record for the file of rejects, cut where it is long.
func (r *Record) excerpt() string {
	const most = 1 << 14
	if len(r.Raw) > most {
		return strings.ToValidUTF8(string(r.Raw[:most]), "\uFFFD") + "…"
	}
	return strings.ToValidUTF8(string(r.Raw), "\uFFFD")
}

// Reader gives the records of a text in one of the forms, in their order; of the form "" lines as they are.
type Reader struct {
	form   Form
	column string   // of plain text
	names  []string // of the columns of a table
	r      *bufio.Reader

	number, line int64 // of records and lines taken
	begun        bool  // something was read
	// pending are lines that were read ahead for a cell over several lines that did
	// not end.
	pending []piece
}

// piece is a line with its end; of one that is too long only the size is kept.
type piece struct {
	bytes []byte
	size  int64
}

// NewReader reads plain text and JSON lines; a table has a header, which openInput reads.
func NewReader(r io.Reader, form Form, column string) *Reader {
	return &Reader{form: form, column: column, r: bufio.NewReaderSize(r, bufferSize)}
}

// Next is the next record, and io.EOF after the last.
func (s *Reader) Next() (Record, error) {
	r, err := s.split()
	if err == nil && r.Err == nil {
		if err := s.parse(&r); err != nil {
			r.Err = &RejectError{err}
		}
	}
	return r, err
}

// split cuts off the next record, without reading what is in it.
func (s *Reader) split() (Record, error) {
	first, err := s.take()
	if err != nil {
		return Record{}, err
	}
	lines := []piece{first}
	if s.form == formCSV && first.bytes != nil {
		state, total := quotes(0, first.bytes), first.size
		for state == quotedCell {
			next, err := s.take()
			if err != nil && err != io.EOF {
				return Record{}, err
			}
			if err == nil {
				lines, total, state = append(lines, next), total+next.size, quotes(state, next.bytes)
			}
			if err == io.EOF || next.bytes == nil || total > maxRecord || state == wrongCell {
				// The quote has no end: the line is wrong alone, and takes none with it.
				s.pending, lines = append(slices.Clone(lines[1:]), s.pending...), lines[:1]
				break
			}
		}
	}
	s.number++
	r := Record{Number: s.number, Line: s.line + 1}
	for _, l := range lines {
		s.line++
		if l.bytes == nil {
			r.Err = reject("longer than %d bytes: split it", maxRecord)
		}
		r.Raw = append(r.Raw, l.bytes...)
	}
	if r.Err == nil {
		r.Raw = slices.Clip(bytes.TrimSuffix(bytes.TrimSuffix(r.Raw, []byte("\n")), []byte("\r")))
	}
	return r, nil
}

// take returns a line that was read ahead, or reads one.
func (s *Reader) take() (p piece, err error) {
	if len(s.pending) > 0 {
		p, s.pending = s.pending[0], s.pending[1:]
		return p, nil
	}
	for {
		part, err := s.r.ReadSlice('\n')
		s.begun = s.begun || len(part) > 0
		if p.size += int64(len(part)); p.size <= maxRecord+2 { // with its end
			p.bytes = append(p.bytes, part...)
		} else {
			p.bytes = nil
		}
		switch {
		case err == bufio.ErrBufferFull:
		case err == io.EOF && p.size > 0:
			return p.bounded(), nil
		case err != nil:
			return p, err
		default:
			return p.bounded(), nil
		}
	}
}

// bounded leaves out what is too long.
func (p piece) bounded() piece {
	if len(bytes.TrimRight(p.bytes, "\r\n")) > maxRecord {
		p.bytes = nil
	}
	return p
}

const byteOrderMark = "\ufeff"

// parse reads what a record holds.
func (s *Reader) parse(r *Record) (err error) {
	raw := r.Raw
	if r.Line == 1 {
		raw = bytes.TrimPrefix(raw, []byte(byteOrderMark))
	}
	if r.Blank = len(bytes.TrimSpace(raw)) == 0; r.Blank {
		return nil
	}
	switch s.form {
	case formJSONL:
		r.Object, err = object.Parse(raw)
	case formText:
		if !utf8.Valid(raw) {
			return errors.New("the line is not valid UTF-8")
		}
		if returns(raw) {
			return ErrReturn
		}
		r.Object = object.Object{{Key: s.column, Value: object.Quote(string(raw))}}
	case formCSV, formTSV:
		cells, err := cells(s.form, raw)
		if err != nil {
			return err
		}
		if len(cells) != len(s.names) {
			return fmt.Errorf("%d cells, the header has %d", len(cells), len(s.names))
		}
		for i, cell := range cells {
			r.Object = append(r.Object, object.Field{Key: s.names[i], Value: object.Quote(cell)})
		}
	}
	return err
}

// ErrReturn reports a line that other programs would read as several.
var ErrReturn = errors.New(
	"a carriage return stands within the line: end lines with a line feed, with or without a carriage return before it")

// returns reports whether a carriage return without its line feed stands within a line.
func returns(line []byte) bool {
	line = bytes.ReplaceAll(bytes.TrimRight(line, "\r"), []byte("\r\n"), nil)
	return bytes.IndexByte(line, '\r') >= 0
}

// cells cuts a record of CSV or TSV.
func cells(form Form, raw []byte) ([]string, error) {
	if !utf8.Valid(raw) {
		return nil, fmt.Errorf("the line is not valid UTF-8")
	}
	if form == formTSV {
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

// The states of reading CSV.
const (
	cellStart = iota
	plainCell
	quotedCell
	quoteInQuoted // the end of the cell, or the first of two that stand for one
	wrongCell     // it goes on behind its end
)

// quotes goes on from a state over more bytes. A quote within a cell that does not
// begin with one opens nothing: such a line is wrong alone.
func quotes(state int, line []byte) int {
	for _, c := range line {
		switch {
		case state == quotedCell:
			if c == '"' {
				state = quoteInQuoted
			}
		case state == wrongCell:
			return state
		case state == quoteInQuoted && c == '"':
			state = quotedCell
		case c == ',' || c == '\n':
			state = cellStart
		case state == cellStart && c == '"':
			state = quotedCell
		case state == quoteInQuoted:
			if c != '\r' {
				state = wrongCell
			}
		default:
			state = plainCell
		}
	}
	return state
}
