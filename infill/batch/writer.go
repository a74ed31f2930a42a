package batch

import (
	"bufio"
	"crypto/sha256"
	"encoding/csv"
	"encoding/json"
	"errors"
	"hash"
	"io"
	"os"
	"strings"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"infill/internal/object"
)

// writer writes a file of rows.
type writer struct {
	path   string
	form   Form
	file   *os.File
	buffer *bufio.Writer
	packed io.WriteCloser // nil if nothing is compressed
	hash   hash.Hash
	bytes  int64
	rows   int64
	cells  *csv.Writer    // of a table
	places map[string]int // of its columns
}

func newWriter(path string, f File, names []string) (*writer, error) {
	file, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	w := &writer{path: path, form: f.Form, file: file, hash: sha256.New()}
	w.buffer = bufio.NewWriterSize(counted{nil, file, &w.bytes, w.hash}, bufferSize)
	switch f.packed {
	case ".gz":
		w.packed = gzip.NewWriter(w.buffer)
	case ".zst":
		// One thread, so that the bytes depend on nothing else.
		w.packed, err = zstd.NewWriter(w.buffer, zstd.WithEncoderConcurrency(1))
	}
	if err != nil {
		return nil, errors.Join(err, w.abandon())
	}
	switch f.Form {
	case formCSV, formTSV:
		w.cells = csv.NewWriter(w.out())
		if f.Form == formTSV {
			w.cells.Comma = '\t'
		}
		w.places = map[string]int{}
		for i, name := range names {
			w.places[name] = i
		}
		if len(names) > 0 {
			err = w.cells.Write(names)
		}
	}
	return w, err
}

// counted counts the bytes that are read or written, and sums them.
type counted struct {
	from  io.Reader
	to    io.Writer
	bytes *int64
	hash  hash.Hash
}

func (c counted) Read(p []byte) (int, error) {
	n, err := c.from.Read(p)
	c.hash.Write(p[:n])
	*c.bytes += int64(n)
	return n, err
}

func (c counted) Write(p []byte) (int, error) {
	n, err := c.to.Write(p)
	c.hash.Write(p[:n])
	*c.bytes += int64(n)
	return n, err
}

func (w *writer) out() io.Writer {
	if w.packed != nil {
		return w.packed
	}
	return w.buffer
}

// write writes a row.
func (w *writer) write(row json.RawMessage) error {
	w.rows++
	if w.cells == nil {
		if w.form == formText {
			row = []byte(text(row))
		}
		_, err := w.out().Write(append(row, '\n'))
		return err
	}
	fields, err := object.Parse(row)
	if err != nil {
		return err
	}
	cells := make([]string, len(w.places))
	for _, f := range fields {
		cell := text(f.Value)
		if w.form == formTSV {
			cell = oneCell.Replace(cell)
		}
		cells[w.places[f.Key]] = cell
	}
	return w.cells.Write(cells)
}

// oneCell keeps a text within a cell of TSV.
var oneCell = strings.NewReplacer("\t", " ", "\n", " ", "\r", " ")

// finish brings everything to the disk.
func (w *writer) finish() error {
	var err error
	if w.cells != nil {
		w.cells.Flush()
		err = w.cells.Error()
	}
	if w.packed != nil {
		err = errors.Join(err, w.packed.Close())
	}
	return errors.Join(err, w.buffer.Flush(), w.file.Sync(), w.file.Close())
}

// abandon lets go of a file that will not be used.
func (w *writer) abandon() error { return errors.Join(w.file.Close(), os.Remove(w.path)) }
