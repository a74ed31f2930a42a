package batch

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// Form is how a file holds records.
type Form string

// The forms. All but Parquet may be compressed, by gzip (.gz) or zstd (.zst).
const (
	JSONL   Form = "jsonl" // a JSON object a line
	CSV     Form = "csv"   // RFC 4180, with a header
	TSV     Form = "tsv"   // cells between tabs, never quoted, with a header
	Parquet Form = "parquet"
	Text    Form = "text" // a text a line
)

// Forms lists the forms.
func Forms() []Form { return []Form{JSONL, CSV, TSV, Parquet, Text} }

// suffixes are the ends of names that tell a form.
var suffixes = map[string]Form{
	".jsonl": JSONL, ".ndjson": JSONL, ".csv": CSV, ".tsv": TSV, ".tab": TSV, ".parquet": Parquet, ".txt": Text, ".text": Text,
}

// File is a file in one of the forms.
type File struct {
	Path string
	Form Form // "" goes by the name
	// packed is the end of the name that tells of compression, or "".
	packed string
}

// resolve finds out form and compression; what is the word for the file.
func (f File) resolve(what string) (File, error) {
	name := strings.ToLower(filepath.Base(f.Path))
	for _, packed := range []string{".gz", ".zst"} {
		if short, ok := strings.CutSuffix(name, packed); ok {
			f.packed, name = packed, short
			break
		}
	}
	if f.Form == "" {
		f.Form = suffixes[filepath.Ext(name)]
	}
	switch {
	case f.Path == "":
		return f, fmt.Errorf("no %s: name a file", what)
	case f.Form == "":
		return f, fmt.Errorf("%s: its name does not tell the form of the %s: end it in .jsonl, .csv, .tsv, .parquet or .txt (also with .gz or .zst), or name the form", f.Path, what)
	case !slices.Contains(Forms(), f.Form):
		return f, fmt.Errorf("%s: unknown form %q of the %s: one of %v", f.Path, f.Form, what, Forms())
	case f.Form == Parquet && f.packed != "":
		return f, fmt.Errorf("%s: Parquet compresses its columns itself: leave %s away", f.Path, f.packed)
	}
	return f, nil
}

// unpack returns what a compressed stream holds, and how to let go of it.
func (f File) unpack(r io.Reader) (io.Reader, func(), error) {
	switch f.packed {
	case ".gz":
		from := bufio.NewReaderSize(r, bufferSize)
		z, err := gzip.NewReader(from)
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %w", f.Path, f.broken(err))
		}
		z.Multistream(false)
		return &members{z, from}, func() { z.Close() }, nil
	case ".zst":
		z, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1))
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %w", f.Path, f.broken(err))
		}
		return &frames{z, false}, z.Close, nil
	}
	return r, func() {}, nil
}

// errBehind tells of bytes behind the end of a compressed stream that begin no other one.
var errBehind = errors.New("other bytes behind its end")

// members reads the streams of a gzip file, which may be several.
type members struct {
	z    *gzip.Reader
	from *bufio.Reader
}

func (m *members) Read(p []byte) (int, error) {
	for {
		n, err := m.z.Read(p)
		if n > 0 && err == io.EOF {
			return n, nil // it says so again
		}
		if err != io.EOF {
			return n, err
		}
		if _, err := m.from.Peek(1); err != nil {
			return 0, err
		}
		if m.z.Reset(m.from) != nil {
			return 0, errBehind
		}
		m.z.Multistream(false)
	}
}

// frames reads the frames of a zstd file. begun tells that the first did begin.
type frames struct {
	z     *zstd.Decoder
	begun bool
}

func (f *frames) Read(p []byte) (int, error) {
	n, err := f.z.Read(p)
	if f.begun = f.begun || n > 0; f.begun && errors.Is(err, zstd.ErrMagicMismatch) {
		err = errBehind
	}
	return n, err
}

// broken says what is wrong with a compressed file.
func (f File) broken(err error) error {
	kind := map[string]string{".gz": "gzip", ".zst": "zstd"}[f.packed]
	switch {
	case kind == "" || err == nil:
		return err
	case errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF):
		return fmt.Errorf("the %s stream ends before its end: the file was cut off, get it again", kind)
	case errors.Is(err, errBehind):
		return fmt.Errorf("behind the end of the %s stream stand other bytes: get the file again, or unpack it and give the text", kind)
	case errors.Is(err, gzip.ErrHeader), errors.Is(err, zstd.ErrMagicMismatch):
		return fmt.Errorf("the file is no %s, as its name says: rename it, or get it again", kind)
	}
	return fmt.Errorf("the %s stream is damaged (%w): get the file again", kind, err)
}

const bufferSize = 1 << 18

// maxRecord is the longest record that is read, in bytes, far above what a model
// takes in. Longer ones are left out without holding them in memory.
const maxRecord = 1 << 20

