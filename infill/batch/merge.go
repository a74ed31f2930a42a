package batch

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"infill/internal/object"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// manifest is what stands beside an output, as OUTPUT.manifest.json: how it came about.
// It does not tell the number of parts, on which nothing hangs.
type manifest struct {
	Format int    `json:"format"`
	Output result `json:"output"`
	Input  input  `json:"input"`
	// Records is the sum of those filled, Rejected and Blank.
	Records     int64             `json:"records"`
	Rejected    int64             `json:"rejected"`
	Blank       int64             `json:"blank"`
	Settings    map[string]string `json:"settings"`
	Environment map[string]string `json:"environment"`
}

// result is the file that a run made.
type result struct {
	Name   string `json:"name"`
	Form   Form   `json:"form"`
	Rows   int64  `json:"rows"`
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"`
}

func manifestPath(output string) string { return output + ".manifest.json" }
func rejectsPath(output string) string  { return output + ".rejects.jsonl" }

func readManifest(output string) (*manifest, error) {
	var m manifest
	if ok, err := readJSON(manifestPath(output), &m); !ok || err != nil {
		return nil, err
	}
	return &m, nil
}

func (m *manifest) summary(output string) *Summary {
	s := &Summary{Output: output, Records: m.Records, Rejected: m.Rejected, Blank: m.Blank, Rows: m.Output.Rows}
	if m.Rejected > 0 {
		s.Rejects = rejectsPath(output)
	}
	return s
}

// Merge puts the parts of a run together in its output and removes them.
func Merge(ctx context.Context, output File, overwrite bool) (*Summary, error) {
	out, err := output.resolve("output")
	if err != nil {
		return nil, err
	}
	dir := partsDir(out.Path)
	p, err := readPlan(dir)
	if err != nil {
		return nil, err
	}
	m, err := readManifest(out.Path)
	if err != nil {
		return nil, err
	}
	_, err = os.Stat(out.Path)
	switch there := err == nil; {
	case p == nil && there && m != nil:
		s := m.summary(out.Path)
		s.Already = true
		return s, nil
	case p == nil:
		return nil, fmt.Errorf("%s holds no parts: run them first, with this output and --shard 1/N to N/N", dir)
	case there && !overwrite && (m == nil || len(differences(m.Settings, p.Settings)) > 0 || m.Input.SHA256 != p.Input.SHA256):
		return nil, &ExistsError{out.Path, "is there already, of something else: --overwrite replaces it"}
	}
	s, err := merge(ctx, out, dir)
	if err != nil {
		return nil, err
	}
	return s, removeParts(dir)
}

// absent says which parts are not there.
func absent(missing []string, of int) error {
	some := strings.Join(missing[:min(8, len(missing))], ", ")
	if len(missing) > 8 {
		some += ", …"
	}
	return fmt.Errorf("%d of %d parts are not finished: run %s", len(missing), of, some)
}

// PartFolder is the folder of a part of a run whose parts are folders, and whose output
// would be one.
func PartFolder(output string, shard Shard) string {
	p := part{dir: partsDir(output), shard: shard}
	return filepath.Join(p.dir, p.name())
}

// PartFolders are those of all parts, in their order. It is an error where one is missing.
func PartFolders(output string) ([]string, error) {
	entries, err := os.ReadDir(partsDir(output))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	there := map[Shard]bool{}
	count := 0
	for _, e := range entries {
		var s Shard
		if n, err := fmt.Sscanf(e.Name(), "%05d-of-%05d", &s.Index, &s.Count); err != nil || n != 2 || !e.IsDir() {
			continue
		}
		if there[s] = true; count > 0 && s.Count != count {
			return nil, fmt.Errorf("%s holds parts of %d and of %d: remove those that are of another run", partsDir(output), min(count, s.Count), max(count, s.Count))
		}
		count = s.Count
	}
	if count == 0 {
		return nil, fmt.Errorf("%s holds no parts: run them first, with this output and --shard 1/N to N/N", partsDir(output))
	}
	var folders, missing []string
	for i := range count {
		s := Shard{i + 1, count}
		if folders = append(folders, PartFolder(output, s)); !there[s] {
			missing = append(missing, s.String())
		}
	}
	if len(missing) > 0 {
		return nil, absent(missing, count)
	}
	return folders, nil
}

