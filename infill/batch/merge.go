package batch

import (
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
	parts, err := journal.Parts(out.Path)
	if err != nil {
		return nil, err
	}
	m, err := readManifest(out.Path)
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(out.Path); err == nil {
		if len(parts) == 0 && m != nil {
			s := m.summary(out.Path)
			s.Already = true
			return s, nil
		}
		of := false
		if len(parts) > 0 && m != nil {
			h, err := readHead(journal.PartOf(out.Path, parts[0]))
			of = err == nil && h != nil && len(journal.Differences(m.Settings, h.Settings)) == 0 &&
				m.Input.Bytes == h.Input.Bytes
		}
		if len(parts) > 0 && !of && !overwrite {
			return nil, &ExistsError{out.Path, "is there already, of something else: --overwrite replaces it"}
		}
	}
	s, err := merge(ctx, out)
	if err != nil {
		return nil, full(err)
	}
	return s, removeParts(out.Path)
}

// finished is a part that is read.
type finished struct {
	dir  string
	head *head
	state
	file   *os.File
	reader *journal.Reader
	// columns are where those of the part stand in the output.
	columns []int
}

// open reads what a part says of itself, and opens its lines.
func (f *finished) open(buffer int) (err error) {
	if f.head, err = readHead(f.dir); err == nil && f.head == nil {
		err = f.damaged(journal.Head + " is missing")
	}
	if err != nil {
		return err
	}
	if _, err := journal.ReadJSON(filepath.Join(f.dir, journal.Tail), &f.state); err != nil {
		return err
	}
	f.head.Input = f.state.Input
	if f.file, err = os.Open(filepath.Join(f.dir, recordsFile)); err != nil {
		return err
	}
	f.reader = journal.NewReaderSize(f.file, buffer)
	return nil
}

func (f *finished) damaged(reason string) error {
	return fmt.Errorf("%s is damaged (%s): remove it, and run the part again", f.dir, reason)
}

// next reads the entry of a record.
func (f *finished) next(number int64) (*entry, error) {
	for {
		line, err := f.reader.Next()
		if err == io.EOF {
			return nil, f.damaged(fmt.Sprintf("it has no record %d", number))
		}
		if err != nil {
			return nil, err
		}
		var e entry
		if json.Unmarshal(line, &e) != nil || e.Environment == nil && e.Number != number {
			return nil, f.damaged(fmt.Sprintf("line %d is not that of record %d", f.reader.End().Lines, number))
		}
		if e.Environment == nil {
			return &e, nil
		}
	}
}

// end verifies that all was read, and nothing else.
func (f *finished) end() error {
	if _, err := f.reader.Next(); err != io.EOF {
		return f.damaged("lines after its end")
	}
	if f.reader.End() != f.state.End {
		return f.damaged("its SHA-256 is not what " + journal.Tail + " says")
	}
	return nil
}

// merge writes the output of a run whose parts are all finished.
func merge(ctx context.Context, out File) (_ *Summary, err error) {
	dirs, err := journal.Finished(out.Path, " again with --resume")
	if err != nil {
		return nil, err
	}
	folder := journal.PartsOf(out.Path)
	lock, err := journal.Lock(folder, fmt.Sprintf("another process puts the parts in %s together", folder))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, lock.Unlock()) }()
	const memory, least = 1 << 26, 1 << 12 // of what is read ahead, of all parts and of one
	buffer := max(least, min(bufferSize, memory/len(dirs)))
	parts := make([]finished, len(dirs))
	m := &manifest{Format: manifestFormat}
	for i, dir := range dirs {
		p := &parts[i]
		p.dir = dir
		if err := p.open(buffer); err != nil {
			return nil, err
		}
		defer p.file.Close()
		if err := journal.Changed(dir, journal.Differences(parts[0].head.facts(), p.head.facts())); err != nil {
			return nil, err
		}
		if m.Environment != nil && p.Environment != nil {
			if list := journal.Differences(m.Environment, p.Environment); len(list) > 0 {
				return nil, fmt.Errorf("parts 1 to %d and part %d were computed with different things (%s): run the "+
					"part again with the same", i, i+1, strings.Join(list, "; "))
			}
		}
		if p.Environment != nil {
			m.Environment = p.Environment
		}
		m.Records, m.Rejected, m.Blank = m.Records+p.Records, m.Rejected+p.Rejected, m.Blank+p.Blank
	}
	first := parts[0].head
	if out.Form != first.Output {
		return nil, fmt.Errorf("the parts in %s are for an output in the form %s, not %s: name the form by --to %[2]s",
			folder, first.Output, out.Form)
	}
	m.Input, m.Settings, m.Output = parts[0].Input, first.Settings,
		result{Name: filepath.Base(out.Path), Form: out.Form}
	if m.Records != m.Input.Records {
		return nil, fmt.Errorf("the parts in %s have %d records, the input %d: start again with --overwrite", folder,
			m.Records, m.Input.Records)
	}
	all := map[string]string{}
	maps.Copy(all, m.Settings)
	maps.Copy(all, m.Environment)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if all[name] != "" {
			m.Signature += "|" + name + ":" + strings.ReplaceAll(all[name], "|", "/")
		}
	}
	m.Signature = strings.TrimPrefix(m.Signature, "|")
	if err := m.write(ctx, out, parts); err != nil {
		return nil, err
	}
	return m.summary(out.Path), nil
}

