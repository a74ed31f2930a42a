package batch

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/renameio/v2/maybe"
)

const (
	planFile      = "plan.json"
	formatVersion = 1 // of the files; it rises when an older program could not read them
)

// plan is plan.json. It follows from input, settings and the number of parts alone, so
// processes that begin at once may all write it.
type plan struct {
	Format   int               `json:"format"`
	Input    input             `json:"input"`
	Settings map[string]string `json:"settings"`
	Layout   Layout            `json:"layout"`
	Shards   []span            `json:"shards"`
}

// input says which file is read.
type input struct {
	Name    string   `json:"name"`
	Bytes   int64    `json:"bytes"`
	SHA256  string   `json:"sha256"`
	Form    Form     `json:"form"`
	Columns []string `json:"columns,omitempty"`
	Records int64    `json:"records"`
}

// span is the records of a part.
type span struct {
	First   int64  `json:"first"` // from 1
	Records int64  `json:"records"`
	Line    int64  `json:"line,omitempty"`   // on which the first begins, from 1
	Offset  int64  `json:"offset,omitempty"` // of its first byte, before compression
	Sum     string `json:"sum,omitempty"`    // of the records, see checksum
}

// checksum tells whether records are still the same. It is a sum, so that one pass over
// the input gives that of every part, wherever the parts will begin.
type checksum uint64

func (c *checksum) add(r Record) {
	hash := sha256.Sum256(r.raw)
	*c += checksum(binary.LittleEndian.Uint64(hash[:])+uint64(r.size)) * checksum(2*r.Number+1)
}

func (c checksum) String() string { return fmt.Sprintf("%016x", uint64(c)) }

// newPlan reads the whole input once.
func newPlan(f File, w Work, shards int) (*plan, error) {
	f, err := f.resolve("input")
	if err != nil {
		return nil, err
	}
	// Before it is opened: that waits where nobody writes into a named pipe.
	info, err := os.Stat(f.Path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is no regular file: a run reads its input more than once; write it to a file first", f.Path)
	}
	file, err := os.Open(f.Path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	p := &plan{Format: formatVersion, Settings: w.Settings(), Layout: w.Layout(),
		Input: input{Name: filepath.Base(f.Path), Bytes: info.Size(), Form: f.Form}}
	hash := sha256.New()
	if f.Form == Parquet {
		if _, err := io.Copy(hash, file); err != nil {
			return nil, err
		}
		err = p.ofTable(f, w, shards)
	} else {
		err = p.ofStream(f, w, shards, io.TeeReader(file, hash))
		// What stands behind the end of a compressed stream is read as well.
		if _, e := io.Copy(hash, file); e != nil && err == nil {
			err = e
		}
	}
	p.Input.SHA256 = fmt.Sprintf("%x", hash.Sum(nil))
	return p, err
}

// sumOf is the SHA-256 of a file, in hexadecimal digits.
func sumOf(path string) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer file.Close()
	hash := sha256.New()
	if _, err := io.Copy(hash, file); err != nil {
		return "", err
	}
	return fmt.Sprintf("%x", hash.Sum(nil)), nil
}

// ofTable shares out the rows.
func (p *plan) ofTable(f File, w Work, shards int) error {
	t, err := openTable(f.Path, 0)
	if err != nil {
		return err
	}
	defer t.close()
	if p.Input.Columns = t.columns(); !slices.Contains(p.Input.Columns, w.Column()) {
		return noColumn(f, w.Column(), p.Input.Columns)
	}
	p.Input.Records = t.parquet.NumRows()
	at := func(i int) int64 { return int64(float64(p.Input.Records) * float64(i) / float64(shards)) }
	for i := range shards {
		p.Shards = append(p.Shards, span{First: at(i) + 1, Records: at(i+1) - at(i)})
	}
	return nil
}

// mark is a place in a stream where a part may begin.
type mark struct {
	number, line, offset int64
	sum                  checksum // of all records before
}

// ofStream shares out the bytes, cut where records begin.
func (p *plan) ofStream(f File, w Work, shards int, r io.Reader) error {
	r, release, err := f.unpack(r)
	if err != nil {
		return err
	}
	defer release()
	s := newSplitter(r, f.Form)
	if f.Form == CSV || f.Form == TSV {
		header, err := s.next()
		if err == io.EOF {
			return fmt.Errorf("%s is empty: its first line must name its columns", f.Path)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", f.Path, f.broken(err))
		}
		if p.Input.Columns, err = readColumns(f, header); err != nil {
			return err
		}
		if !slices.Contains(p.Input.Columns, w.Column()) {
			return noColumn(f, w.Column(), p.Input.Columns)
		}
		s.number = 0
	}
	// Marks lie as close as a bounded number of them can: at first at every record.
	const most = 1 << 17
	var marks []mark
	var sum checksum
	stride := int64(1)
	for {
		here := mark{s.number + 1, s.line + 1, s.offset, sum}
		record, err := s.next()
		if err == io.EOF {
			marks = append(marks, here)
			break
		}
		if err != nil {
			return fmt.Errorf("%s: %w", f.Path, f.broken(err))
		}
		if (record.Number-1)%stride == 0 {
			if marks = append(marks, here); len(marks) == most {
				for i := range most / 2 {
					marks[i] = marks[2*i]
				}
				marks, stride = marks[:most/2], 2*stride
			}
		}
		sum.add(record)
	}
	p.Input.Records = s.number
	first, end := marks[0].offset, marks[len(marks)-1]
	begins := make([]mark, shards+1)
	for i := range shards {
		from := first + int64(float64(end.offset-first)*float64(i)/float64(shards))
		at, _ := slices.BinarySearchFunc(marks, from, func(m mark, offset int64) int { return cmp.Compare(m.offset, offset) })
		begins[i] = marks[at]
	}
	begins[shards] = end
	for i, b := range begins[:shards] {
		next := begins[i+1]
		p.Shards = append(p.Shards, span{First: b.number, Records: next.number - b.number, Line: b.line, Offset: b.offset, Sum: (next.sum - b.sum).String()})
	}
	return nil
}