// merge writes the output of a folder whose parts are all finished.
func merge(ctx context.Context, out File, dir string) (_ *Summary, err error) {
	lock, err := lockFile(filepath.Join(dir, "merge.lock"), func() error {
		return fmt.Errorf("another process puts the parts in %s together: wait for it", dir)
	})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, lock.Unlock()) }()
	p, err := readPlan(dir)
	if err != nil {
		return nil, err
	}
	if p == nil {
		return nil, fmt.Errorf("%s has no %s: begin anew with --overwrite", dir, planFile)
	}
	var paths, missing []string
	for i := range p.Shards {
		one := part{dir: dir, shard: Shard{i + 1, len(p.Shards)}}
		paths = append(paths, one.complete())
		if _, err := os.Stat(one.complete()); errors.Is(err, fs.ErrNotExist) {
			missing = append(missing, one.shard.String())
		} else if err != nil {
			return nil, err
		}
	}
	if len(missing) > 0 {
		return nil, fmt.Errorf("%w again with --resume", absent(missing, len(paths)))
	}
	m := &manifest{Format: formatVersion, Input: p.Input, Settings: p.Settings, Output: result{Name: filepath.Base(out.Path), Form: out.Form}}
	// The first pass verifies all, and finds the columns of a table.
	columns := &columnSet{layout: p.Layout, at: map[string]int{}}
	for i, path := range paths {
		s, err := readPart(path, p, p.Shards[i], func(e *entry) error {
			if out.Form != JSONL && out.Form != Text {
				for _, row := range e.Rows {
					columns.add(row)
				}
			}
			return ctx.Err()
		})
		if err != nil {
			return nil, err
		}
		if m.Environment != nil && s.environment != nil {
			if list := differences(m.Environment, s.environment); len(list) > 0 {
				return nil, fmt.Errorf("parts 1 to %d and part %d were computed with different things (%s): run the part again with the same", i, i+1, strings.Join(list, "; "))
			}
		}
		if s.environment != nil {
			m.Environment = s.environment
		}
		m.Records, m.Rejected, m.Blank = m.Records+s.Records, m.Rejected+s.Rejected, m.Blank+s.Blank
	}
	if err := p.write(ctx, out, dir, paths, m, columns); err != nil {
		return nil, err
	}
	return m.summary(out.Path), nil
}

// write makes the files of a run. The output comes last: where it is, all is.
func (p *plan) write(ctx context.Context, out File, dir string, paths []string, m *manifest, columns *columnSet) (err error) {
	w, err := newWriter(filepath.Join(dir, "output.part"), out, p.Layout, columns)
	if err != nil {
		return full(err)
	}
	rejects, err := newWriter(filepath.Join(dir, "rejects.part"), File{Form: JSONL}, Layout{}, nil)
	if err != nil {
		return errors.Join(full(err), w.abandon())
	}
	for i, path := range paths {
		_, err := readPart(path, p, p.Shards[i], func(e *entry) error {
			if e.Error != "" {
				var place Object
				if e.Line > 0 {
					place = Object{{Key: "line", Value: json.RawMessage(strconv.FormatInt(e.Line, 10))}}
				} else {
					place = Object{{Key: "row", Value: json.RawMessage(strconv.FormatInt(e.Number, 10))}}
				}
				err := rejects.add(append(place, Field{Key: "error", Value: object.Quote(e.Error)}, Field{Key: "input", Value: object.Quote(e.Input)}))
				return errors.Join(err, w.blank())
			}
			for _, row := range e.Rows {
				if err := w.add(row); err != nil {
					return err
				}
			}
			if len(e.Rows) == 0 && e.Environment == nil {
				if err := w.blank(); err != nil {
					return err
				}
			}
			return ctx.Err()
		})
		if err != nil {
			return errors.Join(full(err), w.abandon(), rejects.abandon())
		}
	}
	if err := errors.Join(w.finish(), rejects.finish()); err != nil {
		return full(err)
	}
	m.Output.Rows, m.Output.Bytes, m.Output.SHA256 = w.rows, w.bytes, fmt.Sprintf("%x", w.hash.Sum(nil))
	if m.Rejected > 0 {
		err = os.Rename(rejects.path, rejectsPath(out.Path))
	} else if err = os.Remove(rejectsPath(out.Path)); errors.Is(err, fs.ErrNotExist) {
		err = nil // none of an earlier run
	}
	if err != nil {
		return err
	}
	// By way of the folder, so that a process that is killed leaves nothing beside the output.
	beside := filepath.Join(dir, "manifest.part")
	if err := writeJSON(beside, m); err != nil {
		return err
	}
	if err := os.Rename(beside, manifestPath(out.Path)); err != nil {
		return err
	}
	return os.Rename(w.path, out.Path)
}

// columnSet gathers the columns of a table from all rows, in the order they come.
type columnSet struct {
	layout Layout
	list   []column
	at     map[string]int
}

func (c *columnSet) add(row Object) {
	c.layout.flat(row, func(line Object) error {
		for _, f := range line {
			i, known := c.at[f.Key]
			if !known {
				i = len(c.list)
				c.at[f.Key] = i
				c.list = append(c.list, column{name: f.Key})
			}
			c.list[i].kind = c.list[i].kind.both(kindOf(f.Value))
		}
		return nil
	})
}

// values are those of a line, column by column, nil where it has none.
func (c *columnSet) values(line Object) []json.RawMessage {
	values := make([]json.RawMessage, len(c.list))
	for _, f := range line {
		if i, known := c.at[f.Key]; known {
			values[i] = f.Value
		}
	}
	return values
}

