package batch

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"hash"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"infill/infill"
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
	s := &source{file: file, of: f, input: about, hash: sha256.New(), release: func() {}}
	if err := s.open(column); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

// source gives the records of a file, and io.EOF after the last.
type source struct {
	*Reader
	input
	file    *os.File
	hash    hash.Hash
	read    int64 // bytes of the file
	release func()
	of      File
	ended   bool
}

// open begins to read, and reads the names of columns.
func (s *source) open(column string) error {
	r, release, err := s.of.unpack(counted{s.file, io.Discard, &s.read, s.hash})
	if err != nil {
		return err
	}
	s.release, s.Reader = release, NewReader(r, s.of.Form, column)
	if s.of.Form != formCSV && s.of.Form != formTSV {
		return nil
	}
	header, err := s.split()
	if err == io.EOF {
		return fmt.Errorf("%s is empty: its first line must name its columns", s.of.Path)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", s.of.Path, s.of.broken(err, false))
	}
	if s.Columns, err = readColumns(s.of, header); err != nil {
		return err
	}
	if !slices.Contains(s.Columns, column) {
		return noColumn(s.of, column, s.Columns)
	}
	s.names, s.number = s.Columns, 0
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
func (s *source) total() (records int64, exact bool) {
	if s.ended || s.offset == 0 || s.read == 0 {
		return s.Records, s.ended
	}
	unpacked := float64(s.offset + int64(s.r.Buffered()))
	return int64(float64(s.Records) / float64(s.offset) * unpacked / float64(s.read) * float64(s.Bytes)), false
}

// next is a record, what it holds where that is wanted.
func (s *source) next(wanted bool) (Record, error) {
	r, err := s.Next(wanted)
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
		return r, s.of.broken(err, s.offset > 0)
	}
	s.Records = r.Number
	return r, nil
}

// readColumns reads the header of CSV or TSV.
func readColumns(f File, r Record) ([]string, error) {
	raw := bytes.TrimPrefix(r.Raw, []byte(byteOrderMark))
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
