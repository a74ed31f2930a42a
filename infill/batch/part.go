package batch

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"time"

	"infill/infill"
	"infill/internal/journal"
	"infill/internal/parallel"
)

const partFormat = 4 // of a part's lines; it rises when an older program could not read them

// head is the first line of a part: what it does, of which input, and what computes.
type head struct {
	Format      int               `json:"format"`
	Part        Shard             `json:"part"`
	Input       input             `json:"input"`
	Output      Form              `json:"output"`
	Settings    map[string]string `json:"settings"`
	Environment map[string]string `json:"environment"`
}

// facts are what parts of one run must agree in.
func (h *head) facts() map[string]string {
	facts := map[string]string{"form of the output": string(h.Output), "number of parts": fmt.Sprint(h.Part.Count),
		"input": fmt.Sprintf("%d bytes, SHA-256 %.16s", h.Input.Bytes, h.Input.SHA256)}
	maps.Copy(facts, h.Settings)
	maps.Copy(facts, h.Environment)
	return facts
}

// entry is any other line of a part: a record that is done, in the order of the input, or the end.
type entry struct {
	Line int64 `json:"line,omitempty"` // of the input, where the record begins
	// Rows are lines of the output: objects, of plain text strings.
	Rows []json.RawMessage `json:"rows,omitempty"`
	// Error says what is wrong with Input, the record.
	Error string `json:"error,omitempty"`
	Input string `json:"input,omitempty"`
	Blank bool   `json:"blank,omitempty"`
	// End is the number of records of a part that has all of them, as its last line.
	End *int64 `json:"end,omitempty"`
}

func (e *entry) wrong() error { return fmt.Errorf("line %d: %s", e.Line, e.Error) }

// part is what the lines of a part say, as far as they were read.
type part struct {
	path                     string
	head                     *head // nil before the first line
	records, rejected, blank int64
	firstReject              error
	ended                    bool
}

func (p *part) summary() *Summary {
	return &Summary{Records: p.records, Rejected: p.rejected, Blank: p.blank}
}

// read takes a line; it is nil of the head.
func (p *part) read(line []byte) (*entry, error) {
	if p.head == nil {
		h := new(head)
		if err := json.Unmarshal(line, h); err != nil || h.Format == 0 {
			return nil, errors.New("line 1 is no line of a run")
		}
		if h.Format != partFormat {
			return nil, fmt.Errorf("it has format %d, this program reads %d", h.Format, partFormat)
		}
		p.head = h
		return nil, nil
	}
	var e entry
	if err := json.Unmarshal(line, &e); err != nil || e.Line == 0 && e.End == nil {
		return nil, fmt.Errorf("line %d is no line of a run", p.records+2)
	}
	if p.ended {
		return nil, errors.New("lines after its end")
	}
	return &e, p.take(&e)
}

// take counts an entry.
func (p *part) take(e *entry) error {
	switch {
	case e.End != nil && *e.End != p.records:
		return fmt.Errorf("it has %d records, and its end says %d", p.records, *e.End)
	case e.End != nil:
		p.ended = true
		return nil
	case e.Error != "":
		p.rejected++
		p.firstReject = cmp.Or(p.firstReject, e.wrong())
	case e.Blank:
		p.blank++
	}
	p.records++
	return nil
}

// readHead reads the first line of a part, nil if it is not whole yet.
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
	p := part{path: path}
	if err == nil {
		_, err = p.read(line)
	}
	return p.head, err
}

// part does what is missing of a part of a run.
func (j Job) part(ctx context.Context, now *head, output string) (_ *Summary, err error) {
	p := part{path: pathOf(output, now.Part)}
	taken := fmt.Sprintf("another process is at work at part %s in %s", now.Part, partsOf(output))
	lines, err := journal.Open(p.path, taken, func(line []byte) error { _, err := p.read(line); return err })
	if err != nil {
		return nil, err
	}
	lines.Pause = time.Second
	defer func() {
		err = cmp.Or(err, lines.Close())
		if p.head == nil { // nothing was begun
			err = errors.Join(err, removeParts(output, now.Part))
		}
	}()
	if p.head != nil && !p.ended && !j.Resume {
		return nil, &ExistsError{p.path,
			"is a run that was not finished: --resume goes on with it, --overwrite begins again"}
	}
	if err := agree(p.head, now, output); err != nil {
		return nil, err
	}
	if p.head == nil {
		if err := lines.Append(now); err != nil {
			return nil, err
		}
		p.head = now
	}
	kept, already := p.records, p.ended
	if !already {
		if err := j.work(ctx, &p, lines); err != nil {
			return nil, err
		}
	}
	s := p.summary()
	s.Kept, s.Already = kept, already
	return s, nil
}

