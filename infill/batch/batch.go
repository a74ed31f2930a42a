// Package batch does the same work on every record of a file, in any number of processes. Any of them may be
// killed and started again.
//
// A part of a run is a file that only grows (package journal), OUTPUT.parts/00003-of-00008.jsonl: a line of settings,
// and a line for each finished record, in order. A run in one process has one part. A process that continues a part
// counts its whole lines. When all parts are finished, join makes the output of them in one step, by rename. So the
// output has the same bytes for any number of parts, also after kills, and if it exists, it is finished.
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
	"strconv"
	"syscall"
	"time"

	"infill/infill"
	"infill/internal/journal"
	"infill/internal/object"
	"infill/internal/parallel"
)

// Job is a run.
type Job struct {
	Input  File
	Output File
	Work   work
	// Threads is the number of threads of a model call, on which the last digits of its results depend.
	Threads int
	// Shard is the part that Run does; the zero value is the whole run, with its output.
	Shard     Shard
	Resume    bool `flag:"resume" help:"go on with a run that was not finished; an output that is there is done"`
	Overwrite bool `flag:"overwrite" help:"start again: remove the output and the parts that are there"`
	InFlight  int  `flag:"jobs" help:"lines in work at once, which share the model's calls"` // 0 is one
	// Observe, if not nil, is called with the progress of the run, one call at a time.
	Observe func(Progress)
}

// work makes rows of output from each record. Several goroutines may use it at once.
type work interface {
	// settings load the model, and return everything that a row depends on, apart from its record: options, model,
	// version, device. Runs whose settings differ are not mixed.
	settings(ctx context.Context) (map[string]string, error)
	// column returns the name of the column with a record's text. A line of plain text becomes this column.
	column() string
	// columns returns the columns of an output table without rows.
	columns() []string
	// warnings returns, after all records, a warning for each thing that should occur in some record and did not.
	warnings() []string
	// do returns the lines of the output that a record has: objects, or strings of plain text. A *RejectError reports
	// that the record is wrong; any other error ends the run.
	do(ctx context.Context, r Record, form Form) ([]json.RawMessage, error)
}

// Progress is the progress of a run.
type Progress struct {
	Done, Total int64 // records, including those that earlier processes did
	Rejected    int64
	PerSecond   float64 // records of this process
}

// Summary is the result of a run.
type Summary struct {
	Output                   string // "" for a part
	Done                     bool   // the output existed before the run; the counts are then 0
	Records, Rejected, Blank int64
	Lines                    int64  // of the output
	Kept                     int64  // records that were done before this process
	Signature                string // all settings in a line; "" for a part
	Warnings                 []string
}

// RejectError says why a record was rejected.
type RejectError struct{ error }

func (e *RejectError) Unwrap() error          { return e.error }
func reject(format string, args ...any) error { return &RejectError{fmt.Errorf(format, args...)} }

func exists(format string, args ...any) error {
	return &infill.OptionError{Option: "out", Reason: fmt.Sprintf(format, args...)}
}

// Run does a run or a part of one, or continues it. If ctx ends, it returns ctx.Err() and keeps the finished records.
//
// Errors: *infill.OptionError if the output or the run exists already, *journal.ChangedError if the run has other
// settings.
func Run(ctx context.Context, j Job) (*Summary, error) {
	s, err := j.run(ctx)
	return s, full(err)
}

func (j Job) run(ctx context.Context) (*Summary, error) {
	out, err := j.Output.resolve("output")
	if err != nil {
		return nil, err
	}
	input, _ := os.Stat(j.Input.Path) // survey returns the error
	for _, path := range []string{out.Path, rejectsOf(out.Path)} {
		switch at, err := os.Stat(path); {
		case err != nil:
		case os.SameFile(input, at):
			return nil, exists("%s would be replaced, and is the input: choose another output", path)
		case !at.Mode().IsRegular():
			return nil, exists("%s is a folder, a device or a pipe: choose another output", path)
		}
	}
	if !areRejects(rejectsOf(out.Path)) {
		return nil, exists("%s would be replaced, and no run has written it: choose another output",
			rejectsOf(out.Path))
	}
	old, err := os.Stat(out.Path)
	if err == nil && !j.Overwrite {
		if j.Resume { // a process that was killed behind the rename has left its parts
			return &Summary{Output: out.Path, Done: true}, removeParts(out.Path)
		}
		return nil, exists("%s is there already: --resume takes it as done, --overwrite makes it again", out.Path)
	}
	records, sum, err := survey(j.Input, j.Work.column())
	if err != nil {
		return nil, err
	}
	now := &head{Part: j.Shard, Records: records, Columns: j.Work.columns()}
	if old != nil {
		now.Mode = old.Mode().Perm()
	}
	if now.Settings, err = j.Work.settings(ctx); err != nil {
		return nil, err
	}
	maps.Copy(now.Settings, map[string]string{"form": string(out.Form), "input": sum, "column": j.Work.column(),
		"threads": strconv.Itoa(j.Threads)})
	if j.Shard.Count == 0 {
		now.Part = Shard{Index: 1, Count: 1}
	}
	s, err := j.part(ctx, now, out.Path)
	if err == nil && j.Shard.Count == 0 {
		kept := s.Kept
		if s, err = join(ctx, out.Path, kept); err == nil && kept == 0 {
			s.Warnings = j.Work.warnings()
		}
	}
	return s, err
}

