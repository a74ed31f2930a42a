package batch

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"infill/internal/journal"
	"infill/internal/object"
)

// What a merge writes before it is renamed.
const (
	outputPart   = "output.part"
	rejectsPart  = "rejects.part"
	manifestPart = "manifest.part"
)

// manifest is what stands beside an output, as OUTPUT.manifest.json: how it came about.
// It does not tell the number of parts, on which nothing depends.
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
	// Signature is all of both in a line, for people to quote.
	Signature string `json:"signature"`
}

// result is the file that a run made.
type result struct {
	Name   string `json:"name"`
	Form   Form   `json:"form"`
	Rows   int64  `json:"rows"`
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"`
}

const manifestFormat = 1

func manifestPath(output string) string { return output + ".manifest.json" }
func rejectsPath(output string) string  { return output + ".rejects.jsonl" }

func readManifest(output string) (*manifest, error) {
	var m manifest
	if ok, err := journal.ReadJSON(manifestPath(output), &m); !ok || err != nil {
		return nil, err
	}
	return &m, nil
}

// of reports whether the manifest is of what a part is asked for.
func (m *manifest) of(h *head) bool {
	return maps.Equal(m.Settings, h.Settings) && m.Input.SHA256 == h.Input.SHA256
}

func (m *manifest) summary(output string) *Summary {
	s := &Summary{Output: output, Records: m.Records, Rejected: m.Rejected, Blank: m.Blank}
	if m.Rejected > 0 {
		s.Rejects = rejectsPath(output)
	}
	if variants, err := strconv.ParseInt(m.Settings["variants"], 10, 64); err == nil {
		if m.Settings["with-original"] == "true" {
			variants++
		}
		s.Missing = variants*(m.Records-m.Rejected-m.Blank) - m.Output.Rows
	}
	return s
}

// Merge puts the parts of a run together in its output and removes them.
func Merge(ctx context.Context, output File, overwrite bool) (*Summary, error) {
	out, err := output.resolve("output")
	if err != nil {
		return nil, err
	}
	parts, err := partsThere(out.Path)
	if err != nil {
		return nil, err
	}
	m, err := readManifest(out.Path)
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(out.Path); err == nil && len(parts) == 0 && m != nil {
		s := m.summary(out.Path)
		s.Already = true
		return s, nil
	} else if err == nil && len(parts) > 0 && !overwrite {
		h, err := readHead(pathOf(out.Path, parts[0]))
		if err != nil || h == nil || m == nil || !m.of(h) {
			return nil, &ExistsError{out.Path, "is there already, of something else: --overwrite replaces it"}
		}
	}
	s, err := merge(ctx, out)
	if err != nil {
		return nil, full(err)
	}
	return s, removeParts(out.Path, parts...)
}

// scan reads all lines of a part, and notes the columns of a table.
func scan(path string, c columns) (*part, error) {
	p := &part{path: path}
	err := journal.Follow(path, 0, func(line []byte) error {
		e, err := p.read(line)
		if e == nil || p.head.Output != formCSV && p.head.Output != formTSV {
			return err
		}
		for i, row := range e.Rows {
			fields, err := object.Parse(row)
			if err != nil {
				return err
			}
			c.add(fields, p.head.Part.number(p.records-1), int64(i))
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("%s is damaged (%w): remove it, and run the part again", path, err)
	}
	return p, nil
}

// columns are those of a table, by name: the record, the line of it and the place in the line that each came with.
type columns map[string][3]int64

func (c columns) add(line object.Object, record, row int64) {
	for i, f := range line {
		at := [3]int64{record, row, int64(i)}
		if first, known := c[f.Key]; !known || slices.Compare(at[:], first[:]) < 0 {
			c[f.Key] = at
		}
	}
}

// names are the columns in the order they came, but those of blanks stand together where the first of them came.
func (c columns) names() []string {
	names := slices.SortedFunc(maps.Keys(c), func(a, b string) int {
		first, second := c[a], c[b]
		return slices.Compare(first[:], second[:])
	})
	from := slices.IndexFunc(names, blankColumn.MatchString)
	if from < 0 {
		return names
	}
	blanks := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return !blankColumn.MatchString(name) })
	slices.SortFunc(blanks, func(a, b string) int { return cmp.Or(len(a)-len(b), strings.Compare(a, b)) })
	others := slices.DeleteFunc(names[from:], blankColumn.MatchString)
	return slices.Concat(names[:from], blanks, others)
}