// columnsOf are the columns of all parts, in the order they came, and where each part's are.
func columnsOf(parts []finished) (all []column) {
	at := map[string]int{}
	for _, p := range parts {
		for _, c := range p.Columns {
			i, known := at[c.Name]
			if !known {
				i = len(all)
				at[c.Name], all = i, append(all, column{Name: c.Name, First: c.First})
			}
			all[i].First = min(all[i].First, c.First)
		}
	}
	// Those that came with one record are of one part, and stay in its order.
	slices.SortStableFunc(all, func(a, b column) int { return cmp.Compare(a.First, b.First) })
	// Columns of blanks that only later records have stand with the others.
	blank := func(c column) int {
		number, _ := strconv.Atoi(blankColumn.ReplaceAllString(c.Name, "$1"))
		return number
	}
	if first := slices.IndexFunc(all, func(c column) bool { return blank(c) > 0 }); first >= 0 {
		var blanks, others []column
		for _, c := range all[first:] {
			if blank(c) > 0 {
				blanks = append(blanks, c)
			} else {
				others = append(others, c)
			}
		}
		slices.SortFunc(blanks, func(a, b column) int { return cmp.Compare(blank(a), blank(b)) })
		all = append(append(all[:first:first], blanks...), others...)
	}
	for i, c := range all {
		at[c.Name] = i
	}
	for i := range parts {
		for _, c := range parts[i].Columns {
			parts[i].columns = append(parts[i].columns, at[c.Name])
		}
	}
	return all
}

// write makes the files of a run, from the records of the parts in turn. The output comes last: where it is, all is.
func (m *manifest) write(ctx context.Context, out File, parts []finished) (err error) {
	folder := journal.PartsOf(out.Path)
	columns := columnsOf(parts)
	w, err := newWriter(filepath.Join(folder, outputPart), out, columns)
	if err != nil {
		return err
	}
	rejects, err := newWriter(filepath.Join(folder, rejectsPart), File{Form: formJSONL}, nil)
	if err != nil {
		return errors.Join(err, w.abandon())
	}
	aligned := out.Form == formText && parts[0].head.Aligned
	for number := int64(1); number <= m.Records && err == nil; number++ {
		p := &parts[(number-1)%int64(len(parts))]
		e, wrong := p.next(number)
		if err = cmp.Or(wrong, ctx.Err()); err != nil {
			break
		}
		if e.Error != "" {
			place := json.RawMessage(strconv.FormatInt(e.Line, 10))
			err = rejects.line(
				Object{{Key: "line", Value: place}, {Key: "error", Value: object.Quote(e.Error)},
					{Key: "input", Value: object.Quote(e.Input)}}.Append(nil))
		}
		for _, row := range e.Rows {
			err = errors.Join(err, w.line(row))
		}
		for _, cells := range e.Cells {
			values := make([]json.RawMessage, len(columns))
			for i, cell := range cells {
				values[p.columns[i]] = cell
			}
			err = errors.Join(err, w.values(values))
		}
		if aligned && len(e.Rows) == 0 {
			_, blank := io.WriteString(w.out(), "\n")
			err = errors.Join(err, blank)
		}
	}
	for i := range parts {
		if err == nil {
			err = parts[i].end()
		}
	}
	if err != nil {
		return errors.Join(err, w.abandon(), rejects.abandon())
	}
	if err := errors.Join(w.finish(), rejects.finish()); err != nil {
		return err
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
	beside := filepath.Join(folder, manifestPart)
	if err := journal.WriteJSON(beside, m); err != nil {
		return err
	}
	if err := os.Rename(beside, manifestPath(out.Path)); err != nil {
		return err
	}
	return os.Rename(w.path, out.Path)
}
