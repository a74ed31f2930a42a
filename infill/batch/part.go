package batch

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"sync"
	"time"

	"infill/infill"
	"infill/internal/journal"
	"infill/internal/object"
	"infill/internal/parallel"
)

const (
	recordsFile = "records.jsonl"
	partFormat  = 2 // of a part's files; it rises when an older program could not read them
)

// head is what is asked of a part.
type head struct {
	Format   int               `json:"format"`
	Input    input             `json:"input"`
	Output   Form              `json:"output"`
	Settings map[string]string `json:"settings"`
	Aligned  bool              `json:"aligned"` // of plain text: a line for each record
	Part     Shard             `json:"part"`
}

// facts are what must agree, of all parts.
func (h *head) facts() map[string]string {
	facts := maps.Clone(h.Settings)
	if facts == nil {
		facts = map[string]string{}
	}
	facts["bytes of the input"], facts["SHA-256 of the input"] = fmt.Sprint(h.Input.Bytes), h.Input.SHA256
	facts["form of the output"], facts["number of parts"] = string(h.Output), fmt.Sprint(h.Part.Count)
	return facts
}

// readHead reads what is asked of the part in a folder, nil if there is none.
func readHead(dir string) (*head, error) {
	var h head
	path := filepath.Join(dir, journal.Head)
	if ok, err := journal.ReadJSON(path, &h); !ok || err != nil {
		return nil, err
	}
	if h.Format != partFormat {
		return nil, fmt.Errorf("%s has format %d, this program reads %d: use the program that began the run", path,
			h.Format, partFormat)
	}
	return &h, nil
}

// entry is a line of a part.
type entry struct {
	Number int64 `json:"n,omitempty"`
	Line   int64 `json:"line,omitempty"`
	// Sum is of the input up to the record: whether it is still the same.
	Sum uint32 `json:"crc,omitempty"`
	// Rows are lines of JSON or plain text. Of a table, Cells are the values of its lines, by the columns of the part
	// so far, to which Columns are added before.
	Rows    []json.RawMessage   `json:"rows,omitempty"`
	Columns []string            `json:"columns,omitempty"`
	Cells   [][]json.RawMessage `json:"cells,omitempty"`
	// Error says what is wrong with Input, the record.
	Error string `json:"error,omitempty"`
	Input string `json:"input,omitempty"`
	// Environment stands alone, before the first record that a model worked at.
	Environment map[string]string `json:"environment,omitempty"`

	flat []Object // become Cells
}

func (e *entry) place() string { return fmt.Sprintf("line %d", e.Line) }

// state is how far a part is, and in the end the outcome of it.
type state struct {
	journal.End
	Input       input             `json:"input"`
	Records     int64             `json:"records"`
	Rejected    int64             `json:"rejected"`
	Blank       int64             `json:"blank"`
	Environment map[string]string `json:"environment"`
	Columns     []column          `json:"columns"` // of a table

	at          map[string]int // of Columns
	sum         uint32
	firstReject error
}

func (s *state) summary() *Summary {
	return &Summary{Records: s.Records, Rejected: s.Rejected, Blank: s.Blank}
}

// take counts an entry.
func (s *state) take(e *entry) {
	if e.Environment != nil {
		s.Environment = e.Environment
		return
	}
	for _, name := range e.Columns {
		s.at[name] = len(s.Columns)
		s.Columns = append(s.Columns, column{Name: name, First: e.Number})
	}
	switch {
	case e.Error != "":
		s.Rejected++
		s.firstReject = cmp.Or(s.firstReject, fmt.Errorf("%s: %s", e.place(), e.Error))
	case len(e.Rows)+len(e.Cells) == 0:
		s.Blank++
	}
	s.Records++
	s.sum = e.Sum
}

// part is a part of a run at work.
type part struct {
	*journal.Journal
	job  Job
	dir  string
	head *head
	state
}

