package batch

import (
	"cmp"
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
	"infill/internal/lines"
)

// Form is a file format; a file may be compressed by gzip or zstd, too.
type Form string

const (
	formJSONL Form = "jsonl"
	formCSV   Form = "csv"
	formTSV   Form = "tsv"
	formText  Form = "text"
)

// Forms lists the forms. "jsonl" has a JSON object on each line, and "text" has
// a text on each line. "csv" (RFC 4180; read with semicolons if the header has
// no comma) and "tsv" (tabs between cells) begin with a header.
func Forms() []Form { return []Form{formJSONL, formCSV, formTSV, formText} }

func (f Form) table() bool { return f == formCSV || f == formTSV }

var suffixes = map[string]Form{
	".jsonl": formJSONL, ".ndjson": formJSONL, ".csv": formCSV, ".tsv": formTSV, ".tab": formTSV,
	".txt": formText, ".text": formText,
}

type File struct {
	Path string
	Form Form // "" means the form that the suffix of Path gives
	// Name is what messages call the file, if not by its path.
	Name string
	// packed is ".gz" or ".zst"; "" if the file is not compressed.
	packed string
}

func (f File) String() string { return cmp.Or(f.Name, f.Path) }

// FormOf returns the form that the name of a file tells.
func FormOf(name string) (Form, error) {
	f, err := File{Path: name}.resolve("input")
	return f.Form, err
}

// resolve sets the form and compression of a file from its name. what is
// "input" or "output", for error messages.
func (f File) resolve(what string) (File, error) {
	called := f.String()
	if f.Path != "" && what == "output" {
		f.Path = followed(f.Path)
	}
	if f.Path != filepath.Clean(called) && f.Name == "" {
		called += ", which is " + f.Path
	}
	name := strings.ToLower(filepath.Base(f.Path))
	f.packed = lines.Packed(name)
	name = strings.TrimSuffix(name, f.packed)
	if f.Form == "" {
		f.Form = suffixes[filepath.Ext(name)]
	}
	if slices.Contains(Forms(), f.Form) {
		return f, nil
	}
	wrong := &infill.OptionError{Option: map[string]string{"input": "from", "output": "to"}[what],
		Reason: fmt.Sprintf("%s: its name does not tell the form of the %s: end it in .jsonl, .csv, .tsv, "+
			"or .txt (also with .gz or .zst), or name the form", called, what)}
	if filepath.Ext(name) == ".parquet" {
		wrong.Reason = f.Path + ": Parquet is not read or written here: in Python, Infill().run fills it; or take " +
			"JSON lines, which pandas makes: " + parquet(f.Path, what)
	}
	return f, wrong
}

// parquet returns the line of Python that makes JSON lines of a Parquet file, or
// the other way round for an output.
func parquet(path, what string) string {
	lines := strings.TrimSuffix(path, filepath.Ext(path)) + ".jsonl"
	if what == "input" {
		return fmt.Sprintf("pandas.read_parquet(%q).to_json(%q, orient='records', lines=True)", path, lines)
	}
	return fmt.Sprintf("pandas.read_json(%q, lines=True).to_parquet(%q)", lines, path)
}

// followed returns the path that the symbolic link at path leads to, or path
// itself. No file need exist at that path.
func followed(path string) string {
	path = filepath.Clean(path) // paths derived from path are made by Join, which cleans them
	for range 40 {              // Linux follows at most 40 links
		to, err := os.Readlink(path)
		if err != nil {
			break
		}
		if !filepath.IsAbs(to) {
			to = filepath.Join(filepath.Dir(path), to)
		}
		path = to
	}
	return path
}

// Open opens a file of any form, and decompresses it if its name ends in ".gz" or ".zst".
func Open(path string) (io.ReadCloser, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	return File{Path: path, packed: lines.Packed(path)}.unpack(file, io.Discard)
}

// unpack returns a reader of the file's decompressed contents. It also writes
// the file's own bytes to the writer to.
func (f File) unpack(file *os.File, to io.Writer) (io.ReadCloser, error) {
	r, err := lines.Unpack(f.packed, io.TeeReader(file, to))
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", f, err), file.Close())
	}
	return struct {
		io.Reader
		io.Closer
	}{r, file}, nil
}

// pack returns a writer to w, which it does not close; it may compress.
func (f File) pack(w io.Writer) io.WriteCloser {
	switch f.packed {
	case ".gz":
		return gzip.NewWriter(w)
	case ".zst":
		// With one encoder thread, the bytes depend only on the data. Only a wrong
		// option is an error.
		packed, _ := zstd.NewWriter(w, zstd.WithEncoderConcurrency(1))
		return packed
	}
	return struct {
		io.Writer
		io.Closer
	}{w, io.NopCloser(nil)}
}

const bufferSize = 1 << 18 // bytes of a buffer for reading or writing
