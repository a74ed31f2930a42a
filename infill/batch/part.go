package batch

import (
	"bufio"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"maps"
	"os"
	"sync"
	"time"

	"infill/infill"
	"infill/internal/journal"
	"infill/internal/object"
	"infill/internal/parallel"
)

const partFormat = 3 // of a part's lines; it rises when an older program could not read them

// head is what is asked of a part.
type head struct {
	Format   int               `json:"format"`
	Input    input             `json:"input"`
	Output   Form              `json:"output"`
	Settings map[string]string `json:"settings"`
	Aligned  bool              `json:"aligned"` // of plain text: a line for each record
	Part     Shard             `json:"part"`
}

// readHead reads what is asked of a part, nil if its first line is not whole yet.
func readHead(path string) (*head, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	line, err := bufio.NewReader(file).ReadBytes('\n')
	if err == io.EOF {
		return nil, nil
	}
	var e entry
	if err == nil {
		err = json.Unmarshal(line, &e)
	}
	return e.Head, err
}

// differences names what two parts were asked for that must agree, of all parts.
func (h *head) differences(now *head) []string {
	facts := func(h *head) map[string]string {
		facts := map[string]string{"bytes of the input": fmt.Sprint(h.Input.Bytes),
			"form of the output": string(h.Output), "number of parts": fmt.Sprint(h.Part.Count)}
		maps.Copy(facts, h.Settings)
		return facts
	}
	return journal.Differences(facts(h), facts(now))
}

// entry is a line of a part: first the head, then one for each record that is done, in their order, and the end.
type entry struct {
	Head *head `json:"head,omitempty"`
	// Environment is what computed, and stands before the first record that a model worked at.
	Environment map[string]string `json:"environment,omitempty"`

	Number int64 `json:"n,omitempty"`
	Line   int64 `json:"line,omitempty"`
	// Sum is of the input up to the record: whether it is still the same.
	Sum uint32 `json:"crc,omitempty"`
	// Rows are lines of the output: objects, of plain text strings.
	Rows []json.RawMessage `json:"rows,omitempty"`
	// Error says what is wrong with Input, the record.
	Error string `json:"error,omitempty"`
	Input string `json:"input,omitempty"`

	End *end `json:"end,omitempty"`
}

// end says that all is done.
type end struct {
	Input  input  `json:"input"`
	SHA256 string `json:"sha256"` // of the lines before
}

func (e *entry) place() string { return fmt.Sprintf("line %d", e.Line) }

// state is what the lines of a part say, as far as they were read.
type state struct {
	head                     *head
	end                      *end
	environment              map[string]string
	lines                    int64
	records, rejected, blank int64
	sum                      uint32
	firstReject              error
	hash                     hash.Hash
}

func newState() state { return state{hash: sha256.New()} }

func (s *state) digest() string { return fmt.Sprintf("%x", s.hash.Sum(nil)) }

func (s *state) summary() *Summary {
	return &Summary{Records: s.records, Rejected: s.rejected, Blank: s.blank}
}

// read takes a line of a part.
func (s *state) read(line []byte) error {
	_, err := s.entry(line)
	return err
}

func (s *state) entry(line []byte) (*entry, error) {
	var e entry
	if err := json.Unmarshal(line, &e); err != nil {
		return nil, fmt.Errorf("line %d is no line of a run", s.lines+1)
	}
	switch {
	case s.end != nil:
		return nil, errors.New("lines after its end")
	case (e.Head == nil) == (s.head == nil):
		return nil, fmt.Errorf("line %d is no line of a run", s.lines+1)
	case e.Head != nil && e.Head.Format != partFormat:
		return nil, fmt.Errorf("it has format %d, this program reads %d", e.Head.Format, partFormat)
	case e.End != nil && e.End.SHA256 != s.digest():
		return nil, errors.New("its SHA-256 is not what its end says")
	case e.Head == nil && e.End == nil && e.Environment == nil && e.Number != s.head.Part.number(s.records):
		return nil, fmt.Errorf("line %d is not that of record %d", s.lines+1, s.head.Part.number(s.records))
	}
	s.take(&e, line)
	return &e, nil
}

// take counts an entry.
func (s *state) take(e *entry, line []byte) {
	s.lines++
	s.hash.Write(line)
	switch {
	case e.Head != nil:
		s.head = e.Head
		return
	case e.Environment != nil:
		s.environment = e.Environment
		return
	case e.End != nil:
		s.end = e.End
		return
	case e.Error != "":
		s.rejected++
		s.firstReject = cmp.Or(s.firstReject, fmt.Errorf("%s: %s", e.place(), e.Error))
	case len(e.Rows) == 0:
		s.blank++
	}
	s.records++
	s.sum = e.Sum
}

// part is a part of a run at work.
type part struct {
	*journal.Journal
	job  Job
	path string
	state
}

