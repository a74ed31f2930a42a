package batch

import (
	"bufio"
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/csv"
	"errors"
	"fmt"
	"hash"
	"io"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"infill/infill"
	"infill/internal/lines"
	"infill/internal/object"
	"infill/internal/regular"
)

const (
	// maxRecord is the largest number of bytes in a record, far more than a
	// model can read. A longer record is rejected, and reading goes on.
	maxRecord = 1 << 20
	// maxLine is the largest number of bytes that the reader buffers to find
	// the end of a line, or of a CSV record.
	maxLine = 1 << 25
)

// Record is a record of the input.
type Record struct {
	Number int64         // from 1 in the whole input, without a header
	Line   int64         // line of the file, from 1, where the record begins
	Object object.Object // for plain text, one field named as work.column returns it
	// Blank reports whether the record is empty or only white space.
	Blank bool
	// Err is a *RejectError that says why Object is missing, or nil.
	Err error

	raw   []byte   // the line without its line break, valid until the next line is read
	cells []string // cells of a table's line, instead of raw
	cr    bool     // whether a CR stands in a cell of TSV without quotes
}

// Reader reads the records of a text in one of the forms, in order. A wrong
// line does not end the reading. Broken CSV does end it, because nobody can say
// where the next record begins.
type Reader struct {
	form         Form
	column       string // column for plain text
	number, line int64  // number of records, and of lines, returned so far

	lines *bufio.Scanner
	ended bool        // whether the last of lines had its line break
	ahead []string    // lines of TSV that are read but not yet returned
	more  int         // further lines that the last record of TSV took
	table *csv.Reader // reader of CSV, instead of lines
	// limit bounds the bytes of a CSV record. Otherwise an opening quote
	// without an end would read the whole file.
	limit *io.LimitedReader
	names []string // names of a table's columns
	// quoted says that the header of TSV has all names in quotes, as R writes it: then
	// every cell in quotes stands in them, with \" or "" for a quote.
	quoted   bool
	unquoted *strings.Replacer // of a cell in quotes

	of   File // zero for a stream, and body is then nil
	body io.Closer
}

var errLong = fmt.Errorf("longer than %d bytes: close its quotes, or split it", maxLine)

// NewReader returns a Reader of plain text or JSON lines. For a table,
// openInput also reads the header.
func NewReader(r io.Reader, form Form, column string) *Reader {
	s := &Reader{form: form, column: column, unquoted: strings.NewReplacer(`""`, `"`)}
	if form != formCSV {
		s.lines = bufio.NewScanner(r)
		s.lines.Buffer(nil, maxLine)
		s.lines.Split(func(data []byte, atEnd bool) (int, []byte, error) {
			n, line, err := lines.Scan(data, atEnd)
			s.ended = n > len(line)
			return n, line, err
		})
		return s
	}
	s.limit = &io.LimitedReader{R: r, N: maxLine}
	b := bufio.NewReaderSize(s.limit, bufferSize)
	mark, _ := b.Peek(len(lines.ByteOrderMark))
	if string(mark) == lines.ByteOrderMark {
		b.Discard(len(mark)) //nolint:errcheck // Peek has these bytes
	}
	start, _ := b.Peek(bufferSize)
	s.table = csv.NewReader(lines.NewCSV(b))
	s.table.FieldsPerRecord = -1
	head, _, _ := strings.Cut(string(start), "\n")
	head = inQuotes.ReplaceAllString(head, "")
	if !strings.Contains(head, ",") && strings.Contains(head, ";") {
		s.table.Comma = ';' // spreadsheets write ; in countries whose numbers have a comma
	}
	return s
}

var inQuotes = regexp.MustCompile(`"[^"]*"`)

// Next returns the next record, or io.EOF after the last.
func (s *Reader) Next() (Record, error) {
	r, err := s.split()
	if err != nil {
		return r, err
	}
	err = s.parse(&r)
	if err != nil {
		r.Err = &RejectError{error: err}
	}
	return r, nil
}

// split returns the next record with its line or cells. parse then sets the other fields.
func (s *Reader) split() (r Record, err error) {
	if s.table != nil {
		s.limit.N = maxLine
		r.cells, err = s.table.Read()
		switch {
		case s.limit.N == 0:
			err = errLong
		case err != nil:
		default:
			line, _ := s.table.FieldPos(0)
			s.line = int64(line)
		}
	} else if len(s.ahead) > 0 || s.scan() {
		r.raw = s.lines.Bytes()
		if len(s.ahead) > 0 {
			r.raw = []byte(s.ahead[0])
			s.ahead = s.ahead[1:]
		}
		s.line = s.line + 1 + int64(s.more)
		s.more = 0
		if s.line == 1 {
			r.raw = bytes.TrimPrefix(r.raw, []byte(lines.ByteOrderMark))
		}
		if s.form == formTSV {
			r.cells, r.cr, err = s.tsv(string(r.raw))
			r.raw = nil
		}
		r.raw = bytes.TrimSuffix(r.raw, []byte("\r"))
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
	}
	if err != nil && s.of.Path != "" {
		err = fmt.Errorf("%s: %w", s.of.Path, err)
	}
	s.number++
	r.Number = s.number
	r.Line = s.line
	return r, err
}