// open opens the input before the first record of a part.
func (in input) open(f File, column string, of span) (source, error) {
	f, err := f.resolve("input")
	if err != nil {
		return nil, err
	}
	if in.Form == Parquet {
		return openTable(f.Path, of.First-1)
	}
	s, err := openStream(f, column, in.Columns, of.Offset)
	if err != nil {
		return nil, err
	}
	s.number, s.line = of.First-1, of.Line-1
	return s, nil
}

// makePlan reads the plan of a folder, or makes it.
func (p *part) makePlan(j Job) error {
	have, err := readPlan(p.dir)
	if err != nil {
		return err
	}
	if have != nil {
		p.plan = have
		return p.check(j)
	}
	made, err := newPlan(j.Input, j.Work, p.shard.Count)
	if err != nil {
		return err
	}
	p.plan = made
	return writeJSON(filepath.Join(p.dir, planFile), p.plan)
}

// readPlan reads the plan of a folder, nil where there is none.
func readPlan(dir string) (*plan, error) {
	path := filepath.Join(dir, planFile)
	var p plan
	if ok, err := readJSON(path, &p); !ok || err != nil {
		return nil, err
	}
	if p.Format != formatVersion {
		return nil, fmt.Errorf("%s has format %d, this program reads %d: use the program that began the run", path, p.Format, formatVersion)
	}
	return &p, nil
}

// check refuses to go on with another configuration.
func (p *part) check(j Job) error {
	list := differences(p.plan.Settings, j.Work.Settings())
	if len(p.plan.Shards) != p.shard.Count {
		list = append(list, fmt.Sprintf("number of parts: %d there, %d now", len(p.plan.Shards), p.shard.Count))
	}
	info, err := os.Stat(j.Input.Path)
	if err != nil {
		return err
	}
	if p.plan.Input.Bytes != info.Size() {
		list = append(list, fmt.Sprintf("bytes of the input: %d there, %d now", p.plan.Input.Bytes, info.Size()))
	} else if p.plan.Input.Form == Parquet {
		// Other forms have a sum of each part's records, which is looked at while they are read.
		sum, err := sumOf(j.Input.Path)
		if err != nil {
			return err
		}
		if sum != p.plan.Input.SHA256 {
			list = append(list, fmt.Sprintf("SHA-256 of the input: %s there, %s now", p.plan.Input.SHA256, sum))
		}
	}
	return changed(p.dir, list)
}

// differences names what two runs disagree in.
func differences(there, now map[string]string) (list []string) {
	both := map[string]string{}
	maps.Copy(both, there)
	maps.Copy(both, now)
	for _, name := range slices.Sorted(maps.Keys(both)) {
		if there[name] != now[name] {
			list = append(list, fmt.Sprintf("%s: %.60s there, %.60s now", name, cmp.Or(there[name], "nothing"), cmp.Or(now[name], "nothing")))
		}
	}
	return list
}

// ChangedError refuses to go on with a run of another configuration.
type ChangedError struct {
	Dir         string
	Differences []string
}

// Error names the first differences.
func (e *ChangedError) Error() string {
	shown := e.Differences[:min(3, len(e.Differences))]
	more := ""
	if n := len(e.Differences) - len(shown); n > 0 {
		more = fmt.Sprintf("; and %d more", n)
	}
	return fmt.Sprintf("%s is of a run of another configuration (%s%s): give the old one, or another output", e.Dir, strings.Join(shown, "; "), more)
}

func changed(dir string, list []string) error {
	if len(list) == 0 {
		return nil
	}
	return &ChangedError{dir, list}
}

// writeJSON puts a file into its place at once.
func writeJSON(path string, v any) error {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(v); err != nil {
		return err
	}
	return full(maybe.WriteFile(path, b.Bytes(), 0o666))
}

// readJSON reads a file; ok tells whether there is one.
func readJSON(path string, v any) (ok bool, err error) {
	content, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if err := json.Unmarshal(content, v); err != nil {
		return false, fmt.Errorf("%s is damaged (%w): remove it, and give the command again", path, err)
	}
	return true, nil
}
