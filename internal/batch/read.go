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
	"infill/internal/rawjson"
	"infill/internal/regular"
	"infill/lm"
)

const (
	// maxRecord is the largest number of bytes in a record, far more than a
	// model can read. A longer record is rejected, and reading goes on.
	maxRecord = 1 << 20
	// maxLine bounds what is buffered to find the end of a line or record.
	maxLine = 1 << 25
)

type Record struct {
	Number int64          // from 1 in the whole input, without a header
	Line   int64          // line of the file, from 1, where the record begins
	Object rawjson.Object // for plain text, one field named as work.column returns it
	// Blank reports whether the record is empty or only white space.
	Blank bool
	// Err is a *RejectError that says why Object is missing, or nil.
	Err error

	raw   string   // the line without its line break
	cells []string // cells of a table's line, instead of raw
	cr    bool     // whether a CR stands in a cell of TSV without quotes
}

// caller returns who asks for the record's rows: earlier records go first.
func (r Record) caller() *lm.Caller { return &lm.Caller{Heavy: true, Turn: r.Number} }

// Reader reads records in order. A wrong line does not end the reading, but
// broken CSV does: nobody can say where the next record begins.
type Reader struct {
	form         Form
	column       string // column for plain text
	number, line int64  // number of records, and of lines, returned so far

	lines *bufio.Scanner
	begun bool        // whether the first of lines is read
	ended bool        // whether the last of lines had its line break
	tabs  *tabs       // reader of TSV, behind lines
	more  int         // further lines that the last record of TSV took
	table *csv.Reader // reader of CSV, instead of lines
	// limit bounds a CSV record: an open quote would read the whole file.
	limit  *io.LimitedReader
	breaks *breaks // of all CSV that was read
	// ahead is the record of CSV that was read and not yet returned, and follows the
	// line behind what is returned.
	ahead   *csvRecord
	follows int64
	names   []string // names of a table's columns

	of   File // zero for a stream, and body is then nil
	body io.Closer
}

var errLong = fmt.Errorf("longer than %d bytes: close its quotes, or split it", maxLine)

// NewReader returns a Reader without a table's header, see openInput.
func NewReader(r io.Reader, form Form, column string) *Reader {
	r = lines.Text(r)
	s := &Reader{form: form, column: column}
	s.tabs = &tabs{next: s.nextLine, unquoted: strings.NewReplacer(`""`, `"`)}
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
	s.breaks = &breaks{from: r}
	s.limit = &io.LimitedReader{R: s.breaks, N: maxLine}
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
	switch s.form {
	case formCSV:
		r.cells, err = s.splitCSV()
	case formTSV:
		r.cells, r.cr, err = s.splitTSV()
	default:
		r.raw, err = s.nextLine()
		r.raw = strings.TrimSuffix(r.raw, "\r")
		if err == nil {
			s.line++
		}
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
		err = fmt.Errorf("%s: %w", s.of, err)
	}
	s.number++
	r.Number = s.number
	r.Line = s.line
	return r, err
}

// splitCSV returns a record; none for an empty line, which CSV leaves out.
func (s *Reader) splitCSV() (cells []string, err error) {
	if s.ahead == nil {
		s.ahead, err = s.readCSV()
		if err != nil {
			return nil, err
		}
	}
	if s.names != nil && s.follows < s.ahead.line {
		s.line = s.follows
		s.follows++
		return nil, nil
	}
	r := s.ahead
	s.ahead = nil
	if r.err == nil {
		s.line = r.line
		s.follows = r.line + 1 + int64(strings.Count(strings.Join(r.cells, ""), "\n"))
	}
	return r.cells, r.err
}

// readCSV reads a record. At the end of the file it returns one with the error
// io.EOF, whose line is the one behind the last.
func (s *Reader) readCSV() (*csvRecord, error) {
	s.limit.N = maxLine
	cells, err := s.table.Read()
	if s.limit.N == 0 { // the record is cut off there: err would blame its quotes
		return nil, errLong
	}
	if err == io.EOF {
		return &csvRecord{err: err, line: s.breaks.n + 1}, nil
	}
	if err != nil {
		return nil, err
	}
	line, _ := s.table.FieldPos(0)
	return &csvRecord{cells: cells, line: int64(line)}, nil
}

// csvRecord is a record of CSV, or io.EOF, with the line where it begins.
type csvRecord struct {
	cells []string
	err   error
	line  int64
}

type breaks struct {
	from io.Reader
	n    int64
}

func (b *breaks) Read(p []byte) (int, error) {
	n, err := b.from.Read(p)
	b.n += int64(bytes.Count(p[:n], []byte{'\n'}))
	return n, err
}

func (s *Reader) splitTSV() (cells []string, cr bool, err error) {
	cells, n, cr, err := s.tabs.record()
	if err != nil {
		s.line = int64(s.tabs.first + len(s.tabs.ahead)) // what cannot be read follows these
		return nil, false, err
	}
	s.line += 1 + int64(s.more)
	s.more = n - 1
	return cells, cr, nil
}

// nextLine returns the next line, or io.EOF. What is left of a line that an error of
// the file cuts off is no line: a run that goes on would never read it again.
func (s *Reader) nextLine() (string, error) {
	if !s.lines.Scan() || !s.ended && s.lines.Err() != nil {
		return "", cmp.Or(s.lines.Err(), io.EOF)
	}
	line := s.lines.Text()
	if !s.begun {
		s.begun = true
		line = strings.TrimPrefix(line, lines.ByteOrderMark)
	}
	return line, nil
}

