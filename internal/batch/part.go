package batch

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"infill/internal/journal"
	"infill/internal/rawjson"
)

// Shard is part Index, from 1, of Count parts; zero is the whole run.
type Shard struct{ Index, Count int }

// String returns a text such as "2/8"; "" for the whole run.
func (s Shard) String() string {
	if s.Count == 0 {
		return ""
	}
	return fmt.Sprintf("%d/%d", s.Index, s.Count)
}

func (s Shard) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads such a text. Its errors complete `"x" is not …`.
func (s *Shard) UnmarshalText(text []byte) error {
	_, err := fmt.Sscanf(string(text), "%d/%d", &s.Index, &s.Count)
	if err != nil || s.Index < 1 || s.Index > s.Count || s.Count > 10000 || s.String() != string(text) {
		return errors.New("I/N, the number of this part from 1 and that of all (at most 10000); " +
			"for the whole run leave the flag out")
	}
	return nil
}

// of returns how many of a run's records come before the part, and how many the part has.
func (s Shard) of(records int64) (before, own int64) {
	before = records * int64(s.Index-1) / int64(s.Count)
	return before, records*int64(s.Index)/int64(s.Count) - before
}

// folderOf returns the folder of a run's parts. rejectsOf returns the file of a
// run's rejected records, and receiptOf that of its settings.
func folderOf(output string) string  { return output + ".parts" }
func rejectsOf(output string) string { return output + ".rejects.jsonl" }
func receiptOf(output string) string { return output + ".run.json" }

// receipt says how an output was made. It stands beside the output.
type receipt struct {
	Signature string            `json:"signature"`
	ExitCode  int               `json:"exit_code"` // 3 if records were rejected, else 0
	Rejected  int64             `json:"rejected"`
	Settings  map[string]string `json:"settings"`
	// Table describes the columns of a table of fills; nil for other outputs.
	Table []ColumnType `json:"table,omitempty"`
}

func readReceipt(output string) (*receipt, error) {
	r := new(receipt)
	ok, err := journal.ReadJSON(receiptOf(output), r)
	if err != nil || !ok {
		return nil, err
	}
	if r.Settings == nil || r.Signature == "" {
		return nil, outError("%s would be replaced, and no run has written it: choose another output",
			receiptOf(output))
	}
	return r, nil
}

func pathOf(output string, s Shard) string {
	return filepath.Join(folderOf(output), fmt.Sprintf("%05d-of-%05d.jsonl", s.Index, s.Count))
}

// When they are complete, these files become the output and the rejects.
const (
	outputPart  = "output.part"
	rejectsPart = "rejects.part"
)

// ours matches a run's files in the folder of the parts, and their locks.
var ours = regexp.MustCompile(`^\.?(\d{5}-of-(\d{5})\.jsonl|output\.part|rejects\.part)(\.lock)?$`)

// partsThere returns the Count of the parts in the run's folder, or 0.
func partsThere(output string) (count int, err error) {
	entries, err := os.ReadDir(folderOf(output))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return 0, err
	}
	for _, e := range entries {
		name := ours.FindStringSubmatch(e.Name())
		if name == nil || name[2] == "" || name[3] != "" {
			continue
		}
		other, _ := strconv.Atoi(name[2]) // ours matches only digits here
		if count > 0 && other != count {
			return 0, fmt.Errorf("%s holds parts of %d and of %d: remove those that are of another run",
				folderOf(output), min(count, other), max(count, other))
		}
		count = other
	}
	return count, nil
}

// removeParts removes a run's parts, and a folder with no files of others.
func removeParts(output string) error {
	entries, err := os.ReadDir(folderOf(output))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, e := range entries {
		if ours.MatchString(e.Name()) {
			err = errors.Join(err, os.Remove(filepath.Join(folderOf(output), e.Name())))
		}
	}
	_ = os.Remove(folderOf(output))
	return err
}

// partFormat is the version of the lines of a part. Those of infill 0.2 have
// none, and probabilities that were the mean of two orders; spans of 6 count bytes.
const partFormat = 7

// head is the first line of a part. It holds the settings of the run.
type head struct {
	Format  int    `json:"format"`
	Part    Shard  `json:"part"`
	Records int64  `json:"records"` // number of records in the whole input
	Layout  Layout `json:"layout"`
	// Mode is that of the file that the output replaces, or 0.
	Mode fs.FileMode `json:"mode,omitempty"`
	// Settings are the same in all parts of a run. They include the SHA-256 of
	// the input, and the form of the output.
	Settings map[string]string `json:"settings"`
}

// known returns an error for a part that another version of infill began.
func (h *head) known(path string) error {
	other := "other probabilities"
	switch h.Format {
	case partFormat:
		return nil
	case 6:
		other = "results of format 4, whose spans count bytes"
	}
	return outError("%s is a run of another version of infill, with %s: finish it with that version, or begin again "+
		"with --overwrite", path, other)
}

func (h *head) form() Form { return Form(h.Settings["form"]) }

