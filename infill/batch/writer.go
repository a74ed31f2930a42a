package batch

import (
	"bufio"
	"crypto/sha256"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"strings"

	"infill/internal/object"
)

// counted counts the bytes of a file that is read, and sums them.
type counted struct {
	from  io.Reader
	count int64
	hash  hash.Hash
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.from.Read(p)
	c.hash.Write(p[:n])
	c.count += int64(n)
	return n, err
}

// writer writes a file of rows.
type writer struct {
	path   string
	form   Form
	file   *os.File
	hash   hash.Hash
	buffer *bufio.Writer
	packed io.WriteCloser
	rows   int64
	cells  *csv.Writer // of a table
	names  []string    // of its columns
	places map[string]int
}

func newWriter(path string, f File, names []string) (*writer, error) {
	file, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	w := &writer{path: path, form: f.Form, file: file, hash: sha256.New(), names: names, places: map[string]int{}}
	w.buffer = bufio.NewWriterSize(io.MultiWriter(file, w.hash), bufferSize)
	if w.packed, err = f.pack(w.buffer); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	w.cells = csv.NewWriter(w.packed)
	if f.Form == formTSV {
		w.cells.Comma = '\t'
	}
	for i, name := range names {
		w.places[name] = i
	}
	if len(names) > 0 {
		err = w.cells.Write(names)
	}
	return w, err
}

// write writes a row: an object, or a string of plain text.
func (w *writer) write(row json.RawMessage) error {
	switch w.form {
	case formText:
		line := text(row)
		if line != "" {
			w.rows++
		}
		_, err := io.WriteString(w.packed, line+"\n")
		return err
	case formJSONL:
		w.rows++
		_, err := w.packed.Write(append(row, '\n'))
		return err
	}
	w.rows++
	fields, err := object.Parse(row)
	if err != nil {
		return err
	}
	cells := make([]string, len(w.names))
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
	w.cells.Flush()
	return errors.Join(w.cells.Error(), w.packed.Close(), w.buffer.Flush(), w.file.Sync(), w.file.Close())
}

// made tells of the finished file.
func (w *writer) made() (rows, bytes int64, sha256 string, err error) {
	info, err := os.Stat(w.path)
	if err != nil {
		return 0, 0, "", err
	}
	return w.rows, info.Size(), fmt.Sprintf("%x", w.hash.Sum(nil)), nil
}
