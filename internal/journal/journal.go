// Package journal keeps the finished work of a run as lines of JSON in a file, so that a killed process loses nothing.
//
// The file is only appended to. A killed process leaves whole lines and at most one torn line, which Open cuts off when
// the run goes on. The process at work holds a lock beside the file, .NAME.lock.
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
	// Pause is the shortest time between two syncs to the disk, which protect against a failing machine. A killed
	// process loses no lines.
	Pause time.Duration
	// Cut is the number of bytes of a torn last line that Open cut off.
	Cut int64

	lock   *flock.Flock
	file   *os.File
	synced time.Time
}

// Open locks a file, whose folder it makes, and calls read with each whole line of it, before more lines can be
// appended. It cuts off a torn last line, and returns the first error of read. If another process has the file, the
// error begins with taken.
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

// cut removes the lines from a byte on.
func (j *Journal) cut(end int64) error {
	_, err := j.file.Seek(end, io.SeekStart)
	return errors.Join(err, j.file.Truncate(end))
}

// Clear removes all lines.
func (j *Journal) Clear() error { return j.cut(0) }

// LockOf returns the path of the lock of a file.
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

// Append writes a value as a line, in one write.
func (j *Journal) Append(v any) error {
	if err := object.WriteLine(j.file, v); err != nil || time.Since(j.synced) < j.Pause {
		return err
	}
	j.synced = time.Now()
	return j.file.Sync()
}

// Close syncs the lines to the disk and releases the file.
func (j *Journal) Close() error { return errors.Join(j.file.Sync(), j.file.Close(), j.lock.Unlock()) }

// Follow calls do with the whole lines of a file from a byte on, with their line ends, also while another process
// writes it. It leaves out a last line without an end. It opens no pipe or device, which could make it wait for ever.
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

// WriteJSON writes a value as JSON to a file, which appears complete or not at all.
func WriteJSON(path string, v any) error {
	text, err := object.EncodeIndent(v, "", "  ")
	if err != nil {
		return err
	}
	return maybe.WriteFile(path, append(text, '\n'), 0o666)
}

// ReadJSON reads JSON from a file, but from no pipe or device; ok reports whether there is a file.
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