// finishedParts reads all parts of a run. It is an error where one is missing, not finished, or of another run.
func finishedParts(output string) (parts []*part, names []string, err error) {
	folder := partsOf(output)
	list, err := partsThere(output)
	if err != nil {
		return nil, nil, err
	}
	if len(list) == 0 {
		return nil, nil, fmt.Errorf("%s holds no parts: run them first, with this output and --shard 1/N to N/N",
			folder)
	}
	count := list[0].Count
	parts, all := make([]*part, count), columns{}
	for _, s := range list {
		if s.Count != count {
			return nil, nil, fmt.Errorf("%s holds parts of %d and of %d: remove those that are of another run", folder,
				min(count, s.Count), max(count, s.Count))
		}
		if parts[s.Index-1], err = scan(pathOf(output, s), all); err != nil {
			return nil, nil, err
		}
	}
	var missing []string
	for i, p := range parts {
		if p == nil || !p.ended {
			missing = append(missing, Shard{i + 1, count}.String())
		}
	}
	if n := len(missing); n > 0 {
		if n > 8 {
			missing = append(missing[:8:8], "…")
		}
		return nil, nil, fmt.Errorf("%d of %d parts are not finished: run %s again with --resume", n, count,
			strings.Join(missing, ", "))
	}
	for _, p := range parts {
		if err := journal.CheckUnchanged(p.path, parts[0].head.facts(), p.head.facts()); err != nil {
			return nil, nil, err
		}
	}
	return parts, all.names(), nil
}

// merge writes the output of a run whose parts are all finished.
func merge(ctx context.Context, out File) (_ *Summary, err error) {
	folder := partsOf(out.Path)
	parts, names, err := finishedParts(out.Path)
	if err != nil {
		return nil, err
	}
	lock, err := journal.Lock(folder, fmt.Sprintf("another process puts the parts in %s together", folder))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, lock.Unlock(), os.Remove(lock.Path())) }()
	of := parts[0].head
	if out.Form != of.Output {
		return nil, fmt.Errorf("the parts in %s are for an output in the form %s, not %s: name the form by --to %[2]s",
			folder, of.Output, out.Form)
	}
	m := &manifest{Format: manifestFormat, Input: of.Input, Settings: of.Settings, Environment: of.Environment,
		Output: result{Name: filepath.Base(out.Path), Form: out.Form}}
	for _, p := range parts {
		m.Records, m.Rejected, m.Blank = m.Records+p.records, m.Rejected+p.rejected, m.Blank+p.blank
	}
	all := map[string]string{}
	maps.Copy(all, m.Settings)
	maps.Copy(all, m.Environment)
	var facts []string
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if all[name] != "" {
			facts = append(facts, name+":"+strings.ReplaceAll(all[name], "|", "/"))
		}
	}
	m.Signature = strings.Join(facts, "|")
	if err := m.write(ctx, out, parts, names); err != nil {
		return nil, err
	}
	return m.summary(out.Path), nil
}

// write makes the files of a run, from the records of the parts in turn. The output comes last: where it is, all is.
func (m *manifest) write(ctx context.Context, out File, parts []*part, names []string) (err error) {
	folder := partsOf(out.Path)
	const memory, least = 1 << 26, 1 << 12 // of what is read ahead, of all parts and of one
	lines := make([]*bufio.Reader, len(parts))
	for i, p := range parts {
		file, err := os.Open(p.path)
		if err != nil {
			return err
		}
		defer file.Close()
		lines[i] = bufio.NewReaderSize(file, max(least, min(bufferSize, memory/len(parts))))
		if _, err := lines[i].ReadBytes('\n'); err != nil { // the head
			return err
		}
	}
	rows, err := newWriter(filepath.Join(folder, outputPart), out, names)
	if err != nil {
		return err
	}
	rejects, err := newWriter(filepath.Join(folder, rejectsPart), File{Form: formJSONL}, nil)
	if err != nil {
		return errors.Join(err, rows.finish())
	}
	for number := int64(0); number < m.Records && err == nil; number++ {
		err = cmp.Or(copyRecord(lines[number%int64(len(parts))], rows, rejects), ctx.Err())
	}
	if err = errors.Join(err, rows.finish(), rejects.finish()); err != nil {
		return err
	}
	if m.Output.Rows, m.Output.Bytes, m.Output.SHA256, err = rows.made(); err != nil {
		return err
	}
	if m.Rejected > 0 {
		err = os.Rename(rejects.path, rejectsPath(out.Path))
	} else if err = os.Remove(rejectsPath(out.Path)); errors.Is(err, fs.ErrNotExist) {
		err = nil // none of an earlier run
	}
	if err != nil {
		return err
	}
	// By way of the folder, so that a process that is killed leaves nothing beside the output.
	beside := filepath.Join(folder, manifestPart)
	if err := journal.WriteJSON(beside, m); err != nil {
		return err
	}
	if err := os.Rename(beside, manifestPath(out.Path)); err != nil {
		return err
	}
	return os.Rename(rows.path, out.Path)
}

// copyRecord writes the next record of a part to the output, or to the rejects.
func copyRecord(lines *bufio.Reader, rows, rejects *writer) error {
	line, err := lines.ReadBytes('\n')
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	var e entry
	if err == nil {
		err = json.Unmarshal(line, &e)
	}
	if err == nil && e.Error != "" {
		place := json.RawMessage(strconv.FormatInt(e.Line, 10))
		err = rejects.write(object.Object{{Key: "line", Value: place}, {Key: "error", Value: object.Quote(e.Error)},
			{Key: "input", Value: object.Quote(e.Input)}}.Append(nil))
	}
	for _, row := range e.Rows {
		err = cmp.Or(err, rows.write(row))
	}
	return err
}
