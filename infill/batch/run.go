// Package batch does the same work on every record of a file, in any number of processes. Any of them may be
// killed and started again.
//
// A run has a folder beside its output, OUTPUT.parts, until the output is there. In it each part has a journal
// (package journal), as 00003-of-00008.jsonl: a line that says what is asked, one for each record that is done, in
// order, and one at the end. Record n is of part n mod N. Every part reads the whole input, and works at its records
// alone.
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
	"infill/internal/regular"
)

// Job is a run.
type Job struct {
	Input  File
	Output File
	Work   work
	// Shard is the part that is done; the zero value is the whole, with its output.
	Shard Shard
	// Resume goes on with an earlier start, and keeps its finished parts.
	Resume bool
	// Overwrite starts from the beginning, and replaces an existing output.
	Overwrite bool
	// Strict ends the run at the first wrong record.
	Strict bool
	// InFlight is how many records are in work at once; 0 is one.
	InFlight int
	// Observe, if not nil, is called with the progress of the run, one call at a time.
	Observe func(Progress)
}

// Progress is the progress of a run.
type Progress struct {
	Done, Total int64 // records, those of earlier processes among them
	// Exact reports whether Total is known and not estimated.
	Exact     bool
	Rejected  int64
	PerSecond float64       // records of this process
	Left      time.Duration // by that rate; 0 if it is not known
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
	if done, err := j.already(out.Path); err != nil || done != nil {
		return done, err
	}
	source, err := openSource(j.Input, j.Work.column())
	if err != nil {
		return nil, err
	}
	defer source.close()
	if j.Overwrite && !j.Resume {
		if err := reset(out.Path); err != nil {
			return nil, err
		}
	}
	summary, err := j.part(ctx, out, source)
	if err != nil || j.Shard.Count > 0 {
		return summary, err
	}
	kept := summary.Kept
	if summary, err = merge(ctx, out); err != nil {
		return nil, err
	}
	summary.Kept = kept
	return summary, removeParts(out.Path)
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
func (j Job) already(output string) (*Summary, error) {
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
	same := m != nil && m.of(&head{Settings: j.Work.settings(), Input: input{Bytes: info.Size()}})
	whole := false
	if same && !(j.Overwrite && !j.Resume) {
		sum, err := regular.SHA256(j.Input.Path)
		if err != nil {
			return nil, err
		}
		same = sum == m.Input.SHA256
		if sum, err = regular.SHA256(output); err != nil {
			return nil, err
		}
		whole = sum == m.Output.SHA256
	}
	if same && !whole {
		// A process that was killed while it replaced an output has put the manifest there,
		// and left the parts.
		if parts, err := partsThere(output); err != nil || len(parts) > 0 && j.Resume {
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
		return s, removeParts(output)
	case j.Overwrite:
		return nil, nil
	case same && !whole:
		return nil, &ExistsError{output,
			"is there already, and is not what its manifest says: --overwrite makes it again"}
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
	return removeParts(output)
}

// removeParts removes the folder of a run's parts. What is not ours is left, and the folder with it.
func removeParts(output string) error {
	parts, err := partsThere(output)
	for _, s := range parts {
		err = errors.Join(err, removePart(output, s))
	}
	for _, name := range []string{outputPart, rejectsPart, manifestPart} {
		err = errors.Join(err, remove(filepath.Join(partsOf(output), name)))
	}
	_ = os.Remove(partsOf(output))
	return err
}

func removePart(output string, s Shard) error {
	path := pathOf(output, s)
	return errors.Join(remove(path), remove(journal.LockOf(path)))
}

// remove removes a file that may not be there.
func remove(path string) error {
	if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