// Merge puts the parts of a run together in its output and removes them.
func Merge(ctx context.Context, output string) (*Summary, error) {
	output = followed(output)
	if _, err := os.Stat(output); err == nil {
		if count, _ := partsThere(output); count > 0 {
			return nil, exists("%s is there already, and %s as well: remove one of them", output, folderOf(output))
		}
		return &Summary{Output: output, Done: true}, nil
	}
	s, err := join(ctx, output, 0)
	return s, full(err)
}

// removeAny removes a file if it is there.
func removeAny(path string) error {
	if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// full adds advice to an error of a full disk.
func full(err error) error {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) || errors.Is(err, syscall.EFBIG) {
		return fmt.Errorf("%w: make room, and go on with --resume", err)
	}
	return err
}

// part does the missing records of a part of a run.
func (j Job) part(ctx context.Context, now *head, output string) (_ *Summary, err error) {
	count, err := partsThere(output)
	if err != nil {
		return nil, err
	}
	if count > 0 && count != now.Part.Count {
		return nil, exists("%s holds a run in %d parts, and not in %d: remove it, or choose another output",
			folderOf(output), count, now.Part.Count)
	}
	p := part{sum: new(Summary)}
	lines, err := journal.Open(pathOf(output, now.Part),
		fmt.Sprintf("another process is at work at part %s in %s", now.Part, folderOf(output)),
		func(line []byte) error {
			if j.Overwrite {
				return nil
			}
			_, err := p.read(line)
			return err
		})
	if err != nil {
		return nil, err
	}
	lines.Pause = time.Second
	defer func() { err = cmp.Or(err, lines.Close()) }()
	if j.Overwrite {
		if err := errors.Join(lines.Clear(), removeAny(output), removeAny(rejectsOf(output))); err != nil {
			return nil, err
		}
	}
	if p.head == nil {
		err = lines.Append(now)
	} else if err = journal.CheckUnchanged(folderOf(output), p.head.Settings, now.Settings); err == nil &&
		!p.finished() && !j.Resume {
		err = exists("%s is a run that was not finished: --resume goes on with it, --overwrite begins again",
			pathOf(output, now.Part))
	}
	p.sum.Kept = p.records
	if p.head = now; err == nil && !p.finished() {
		err = j.work(ctx, &p, lines)
	}
	return p.sum, err
}

// work does the records that a part lacks, several at once.
func (j Job) work(ctx context.Context, p *part, lines *journal.Journal) error {
	from, err := openInput(j.Input, j.Work.column(), io.Discard)
	if err != nil {
		return err
	}
	defer from.body.Close()
	before, own := p.head.Part.of(p.head.Records)
	kept, start := p.records, time.Now()
	tell := func() {
		if j.Observe != nil {
			j.Observe(Progress{Done: p.records, Total: own, Rejected: p.sum.Rejected,
				PerSecond: float64(p.records-kept) / time.Since(start).Seconds()})
		}
	}
	tell()
	err = parallel.Each(ctx, j.InFlight, func(ctx context.Context) (r Record, err error) {
		for from.number < before+kept && err == nil {
			_, err = from.split()
			err = cmp.Or(err, ctx.Err())
		}
		if err == nil && from.number == before+own {
			err = io.EOF
		}
		if err != nil {
			return r, err
		}
		return from.Next()
	}, func(ctx context.Context, r Record) (*entry, error) { return j.do(ctx, r, p.head.form()) },
		func(e *entry) error {
			if err := lines.Append(e); err != nil {
				return err
			}
			p.take(e)
			tell()
			return nil
		})
	if err == nil && !p.finished() {
		err = fmt.Errorf("%s has changed since the run began: start again with --overwrite", j.Input.Path)
	}
	return err
}

// do makes the entry of a record.
func (j Job) do(ctx context.Context, r Record, form Form) (*entry, error) {
	e := &entry{Line: r.Line, Blank: r.Blank}
	err := r.Err
	if err == nil && !r.Blank {
		own, done := infill.Unwanted(ctx)
		e.Rows, err = j.Work.do(own, r, form)
		done()
	}
	var wrong *RejectError
	if errors.As(err, &wrong) {
		e.Error, e.Rows, err = wrong.Error(), nil, nil
	}
	if err != nil && ctx.Err() == nil {
		err = fmt.Errorf("line %d: %w", e.Line, err)
	}
	return e, err
}

// textOf returns the text of a record.
func textOf(o object.Object, key string) (string, error) {
	text, err := o.Text(key)
	if err != nil {
		return "", reject("%w, or name the column", err)
	}
	return text, nil
}
