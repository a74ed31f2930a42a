// Package batch does the same work on every record of a file, in any number of processes. Any of them may be
// killed and started again.
//
// A run has a folder beside its output, OUTPUT.parts, until the output is there. In it each part has a file that only
// grows (package journal), as 00003-of-00008.jsonl: a line that says what is asked, one for each record that is done,
// in order, and one at the end. Record n is of part n mod N. A part that goes on counts its whole lines.
//
// Merge takes the records of all parts in turn, and writes the output in one step, by rename. A run in one process has
// one part. So the output has the same bytes for any number of parts, also after kills.
package batch

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"infill/internal/journal"
)

// Job is a run.
type Job struct {
	Input  File
	Output File
	Work   work
	// Shard is the part that is done; the zero value is the whole, with its output.
	Shard     Shard
	Resume    bool `flag:"resume" help:"go on with a run that was not finished; one that is done is done"`
	Overwrite bool `flag:"overwrite" help:"start again, and replace what is there; with --resume, go on, and replace it"`
	Strict    bool `flag:"strict" help:"end at the first line that is wrong"`
	InFlight  int  `flag:"jobs" help:"lines in work at once, which share the model's calls"` // 0 is one
	// Observe, if not nil, is called with the progress of the run, one call at a time.
	Observe func(Progress)
}

// Progress is the progress of a run.
type Progress struct {
	Done, Total int64 // records, those of earlier processes among them
	Rejected    int64
	PerSecond   float64       // records of this process
	Left        time.Duration // by that rate; 0 if it is not known
}

// Summary is the result of a run.
type Summary struct {
	Output   string // "" for a part
	Records  int64
	Rejected int64
	Blank    int64
	Rejects  string
	Missing  int64 // variants of an Augment of which no draw kept to the rules; not known of a part
	// Kept is how many records were done before this process; Already reports whether all were, and the output
	// existed.
	Kept    int64
	Already bool
}

// Run does a run or a part of one, or continues it. If ctx ends, it returns ctx.Err() and keeps what is done.
//
// Errors: *ExistsError if the output or the run exists already, *journal.ChangedError if the run has other
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
	if err := apart(j.Input.Path, out.Path); err != nil {
		return nil, err
	}
	now := &head{Format: partFormat, Part: j.Shard, Output: out.Form, Settings: j.Work.settings()}
	if j.Shard.Count == 0 {
		now.Part = Shard{Index: 1, Count: 1}
	}
	if now.Input, err = survey(j.Input, j.Work.column()); err != nil {
		return nil, err
	}
	if done, err := j.already(now, out.Path); err != nil || done != nil {
		return done, err
	}
	if j.Overwrite && !j.Resume {
		if err := reset(out.Path); err != nil {
			return nil, err
		}
	}
	if now.Environment, err = j.Work.environment(ctx); err != nil {
		return nil, err
	}
	summary, err := j.part(ctx, now, out.Path)
	if err != nil || j.Shard.Count > 0 {
		return summary, err
	}
	kept := summary.Kept
	if summary, err = merge(ctx, out); err != nil {
		return nil, err
	}
	summary.Kept = kept
	return summary, removeParts(out.Path, now.Part)
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
func (j Job) already(now *head, output string) (*Summary, error) {
	if _, err := os.Stat(output); errors.Is(err, fs.ErrNotExist) || err == nil && j.Overwrite && !j.Resume {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	m, err := readManifest(output)
	if err != nil {
		return nil, err
	}
	parts, err := partsThere(output)
	if err != nil {
		return nil, err
	}
	switch same := m != nil && m.of(now); {
	case same && len(parts) == 0 && (j.Resume || j.Shard.Count > 0):
		s := m.summary(output)
		s.Already, s.Kept = true, s.Records
		return s, nil
	case same && len(parts) > 0 && j.Resume:
		// A process was killed while it put the output in its place, or removed the parts.
		return nil, nil
	case j.Overwrite:
		return nil, nil
	case same:
		return nil, &ExistsError{output,
			"is there already, of the same run: --resume takes it as done, --overwrite makes it again"}
	}
	return nil, &ExistsError{output, "is there already, of something else: choose another name, or --overwrite"}
}

// ExistsError reports that a file or folder exists and would be overwritten.
type ExistsError struct{ Path, Reason string }

func (e *ExistsError) Error() string { return e.Path + " " + e.Reason }

// full says what to do where there is no room.
func full(err error) error {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) || errors.Is(err, syscall.EFBIG) {
		return fmt.Errorf("%w: make room, and go on with --resume", err)
	}
	return err
}

// reset removes all of a run, unless a process is at work at a part of it.
func reset(output string) error {
	parts, err := partsThere(output)
	if err != nil {
		return err
	}
	for _, s := range parts {
		lock, err := journal.Lock(pathOf(output, s), "another process is at work in "+partsOf(output))
		if err != nil {
			return err
		}
		defer lock.Unlock()
	}
	return removeParts(output, parts...)
}

// removeParts removes parts of a run, and the folder of them once it is empty: other files are not ours.
func removeParts(output string, parts ...Shard) error {
	paths := []string{outputPart, rejectsPart, manifestPart}
	for _, s := range parts {
		name := filepath.Base(pathOf(output, s))
		paths = append(paths, name, journal.LockOf(name))
	}
	var wrong error
	for _, name := range paths {
		if err := os.Remove(filepath.Join(partsOf(output), name)); !errors.Is(err, fs.ErrNotExist) {
			wrong = errors.Join(wrong, err)
		}
	}
	_ = os.Remove(partsOf(output))
	return wrong
}
