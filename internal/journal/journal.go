// Package journal keeps what a run has done in a file of lines of JSON, so that the end of its process loses nothing.
//
// The file is only appended to: a process that is killed leaves whole lines and at most one torn one, which is cut off
// when the run goes on. A lock beside the file, .NAME.lock, is held by the process that is at work.
package journal

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"
	"github.com/google/renameio/v2/maybe"

	"infill/internal/object"
)

// Journal is an open, locked file.
type Journal struct {
	// Pause is how often lines are brought to the disk at most, for a machine that fails; a process that is killed
	// loses none.
	Pause time.Duration

	path   string
	lock   *flock.Flock
	file   *os.File // nil before Resume
	synced time.Time
}

// Open locks a file, whose folder it makes. taken says what has it where another process does.
func Open(path, taken string) (*Journal, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return nil, fmt.Errorf("the run's folder: %w", err)
	}
	lock, err := Lock(path, taken)
	if err != nil {
		return nil, err
	}
	return &Journal{path: path, lock: lock, synced: time.Now()}, nil
}

// LockOf is the lock of a file.
func LockOf(path string) string {
	return filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+".lock")
}

// Lock locks a file. It is an error that begins with taken where another process has it.
func Lock(path, taken string) (*flock.Flock, error) {
	lock := flock.New(LockOf(path))
	locked, err := lock.TryLock()
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w: is the folder on a file system with locks?", path, err)
	}
	if !locked {
		return nil, errors.New(taken + ": wait for it, or choose another output")
	}
	return lock, nil
}

// Resume gives the lines that are there to do, and opens the file for more. A last line that is torn is cut off: cut
// is how many bytes that took. An error of do ends it, except for a last line that is no JSON, which a machine that
// failed can leave.
func (j *Journal) Resume(do func(line []byte) error) (cut int64, err error) {
	if j.file, err = os.OpenFile(j.path, os.O_RDWR|os.O_CREATE, 0o666); err != nil {
		return 0, err
	}
	info, err := j.file.Stat()
	if err != nil {
		return 0, err
	}
	end := int64(0)
	for line, err := range lines(j.file) {
		if err != nil {
			return 0, err
		}
		if err := do(line); err != nil {
			if !json.Valid(line) && end+int64(len(line)) == info.Size() {
				break
			}
			return 0, fmt.Errorf("%s: %w: the file was changed by something else; "+
				"start again, or choose another output", j.path, err)
		}
		end += int64(len(line))
	}
	if err := j.file.Truncate(end); err != nil {
		return 0, err
	}
	_, err = j.file.Seek(end, io.SeekStart)
	return info.Size() - end, err
}

// lines goes through the whole lines of a file, with their ends: what has no end is torn, or being written.
func lines(file io.Reader) func(yield func(line []byte, err error) bool) {
	r := bufio.NewReaderSize(file, 1<<18)
	return func(yield func(line []byte, err error) bool) {
		for {
			line, err := r.ReadBytes('\n')
			if err == io.EOF || !yield(line, err) || err != nil {
				return
			}
		}
	}
}

// Append writes a value as a line, in one piece, and returns the line.
func (j *Journal) Append(v any) (line []byte, err error) {
	if line, err = encode(v, ""); err != nil {
		return nil, err
	}
	if _, err := j.file.Write(line); err != nil {
		return nil, err
	}
	if time.Since(j.synced) < j.Pause {
		return line, nil
	}
	j.synced = time.Now()
	return line, j.file.Sync()
}

// Close brings the lines to the disk and lets go of the file.
func (j *Journal) Close() error {
	var err error
	if j.file != nil {
		err = errors.Join(j.file.Sync(), j.file.Close())
	}
	return errors.Join(err, j.lock.Unlock())
}

// Follow gives the whole lines of a file from a byte on, also while they are written. It opens no pipe or device, which
// could be waited for without end.
func Follow(path string, from int64, do func(line []byte) error) error {
	if err := regular(path); err != nil {
		return err
	}
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	if _, err := file.Seek(from, io.SeekStart); err != nil {
		return err
	}
	for line, err := range lines(file) {
		if err == nil {
			err = do(line)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func regular(path string) error {
	info, err := os.Stat(path)
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s: it is no file", path)
	}
	return err
}

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

// ReadJSON reads a file, but no pipe or device; ok reports whether there is one.
func ReadJSON(path string, v any) (ok bool, err error) {
	if err := regular(path); errors.Is(err, fs.ErrNotExist) {
		return false, nil
	} else if err != nil {
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
