package batch

import (
	"bufio"
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"infill/infill"
	"infill/internal/object"
	"infill/internal/regular"
)

const (
	// maxRecord is the longest record that is read, in bytes, far above what a model takes in. A longer line is wrong
	// alone.
	maxRecord = 1 << 20
	// maxLine is how much of a file is held at most to find the end of a line, or of a record of CSV.
	maxLine = 1 << 25
)

// Record is a record of the input.
type Record struct {
	Number int64         // from 1, in the whole input; a header does not count
	Line   int64         // of the file, from 1, where it begins
	Object object.Object // of plain text one field, the work's column
	// Blank reports whether the line is empty or only white space.
	Blank bool
	// Err, a *RejectError, says why there is no Object.
	Err error

	raw   []byte   // the line without its end, until the next one is read
	cells []string // of a table, instead
}

// Reader gives the records of a text in one of the forms, in their order. A line that is wrong is wrong alone. CSV
// that is broken ends the reading, since nobody can say where the next record begins.
type Reader struct {
	form         Form
	column       string // of plain text
	number, line int64  // of records and lines taken

	lines *bufio.Scanner
	ahead []string    // lines of TSV that were looked at
	more  int         // lines that the last record of TSV took beside its first
	table *csv.Reader // of CSV, instead of lines
	// limit is of a record of table, which would reach to the end of the file where a quote has none.
	limit *io.LimitedReader
	names []string // of the columns of a table

	of   File // empty for a stream, and body nil
	body io.Closer
}

var errLong = fmt.Errorf("longer than %d bytes: close its quotes, or split it", maxLine)

const byteOrderMark = "\ufeff"

// NewReader reads plain text and JSON lines; a table has a header, which openInput reads.
func NewReader(r io.Reader, form Form, column string) *Reader {
	s := &Reader{form: form, column: column}
	if form != formCSV {
		s.lines = bufio.NewScanner(r)
		s.lines.Buffer(nil, maxLine)
		return s
	}
	s.limit = &io.LimitedReader{R: r, N: maxLine}
	b := bufio.NewReaderSize(s.limit, bufferSize)
	if mark, _ := b.Peek(len(byteOrderMark)); string(mark) == byteOrderMark {
		b.Discard(len(mark)) //nolint:errcheck // they are there
	}
	s.table = csv.NewReader(b)
	s.table.FieldsPerRecord = -1
	start, _ := b.Peek(bufferSize)
	if head, _, _ := strings.Cut(string(start), "\n"); !strings.Contains(head, ",") && strings.Contains(head, ";") {
		s.table.Comma = ';' // as spreadsheets write it where numbers have a comma
	}
	return s
}

// Next is the next record, and io.EOF after the last.
func (s *Reader) Next() (Record, error) {
	r, err := s.split()
	if err == nil {
		if err := s.parse(&r); err != nil {
			r.Err = &RejectError{err}
		}
	}
	return r, err
}

// split cuts off the next record, without reading what is in it.
func (s *Reader) split() (r Record, err error) {
	if s.table != nil {
		s.limit.N = maxLine
		if r.cells, err = s.table.Read(); err == nil {
			line, _ := s.table.FieldPos(0)
			s.line = int64(line)
		}
		if s.limit.N == 0 {
			err = errLong
		}
	} else if len(s.ahead) > 0 || s.lines.Scan() {
		r.raw = s.lines.Bytes()
		if len(s.ahead) > 0 {
			r.raw, s.ahead = []byte(s.ahead[0]), s.ahead[1:]
		}
		if s.line, s.more = s.line+1+int64(s.more), 0; s.line == 1 {
			r.raw = bytes.TrimPrefix(r.raw, []byte(byteOrderMark))
		}
		if s.form == formTSV {
			r.raw, r.cells = nil, s.tsv(string(r.raw))
		}
	} else {
		err = cmp.Or(s.lines.Err(), io.EOF)
	}
	var wrong *csv.ParseError
	switch {
	case err == io.EOF:
		return r, err
	case errors.As(err, &wrong):
		err = fmt.Errorf("line %d is not CSV: %w at byte %d: mend it, or save the file as .tsv or .jsonl",
			wrong.StartLine, wrong.Err, wrong.Column)
	case err == errLong, errors.Is(err, bufio.ErrTooLong):
		err = fmt.Errorf("the record after line %d is %w", s.line, errLong)
	case err != nil:
		err = s.of.broken(err)
	}
	if err != nil && s.of.Path != "" {
		err = fmt.Errorf("%s: %w", s.of.Path, err)
	}
	s.number++
	r.Number, r.Line = s.number, s.line
	return r, err
}

// longestCell is how many lines a cell of TSV may have.
const longestCell = 1000

// tsv cuts a record of TSV, of which a cell in quotes may go on over lines. If they give no whole record, the quote is
// a character of the first.
func (s *Reader) tsv(line string) []string {
	cells, open := cutTSV(line)
	literal := cells
	for n := 1; open && n < longestCell; n++ {
		if len(s.ahead) < n {
			if !s.lines.Scan() {
				break
			}
			s.ahead = append(s.ahead, s.lines.Text())
		}
		if !strings.Contains(s.ahead[n-1], `"`) {
			continue
		}
		if cells, open = cutTSV(line + "\n" + strings.Join(s.ahead[:n], "\n")); !open && len(cells) == len(s.names) {
			s.ahead, s.more = s.ahead[n:], n
			return cells
		}
	}
	return literal
}

