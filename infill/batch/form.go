package batch

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"infill/infill"
)

// Form is a file format. Files may be compressed, by gzip (.gz) or zstd (.zst).
type Form string

const (
	formJSONL Form = "jsonl"
	formCSV   Form = "csv"
	formTSV   Form = "tsv"
	formText  Form = "text"
)

// Forms lists the forms: "jsonl", a JSON object a line; "csv" (RFC 4180) and "tsv" (tabs between cells, never
// quoted), with a header; and "text", a text a line.
func Forms() []Form { return []Form{formJSONL, formCSV, formTSV, formText} }

// suffixes are the ends of names that tell a form.
var suffixes = map[string]Form{
	".jsonl": formJSONL, ".ndjson": formJSONL, ".csv": formCSV, ".tsv": formTSV, ".tab": formTSV,
	".txt": formText, ".text": formText,
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
	if f.Path != "" && what == "output" {
		f.Path = filepath.Clean(f.Path) // names of folders beside it are joined, which cleans them
	}
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
	wrong := func(format string, args ...any) (File, error) {
		option := map[string]string{"input": "from", "output": "to"}[what]
		return f, &infill.OptionError{Option: option, Reason: fmt.Sprintf(format, args...)}
	}
	switch {
	case f.Path == "":
		return wrong("no %s: name a file", what)
	case f.Form == "":
		return wrong("%s: its name does not tell the form of the %s: end it in .jsonl, .csv, .tsv, "+
			"or .txt (also with .gz or .zst), or name the form", f.Path, what)
	case !slices.Contains(Forms(), f.Form):
		return wrong("%s: unknown form %q of the %s: one of %v", f.Path, f.Form, what, Forms())
	}
	return f, nil
}

// unpack returns what a compressed stream holds, and how to let go of it.
func (f File) unpack(r io.Reader) (io.Reader, func(), error) {
	switch f.packed {
	case ".gz":
		z, err := gzip.NewReader(r)
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %w", f.Path, f.broken(err, false))
		}
		return z, func() { z.Close() }, nil
	case ".zst":
		z, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1))
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %w", f.Path, f.broken(err, false))
		}
		return z, z.Close, nil
	}
	return r, func() {}, nil
}

// Open opens a file of any form, and unpacks it as its name says.
func Open(path string) (io.ReadCloser, error) {
	f, _ := File{Path: path, Form: formText}.resolve("input")
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	r, release, err := f.unpack(file)
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return unpacked{r, func() error { release(); return file.Close() }}, nil
}

// unpacked is a file that is read through its compression.
type unpacked struct {
	io.Reader
	close func() error
}

func (u unpacked) Close() error { return u.close() }

// broken says what is wrong with a compressed file, of which something has been read or nothing.
func (f File) broken(err error, begun bool) error {
	kind := map[string]string{".gz": "gzip", ".zst": "zstd"}[f.packed]
	switch {
	case kind == "":
		return err
	case !begun:
		return fmt.Errorf("the file is no %s, as its name says: rename it, or get it again", kind)
	}
	return fmt.Errorf("the %s stream is cut off, damaged, or has other bytes behind its end (%w): get the file again",
		kind, err)
}

// pack returns a writer that compresses as the name says. Its end is not that of w.
func (f File) pack(w io.Writer) (io.WriteCloser, error) {
	switch f.packed {
	case ".gz":
		return gzip.NewWriter(w), nil
	case ".zst":
		// One thread, so that the bytes depend on nothing else.
		return zstd.NewWriter(w, zstd.WithEncoderConcurrency(1))
	}
	return plain{w}, nil
}

// plain is a file that is not compressed.
type plain struct{ io.Writer }

func (plain) Close() error { return nil }

const bufferSize = 1 << 18 // of what is read and written