// part does what is missing of a part of a run.
func (j Job) part(ctx context.Context, out File, from *source) (_ *Summary, err error) {
	shard := j.Shard
	if shard.Count == 0 {
		shard = Shard{Index: 1, Count: 1}
	}
	p := part{job: j, path: pathOf(out.Path, shard), state: newState()}
	folder := partsOf(out.Path)
	p.Journal, err = journal.Open(p.path, fmt.Sprintf("another process is at work at part %s in %s", shard, folder))
	if err != nil {
		return nil, err
	}
	p.Pause = time.Second
	defer func() {
		err = cmp.Or(err, p.Close())
		if p.head == nil { // nothing was begun
			err = errors.Join(err, removePart(out.Path, shard))
			_ = os.Remove(folder)
		}
	}()
	if _, err := p.Resume(p.read); err != nil {
		return nil, err
	}
	if err := p.begin(&head{partFormat, from.about(), out.Form, j.Work.settings(), j.Work.aligned(), shard},
		out.Path); err != nil {
		return nil, err
	}
	s := p.summary()
	if s.Kept = p.records; p.end != nil {
		s.Already = true
		return s, nil
	}
	if j.Strict && p.firstReject != nil {
		return nil, p.firstReject
	}
	if err := p.work(ctx, from); err != nil {
		return nil, err
	}
	kept := s.Kept
	s = p.summary()
	s.Kept = kept
	return s, p.append(&entry{End: &end{Input: from.about(), SHA256: p.digest()}})
}

// begin writes down what is asked, or refuses to where a part of the run was asked for something else.
func (p *part) begin(now *head, output string) error {
	if p.head != nil && p.end == nil && !p.job.Resume {
		return &ExistsError{p.path,
			"is a run that was not finished: --resume goes on with it, --overwrite begins again"}
	}
	parts, err := partsThere(output)
	if err != nil {
		return err
	}
	// The first part that there is tells for all: each was compared with one before.
	other := p.head
	for i := 0; other == nil && i < len(parts); i++ {
		if other, err = readHead(pathOf(output, parts[i])); err != nil {
			return err
		}
	}
	if other != nil {
		if err := journal.Changed(partsOf(output), other.differences(now)); err != nil {
			return err
		}
	}
	if p.head != nil {
		return nil
	}
	return p.append(&entry{Head: now})
}

// work does the records that the journal does not have, several at once.
func (p *part) work(ctx context.Context, from *source) error {
	shard, kept, sum, start := p.head.Part, p.records, p.sum, time.Now() // before records are counted on
	next, read := kept, int64(0)
	var reading sync.Mutex // progress looks at what is read
	tell := func() {
		if p.job.Observe == nil {
			return
		}
		reading.Lock()
		total, exact := from.total()
		reading.Unlock()
		if exact {
			total += int64(shard.Count - shard.Index)
		}
		at := Progress{Done: p.records, Total: max(p.records, total/int64(shard.Count)), Exact: exact,
			Rejected: p.rejected}
		if seconds := time.Since(start).Seconds(); seconds > 0 && p.records > kept {
			at.PerSecond = float64(p.records-kept) / seconds
			at.Left = time.Duration(float64(at.Total-p.records) / at.PerSecond * float64(time.Second))
		}
		p.job.Observe(at)
	}
	tell()
	return parallel.Each(ctx, p.job.InFlight, func(ctx context.Context) (Record, error) {
		for {
			due := shard.number(next)
			reading.Lock()
			r, err := from.next(read+1 == due)
			reading.Unlock()
			switch last := shard.number(kept - 1); {
			case err == io.EOF && read < last:
				return r, fmt.Errorf("%s has become shorter since the run began: start again with --overwrite",
					p.job.Input.Path)
			case err == io.EOF:
				return r, err
			case err != nil:
				return r, fmt.Errorf("%s: %w", p.job.Input.Path, err)
			case read+1 == last && kept > 0 && r.sum != sum:
				return r, fmt.Errorf("%s has changed since the run began: start again with --overwrite",
					p.job.Input.Path)
			}
			if read++; read == due {
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
		err := p.computes(p.job.Work.environment())
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
	rows, err := []object.Object(nil), r.Err
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
func (e *entry) render(rows []object.Object, form Form, w work) error {
	for _, row := range rows {
		if form == formText {
			e.Rows = append(e.Rows, object.Quote(w.plain(row)))
			continue
		}
		lines := []object.Object{row}
		if form != formJSONL {
			var err error
			if lines, err = w.lines(row); err != nil {
				return err
			}
		}
		for _, line := range lines {
			e.Rows = append(e.Rows, line.Append(nil))
		}
	}
	return nil
}

// append writes an entry.
func (p *part) append(e *entry) error {
	line, err := p.Append(e)
	if err == nil {
		p.take(e, line)
	}
	return err
}

// computes writes down what computes, once it is known, and refuses to mix it.
func (p *part) computes(now map[string]string) error {
	if now == nil {
		return nil
	}
	if p.environment == nil {
		return p.append(&entry{Environment: now})
	}
	return journal.Changed(p.path, journal.Differences(p.environment, now))
}