// cutTSV cuts a text at tabs. A cell in quotes that holds tabs, lines or quotes has those doubled; all other quotes are
// characters. It reports whether a cell begins with a quote that does not end, and gives no cells if one without quotes
// has several lines.
func cutTSV(text string) (cells []string, open bool) {
	for {
		end := 1
		for end < len(text) && (text[end] != '"' || strings.HasPrefix(text[end:], `""`)) {
			end += 1 + strings.Count(text[end:end+1], `"`)
		}
		quoted := strings.HasPrefix(text, `"`)
		cell, rest, more := strings.Cut(text, "\t")
		switch {
		case quoted && end >= len(text):
			open = true
		case quoted && (end+1 == len(text) || text[end+1] == '\t') && strings.ContainsAny(text[1:end], "\t\n\r\""):
			more, rest = end+1 < len(text), text[min(end+2, len(text)):]
			cell = strings.ReplaceAll(text[1:end], `""`, `"`)
		case strings.Contains(cell, "\n"):
			return nil, false
		}
		if cells = append(cells, cell); !more {
			return cells, open
		}
		text = rest
	}
}

// parse reads what a record holds.
func (s *Reader) parse(r *Record) (err error) {
	text := string(r.raw) + strings.Join(r.cells, "")
	switch r.Blank = strings.TrimSpace(text) == ""; {
	case r.Blank:
	case len(text) > maxRecord:
		return fmt.Errorf("longer than %d bytes: split it", maxRecord)
	case s.form == formJSONL:
		r.Object, err = object.Parse([]byte(text))
	case !utf8.ValidString(text):
		return errors.New("the line is not valid UTF-8: save the file as UTF-8")
	case s.form == formText:
		r.Object = object.Object{{Key: s.column, Value: object.Quote(text)}}
	case len(r.cells) != len(s.names):
		return fmt.Errorf("%d cells, the header has %d", len(r.cells), len(s.names))
	}
	for i, cell := range r.cells {
		if !r.Blank {
			r.Object = append(r.Object, object.Field{Key: s.names[i], Value: object.Quote(cell)})
		}
	}
	return err
}

// openInput opens a file whose text stands in column, and reads the names of its columns. It also writes the bytes of
// the file to a copy.
func openInput(f File, column string, to io.Writer) (*Reader, error) {
	f, err := f.resolve("input")
	if err != nil {
		return nil, err
	}
	file, err := regular.Open(f.Path) // that no pipe is: a run that goes on reads its input again
	if err != nil {
		return nil, err
	}
	body, err := f.unpack(file, to)
	if err != nil {
		return nil, err
	}
	s := NewReader(body, f.Form, column)
	s.of, s.body = f, body
	if f.Form.table() {
		if err = s.readHeader(); err == nil {
			err = s.has(column)
		}
	}
	if err != nil {
		return nil, errors.Join(err, body.Close())
	}
	return s, nil
}

// readHeader reads the names of a table's columns.
func (s *Reader) readHeader() error {
	r, err := s.split()
	if err != nil && err != io.EOF {
		return err
	}
	if strings.TrimSpace(strings.Join(r.cells, "")) == "" {
		return fmt.Errorf("%s: line 1 is empty: it must name the columns", s.of.Path)
	}
	s.number, s.names = 0, r.cells
	seen := map[string]bool{}
	for _, name := range s.names {
		if strings.Contains(name, "\x00") {
			return fmt.Errorf("%s: line 1 has NUL characters, as text in UTF-16 looks: save the file as UTF-8",
				s.of.Path)
		}
		if !utf8.ValidString(name) {
			return fmt.Errorf("%s: line 1 is not valid UTF-8: save the file as UTF-8", s.of.Path)
		}
		if seen[name] {
			return fmt.Errorf("%s: two columns are called %q: rename one", s.of.Path, name)
		}
		seen[name] = true
	}
	return nil
}

// has is an error where a table has no column of a name.
func (s *Reader) has(column string) error {
	if s.names == nil || slices.Contains(s.names, column) {
		return nil
	}
	there := strings.ReplaceAll(strings.Trim(fmt.Sprintf("%q", s.names), "[]"), `" "`, `", "`)
	return &infill.OptionError{Option: "column",
		Reason: fmt.Sprintf("%s has no column %q: its columns are %s", s.of.Path, column, there)}
}

// survey reads a file once, to count its records and to know it again: it returns its SHA-256, short.
func survey(f File, column string) (records int64, sum string, err error) {
	hash := sha256.New()
	s, err := openInput(f, column, hash)
	if err != nil {
		return 0, "", err
	}
	defer s.body.Close()
	for err == nil {
		_, err = s.split()
	}
	if err != io.EOF {
		return 0, "", err
	}
	return s.number, fmt.Sprintf("%.8x", hash.Sum(nil)), nil
}

// Records reads all records of a file but blank ones. Each has a text in every one of the named columns, or an error.
func Records(f File, columns ...string) (list []Record, err error) {
	s, err := openInput(f, columns[0], io.Discard)
	if err == nil {
		defer s.body.Close()
	}
	for i := 1; i < len(columns) && err == nil; i++ {
		err = s.has(columns[i])
	}
	var option *infill.OptionError
	if errors.As(err, &option) {
		return nil, errors.New(option.Reason) // which flag it is depends on the command
	}
	for err == nil {
		var r Record
		if r, err = s.Next(); err != nil || r.Blank {
			continue
		}
		for _, name := range columns {
			if r.Err == nil {
				_, r.Err = textOf(r.Object, name)
			}
		}
		list = append(list, r)
	}
	if err != io.EOF {
		return nil, err
	}
	return list, nil
}
