package batch

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
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
	SHA256  string   `json:"sha256"`
	Form    Form     `json:"form"`
	Columns []string `json:"columns,omitempty"`
	Records int64    `json:"records"`
}

// survey reads a file once, to count its records and to know it again.
func survey(f File, column string) (input, error) {
	s, err := openInput(f, column)
	if err != nil {
		return input{}, err
	}
	defer s.close()
	about := input{Name: filepath.Base(s.of.Path), Form: s.of.Form, Columns: s.names}
	for {
		_, err := s.next(false)
		if err == io.EOF {
			break
		}
		if err != nil {
			return input{}, err
		}
		about.Records++
	}
	// What stands behind the end of a compressed stream is of the file as well.
	_, err = io.Copy(io.Discard, s.bytes)
	about.Bytes, about.SHA256 = s.bytes.count, fmt.Sprintf("%x", s.bytes.hash.Sum(nil))
	return about, err
}

// source gives the records of a file.
type source struct {
	of      File
	reader  *Reader
	names   []string // of the columns of a table
	file    *os.File
	bytes   *counted // of the file
	release func()
}

// openInput opens a file whose text stands in column, and reads the names of its columns.
func openInput(f File, column string) (_ *source, err error) {
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
	file, err := os.Open(f.Path)
	if err != nil {
		return nil, err
	}
	s := &source{of: f, file: file, bytes: &counted{from: file, hash: sha256.New()}, release: func() {}}
	if err := s.open(column); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

func (s *source) open(column string) error {
	r, release, err := s.of.unpack(s.bytes)
	if err != nil {
		return err
	}
	s.release, s.reader = release, NewReader(r, s.of.Form, column)
	if s.of.Form != formCSV && s.of.Form != formTSV {
		return nil
	}
	header, err := s.reader.split()
	if err == io.EOF {
		return fmt.Errorf("%s is empty: its first line must name its columns", s.of.Path)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", s.of.Path, s.of.broken(err, false))
	}
	if s.names, err = readColumns(s.of.Form, header); err != nil {
		return fmt.Errorf("%s: %w", s.of.Path, err)
	}
	s.reader.names, s.reader.number = s.names, 0
	return s.has(column)
}

func (s *source) close() {
	s.release()
	s.file.Close()
}

// next is a record, and io.EOF after the last; what it holds is read where that is wanted.
func (s *source) next(wanted bool) (r Record, err error) {
	if wanted {
		r, err = s.reader.Next()
	} else {
		r, err = s.reader.split()
	}
	if err != nil && err != io.EOF {
		err = fmt.Errorf("%s: %w", s.of.Path, s.of.broken(err, s.reader.begun))
	}
	return r, err
}

// has is an error where a table has no column of a name.
func (s *source) has(column string) error {
	if s.names == nil || slices.Contains(s.names, column) {
		return nil
	}
	quoted := make([]string, len(s.names))
	for i, name := range s.names {
		quoted[i] = fmt.Sprintf("%q", name)
	}
	return &infill.OptionError{Option: "column", Reason: fmt.Sprintf("%s has no column %q: its columns are %s",
		s.of.Path, column, strings.Join(quoted, ", "))}
}

// readColumns reads the header of CSV or TSV.
func readColumns(form Form, r Record) ([]string, error) {
	raw := bytes.TrimPrefix(r.Raw, []byte(byteOrderMark))
	switch {
	case r.Err != nil:
		return nil, fmt.Errorf("line 1: %w", r.Err)
	case len(bytes.TrimSpace(raw)) == 0:
		return nil, errors.New("line 1 is empty: it must name the columns")
	case returns(raw):
		return nil, fmt.Errorf("line 1: %w", ErrReturn)
	}
	columns, err := cells(form, raw)
	if err != nil {
		return nil, fmt.Errorf("line 1: %w", err)
	}
	seen := map[string]bool{}
	for _, name := range columns {
		if seen[name] {
			return nil, fmt.Errorf("two columns are called %q: rename one", name)
		}
		seen[name] = true
	}
	return columns, nil
}

// IsFile reports whether a name ends as a file of one of the forms, also compressed.
func IsFile(name string) bool {
	f, err := File{Path: name}.resolve("input")
	return err == nil && f.Form != ""
}

// Columns reads the named columns of all records of a file, [records][columns].
func Columns(f File, names ...string) (rows [][]string, err error) {
	s, err := openInput(f, names[0])
	if err == nil {
		defer s.close()
		for _, name := range names[1:] {
			err = errors.Join(err, s.has(name))
		}
	}
	var option *infill.OptionError
	if errors.As(err, &option) {
		err = errors.New(option.Reason) // which flag it is depends on the command
	}
	if err != nil {
		return nil, err
	}
	for {
		r, err := s.next(true)
		switch {
		case err == io.EOF:
			return rows, nil
		case err != nil:
			return nil, err
		case r.Blank:
			continue
		}
		row := make([]string, len(names))
		for i, name := range names {
			if r.Err == nil {
				row[i], r.Err = textOf(r, name)
			}
		}
		if r.Err != nil {
			return nil, fmt.Errorf("%s, record %d: %w", f.Path, r.Number, r.Err)
		}
		rows = append(rows, row)
	}
}