// agree refuses a part that was asked for something else: before, or beside another part of its run. One of them
// tells for all, since each was compared.
func agree(before, now *head, output string) error {
	parts, err := partsThere(output)
	for i := 0; err == nil && before == nil && i < len(parts); i++ {
		before, err = readHead(pathOf(output, parts[i]))
	}
	if err != nil || before == nil {
		return err
	}
	return journal.CheckUnchanged(partsOf(output), before.facts(), now.facts())
}

// work does the records that a part does not have, several at once, and writes its end.
func (j Job) work(ctx context.Context, p *part, lines *journal.Journal) error {
	if j.Strict && p.firstReject != nil {
		return p.firstReject
	}
	from, err := openInput(j.Input, j.Work.column())
	if err != nil {
		return err
	}
	defer from.close()
	shard, kept, start := p.head.Part, p.records, time.Now()
	tell := func() {
		at := Progress{Done: p.records, Total: shard.of(p.head.Input.Records), Rejected: p.rejected}
		if seconds := time.Since(start).Seconds(); seconds > 0 && p.records > kept {
			at.PerSecond = float64(p.records-kept) / seconds
			at.Left = time.Duration(float64(at.Total-p.records) / at.PerSecond * float64(time.Second))
		}
		j.Observe(at)
	}
	if j.Observe == nil {
		tell = func() {}
	}
	tell()
	next := kept
	err = parallel.Each(ctx, j.InFlight, func(ctx context.Context) (r Record, err error) {
		for due := shard.number(next); r.Number < due && err == nil; err = cmp.Or(err, ctx.Err()) {
			r, err = from.next(from.reader.number+1 == due)
		}
		next++
		return r, err
	}, func(ctx context.Context, r Record) (*entry, error) { return j.do(ctx, r, p.head.Output) },
		func(e *entry) error {
			if j.Strict && e.Error != "" {
				return e.wrong()
			}
			if err := lines.Append(e); err != nil {
				return err
			}
			defer tell()
			return p.take(e)
		})
	if err != nil {
		return err
	}
	if p.records != shard.of(p.head.Input.Records) {
		return fmt.Errorf("%s has changed since the run began: start again with --overwrite", j.Input.Path)
	}
	p.ended = true
	return lines.Append(&entry{End: &p.records})
}

// do makes the line of a record.
func (j Job) do(ctx context.Context, r Record, form Form) (*entry, error) {
	e := &entry{Line: r.Line, Blank: r.Blank}
	err := r.Err
	if err == nil && !r.Blank {
		e.Rows, err = j.rows(ctx, r, form)
	}
	var wrong *RejectError
	if errors.As(err, &wrong) {
		e.Error, e.Input, e.Rows, err = wrong.Error(), r.excerpt(), nil, nil
	}
	if len(e.Rows) == 0 && form == formText && j.Work.aligned() {
		e.Rows = []json.RawMessage{json.RawMessage(`""`)}
	}
	if err != nil && ctx.Err() == nil {
		err = fmt.Errorf("line %d: %w", e.Line, err)
	}
	return e, err
}

func (j Job) rows(ctx context.Context, r Record, form Form) (lines []json.RawMessage, err error) {
	own, done := infill.Unwanted(ctx)
	defer done()
	rows, err := j.Work.Do(own, r)
	for _, row := range rows {
		if err == nil {
			var more []json.RawMessage
			more, err = rendered(j.Work, row, form)
			lines = append(lines, more...)
		}
	}
	return lines, err
}
