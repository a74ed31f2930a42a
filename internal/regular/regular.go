// Package regular opens the files of a model, which may come from anyone: regular files alone. A named pipe or a device
// would hang the program or never end, and a link to nothing is not the absence of a file.
package regular

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// errDangling is the error of a link to nothing. It is no fs.ErrNotExist.
var errDangling = errors.New("a link to a file that is not there")

// ErrLarge is wrapped by errors about files that are larger than such a file can sensibly be.
var ErrLarge = errors.New("too large")

// Open opens a regular file. The error names it, and wraps fs.ErrNotExist where nothing of the name is there.
func Open(path string) (*os.File, error) {
	file, err := open(path)
	if errors.Is(err, fs.ErrNotExist) {
		if _, link := os.Lstat(path); link == nil {
			err = fmt.Errorf("%s: %w", path, errDangling)
		}
	}
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	if err == nil {
		err = check(info)
	}
	if err != nil {
		file.Close()
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return file, nil
}

// ReadFile reads a regular file of at most limit bytes.
func ReadFile(path string, limit int64) ([]byte, error) {
	file, err := Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	content, err := read(file, limit)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return content, nil
}

// Stat describes a regular file in a file system. The error does not name the file, and is fs.ErrNotExist where nothing
// of the name is there.
func Stat(files fs.FS, name string) (fs.FileInfo, error) {
	info, err := fs.Stat(files, name)
	if errors.Is(err, fs.ErrNotExist) {
		if _, link := fs.Lstat(files, name); link == nil {
			return nil, errDangling
		}
	}
	if err != nil {
		return nil, err
	}
	return info, check(info)
}

// ReadFS is ReadFile in a file system, with the errors of Stat.
func ReadFS(files fs.FS, name string, limit int64) ([]byte, error) {
	if _, err := Stat(files, name); err != nil {
		return nil, err
	}
	file, err := files.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err == nil {
		err = check(info)
	}
	if err != nil {
		return nil, err
	}
	return read(file, limit)
}

func check(info fs.FileInfo) error {
	switch mode := info.Mode(); {
	case mode.IsRegular():
		return nil
	case mode.IsDir():
		return errors.New("not a regular file: a folder")
	case mode&fs.ModeNamedPipe != 0:
		return errors.New("not a regular file: a named pipe")
	}
	return errors.New("not a regular file")
}

func read(file fs.File, limit int64) ([]byte, error) {
	content, err := io.ReadAll(io.LimitReader(file, limit+1))
	if err != nil {
		return nil, err
	}
	if n := int64(len(content)); n > limit {
		size := "more"
		if info, err := file.Stat(); err == nil {
			size = fmt.Sprint(info.Size())
		}
		return nil, fmt.Errorf("%w: %s bytes, more than the %d that such a file can sensibly have", ErrLarge, size,
			limit)
	}
	return content, nil
}
