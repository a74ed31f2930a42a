package batch

import (
	"bytes"
	"crypto/sha256"
	"encoding/csv"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"infill/infill"
	"infill/internal/object"
)

// input says which file is read.
type input struct {
	Name    string   `json:"name"`
	Bytes   int64    `json:"bytes"`
	SHA256  string   `json:"sha256,omitempty"` // known when all is read
	Form    Form     `json:"form"`
	Columns []string `json:"columns,omitempty"`
	Records int64    `json:"records"` // those read so far
}

// Record is a record of the input.
type Record struct {
	Number int64         // from 1, in the whole input; a header does not count
	Line   int64         // of the file, from 1, where it begins
	Object object.Object // of plain text one field, the work's column
	// Blank reports whether the line is empty or only white space.
	Blank bool
	// Err, a *RejectError, says why there is no Object.
	Err error

	raw []byte // as it stands in the file
	sum uint32 // of the input so far
}

// excerpt is the record for the file of rejects, cut where it is long.
func (r *Record) excerpt() string {
	const most = 1 << 14
	raw := r.raw
	if raw == nil && r.Object != nil {
		raw = r.Object.Append(nil)
	}
	if len(raw) > most {
		return strings.ToValidUTF8(string(raw[:most]), "\uFFFD") + "…"
	}
	return strings.ToValidUTF8(string(raw), "\uFFFD")
}

// openSource opens the input, whose text stands in column.
func openSource(f File, column string) (_ *source, err error) {
	if f, err = f.resolve("input"); err != nil {
		return nil, err
	}
	// Before it is opened: that waits where nobody writes into a named pipe.
	info, err := os.Stat(f.Path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is no regular file, which a run that goes on reads again: write it to a file first",
			f.Path)
	}
	about := input{Name: filepath.Base(f.Path), Bytes: info.Size(), Form: f.Form}
	file, err := os.Open(f.Path)
	if err != nil {
		return nil, err
	}
	s := &source{file: file, of: f, column: column, input: about, hash: sha256.New(), release: func() {}}
	if err := s.open(); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

// source gives records in order, and io.EOF after the last.
type source struct {
	*splitter
	input
	file    *os.File
	hash    hash.Hash
	read    int64 // bytes of the file
	release func()
	of      File
	column  string // of text
	sum     uint32
	ended   bool
}

// open begins to read, and reads the names of columns.
func (s *source) open() error {
	r, release, err := s.of.unpack(counted{s.file, io.Discard, &s.read, s.hash})
	if err != nil {
		return err
	}
	s.release, s.splitter = release, newSplitter(r, s.of.Form)
	if s.of.Form != formCSV && s.of.Form != formTSV {
		return nil
	}
	header, err := s.splitter.next()
	if err == io.EOF {
		return fmt.Errorf("%s is empty: its first line must name its columns", s.of.Path)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", s.of.Path, s.of.broken(err))
	}
	if s.Columns, err = readColumns(s.of, header); err != nil {
		return err
	}
	if !slices.Contains(s.Columns, s.column) {
		return noColumn(s.of, s.column, s.Columns)
	}
	s.splitter.number = 0
	return nil
}

func (s *source) close() {
	s.release()
	s.file.Close()
}

// about tells which file it is; all of it after the last record.
func (s *source) about() input { return s.input }

// total is how many records there are, or an estimate where that is not exact; 0 where nothing is read. It goes by
// the bytes of the file, since those that are read ahead are unpacked already.
func (s *source) total() (int64, bool) {
	if s.ended || s.offset == 0 || s.read == 0 {
		return s.Records, s.ended
	}
	unpacked := float64(s.offset + int64(s.r.Buffered()))
	return int64(float64(s.Records) / float64(s.offset) * unpacked / float64(s.read) * float64(s.Bytes)), false
}

// next is a record, what it holds where that is wanted.
func (s *source) next(wanted bool) (Record, error) {
	r, err := s.splitter.next()
	if err == io.EOF {
		// What stands behind the end of a compressed stream is of the file as well.
		_, e := io.Copy(s.hash, s.file)
		s.SHA256, s.ended = fmt.Sprintf("%x", s.hash.Sum(nil)), true
		if e != nil {
			err = e
		}
		return r, err
	}
	if err != nil {
		return r, s.of.broken(err)
	}
	s.Records = r.Number
	s.sum = crc32.Update(s.sum, castagnoli, r.raw)
	if r.sum = s.sum; r.Err == nil && wanted {
		s.parse(&r)
	}
	return r, nil
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

const byteOrderMark = "\ufeff"

// parse reads what a record holds.
func (s *source) parse(r *Record) {
	raw := r.raw
	if r.Line == 1 {
		raw = bytes.TrimPrefix(raw, []byte(byteOrderMark))
	}
	if r.Blank = len(bytes.TrimSpace(raw)) == 0; r.Blank {
		return
	}
	var err error
	switch s.of.Form {
	case formJSONL:
		if r.Object, err = object.Parse(raw); err != nil {
			r.Err = &RejectError{err}
		}
	case formText:
		if !utf8.Valid(raw) {
			r.Err = reject("the line is not valid UTF-8")
			return
		}
		if returns(raw) {
			r.Err = &RejectError{ErrReturn}
			return
		}
		r.Object = object.Object{{Key: s.column, Value: object.Quote(string(raw))}}
	case formCSV, formTSV:
		cells, err := cells(s.of.Form, raw)
		switch {
		case err != nil:
			r.Err = &RejectError{err}
		case len(cells) != len(s.Columns):
			r.Err = reject("%d cells, the header has %d", len(cells), len(s.Columns))
		default:
			for i, cell := range cells {
				r.Object = append(r.Object, object.Field{Key: s.Columns[i], Value: object.Quote(cell)})
			}
		}
	}
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
	return &infill.OptionError{Option: "column", Reason: fmt.Sprintf("%s has no column %q: its columns are %s", f.Path,
		column, strings.Join(columns, ", "))}
}
