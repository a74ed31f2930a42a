package hub

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
)

const (
	partSuffix = ".part"
	// unknownSize is that of a file of which only the server knows the end.
	unknownSize = -1
	// largestUnknown is the size, in bytes, at which such a file is refused.
	largestUnknown = 1 << 30
)

// A Plain is a file on a server that is no hub.
type Plain struct {
	Address string // https:// or http://
	Size    int64  // in bytes; 0 if it is not known
	SHA256  string // 64 hexadecimal digits; "" if it is not known, and the caller checks the content
}

// Download fetches a file to path. It continues after a broken connection.
func Download(ctx context.Context, f Plain, path string, o Options) error {
	address, err := url.Parse(f.Address)
	if err != nil || address.Host == "" || address.Scheme != "http" && address.Scheme != "https" {
		return fmt.Errorf("%.100q is not an address that begins with https:// or http://", f.Address)
	}
	c := newClient(o, address)
	c.begun = true
	d := &download{client: c, address: f.Address, name: filepath.Base(path), path: path,
		size: cmp.Or(f.Size, unknownSize), again: "try again later", kind: "SHA-256", sum: f.SHA256, hash: sha256.New()}
	c.Progress.Begin(d.name, 0, d.size)
	return d.run(ctx)
}

type download struct {
	client              *client
	address, name, path string // name appears in errors
	again               string // what to do if the connection broke too often
	size                int64  // bytes; unknownSize for a file that ends with the answer
	// sum is the hash expected of prefix and content; "" if it is not known.
	kind, prefix, sum string
	hash              hash.Hash

	out  *os.File
	have int64 // bytes on disk so far
}

// errContent says that a file differs from the requested file.
var errContent = errors.New("wrong content")

// verify compares size and checksum of the file at path with those expected.
func (d *download) verify(path string) error {
	content, err := os.Open(path)
	if err != nil {
		return err
	}
	defer content.Close()
	d.hash.Reset()
	io.WriteString(d.hash, d.prefix)
	size, err := io.CopyBuffer(d.hash, struct{ io.Reader }{content}, make([]byte, 256<<10))
	if err != nil {
		return err
	}
	found := hex.EncodeToString(d.hash.Sum(nil))
	if d.sum != "" && found != d.sum || d.size != unknownSize && size != d.size {
		return fmt.Errorf("%s: %w: expected %s %s, found %s", d.name, errContent, d.kind, d.sum, found)
	}
	return nil
}

// run ensures that d.path has the complete file, with the right checksum.
func (d *download) run(ctx context.Context) error {
	if info, err := os.Stat(d.path); err == nil && (info.Size() > 0 || d.size == 0) {
		if d.verify(d.path) == nil {
			return nil
		}
		if err := d.discard(d.path); err != nil {
			return err
		}
	}
	part := d.path + partSuffix
	for resumed := sizeOf(part) > 0; ; resumed = false {
		err := d.finish(ctx, part)
		if err == nil || !errors.Is(err, errContent) {
			return err
		}
		if removal := d.discard(part); removal != nil {
			return errors.Join(err, removal)
		}
		// If an earlier run's bytes were wrong, begin once more at the first.
		if !resumed {
			return fmt.Errorf("%w: the server or what lies between sent something else; try again, or from another "+
				"server", err)
		}
	}
}

func (d *download) finish(ctx context.Context, part string) error {
	err := d.complete(ctx, part)
	if err != nil {
		return err
	}
	err = d.verify(part)
	if err != nil {
		return err
	}
	return os.Rename(part, d.path)
}

// discard removes the file at path and takes its bytes back from the progress.
func (d *download) discard(path string) error {
	d.client.advance(-d.within(sizeOf(path)))
	return os.Remove(path)
}

// within returns the part of a number of bytes that belongs to the file.
func (d *download) within(bytes int64) int64 {
	if d.size == unknownSize {
		return bytes
	}
	return min(bytes, d.size)
}

// complete appends to part until it has the size of the file. It continues
// after broken connections, as long as every few attempts make part longer than
// ever before. A server that starts again at the first byte makes no progress.
func (d *download) complete(ctx context.Context, part string) (err error) {
	d.out, err = os.OpenFile(part, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return err
	}
	defer d.out.Close()
	d.have = sizeOf(part)
	longest := d.have
	switch {
	case d.have == d.size:
		return nil
	case d.have > d.most():
		return fmt.Errorf("%s: %w", d.name, d.tooLong())
	}
	err = d.client.try(ctx, func() (int64, error) {
		err := d.client.get(ctx, d.address, d.have, d.read)
		further := max(d.have-longest, 0)
		longest += further
		return further, err
	})
	var failed *failure
	switch {
	case err == nil:
		return d.out.Sync()
	case !errors.As(err, &failed) || ctx.Err() != nil:
	case failed.status == http.StatusRequestedRangeNotSatisfiable && d.have > 0:
		return fmt.Errorf("%s: %w: the server has fewer than the %d bytes that are here", d.name, errContent, d.have)
	case failed.status == http.StatusOK || failed.status == http.StatusPartialContent:
		came := fmt.Sprint(longest)
		if d.size != unknownSize {
			came += fmt.Sprintf(" of %d", d.size)
		}
		return fmt.Errorf("%s: the connection broke %d times and brought too little, after %s bytes: %w; %s",
			d.name, d.client.Attempts, came, err, d.again)
	}
	return fmt.Errorf("%s: %w", d.name, err)
}

// read appends a response to d.out, which the checksum later checks.
func (d *download) read(response *http.Response, alive func(bytes int)) error {
	if response.StatusCode == http.StatusOK && d.have > 0 { // the server ignores the range
		d.client.advance(-d.within(d.have))
		d.have = 0
		if d.out.Truncate(0) != nil {
			return fmt.Errorf("%s cannot be begun again", d.out.Name())
		}
	}
	if response.ContentLength > d.most()-d.have {
		return d.tooLong()
	}
	buffer := make([]byte, 256<<10)
	for d.have != d.size {
		if d.have == d.most() {
			return d.tooLong()
		}
		n, err := response.Body.Read(buffer[:min(int64(len(buffer)), d.most()-d.have)])
		alive(n)
		if n > 0 {
			if _, err := d.out.Write(buffer[:n]); err != nil {
				return err
			}
			d.have += int64(n)
			d.client.advance(int64(n))
		}
		if err == io.EOF {
			if d.size == unknownSize {
				return nil
			}
			err = io.ErrUnexpectedEOF
		}
		if err != nil && d.have != d.size {
			return brokenError{err}
		}
	}
	return nil
}

// most returns the size that the file has at most.
func (d *download) most() int64 {
	if d.size == unknownSize {
		return largestUnknown
	}
	return d.size
}

func (d *download) tooLong() error {
	return fmt.Errorf("%w: it is longer than %d bytes", errContent, d.most())
}

func sizeOf(path string) int64 {
	info, err := os.Stat(path)
	if err != nil {
		return 0
	}
	return info.Size()
}
