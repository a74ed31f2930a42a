// Package batch does the same work on every record of a file, in any number of
// processes, and survives the end of each of them.
//
// A run has a folder beside its output, OUTPUT.parts, until the output is there:
//
//	plan.json                what is asked, of which input, and which records each part has
//	00003-of-00008.journal   a part at work: a line for each record that is done, in order
//	00003-of-00008.jsonl     a finished part: the journal with a last line that says what
//	                         computed it, and the SHA-256 of all lines before
//
// A journal is only ever appended to, so a process that is killed leaves whole lines
// and at most one torn one, which is cut off when the run goes on. A finished part has
// its name by rename and never changes. [Merge] checks all parts and writes the output
// from them, again by rename; a run in one process is a run of one part. So the output
// has the same bytes however many parts there were, and whatever was killed.
package batch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
)

// Work is what is done with each record. It serves several goroutines at once.
type Work interface {
	// Settings name all that the rows hang on beside the record: options, model,
	// version. Runs whose settings differ are not mixed.
	Settings() map[string]string
	// Environment tells what computes, "" or nil until that is known.
	Environment() map[string]string
	// Column is where a record's text stands, and what a line of plain text is.
	Column() string
	// Layout tells how rows become the lines of a table or of plain text.
	Layout() Layout
	// Do returns the rows of a record. A *RejectError tells that the record is wrong;
	// any other error ends the run.
	Do(ctx context.Context, r Record) ([]Object, error)
}

// Layout tells how the rows of a work are written where a row is no JSON object.
type Layout struct {
	// Explode is the key of a list of objects, each of which becomes a line of CSV,
	// TSV or Parquet with the other keys before its own; "" is none.
	Explode string `json:"explode,omitempty"`
	// Fields are the keys that the list's objects may have. A column of the input with
	// such a name is called input_NAME in these lines.
	Fields []string `json:"fields,omitempty"`
	// Apart are keys that such a line leaves out: they tell of the row as a whole, and
	// would stand in each of its lines.
	Apart []string `json:"apart,omitempty"`
	// Text is the key of what plain text shows, in the first of the list's objects
	// where there is a list.
	Text string `json:"text"`
	// Aligned tells that a record has one row, so that plain text has an empty line
	// where one has none.
	Aligned bool `json:"aligned,omitempty"`
}

// RejectError says why a record is left out.
type RejectError struct{ Err error }

var _ error = (*RejectError)(nil)

func (e *RejectError) Error() string { return e.Err.Error() }
func (e *RejectError) Unwrap() error { return e.Err }

func reject(format string, args ...any) error { return &RejectError{fmt.Errorf(format, args...)} }

// Job is a run.
type Job struct {
	Input  File
	Output File
	Work   Work
	// Shard is the part that is done; the zero value is the whole, with its output.
	Shard Shard
	// Resume goes on with what is there, and takes what is finished as done.
	Resume bool
	// Overwrite begins anew, and replaces an output that is there.
	Overwrite bool
	// Strict ends the run at the first record that is wrong.
	Strict bool
	// InFlight is how many records are worked at at once; 0 is one.
	InFlight int
	// Observe, which may be nil, hears how far the run is, one call at a time.
	Observe func(Progress)
}

// Progress tells how far a run is.
type Progress struct {
	Done, Total int64 // records, those of earlier processes among them
	Rejected    int64
	PerSecond   float64       // records of this process
	Left        time.Duration // by that rate; 0 where it is not known
}

// Summary tells what a run came to.
type Summary struct {
	Output   string // "" for a part
	Records  int64
	Rejected int64
	Blank    int64
	Rows     int64 // of the output; of a part, its records' JSON objects
	Rejects  string
	// Kept is how many records were done before this process; Already tells that all
	// were, and the output stood there.
	Kept    int64
	Already bool
}

// Shard is one of several parts of a run: of Count, the one numbered Index from
// 1. The zero value is the whole run.
type Shard struct{ Index, Count int }

// maxShards is the largest number of parts.
const maxShards = 10000

// String is what UnmarshalText reads, "2/8", and "" for the whole run.
func (s Shard) String() string {
	if s.Count == 0 {
		return ""
	}
	return fmt.Sprintf("%d/%d", s.Index, s.Count)
}

// MarshalText implements encoding.TextMarshaler.
func (s Shard) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler. Its error completes the sentence
// `"x" is not …`.
func (s *Shard) UnmarshalText(text []byte) error {
	left, right, _ := strings.Cut(string(text), "/")
	index, err := strconv.Atoi(left)
	count, err2 := strconv.Atoi(right)
	switch {
	case len(text) > 0 && (cmp.Or(err, err2) != nil || count < 1 || index < 1 || index > count):
		return errors.New("I/N, the number of this part from 1 and that of all")
	case count > maxShards:
		return fmt.Errorf("I/N with at most %d parts: make them larger", maxShards)
	}
	*s = Shard{index, count}
	return nil
}

// partsDir is the folder of a run while it works.
func partsDir(output string) string { return output + ".parts" }