// signature returns all settings in one line, for people to quote.
func (h *head) signature() string {
	var facts []string
	for _, name := range slices.Sorted(maps.Keys(h.Settings)) {
		value := h.Settings[name]
		if value != "" {
			facts = append(facts, name+":"+strings.ReplaceAll(value, "|", "/"))
		}
	}
	return strings.Join(facts, "|")
}

// entry is a line of a part after the head: a finished record. One with an
// Error is also a line of the rejects file.
type entry struct {
	Line   int64  `json:"line"`             // line of the input where the record begins
	Error  string `json:"error,omitempty"`  // why the record was rejected, or ""
	Option string `json:"option,omitempty"` // as RejectError.option
	Blank  bool   `json:"blank,omitempty"`
	Rows

	line []byte // as encode returns it
}

// sumKey begins every entry: a checksum of the line, without this key and its comma.
const sumKey = `{"sum":`

// castagnoli is the polynomial that processors have an instruction for.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// sumOf returns the checksum of a line from behind its sumKey on.
func sumOf(line []byte) uint32 { return crc32.Checksum(line, castagnoli) }

// lineKey stands before the lines of output in an entry, the last of its keys. A quote
// inside a string has a backslash before it, so that no text of a user looks like it.
const lineKey = `,"rows":[`

// rowSeparator stands between them: no line has a tab, since JSON escapes it.
const rowSeparator = ",\t"

// encode returns a line of a part. Lines of output stand in it byte by byte.
func (e *entry) encode() ([]byte, error) {
	head := *e
	head.Lines = nil
	encoded, err := rawjson.Encode(head)
	if err != nil {
		return nil, err
	}
	line := encoded[1:]
	if len(e.Lines) > 0 {
		line = append(line[:len(line)-1], lineKey...)
		for i, row := range e.Lines {
			if i > 0 {
				line = append(line, rowSeparator...)
			}
			line = append(line, row...)
		}
		line = append(line, "]}"...)
	}
	return fmt.Appendf(nil, "%s%d,%s\n", sumKey, sumOf(line), line), nil
}

// decode reads what encode has written. The checksum stands for reading the
// lines of output as JSON, which would take longer than all else here.
func (e *entry) decode(line []byte) error {
	sum, line, _ := bytes.Cut(bytes.TrimSuffix(line, []byte("\n")), []byte(","))
	if string(sum) != fmt.Sprint(sumKey, sumOf(line)) {
		return errors.New("not as it was written")
	}
	head, lines, some := bytes.Cut(line, []byte(lineKey))
	head = append([]byte("{"), head...)
	if some {
		lines = bytes.TrimSuffix(lines, []byte("]}"))
		head = append(head, '}')
	}
	err := json.Unmarshal(head, e)
	for err == nil && some {
		var row []byte
		row, lines, some = bytes.Cut(lines, []byte(rowSeparator))
		e.Lines = append(e.Lines, row)
	}
	return err
}

// part holds the head of a part, and counts of the lines read so far.
type part struct {
	head    *head // nil before the first line is read
	records int64
	line    int64    // Line of the last record
	sum     *Summary // counts of this part and of parts before it
}

func (p *part) finished() bool {
	if p.head == nil {
		return false
	}
	_, own := p.head.Part.of(p.head.Records)
	return p.records == own
}

// read takes a line of a part. It returns nil for the head, else an entry.
func (p *part) read(line []byte) (*entry, error) {
	if p.head == nil {
		h := new(head)
		if err := json.Unmarshal(line, h); err != nil || h.Part.Count == 0 || h.Settings == nil {
			return nil, errors.New("line 1 is no line of a run of this version of infill")
		}
		p.head = h
		return nil, nil
	}
	e := new(entry)
	err := e.decode(line)
	if err != nil || e.Line <= p.line || p.finished() {
		return nil, fmt.Errorf("line %d is no line of a run", p.records+2)
	}
	p.line = e.Line
	p.take(e)
	return e, nil
}

func (p *part) take(e *entry) {
	p.records++
	p.sum.Records++
	p.sum.Lines += int64(len(e.Lines))
	p.sum.Missing += int64(e.Missing)
	if e.Unproven {
		p.sum.Unproven++
	}
	if e.Excluded {
		p.sum.Excluded++
	}
	if e.Option != "" && !slices.Contains(p.sum.Options, e.Option) {
		p.sum.Options = append(p.sum.Options, e.Option)
	}
	if e.Error != "" {
		p.sum.Rejected++
	} else if e.Blank {
		p.sum.Blank++
	}
}

// eachEntry calls do with each record of a run, part by part. It returns an
// error if a part is missing, unfinished, or from a run with other settings.
func eachEntry(output string, count int, do func(e *entry) error) (*Summary, error) {
	s := &Summary{Output: output}
	var first *head
	var missing []string
	for i := range count {
		p := part{sum: s}
		path := pathOf(output, Shard{i + 1, count})
		err := journal.Follow(path, 0, func(line []byte) error {
			e, err := p.read(line)
			if err != nil {
				return fmt.Errorf("%s is damaged (%w): remove it, and run the part again", path, err)
			}
			if e == nil {
				first = cmp.Or(first, p.head)
				return cmp.Or(p.head.known(path),
					journal.CheckUnchanged(folderOf(output), first.Settings, p.head.Settings))
			}
			return do(e)
		})
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		if !p.finished() {
			missing = append(missing, Shard{i + 1, count}.String())
		}
	}
	if missing != nil {
		return nil, fmt.Errorf("%d of %d parts are not finished: run %s again with --resume", len(missing), count,
			strings.Join(missing, ", "))
	}
	return s, nil
}