// scan reads the next line. What is left of a line that an error of the file
// cuts off is no line: a run that goes on would never read it again.
func (s *Reader) scan() bool { return s.lines.Scan() && (s.ended || s.lines.Err() == nil) }

// tsv cuts a record of TSV into cells. A cell in quotes may have several lines.
// If no following lines complete the record, the quote is an ordinary character
// of the first line. cr reports whether a CR stands in a cell without quotes.
func (s *Reader) tsv(line string) (cells []string, cr bool, err error) {
	cells, open, cr := s.cut(withoutCR(line))
	literal := cells
	literalCR := cr
	for n := 1; open && n < 1000; n++ { // a cell has at most 1000 lines
		if len(s.ahead) < n {
			if !s.scan() {
				err = s.lines.Err()
				break
			}
			s.ahead = append(s.ahead, s.lines.Text())
		}
		if !strings.Contains(s.ahead[n-1], `"`) {
			continue
		}
		cells, open, cr = s.cut(withoutCR(line + "\n" + strings.Join(s.ahead[:n], "\n")))
		if !open && len(cells) == len(s.names) {
			s.ahead = s.ahead[n:]
			s.more = n
			return cells, cr, nil
		}
	}
	if err != nil {
		s.line += int64(len(s.ahead)) // the line that cannot be read follows these
		return nil, false, err
	}
	return literal, literalCR, nil
}

// withoutCR returns a line without the CR at its end.
func withoutCR(line string) string { return strings.TrimSuffix(line, "\r") }

// cut cuts a text of TSV at tabs. A cell stands in quotes only if it holds tabs,
// line breaks or quotes, or if the names of the header do; its inner quotes are then
// doubled. All other quotes are ordinary characters. open reports whether a cell begins with a quote that
// does not end, and cr whether a cell without quotes has a CR. cells is nil if a
// cell without quotes has several lines.
func (s *Reader) cut(text string) (cells []string, open, cr bool) {
	for {
		quoted := strings.HasPrefix(text, `"`)
		end := 1 // of a cell in quotes
		for quoted && end < len(text) {
			double := strings.HasPrefix(text[end:], `""`) || s.quoted && strings.HasPrefix(text[end:], `\"`)
			if text[end] == '"' && !double {
				break
			}
			end++
			if double {
				end++
			}
		}
		cell, rest, more := strings.Cut(text, "\t")
		switch {
		case quoted && end >= len(text):
			open = true
		case quoted && (end+1 == len(text) || text[end+1] == '\t') &&
			(s.quoted || strings.ContainsAny(text[1:end], "\t\n\r\"")):
			more = end+1 < len(text)
			rest = text[min(end+2, len(text)):]
			cell = s.unquoted.Replace(text[1:end])
		case strings.Contains(cell, "\n"):
			return nil, false, false
		case strings.Contains(cell, "\r"):
			cr = true
		}
		cells = append(cells, cell)
		if !more {
			return cells, open, cr
		}
		text = rest
	}
}

