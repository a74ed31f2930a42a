package journal

import (
	"bufio"
	"crypto/sha256"
	"fmt"
	"hash"
	"io"
	"os"
	"path/filepath"
)

// Reader reads the lines of a journal and sums them up.
type Reader struct {
	// Bytes is where the lines end that were read.
	Bytes int64

	lines int64
	hash  hash.Hash
	r     *bufio.Reader
}

// NewReader reads from a file, from where it stands.
func NewReader(file io.Reader) *Reader { return NewReaderSize(file, 1<<18) }

// NewReaderSize holds that many bytes.
func NewReaderSize(file io.Reader, size int) *Reader {
	return &Reader{r: bufio.NewReaderSize(file, size), hash: sha256.New()}
}

// Next returns a line with its end, and io.EOF after the last: what has no end is torn, or being written.
func (r *Reader) Next() ([]byte, error) {
	line, err := r.r.ReadBytes('\n')
	if err != nil {
		return nil, err
	}
	r.Bytes, r.lines = r.Bytes+int64(len(line)), r.lines+1
	r.hash.Write(line)
	return line, nil
}

// Lines goes through the lines that are left.
func (r *Reader) Lines(yield func(line []byte, err error) bool) {
	for {
		line, err := r.Next()
		if err == io.EOF || !yield(line, err) || err != nil {
			return
		}
	}
}

// End sums up what was read.
func (r *Reader) End() End { return End{r.lines, fmt.Sprintf("%x", r.hash.Sum(nil))} }

// Check is an error where the lines of a finished journal are not what it ended with.
func Check(dir, lines string) error {
	var end End
	if ended, err := ReadJSON(filepath.Join(dir, Tail), &end); err != nil || !ended {
		return err
	}
	file, err := os.Open(filepath.Join(dir, lines))
	if err != nil {
		return err
	}
	defer file.Close()
	r := NewReader(file)
	for _, err := range r.Lines {
		if err != nil {
			return err
		}
	}
	if r.End() != end {
		return fmt.Errorf("%s is damaged (its SHA-256 is not what %s says): remove it, and run the part again", dir,
			Tail)
	}
	return nil
}

// last reports whether nothing follows.
func (r *Reader) last() bool {
	_, err := r.r.Peek(1)
	return err == io.EOF
}

// drop gives the last line back.
func (r *Reader) drop(line []byte) { r.Bytes -= int64(len(line)) }

// Follow gives the whole lines of a file from a byte on, also while they are written. It opens no pipe or device, which
// could be waited for without end.
func Follow(path string, from int64, do func(line []byte)) error {
	info, err := os.Stat(path)
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s: it is no file", path)
	}
	if err != nil {
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
	for line, err := range NewReader(file).Lines {
		if err != nil {
			return err
		}
		do(line)
	}
	return nil
}