// join writes the output of a run whose parts are finished, and keeps them.
func join(ctx context.Context, output string, kept int64) (_ *Summary, err error) {
	folder := folderOf(output)
	count, err := partsThere(output)
	if err != nil {
		return nil, err
	}
	if count == 0 {
		return nil, fmt.Errorf("%s holds no parts: run them first, with this output and --shard 1/N to N/N", folder)
	}
	made := filepath.Join(folder, outputPart)
	rejects := filepath.Join(folder, rejectsPart)
	lock, err := journal.Lock(made, "another process joins the parts in "+folder)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, lock.Unlock()) }()
	h, err := headOf(output, count)
	if err != nil {
		return nil, err
	}
	out, err := File{Path: output, Form: h.form()}.resolve("output")
	if err != nil {
		return nil, err
	}
	// Columns of an output are those that its rows need; those that the receipt declares
	// do not depend on which records could be filled.
	var used, declared shape
	if out.Form.table() { // the first line names all columns
		_, err = eachEntry(output, count, func(e *entry) error {
			declared.see(&e.Rows)
			if e.Error == "" {
				used.see(&e.Rows)
			}
			return ctx.Err()
		})
		if err != nil {
			return nil, err
		}
	}
	var s *Summary
	err = create(rejects, File{}, func(wrong io.Writer) error {
		return create(made, out, func(right io.Writer) error {
			to := newWriter(right, out.Form, h.Layout, used)
			err := to.head()
			if err != nil {
				return err
			}
			s, err = eachEntry(output, count, func(e *entry) error {
				err := to.write(&e.Rows)
				if err == nil && e.Error != "" {
					err = rawjson.WriteLine(wrong, rejected{e.Line, e.Error})
				}
				return cmp.Or(err, ctx.Err())
			})
			return err
		})
	})
	if err != nil {
		return nil, err
	}
	s.Signature = h.signature()
	s.Kept = kept
	r := receipt{Signature: s.Signature, Rejected: s.Rejected, Settings: h.Settings, Table: h.Layout.types(declared)}
	err = publish(output, made, rejects, h, r)
	if err != nil {
		return nil, err
	}
	return s, nil
}

// publish names the finished files, the output last: then all else exists.
func publish(output, made, rejects string, h *head, r receipt) error {
	// An earlier run's file of rejects does not belong to this output.
	err := removeAny(rejectsOf(output))
	if err != nil {
		return err
	}
	if h.Mode != 0 {
		err = errors.Join(os.Chmod(made, h.Mode), os.Chmod(rejects, h.Mode))
		if err != nil {
			return err
		}
	}
	if r.Rejected > 0 {
		r.ExitCode = 3
		err = os.Rename(rejects, rejectsOf(output))
		if err != nil {
			return err
		}
	}
	err = journal.WriteJSON(receiptOf(output), r)
	if err != nil {
		return err
	}
	return os.Rename(made, output)
}

// headOf returns the first head of a part; else which are not finished.
func headOf(output string, count int) (*head, error) {
	for i := range count {
		h, err := readHead(pathOf(output, Shard{i + 1, count}))
		if err == nil {
			return h, nil
		}
	}
	_, err := eachEntry(output, count, func(*entry) error { return nil })
	return nil, err
}

func readHead(path string) (*head, error) {
	p := part{sum: new(Summary)}
	err := journal.Follow(path, 0, func(line []byte) error {
		_, err := p.read(line)
		if err != nil {
			return err
		}
		return io.EOF
	})
	if p.head == nil {
		return nil, cmp.Or(err, fmt.Errorf("%s is empty", path))
	}
	return p.head, nil
}

// create makes a new file at path instead of what is there. write writes
// its contents, which create compresses and syncs to the disk.
func create(path string, f File, write func(io.Writer) error) error {
	err := removeAny(path)
	if err != nil {
		return err
	}
	// Only a new file is written, and never what a link leads to.
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return err
	}
	buffer := bufio.NewWriterSize(file, bufferSize)
	packed := f.pack(buffer)
	err = errors.Join(write(packed), packed.Close(), buffer.Flush(), file.Sync(), file.Close())
	if err != nil {
		err = errors.Join(err, removeAny(path))
	}
	return err
}

type rejected struct {
	Line  int64  `json:"line"`
	Error string `json:"error"`
}

// areRejects reports whether path is missing, or begins like rejects.
func areRejects(path string) bool {
	file, err := os.Open(path)
	if err != nil {
		return errors.Is(err, fs.ErrNotExist)
	}
	defer file.Close()
	var r rejected
	return json.NewDecoder(file).Decode(&r) == nil && r.Line > 0 && r.Error != ""
}