// parse sets r.Object and r.Blank from the line or cells of a record. It
// returns an error if they are not valid.
func (s *Reader) parse(r *Record) (err error) {
	text := string(r.raw) + strings.Join(r.cells, "")
	switch r.Blank = strings.TrimSpace(text) == ""; {
	case r.Blank:
	case len(text) > maxRecord:
		return fmt.Errorf("longer than %d bytes: split it", maxRecord)
	case s.form == formJSONL:
		r.Object, err = object.Parse([]byte(text))
		s.named(r.Object)
	case !utf8.ValidString(text):
		return errors.New("the line is not valid UTF-8: save the file as UTF-8")
	case r.cr || s.form == formText && strings.Contains(text, "\r"):
		return lines.ErrCarriageReturn
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

// named gives the key with the text the name that the user gave, if both look
// equal.
func (s *Reader) named(o object.Object) {
	if o.Get(s.column) != nil {
		return
	}
	for i := range o {
		if alike(o[i].Key, s.column) {
			o[i].Key = s.column
			return
		}
	}
}

// alike reports whether two names look equal: whether they are equal when each
// letter with an accent is one character (NFC).
func alike(a, b string) bool { return norm.NFC.String(a) == norm.NFC.String(b) }

// openInput opens a file whose texts are in column, and reads the header of a
// table. It also writes the file's own bytes to the writer to.
func openInput(f File, column string, to io.Writer) (*Reader, error) {
	f, err := f.resolve("input")
	if err != nil {
		return nil, err
	}
	file, err := regular.Open(f.Path) // no pipe, because a resumed run reads its input again
	if err != nil {
		return nil, &InputError{err}
	}
	body, err := f.unpack(file, to)
	if err != nil {
		return nil, &InputError{err}
	}
	s := NewReader(body, f.Form, column)
	s.of = f
	s.body = body
	if !f.Form.table() {
		return s, nil
	}
	err = s.readHeader()
	if err != nil {
		return nil, &InputError{errors.Join(err, body.Close())}
	}
	err = s.has(column)
	if err != nil {
		return nil, errors.Join(err, body.Close())
	}
	return s, nil
}

// An InputError is the error of an input that cannot be read to its end: a file that is
// not there, or is damaged, or no table although its name says so.
type InputError struct{ err error }

var _ error = (*InputError)(nil)

func (e *InputError) Error() string { return e.err.Error() }

// Unwrap returns what is wrong.
func (e *InputError) Unwrap() error { return e.err }

// readHeader reads the names of a table's columns.
func (s *Reader) readHeader() error {
	r, err := s.split()
	if err != nil && err != io.EOF {
		return err
	}
	if strings.TrimSpace(strings.Join(r.cells, "")) == "" {
		return fmt.Errorf("%s: line 1 is empty: it must name the columns", s.of.Path)
	}
	if r.cr {
		return fmt.Errorf("%s: line %d: %w", s.of.Path, r.Line, lines.ErrCarriageReturn)
	}
	s.number = 0
	bare := func(name string) bool { return len(name) < 2 || name[0] != '"' || name[len(name)-1] != '"' }
	if s.form == formTSV && !slices.ContainsFunc(r.cells, bare) {
		s.quoted = true
		s.unquoted = strings.NewReplacer(`""`, `"`, `\"`, `"`)
		for i, name := range r.cells {
			r.cells[i] = s.unquoted.Replace(name[1 : len(name)-1])
		}
	}
	s.names = r.cells
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

// has returns an error if the file is a table without this column. A column whose
// name looks equal gets this name.
func (s *Reader) has(column string) error {
	if s.names == nil || slices.Contains(s.names, column) {
		return nil
	}
	at := slices.IndexFunc(s.names, func(name string) bool { return alike(name, column) })
	if at >= 0 {
		s.names[at] = column
		return nil
	}
	if len(s.names) == 1 && strings.Contains(s.names[0], "\t") {
		return &infill.OptionError{Option: "column",
			Reason: s.of.Path + ": its columns have tabs between them: let its name end in .tsv"}
	}
	return &infill.OptionError{Option: "column",
		Reason: fmt.Sprintf("%s has no column %q: its columns are %s", s.of.Path, column, quoted(s.names))}
}

// quoted returns names as in "a", "b".
func quoted(names []string) string {
	return strings.ReplaceAll(strings.Trim(fmt.Sprintf("%q", names), "[]"), `" "`, `", "`)
}

// surveyed is what the first reading of a file tells.
type surveyed struct {
	records int64
	columns []string // names of the columns, in the order first seen
	sum     string   // see shortSum
}

// survey reads a file once.
func survey(f File, column string) (*surveyed, error) {
	hash := sha256.New()
	s, err := openInput(f, column, hash)
	if err != nil {
		return nil, err
	}
	defer s.body.Close()
	list := slices.Clone(s.names)
	seen := map[string]bool{}
	for err == nil && s.names != nil {
		_, err = s.split()
	}
	for err == nil {
		var r Record
		r, err = s.Next()
		for _, field := range r.Object {
			if !seen[field.Key] {
				seen[field.Key] = true
				list = append(list, field.Key)
			}
		}
	}
	if err != io.EOF {
		return nil, &InputError{err}
	}
	return &surveyed{records: s.number, columns: list, sum: shortSum(hash)}, nil
}

// shortSum returns the start of the SHA-256 that identifies a file.
func shortSum(of hash.Hash) string { return fmt.Sprintf("%.8x", of.Sum(nil)) }

// rest reads the file to its end.
func (s *Reader) rest() (err error) {
	number := s.number
	for err == nil {
		_, err = s.split()
	}
	s.number = number
	if err == io.EOF {
		return nil
	}
	return err
}

// Records reads all records of a file. Each has a text in every named column, or
// is Blank, or has an Err. If a column is missing, the error is an
// *infill.OptionError of column.
func Records(f File, columns ...string) (list []Record, err error) {
	s, err := openInput(f, columns[0], io.Discard)
	if err != nil {
		return nil, err
	}
	defer s.body.Close()
	if s.form == formText && len(columns) > 1 {
		return nil, &InputError{fmt.Errorf("%s: a plain text has one text a line, and %d are wanted: save it as .tsv, "+
			"with a line of their names above", f.Path, len(columns))}
	}
	for _, name := range columns[1:] {
		err = s.has(name)
		if err != nil {
			return nil, err
		}
	}
	for {
		r, err := s.Next()
		if err == io.EOF {
			return list, nil
		}
		if err != nil {
			return nil, err
		}
		for _, name := range columns {
			if r.Err == nil && !r.Blank {
				_, r.Err = textOf(r.Object, name)
			}
		}
		list = append(list, r)
	}
}