// flat gives the lines of a row.
func (l Layout) flat(row Object, do func(Object) error) error {
	at := slices.IndexFunc(row, func(f Field) bool { return l.Explode != "" && f.Key == l.Explode })
	if at < 0 {
		return do(row)
	}
	var list []Object
	if err := json.Unmarshal(row[at].Value, &list); err != nil {
		return err
	}
	var base Object
	for _, f := range row {
		if f.Key == l.Explode || slices.Contains(l.Apart, f.Key) {
			continue
		}
		name := f.Key
		for slices.Contains(l.Fields, name) || name != f.Key && row.Get(name) != nil {
			name = "input_" + name
		}
		base = append(base, Field{Key: name, Value: f.Value})
	}
	for _, one := range list {
		if err := do(append(slices.Clip(base), one...)); err != nil {
			return err
		}
	}
	return nil
}

// plain is the line of plain text of a row.
func (l Layout) plain(row Object) string {
	if list := row.Get(l.Explode); l.Explode != "" && list != nil {
		var objects []Object
		if err := json.Unmarshal(list, &objects); err != nil || len(objects) == 0 {
			return ""
		}
		row = objects[0]
	}
	return strings.Join(strings.Fields(text(row.Get(l.Text))), " ")
}

// writer writes a file of rows.
type writer struct {
	path   string
	form   Form
	layout Layout
	file   *os.File
	buffer *bufio.Writer
	packed io.WriteCloser // nil where nothing is compressed
	hash   hash.Hash
	bytes  int64
	rows   int64
	line   []byte
	cells  *csv.Writer
	// columns are those of a table.
	columns *columnSet
	table   *tableWriter
}

func newWriter(path string, f File, layout Layout, columns *columnSet) (*writer, error) {
	file, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	w := &writer{path: path, form: f.Form, layout: layout, file: file, hash: sha256.New(), columns: columns}
	w.buffer = bufio.NewWriterSize(counted{io.MultiWriter(file, w.hash), &w.bytes}, bufferSize)
	var out io.Writer = w.buffer
	switch f.packed {
	case ".gz":
		w.packed = gzip.NewWriter(w.buffer)
	case ".zst":
		// One thread, so that the bytes hang on nothing else.
		w.packed, err = zstd.NewWriter(w.buffer, zstd.WithEncoderConcurrency(1))
	}
	if err != nil {
		return nil, errors.Join(err, w.abandon())
	}
	if w.packed != nil {
		out = w.packed
	}
	switch f.Form {
	case CSV, TSV:
		w.cells = csv.NewWriter(out)
		if f.Form == TSV {
			w.cells.Comma = '\t'
		}
		var names []string
		for _, c := range columns.list {
			names = append(names, c.name)
		}
		if len(names) > 0 {
			err = w.cells.Write(names)
		}
	case Parquet:
		w.table = newTableWriter(out, columns.list)
	}
	return w, err
}

// counted counts the bytes of a writer.
type counted struct {
	io.Writer
	bytes *int64
}

func (c counted) Write(p []byte) (int, error) {
	n, err := c.Writer.Write(p)
	*c.bytes += int64(n)
	return n, err
}

func (w *writer) out() io.Writer {
	if w.packed != nil {
		return w.packed
	}
	return w.buffer
}

// add writes a row.
func (w *writer) add(row Object) error {
	switch w.form {
	case JSONL:
		w.rows++
		w.line = append(row.Append(w.line[:0]), '\n')
		_, err := w.out().Write(w.line)
		return err
	case Text:
		w.rows++
		_, err := io.WriteString(w.out(), w.layout.plain(row)+"\n")
		return err
	}
	return w.layout.flat(row, func(line Object) error {
		w.rows++
		values := w.columns.values(line)
		if w.table != nil {
			return w.table.write(values)
		}
		cells := make([]string, len(values))
		for i, value := range values {
			if cells[i] = text(value); w.form == TSV {
				cells[i] = oneCell.Replace(cells[i])
			}
		}
		return w.cells.Write(cells)
	})
}

// oneCell keeps a text within a cell of TSV.
var oneCell = strings.NewReplacer("\t", " ", "\n", " ", "\r", " ")

// blank keeps the lines of plain text those of the input, where a record has no row
// and others have one.
func (w *writer) blank() error {
	if w.form != Text || !w.layout.Aligned {
		return nil
	}
	_, err := io.WriteString(w.out(), "\n")
	return err
}

// finish brings everything to the disk.
func (w *writer) finish() error {
	var err error
	if w.cells != nil {
		w.cells.Flush()
		err = w.cells.Error()
	}
	if w.table != nil {
		err = w.table.close()
	}
	if w.packed != nil {
		err = errors.Join(err, w.packed.Close())
	}
	return errors.Join(err, w.buffer.Flush(), w.file.Sync(), w.file.Close())
}

// abandon lets go of a file that will not be used.
func (w *writer) abandon() error { return errors.Join(w.file.Close(), os.Remove(w.path)) }