// Run makes a run, or a part of one, or goes on with it. When ctx ends it returns
// ctx.Err(), and what was done stays.
//
// Errors: *ExistsError for an output or a run that is there already, *ChangedError for
// one of another configuration, *RecordError for a wrong record of a strict run.
func Run(ctx context.Context, j Job) (*Summary, error) {
	out, err := j.Output.resolve("output")
	if err != nil {
		return nil, err
	}
	if err := apart(j.Input.Path, out.Path); err != nil {
		return nil, err
	}
	if done, err := already(j, out.Path); err != nil || done != nil {
		return done, err
	}
	dir := partsDir(out.Path)
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, fmt.Errorf("the run's folder: %w", err)
	}
	shard := j.Shard
	if shard.Count == 0 {
		shard = Shard{1, 1}
	}
	p, err := openPart(dir, shard)
	if err != nil {
		return nil, err
	}
	if j.Overwrite && !j.Resume {
		err = p.reset()
	}
	var summary *Summary
	if err == nil {
		summary, err = p.run(ctx, j)
	}
	if err == nil && j.Shard.Count == 0 {
		kept := summary.Kept
		if summary, err = merge(ctx, out, dir); err == nil {
			summary.Kept = kept
		}
	}
	if err != nil && p.plan == nil {
		_ = os.Remove(p.lock.Path()) // nothing was begun; the folder goes where it holds nothing else
	}
	if closed := p.close(); err == nil {
		err = closed
	}
	if err != nil {
		if p.plan == nil {
			_ = os.Remove(dir)
		}
		return nil, err
	}
	if j.Shard.Count == 0 {
		return summary, removeParts(dir)
	}
	return summary, nil
}

// apart refuses to write what is read: the output, or what comes beside it.
func apart(input, output string) error {
	in, err := os.Stat(input)
	if err != nil {
		return nil // told when it is opened
	}
	for _, path := range []string{output, manifestPath(output), rejectsPath(output)} {
		if out, err := os.Stat(path); err == nil && os.SameFile(in, out) {
			return &ExistsError{path, "would be replaced, and is the input: choose another output"}
		}
	}
	return nil
}

// already tells what became of an output that is there.
func already(j Job, output string) (*Summary, error) {
	if _, err := os.Stat(output); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	m, err := readManifest(output)
	if err != nil {
		return nil, err
	}
	info, err := os.Stat(j.Input.Path)
	if err != nil {
		return nil, err
	}
	same := m != nil && len(differences(m.Settings, j.Work.Settings())) == 0 && m.Input.Bytes == info.Size()
	whole := false
	if same && !(j.Overwrite && !j.Resume) {
		sum, err := sumOf(j.Input.Path)
		if err != nil {
			return nil, err
		}
		same = sum == m.Input.SHA256
		if sum, err = sumOf(output); err != nil {
			return nil, err
		}
		whole = sum == m.Output.SHA256
	}
	if same && !whole {
		// A process that was killed while it replaced an output has put the manifest there,
		// and left the parts.
		if p, err := readPlan(partsDir(output)); err != nil || p != nil && j.Resume {
			return nil, err
		}
	}
	switch {
	case same && whole && (j.Resume || j.Shard.Count > 0):
		// A process that was killed after the output was there has left the folder.
		s := m.summary(output)
		s.Already, s.Kept = true, s.Records
		if j.Shard.Count > 0 {
			return s, nil
		}
		return s, removeParts(partsDir(output))
	case j.Overwrite:
		return nil, nil
	case same && !whole:
		return nil, &ExistsError{output, "is there already, and is not what its manifest says: --overwrite makes it anew"}
	case same:
		return nil, &ExistsError{output, "is there already, of the same run: --resume takes it as done, --overwrite makes it anew"}
	}
	return nil, &ExistsError{output, "is there already, of something else: choose another name, or --overwrite"}
}

// ExistsError refuses to write where something is.
type ExistsError struct{ Path, Reason string }

func (e *ExistsError) Error() string { return e.Path + " " + e.Reason }

// RecordError is a wrong record that ended a strict run.
type RecordError struct {
	Place string // "line 17"
	Err   error
}

func (e *RecordError) Error() string { return e.Place + ": " + e.Err.Error() }
func (e *RecordError) Unwrap() error { return e.Err }

// run does what is missing of a part.
func (p *part) run(ctx context.Context, j Job) (*Summary, error) {
	if p.finished {
		if err := p.check(j); err != nil {
			return nil, err
		}
		s, err := readPart(p.complete(), p.plan, p.plan.Shards[p.shard.Index-1], nil)
		if err != nil {
			return nil, err
		}
		summary := s.summary()
		summary.Already, summary.Kept = true, summary.Records
		return summary, nil
	}
	if p.begun && !j.Resume {
		return nil, &ExistsError{p.journal(), "is a run that was not finished: --resume goes on with it, --overwrite begins anew"}
	}
	if err := p.makePlan(j); err != nil {
		return nil, err
	}
	state, err := p.resume()
	if err != nil {
		return nil, err
	}
	if j.Strict && state.firstReject != nil {
		return nil, state.firstReject
	}
	kept := state.Records
	if err := p.work(ctx, j, state); err != nil {
		return nil, err
	}
	if err := p.finish(state); err != nil {
		return nil, err
	}
	summary := state.summary()
	summary.Kept = kept
	return summary, nil
}