// part does what is missing of a part of a run.
func (j Job) part(ctx context.Context, out File, from *source) (_ *Summary, err error) {
	shard := j.Shard
	if shard.Count == 0 {
		shard = Shard{Index: 1, Count: 1}
	}
	p := part{job: j, dir: journal.PartOf(out.Path, shard), state: state{at: map[string]int{}}}
	p.head = &head{partFormat, from.about(), out.Form, j.Work.settings(), j.Work.aligned(), shard}
	p.Journal, err = journal.Open(p.dir, recordsFile,
		fmt.Sprintf("another process is at work at part %s in %s", shard, journal.PartsOf(out.Path)))
	if err != nil {
		return nil, err
	}
	p.Pause = time.Second
	defer func() {
		if closed := p.Close(); err == nil {
			err = closed
		}
		if begun, _ := readHead(p.dir); begun == nil && err != nil {
			_ = journal.Remove(p.dir, recordsFile) // nothing was begun
			_ = os.Remove(journal.PartsOf(out.Path))
		}
	}()
	if err := p.begin(out.Path); err != nil {
		return nil, err
	}
	if done, err := journal.ReadJSON(filepath.Join(p.dir, journal.Tail), &p.state); err != nil || done {
		s := p.summary()
		s.Already, s.Kept = true, s.Records
		return s, err
	}
	if _, err := p.Resume(p.reread); err != nil {
		return nil, err
	}
	if j.Strict && p.firstReject != nil {
		return nil, p.firstReject
	}
	kept := p.Records
	if err := p.work(ctx, from); err != nil {
		return nil, err
	}
	p.state.End, p.Input = p.Journal.End(), from.about()
	if err := p.Finish(&p.state); err != nil {
		return nil, err
	}
	s := p.summary()
	s.Kept = kept
	return s, nil
}

// begin writes down what is asked, or refuses to where a part of the run was asked for something else.
func (p *part) begin(output string) error {
	begun, err := readHead(p.dir)
	if err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(journal.PartsOf(output), "plan.json")); err == nil {
		return &ExistsError{journal.PartsOf(output),
			"is a run of an earlier version of this program: go on with that, or remove the folder"}
	}
	parts, err := journal.Parts(output)
	if err != nil {
		return err
	}
	// The first part that there is tells for all: each was compared with one before.
	other := begun
	for i := 0; other == nil && i < len(parts); i++ {
		if other, err = readHead(journal.PartOf(output, parts[i])); err != nil {
			return err
		}
	}
	if begun != nil && !journal.Ended(p.dir) && !p.job.Resume {
		return &ExistsError{p.dir, "is a run that was not finished: --resume goes on with it, --overwrite begins again"}
	}
	if other != nil {
		if err := journal.Changed(journal.PartsOf(output),
			journal.Differences(other.facts(), p.head.facts())); err != nil {
			return err
		}
	}
	if begun != nil {
		return nil
	}
	return journal.WriteJSON(filepath.Join(p.dir, journal.Head), p.head)
}

// reread takes a line of an earlier process.
func (p *part) reread(line []byte) error {
	var e entry
	if err := json.Unmarshal(line, &e); err != nil {
		return fmt.Errorf("line %d is no line of a run", p.Records+1)
	}
	if due := p.number(p.Records); e.Environment == nil && e.Number != due {
		return fmt.Errorf("record %d where %d is due", e.Number, due)
	}
	p.take(&e)
	return nil
}

// number is that of a record of the part, counted from 0.
func (p *part) number(record int64) int64 {
	return record*int64(p.head.Part.Count) + int64(p.head.Part.Index)
}