// parse sets r.Object and r.Blank, or returns what is not valid.
func (s *Reader) parse(r *Record) (err error) {
	text := r.raw + strings.Join(r.cells, "")
	switch r.Blank = strings.TrimSpace(text) == ""; {
	case r.Blank:
	case len(text) > maxRecord:
		return fmt.Errorf("longer than %d bytes: split it", maxRecord)
	case s.form == formJSONL:
		r.Object, err = rawjson.Parse([]byte(text))
		s.named(r.Object)
	case !utf8.ValidString(text):
		return errors.New("the line is not valid UTF-8: save the file as UTF-8")
	case r.cr || s.form == formText && strings.Contains(text, "\r"):
		return lines.ErrCarriageReturn
	case s.form == formText:
		r.Object = rawjson.Object{{Key: s.column, Value: rawjson.Quote(text)}}
	case len(r.cells) != len(s.names):
		return fmt.Errorf("%d cells, the header has %d", len(r.cells), len(s.names))
	}
	for i, cell := range r.cells {
		if !r.Blank {
			r.Object = append(r.Object, rawjson.Field{Key: s.names[i], Value: rawjson.Quote(cell)})
		}
	}
	return err
}

// named gives the key of the text the user's name, if both look equal.
func (s *Reader) named(o rawjson.Object) {
	if o.Get(s.column) != nil {
		return
	}
	at := slices.IndexFunc(o, func(f rawjson.Field) bool { return alike(f.Key, s.column) })
	if at >= 0 {
		o[at].Key = s.column
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
func (e *InputError) Unwrap() error { return e.err }

func (s *Reader) readHeader() error {
	r, err := s.split()
	if err != nil && err != io.EOF {
		return err
	}
	if strings.TrimSpace(strings.Join(r.cells, "")) == "" {
		return fmt.Errorf("%s: line 1 is empty: it must name the columns", s.of)
	}
	if r.cr {
		return fmt.Errorf("%s: line %d: %w", s.of, r.Line, lines.ErrCarriageReturn)
	}
	s.number = 0 // the header is no record
	if s.form == formTSV {
		s.tabs.declareQuotes(r.cells)
	}
	s.names = r.cells
	s.tabs.columns = len(s.names)
	seen := map[string]bool{}
	for _, name := range s.names {
		if strings.Contains(name, "\x00") {
			return fmt.Errorf("%s: line 1 has NUL characters, as text in UTF-16 looks: save the file as UTF-8",
				s.of)
		}
		if !utf8.ValidString(name) {
			return fmt.Errorf("%s: line 1 is not valid UTF-8: save the file as UTF-8", s.of)
		}
		if seen[name] {
			return fmt.Errorf("%s: two columns are called %q: rename one", s.of, name)
		}
		seen[name] = true
	}
	return nil
}

// has returns an error if a table lacks the column. One that looks equal gets its name.
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
			Reason: s.of.String() + ": its columns have tabs between them: let its name end in .tsv"}
	}
	return &infill.OptionError{Option: "column",
		Reason: fmt.Sprintf("%s has no column %q: its columns are %s", s.of, column, quoted(s.names))}
}

// quoted returns names as in "a", "b".
func quoted(names []string) string {
	return strings.ReplaceAll(strings.Trim(fmt.Sprintf("%q", names), "[]"), `" "`, `", "`)
}

// Note says what the reader took in another way than line by line; "" if nothing. It
// is complete when all records are read.
func (s *Reader) Note() string {
	note := s.tabs.wrapped.String()
	if note == "" {
		return ""
	}
	return s.of.String() + ": " + note
}

type surveyed struct {
	records int64
	note    string   // see Reader.Note
	columns []string // names of the columns, in the order first seen
	sum     string   // see shortSum
}

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
	return &surveyed{records: s.number, note: s.Note(), columns: list, sum: shortSum(hash)}, nil
}

// shortSum returns the start of the SHA-256 that identifies a file.
func shortSum(of hash.Hash) string { return fmt.Sprintf("%.8x", of.Sum(nil)) }

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
// is Blank, or has an Err. note is what [Reader.Note] says. If a column is missing,
// the error is an *infill.OptionError of column.
func Records(f File, columns ...string) (list []Record, note string, err error) {
	s, err := openInput(f, columns[0], io.Discard)
	if err != nil {
		return nil, "", err
	}
	defer s.body.Close()
	if s.form == formText && len(columns) > 1 {
		return nil, "", &InputError{fmt.Errorf("%s: a plain text has one text a line, and %d are wanted: save it as "+
			".tsv, with a line of their names above", f, len(columns))}
	}
	for _, name := range columns[1:] {
		err = s.has(name)
		if err != nil {
			return nil, "", err
		}
	}
	for {
		r, err := s.Next()
		if err == io.EOF {
			return list, s.Note(), nil
		}
		if err != nil {
			return nil, "", err
		}
		for _, name := range columns {
			if r.Err == nil && !r.Blank {
				_, r.Err = textOf(r.Object, name)
			}
		}
		list = append(list, r)
	}
}
