package lines

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/klauspost/compress/zstd"
)

var kinds = map[string]string{".gz": "gzip", ".zst": "zstd"}

// Packed returns the ending of a file's name that says how the file is
// compressed, ".gz" or ".zst"; "" if it is not.
func Packed(name string) string {
	end := strings.ToLower(filepath.Ext(name))
	if kinds[end] == "" {
		return ""
	}
	return end
}

// Unpack returns a reader of the text in r, a file's bytes, which it
// decompresses as the file's name says. A file that is no text, or is compressed
// without a name that says so, is an error of the first Read.
func Unpack(name string, r io.Reader) (io.Reader, error) {
	from := bufio.NewReaderSize(r, 1<<16)
	u := unpacked{kind: kinds[Packed(name)]}
	var err error
	switch u.kind {
	case "gzip":
		u.from, err = newGzip(from)
	case "zstd":
		u.from, err = zstd.NewReader(from, zstd.WithDecoderConcurrency(1))
	default:
		return Text(from), nil
	}
	if err != nil {
		return nil, u.broken(err)
	}
	return Text(u), nil
}

// unpacked is the text of a compressed file.
type unpacked struct {
	from io.Reader
	kind string
}

func (u unpacked) Read(p []byte) (int, error) {
	n, err := u.from.Read(p)
	if err != nil && err != io.EOF {
		err = u.broken(err)
	}
	return n, err
}

func (u unpacked) broken(err error) error {
	if errors.Is(err, io.EOF) { // an empty file
		err = io.ErrUnexpectedEOF
	}
	if errors.Is(err, zstd.ErrWindowSizeExceeded) {
		return errors.New("the file needs more memory than a reader of zstd gives by default: it was packed with " +
			"--long=31 or the like; unpack it (zstd -d --long=31), or pack it again without")
	}
	return fmt.Errorf("the file is no %s, as its name says, or is cut off or damaged (%w): rename it, or get it again",
		u.kind, err)
}