// work does the records that the journal does not have, several at once.
func (p *part) work(ctx context.Context, from *source) error {
	kept, sum, start := p.Records, p.sum, time.Now() // before records are counted on
	next, read := kept, int64(0)
	var reading sync.Mutex // progress looks at what is read
	tell := func() {
		if p.job.Observe == nil {
			return
		}
		reading.Lock()
		total, exact := from.total()
		reading.Unlock()
		at := Progress{Done: p.Records, Total: max(p.Records, total/int64(p.head.Part.Count)), Exact: exact,
			Rejected: p.Rejected}
		if exact {
			at.Total = (total + int64(p.head.Part.Count-p.head.Part.Index)) / int64(p.head.Part.Count)
		}
		if seconds := time.Since(start).Seconds(); seconds > 0 && p.Records > kept {
			at.PerSecond = float64(p.Records-kept) / seconds
			at.Left = time.Duration(float64(at.Total-p.Records) / at.PerSecond * float64(time.Second))
		}
		p.job.Observe(at)
	}
	tell()
	return parallel.Each(ctx, p.job.InFlight, func(ctx context.Context) (Record, error) {
		for {
			due := p.number(next)
			reading.Lock()
			r, err := from.next(read+1 == due)
			reading.Unlock()
			switch {
			case err == io.EOF && read < p.number(kept-1):
				return r, fmt.Errorf("%s has become shorter since the run began: start again with --overwrite",
					p.job.Input.Path)
			case err == io.EOF:
				return r, err
			case err != nil:
				return r, fmt.Errorf("%s: %w", p.job.Input.Path, err)
			}
			if read++; read == p.number(kept-1) && kept > 0 && r.sum != sum {
				return r, fmt.Errorf("%s has changed since the run began: start again with --overwrite",
					p.job.Input.Path)
			}
			if read == due {
				next++
				return r, nil
			}
			if ctx.Err() != nil {
				return r, ctx.Err()
			}
		}
	}, p.do, func(e *entry) error {
		if p.job.Strict && e.Error != "" {
			return fmt.Errorf("%s: %s", e.place(), e.Error)
		}
		err := p.environment(p.job.Work.environment())
		if err == nil {
			err = p.append(e)
		}
		tell()
		return err
	})
}

// do makes the journal's line of a record.
func (p *part) do(ctx context.Context, r Record) (*entry, error) {
	e := &entry{Number: r.Number, Line: r.Line, Sum: r.sum}
	if r.Blank {
		return e, nil
	}
	rows, err := []Object(nil), r.Err
	if err == nil {
		own, done := infill.Unwanted(ctx)
		rows, err = p.job.Work.Do(own, r)
		done()
	}
	if err == nil {
		err = e.render(rows, p.head.Output, p.job.Work)
	}
	var wrong *RejectError
	if errors.As(err, &wrong) {
		e.Error, e.Input = wrong.Error(), r.excerpt()
		return e, nil
	}
	if err != nil && ctx.Err() == nil {
		err = fmt.Errorf("%s: %w", e.place(), err)
	}
	return e, err
}

// render writes rows as the output has them.
func (e *entry) render(rows []Object, form Form, w work) error {
	for _, row := range rows {
		switch form {
		case formJSONL:
			e.Rows = append(e.Rows, row.Append(nil))
		case formText:
			e.Rows = append(e.Rows, object.Quote(w.plain(row)))
		default:
			lines, err := w.lines(row)
			if err != nil {
				return err
			}
			e.flat = append(e.flat, lines...)
		}
	}
	return nil
}

// append writes an entry.
func (p *part) append(e *entry) error {
	at := func(name string) int {
		i, known := p.at[name]
		if !known {
			i = len(p.at)
			p.at[name], e.Columns = i, append(e.Columns, name)
		}
		return i
	}
	for _, line := range e.flat {
		cells := make([]json.RawMessage, len(p.at), len(p.at)+len(line))
		for _, f := range line {
			i := at(f.Key)
			for len(cells) <= i {
				cells = append(cells, nil)
			}
			cells[i] = f.Value
		}
		e.Cells = append(e.Cells, cells)
	}
	if err := p.Append(e); err != nil {
		return err
	}
	p.take(e)
	return nil
}

// environment writes down what computes, once it is known, and refuses to mix it.
func (p *part) environment(now map[string]string) error {
	if now == nil {
		return nil
	}
	if p.Environment == nil {
		return p.append(&entry{Environment: now})
	}
	return journal.Changed(p.dir, journal.Differences(p.Environment, now))
}
