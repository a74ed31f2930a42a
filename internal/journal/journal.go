// Package journal keeps what a run has done in a folder, so that the end of its process loses nothing.
//
//	run.json       what is asked; written before anything is done
//	a file         with a line for each thing that is done. It is only ever appended to: a process that is
//	               killed leaves whole lines and at most one torn one, which is cut off when the run goes on
//	end.json       that all is done: how many lines there are, and the SHA-256 of them
//	.lock          held by the process that is at work
//
// Of a run in parts, each part has such a folder in OUTPUT.parts.
package journal

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"time"

	"github.com/gofrs/flock"
	"github.com/google/renameio/v2/maybe"

	"infill/internal/object"
)

// The files of a journal beside its lines.
const (
	Head = "run.json"
	Tail = "end.json"
	lock = ".lock"
)

// own are the names that a journal gives to files beside its lines, those among them that were not renamed yet.
var own = regexp.MustCompile(`^(run\.json|end\.json|\.lock|\.(run|end)\.json\d*)$`)

// Journal is an open, locked folder.
type Journal struct {
	// Pause is how often lines are brought to the disk at most, for a machine that fails; a process that is killed
	// loses none.
	Pause time.Duration

	dir    string
	path   string // of the lines
	lock   *flock.Flock
	file   *os.File // nil before Resume
	hash   hash.Hash
	lines  int64
	synced time.Time
}

// End is what a journal says of its lines when all is done.
type End struct {
	Lines  int64  `json:"lines"`
	SHA256 string `json:"sha256"`
}

// Open locks a folder, which it makes, whose lines are in the file of that name. taken says what has it where another
// process does.
func Open(dir, lines, taken string) (*Journal, error) {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, fmt.Errorf("the run's folder: %w", err)
	}
	l, err := Lock(dir, taken)
	if err != nil {
		return nil, err
	}
	return &Journal{dir: dir, path: filepath.Join(dir, lines), lock: l, hash: sha256.New(), synced: time.Now()}, nil
}

// Lock locks a folder. It is an error that begins with taken where another process has it.
func Lock(dir, taken string) (*flock.Flock, error) {
	l := flock.New(filepath.Join(dir, lock))
	locked, err := l.TryLock()
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w: is the folder on a file system with locks?", dir, err)
	}
	if !locked {
		return nil, errors.New(taken + ": wait for it, or choose another output")
	}
	return l, nil
}

// Resume gives the lines that are there to do, and opens the file for more. A last line that is torn is cut off: cut
// is how many bytes that took. An error of do ends it, except for a last line that is no JSON, which a machine that
// failed can leave.
func (j *Journal) Resume(do func(line []byte) error) (cut int64, err error) {
	if j.file, err = os.OpenFile(j.path, os.O_RDWR|os.O_CREATE, 0o666); err != nil {
		return 0, err
	}
	r := NewReader(j.file)
	for line, err := range r.Lines {
		if err != nil {
			return 0, err
		}
		if err := do(line); err != nil {
			if !json.Valid(line) && r.last() {
				r.drop(line)
				break
			}
			return 0, fmt.Errorf("%s: %w: the file was changed by something else; "+
				"start again, or choose another output", j.path, err)
		}
		j.take(line)
	}
	info, err := j.file.Stat()
	if err != nil {
		return 0, err
	}
	if err := j.file.Truncate(r.Bytes); err != nil {
		return 0, err
	}
	_, err = j.file.Seek(r.Bytes, 0)
	return info.Size() - r.Bytes, err
}

func (j *Journal) take(line []byte) {
	j.hash.Write(line)
	j.lines++
}

// Append writes a value as a line, in one piece.
func (j *Journal) Append(v any) error {
	line, err := Line(v)
	if err != nil {
		return err
	}
	if _, err := j.file.Write(line); err != nil {
		return err
	}
	j.take(line)
	if time.Since(j.synced) < j.Pause {
		return nil
	}
	j.synced = time.Now()
	return j.file.Sync()
}

// End sums the lines up.
func (j *Journal) End() End { return End{j.lines, fmt.Sprintf("%x", j.hash.Sum(nil))} }

// Finish writes end.json, which holds End().
func (j *Journal) Finish(end any) error {
	if err := j.file.Sync(); err != nil {
		return err
	}
	return WriteJSON(filepath.Join(j.dir, Tail), end)
}

// Close lets go of the folder.
func (j *Journal) Close() error {
	var err error
	if j.file != nil {
		err = j.file.Close()
	}
	return errors.Join(err, j.lock.Unlock())
}

// Remove removes the files of a journal, and the folder where nothing else is in it.
func Remove(dir, lines string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, e := range entries {
		if name := e.Name(); name == lines || own.MatchString(name) {
			if err := os.Remove(filepath.Join(dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
	}
	_ = os.Remove(dir) // what is not ours keeps the folder, which is no failure of the run
	return nil
}

// Line is a value as a line of JSON, without the escapes that are for HTML.
func Line(v any) ([]byte, error) { return encode(v, "") }

func encode(v any, indent string) ([]byte, error) {
	text, err := object.EncodeIndent(v, "", indent)
	return append(text, '\n'), err
}

// WriteJSON puts a file into its place at once.
func WriteJSON(path string, v any) error {
	text, err := encode(v, "  ")
	if err != nil {
		return err
	}
	return maybe.WriteFile(path, text, 0o666)
}

// ReadJSON reads a file, but no pipe or device, which could be waited for without end; ok reports whether there is one.
func ReadJSON(path string, v any) (ok bool, err error) {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err == nil && !info.Mode().IsRegular():
		err = fmt.Errorf("%s: it is no file", path)
	}
	if err != nil {
		return false, err
	}
	content, err := os.ReadFile(path)
	if err != nil {
		return false, err
	}
	if err := json.Unmarshal(content, v); err != nil {
		return false, fmt.Errorf("%s is damaged (%w): remove it, and give the command again", path, err)
	}
	return true, nil
}
