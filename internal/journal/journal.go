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
	"infill/internal/regular"
)

// Journal is an open, locked file.
type Journal struct {
	// Pause is how often lines are brought to the disk at most, for a machine that fails; a process that is killed
	// loses none.
	Pause time.Duration
	// Cut is how many bytes of a torn last line were cut off.
	Cut int64

	lock   *flock.Flock
	file   *os.File
	synced time.Time
}

// Open locks a file, whose folder it makes, gives each whole line that is there to read, and takes more lines. It cuts
// off a last line that is torn, and returns the first error of read. If another process has the file, the error begins
// with taken.
func Open(path, taken string, read func(line []byte) error) (*Journal, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return nil, fmt.Errorf("the run's folder: %w", err)
	}
	lock, err := Lock(path, taken)
	if err != nil {
		return nil, err
	}
	j := &Journal{lock: lock, synced: time.Now()}
	if j.file, err = os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o666); err != nil {
		return nil, errors.Join(err, lock.Unlock())
	}
	end := int64(0)
	var torn error // of the last line: a machine that failed can leave one that is no JSON
	err = Follow(path, 0, func(line []byte) error {
		if torn != nil {
			return torn
		}
		err := read(line)
		if err == nil {
			end += int64(len(line))
			return nil
		}
		err = fmt.Errorf("%s: %w: the file was changed by something else; start again, or choose another output", path,
			err)
		if torn = err; json.Valid(line) {
			return err
		}
		return nil
	})
	if err == nil {
		j.Cut, err = j.file.Seek(0, io.SeekEnd)
		j.Cut -= end
	}
	if err == nil {
		err = j.cut(end)
	}
	if err != nil {
		return nil, errors.Join(err, j.file.Close(), lock.Unlock())
	}
	return j, nil
}

// cut takes the lines from a byte on away.
func (j *Journal) cut(end int64) error {
	_, err := j.file.Seek(end, io.SeekStart)
	return errors.Join(err, j.file.Truncate(end))
}

// Clear takes all lines away.
func (j *Journal) Clear() error { return j.cut(0) }

// LockOf is the lock of a file.
func LockOf(path string) string {
	return filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+".lock")
}

// Lock locks a file. If another process has it, the error begins with taken.
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

// Append writes a value as a line, in one piece.
func (j *Journal) Append(v any) error {
	if err := object.WriteLine(j.file, v); err != nil || time.Since(j.synced) < j.Pause {
		return err
	}
	j.synced = time.Now()
	return j.file.Sync()
}

// Close brings the lines to the disk and lets go of the file.
func (j *Journal) Close() error { return errors.Join(j.file.Sync(), j.file.Close(), j.lock.Unlock()) }

// Follow gives the whole lines of a file from a byte on, with their ends, also while they are written: what has no end
// is torn, or being written. It opens no pipe or device, which could be waited for without end.
func Follow(path string, from int64, do func(line []byte) error) error {
	file, err := regular.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	if _, err := file.Seek(from, io.SeekStart); err != nil {
		return err
	}
	for r := bufio.NewReaderSize(file, 1<<18); ; {
		line, err := r.ReadBytes('\n')
		if err == io.EOF {
			return nil
		}
		if err == nil {
			err = do(line)
		}
		if err != nil {
			return err
		}
	}
}

// WriteJSON puts a file into its place at once.
func WriteJSON(path string, v any) error {
	text, err := object.EncodeIndent(v, "", "  ")
	if err != nil {
		return err
	}
	return maybe.WriteFile(path, append(text, '\n'), 0o666)
}

// ReadJSON reads a file, but no pipe or device; ok reports whether there is one.
func ReadJSON(path string, v any) (ok bool, err error) {
	content, err := regular.ReadFile(path, 1<<30)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil:
		return false, err
	}
	if err := json.Unmarshal(content, v); err != nil {
		return false, fmt.Errorf("%s is damaged (%w): remove it, and give the command again", path, err)
	}
	return true, nil
}
