// Package journal keeps the finished work of a run as lines of JSON in a file,
// so that a killed process loses nothing.
//
// The file only grows. A killed process leaves whole lines and at most one torn
// line, which Open cuts off when the run is resumed. The process at work holds
// a lock on a file beside it, .NAME.lock.
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

	"infill/internal/rawjson"
	"infill/internal/regular"
)

// Journal is an open file, locked against other processes.
type Journal struct {
	// Pause is the shortest time between two syncs, which help if the machine
	// fails. A killed process loses no lines.
	Pause time.Duration
	// Cut is the number of bytes of a torn last line that Open cut off.
	Cut int64

	lock   *flock.Flock
	file   *os.File
	synced time.Time
}

// Open locks the file at path, whose folder it makes. It calls read with each
// whole line, cuts off a torn last one, and returns the first error of read. If
// another process has the lock, the error begins with taken.
func Open(path, taken string, read func(line []byte) error) (*Journal, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return nil, fmt.Errorf("the run's folder: %w", err)
	}
	lock, err := Lock(path, taken)
	if err != nil {
		return nil, err
	}
	j := &Journal{lock: lock, synced: time.Now()}
	err = regular.Own(path)
	if err != nil {
		return nil, errors.Join(err, lock.Unlock())
	}
	j.file, err = os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o666)
	if err != nil {
		return nil, errors.Join(err, lock.Unlock())
	}
	if err := j.replay(path, read); err != nil {
		return nil, errors.Join(err, j.file.Close(), lock.Unlock())
	}
	return j, nil
}

// replay calls read with each whole line, and cuts off what follows.
func (j *Journal) replay(path string, read func(line []byte) error) error {
	end := int64(0)
	// torn is the error of the last line, which is not JSON. Only a failure of
	// the machine leaves such a line, and only at the end.
	var torn error
	err := Follow(path, 0, func(line []byte) error {
		if torn != nil {
			return torn
		}
		err := read(line)
		if err != nil {
			torn = fmt.Errorf("%s: %w: the file was changed by something else; start again, or choose another output",
				path, err)
			if json.Valid(line) {
				return torn
			}
			return nil
		}
		end += int64(len(line))
		return nil
	})
	if err != nil {
		return err
	}
	size, err := j.file.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	j.Cut = size - end
	return j.cut(end)
}

// cut removes everything from byte end on.
func (j *Journal) cut(end int64) error {
	_, err := j.file.Seek(end, io.SeekStart)
	return errors.Join(err, j.file.Truncate(end))
}

func (j *Journal) Clear() error { return j.cut(0) }

// LockOf returns the path of the lock for the file at path.
func LockOf(path string) string {
	return filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+".lock")
}

// Lock takes a file's lock. If another has it, the error begins with taken.
func Lock(path, taken string) (*flock.Flock, error) {
	err := regular.Own(LockOf(path))
	if err != nil {
		return nil, err
	}
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

// Append writes v as a line of JSON, in one write.
func (j *Journal) Append(v any) error {
	line, err := rawjson.Encode(v)
	if err != nil {
		return err
	}
	return j.Write(append(line, '\n'))
}

// Write writes a line with its line break, in one write.
func (j *Journal) Write(line []byte) error {
	_, err := j.file.Write(line)
	if err != nil || time.Since(j.synced) < j.Pause {
		return err
	}
	j.synced = time.Now()
	return j.file.Sync()
}

// Close syncs the lines to disk, closes the file and releases the lock.
func (j *Journal) Close() error { return errors.Join(j.file.Sync(), j.file.Close(), j.lock.Unlock()) }

// Follow calls do with each whole line of a file from byte from on, including
// its line end. Another process may be writing the file. Follow leaves out a
// last line without an end. It opens no pipe or device, which could block it.
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
		if err != nil {
			return err
		}
		if err := do(line); err != nil {
			return err
		}
	}
}

// WriteJSON writes v as JSON to a file, which appears complete or not at all.
func WriteJSON(path string, v any) error {
	text, err := rawjson.EncodeIndent(v, "", "  ")
	if err != nil {
		return err
	}
	return maybe.WriteFile(path, append(text, '\n'), 0o666)
}

// ReadJSON reads JSON from a regular file. ok is false if there is none.
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