// Record is a record of the input.
type Record struct {
	Number int64  // from 1, in the whole input; a header is none
	Line   int64  // of the file, from 1, where it begins; 0 in Parquet
	Object Object // of plain text one field, the work's column
	// Blank tells that the line is empty or only white space.
	Blank bool
	// Err, a *RejectError, tells why there is no Object.
	Err error

	offset int64  // of its first byte, before compression
	raw    []byte // as it stands in the file
	size   int64  // of raw, also where it is too long to be held
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

// source gives records in order, and io.EOF after the last.
type source interface {
	next() (Record, error)
	close()
}

// splitter cuts a stream into records, without reading what is in them.
type splitter struct {
	r      *bufio.Reader
	form   Form
	number int64
	line   int64 // number of lines taken
	offset int64
	// pending are lines that were read ahead for a cell over several lines that did
	// not end.
	pending []piece
}

// piece is a line with its end; of one that is too long only the size is kept.
type piece struct {
	bytes []byte
	size  int64
}

func newSplitter(r io.Reader, form Form) *splitter {
	return &splitter{r: bufio.NewReaderSize(r, bufferSize), form: form}
}

// next returns the next record without its content.
func (s *splitter) next() (Record, error) {
	first, err := s.take()
	if err != nil {
		return Record{}, err
	}
	lines := []piece{first}
	if s.form == CSV && first.bytes != nil {
		var ahead []piece
		state, total := quotes(0, first.bytes), first.size
		for state == quotedCell {
			next, err := s.take()
			if err != nil && err != io.EOF {
				return Record{}, err
			}
			if err == nil {
				ahead, total, state = append(ahead, next), total+next.size, quotes(state, next.bytes)
			}
			if err == io.EOF || next.bytes == nil || total > maxRecord || state == wrongCell {
				// The quote has no end: the line is wrong alone, and takes none with it.
				s.pending, ahead = append(ahead, s.pending...), nil
				break
			}
		}
		lines = append(lines, ahead...)
	}
	s.number++
	r := Record{Number: s.number, Line: s.line + 1, offset: s.offset}
	for _, l := range lines {
		s.line++
		s.offset, r.size = s.offset+l.size, r.size+l.size
		if l.bytes == nil {
			r.Err = reject("longer than %d bytes: split it", maxRecord)
		}
		r.raw = append(r.raw, l.bytes...)
	}
	if r.Err == nil {
		r.raw = slices.Clip(trimEnd(r.raw))
	}
	return r, nil
}

// take returns a line that was read ahead, or reads one.
func (s *splitter) take() (piece, error) {
	if len(s.pending) > 0 {
		p := s.pending[0]
		s.pending = s.pending[1:]
		return p, nil
	}
	var p piece
	for {
		part, err := s.r.ReadSlice('\n')
		p.size += int64(len(part))
		if p.size <= maxRecord {
			p.bytes = append(p.bytes, part...)
		} else {
			p.bytes = nil
		}
		switch {
		case err == bufio.ErrBufferFull:
			continue
		case err == io.EOF && p.size == 0:
			return p, io.EOF
		case err != nil && err != io.EOF:
			return p, err
		}
		return p, nil
	}
}

func trimEnd(line []byte) []byte {
	if n := len(line); n > 0 && line[n-1] == '\n' {
		line = line[:n-1]
	}
	if n := len(line); n > 0 && line[n-1] == '\r' {
		line = line[:n-1]
	}
	return line
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

// streamed is a source of one of the forms that are streams.
type streamed struct {
	*splitter
	file    *os.File
	release func()
	of      File
	columns []string // of CSV and TSV
	column  string   // of text
}

var _ source = (*streamed)(nil)

// openStream opens a file at a byte of what it holds, before compression.
func openStream(f File, column string, columns []string, offset int64) (*streamed, error) {
	file, err := os.Open(f.Path)
	if err != nil {
		return nil, err
	}
	s := &streamed{file: file, of: f, column: column, columns: columns, release: func() {}}
	if f.packed == "" {
		if _, err := file.Seek(offset, io.SeekStart); err != nil {
			file.Close()
			return nil, err
		}
	}
	r, release, err := f.unpack(file)
	if err != nil {
		file.Close()
		return nil, err
	}
	s.release, s.splitter = release, newSplitter(r, f.Form)
	if f.packed != "" && offset > 0 {
		if _, err := io.CopyN(io.Discard, s.r, offset); err != nil {
			s.close()
			return nil, fmt.Errorf("%s: %w", f.Path, f.broken(err))
		}
	}
	s.offset = offset
	return s, nil
}

func (s *streamed) close() {
	s.release()
	s.file.Close()
}

// next implements source.
func (s *streamed) next() (Record, error) {
	r, err := s.splitter.next()
	if err != nil {
		if err != io.EOF {
			err = s.of.broken(err)
		}
		return r, err
	}
	if r.Err == nil {
		s.parse(&r)
	}
	return r, nil
}

const byteOrderMark = "\ufeff"
