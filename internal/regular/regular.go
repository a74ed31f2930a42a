// Package regular opens the files of a model, which may come from anyone.
// It opens only regular files, because a named pipe or a device could
// block the program for ever. A link to a missing file is an error, and
// not a missing file.
package regular

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// errDangling is for a link to no file, and no fs.ErrNotExist.
var errDangling = errors.New("a link to a file that is not there")

// errPointer is the error for a pointer of Git LFS that git cloned instead of the file.
var errPointer = errors.New("a pointer of Git LFS, not the file that it stands for: run git lfs pull")

var pointer = []byte("version https://git-lfs")

// ErrLarge is wrapped by the error for a file above its size limit.
var ErrLarge = errors.New("too large")

// Open opens a regular file. If nothing has the name path, the error wraps
// fs.ErrNotExist. Errors name the file.
func Open(path string) (*os.File, error) {
	info, err := os.Stat(path)
	err = check(info, err, func() error { _, err := os.Lstat(path); return err })
	named := new(fs.PathError)
	if err != nil && !errors.As(err, &named) {
		err = fmt.Errorf("%s: %w", path, err)
	}
	if err != nil {
		return nil, err
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	start := make([]byte, len(pointer))
	n, _ := file.ReadAt(start, 0) // a reader meets the same error
	if bytes.Equal(start[:n], pointer) {
		return nil, errors.Join(fmt.Errorf("%s: %w", path, errPointer), file.Close())
	}
	return file, nil
}

// Own returns an error if the name path has something other than a regular file,
// such as a link or a pipe. A program that writes to a file of its own calls Own
// first, so that it writes to nothing else, and waits for nobody.
func Own(path string) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case info.Mode()&fs.ModeSymlink != 0:
		return fmt.Errorf("%s: not a regular file: a link", path)
	}
	err = check(info, nil, nil)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

// check returns an error unless info describes a regular file.
func check(info fs.FileInfo, err error, link func() error) error {
	if errors.Is(err, fs.ErrNotExist) {
		missing := link()
		if missing == nil {
			return errDangling
		}
		if !errors.Is(missing, fs.ErrNotExist) {
			return missing
		}
	}
	switch {
	case err != nil:
		return err
	case info.Mode().IsRegular():
		return nil
	case info.IsDir():
		return errors.New("not a regular file: a folder")
	case info.Mode()&fs.ModeNamedPipe != 0:
		return errors.New("not a regular file: a named pipe")
	}
	return errors.New("not a regular file")
}

// ReadFile reads a regular file of at most limit bytes.
func ReadFile(path string, limit int64) ([]byte, error) {
	file, err := Open(path)
	if err != nil {
		return nil, err
	}
	content, err := read(file, limit)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return content, nil
}

// ReadFS does what ReadFile does, for a file of files. Its error need not name the file.
func ReadFS(files fs.FS, name string, limit int64) ([]byte, error) {
	info, err := fs.Stat(files, name)
	if err := check(info, err, func() error { _, err := fs.Lstat(files, name); return err }); err != nil {
		return nil, err
	}
	file, err := files.Open(name)
	if err != nil {
		return nil, err
	}
	return read(file, limit)
}

func read(file fs.File, limit int64) ([]byte, error) {
	defer file.Close()
	content, err := io.ReadAll(io.LimitReader(file, limit+1))
	switch {
	case err != nil:
		return nil, err
	case bytes.HasPrefix(content, pointer):
		return nil, errPointer
	}
	n := int64(len(content))
	if n > limit {
		info, err := file.Stat()
		if err == nil {
			n = info.Size()
		}
		return nil, fmt.Errorf("%w: %d bytes, more than the %d that such a file can sensibly have", ErrLarge, n, limit)
	}
	return content, nil
}

// Copy copies a regular file to a folder that it may make, and to the disk.
func Copy(from, to string) error {
	err := os.MkdirAll(filepath.Dir(to), 0o755)
	if err != nil {
		return err
	}
	source, err := Open(from)
	if err != nil {
		return err
	}
	defer source.Close()
	target, err := os.Create(to)
	if err != nil {
		return err
	}
	_, err = io.Copy(target, source)
	return errors.Join(err, target.Sync(), target.Close())
}

// Digest returns a regular file's size and its SHA-256 in hexadecimal.
func Digest(path string) (int64, string, error) {
	file, err := Open(path)
	if err != nil {
		return 0, "", err
	}
	return digest(file)
}

// SHA256 returns the SHA-256 of a file of any kind, in hexadecimal digits.
func SHA256(path string) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", err
	}
	_, sum, err := digest(file)
	return sum, err
}

func digest(file *os.File) (int64, string, error) {
	defer file.Close()
	h := sha256.New()
	// With pieces of this size, the cost of system calls does not matter.
	n, err := io.CopyBuffer(h, struct{ io.Reader }{file}, make([]byte, 256<<10))
	return n, hex.EncodeToString(h.Sum(nil)), err
}

// Unchanged reports whether the file at path has the given size and is older
// than list, the file with its checksum. If so, nobody has written to it since.
// Only `infill models verify`, which reads everything, detects a failing disk.
func Unchanged(list, path string, size int64) bool {
	listed, err := os.Stat(list)
	if err != nil {
		return false
	}
	info, err := os.Lstat(path)
	return err == nil && info.Mode().IsRegular() && info.Size() == size && !info.ModTime().After(listed.ModTime())
}
