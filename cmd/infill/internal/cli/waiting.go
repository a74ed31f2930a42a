package cli

import (
	"bufio"
	"encoding/csv"
	"encoding/json"
	"errors"
	"io"
	"os"
	"slices"

	"infill/internal/object"
)

// waiting holds lines of CSV in a temporary file until all columns are known.
type waiting struct {
	file   *os.File
	buffer *bufio.Writer
	seen   []string // the columns, in the order first seen
}

func newWaiting() (*waiting, error) {
	file, err := os.CreateTemp("", "infill-*.jsonl")
	if err != nil {
		return nil, err
	}
	return &waiting{file: file, buffer: bufio.NewWriter(file)}, nil
}

func (w *waiting) add(lines []object.Object) error {
	for _, line := range lines {
		for _, field := range line {
			if !slices.Contains(w.seen, field.Key) {
				w.seen = append(w.seen, field.Key)
			}
		}
		_, err := w.buffer.Write(append(line.Append(nil), '\n'))
		if err != nil {
			return err
		}
	}
	return nil
}

// write writes the lines below a line of the columns, and removes the file.
func (w *waiting) write(to io.Writer, order func(seen []string) []string) (err error) {
	defer func() { err = errors.Join(err, w.file.Close(), os.Remove(w.file.Name())) }()
	err = w.buffer.Flush()
	if err != nil {
		return err
	}
	_, err = w.file.Seek(0, io.SeekStart)
	if err != nil {
		return err
	}
	columns := order(w.seen)
	places := map[string]int{}
	for i, name := range columns {
		places[name] = i
	}
	table := csv.NewWriter(to)
	err = table.Write(columns)
	for lines := json.NewDecoder(w.file); err == nil && lines.More(); {
		var raw json.RawMessage
		err = lines.Decode(&raw)
		if err != nil {
			return err
		}
		line, err := object.Parse(raw)
		if err != nil {
			return err
		}
		cells := make([]string, len(columns))
		for _, field := range line {
			at, ok := places[field.Key]
			if ok {
				cells[at] = object.Plain(field.Value)
			}
		}
		err = table.Write(cells)
		if err != nil {
			return err
		}
	}
	table.Flush()
	return errors.Join(err, table.Error())
}