// task is a record on its way; entry and err are set when done is closed.
type task struct {
	record Record
	entry  *entry
	err    error
	done   chan struct{}
}

// work does the records that the journal does not have, several at once, and writes
// them in order.
func (p *part) work(ctx context.Context, j Job, state *state) error {
	of := p.plan.Shards[p.shard.Index-1]
	source, err := p.plan.Input.open(j.Input, j.Work.Column(), of)
	if err != nil {
		return err
	}
	defer source.close()
	const waiting = 4 // records for each one in work, so that a slow one does not stop the others
	width := max(1, j.InFlight)
	group, inner := errgroup.WithContext(ctx)
	ordered, todo := make(chan *task, waiting*width), make(chan *task)
	finished := state.Records // before the writer counts on
	group.Go(func() error {
		defer close(ordered)
		defer close(todo)
		var sum checksum
		for n := range of.Records {
			r, err := source.next()
			if err != nil {
				return fmt.Errorf("%s: %w", j.Input.Path, notThere(err))
			}
			sum.add(r)
			if n < finished {
				continue
			}
			t := &task{record: r, done: make(chan struct{})}
			select {
			case ordered <- t:
			case <-inner.Done():
				return inner.Err()
			}
			select {
			case todo <- t:
			case <-inner.Done():
				return inner.Err()
			}
		}
		if of.Sum != "" && sum.String() != of.Sum {
			return fmt.Errorf("%s has changed since the run began: begin anew with --overwrite", j.Input.Path)
		}
		return nil
	})
	for range width {
		group.Go(func() error {
			for t := range todo {
				t.entry, t.err = do(inner, j.Work, t.record)
				close(t.done)
			}
			return nil
		})
	}
	group.Go(func() error { return p.write(inner, j, state, ordered) })
	if err := group.Wait(); err != nil {
		return cmp.Or(ctx.Err(), err)
	}
	return ctx.Err()
}

// do makes the journal's line of a record.
func do(ctx context.Context, w Work, r Record) (*entry, error) {
	e := &entry{Number: r.Number, Line: r.Line}
	if r.Blank {
		return e, nil
	}
	err := r.Err
	if err == nil {
		e.Rows, err = w.Do(ctx, r)
	}
	var wrong *RejectError
	if errors.As(err, &wrong) {
		e.Rows, e.Error, e.Input = nil, wrong.Error(), r.excerpt()
		return e, nil
	}
	if err != nil && ctx.Err() == nil {
		err = fmt.Errorf("%s: %w", e.place(), err)
	}
	return e, err
}

// write puts what is done into the journal.
func (p *part) write(ctx context.Context, j Job, state *state, ordered <-chan *task) error {
	kept, start, synced := state.Records, time.Now(), time.Now()
	total := p.plan.Shards[p.shard.Index-1].Records
	tell := func() {
		if j.Observe == nil {
			return
		}
		at := Progress{Done: state.Records, Total: total, Rejected: state.Rejected}
		if seconds := time.Since(start).Seconds(); seconds > 0 && state.Records > kept {
			at.PerSecond = float64(state.Records-kept) / seconds
			at.Left = time.Duration(float64(total-state.Records) / at.PerSecond * float64(time.Second))
		}
		j.Observe(at)
	}
	tell()
	for t := range ordered {
		select {
		case <-t.done:
		case <-ctx.Done():
			return ctx.Err()
		}
		if t.err != nil {
			return t.err
		}
		if j.Strict && t.entry.Error != "" {
			return &RecordError{t.entry.place(), errors.New(t.entry.Error)}
		}
		if err := p.environment(state, j.Work.Environment()); err != nil {
			return err
		}
		if err := p.append(state, t.entry); err != nil {
			return err
		}
		const pause = time.Second
		if time.Since(synced) > pause {
			// For a machine that fails; a process that is killed loses nothing.
			if err := p.file.Sync(); err != nil {
				return full(err)
			}
			synced = time.Now()
		}
		tell()
	}
	return nil
}

// removeParts deletes the folder of a run. What is not ours is left, and the folder with it.
func removeParts(dir string) error {
	if err := removeFiles(dir, ""); err != nil {
		return err
	}
	// What is not ours keeps the folder, which is no failure of the run.
	_ = os.Remove(dir)
	return nil
}

// removeFiles deletes the files of a run but one.
func removeFiles(dir, but string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, e := range entries {
		if name := e.Name(); name != but && (partName.MatchString(name) || ownFile.MatchString(name)) {
			if err := os.Remove(filepath.Join(dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
	}
	return nil
}
