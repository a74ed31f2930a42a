package hub

import (
	"cmp"
	"context"
	"crypto/sha1"
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

const partSuffix = ".part"

// FetchAll makes sure that each file is whole and verified in dir, and tells progress of them all.
func (c *Client) FetchAll(ctx context.Context, commit string, files []File, dir string) error {
	var have, total int64
	for _, f := range files {
		path := filepath.Join(dir, f.Name)
		total += f.Size
		have += min(f.Size, max(sizeOf(path), sizeOf(path+partSuffix)))
	}
	c.Progress.Begin(len(files), have, total)
	c.begun = true
	for _, f := range files {
		c.Progress.File(f.Name)
		if err := c.Fetch(ctx, commit, f, dir); err != nil {
			return err
		}
	}
	return nil
}

// advance tells progress, once there is something that it is a part of.
func (c *Client) advance(bytes int64) {
	if c.begun && bytes != 0 {
		c.Progress.Advance(bytes)
	}
}

// checksum is what the content must hash to, and by what.
func (f *File) checksum() (hash.Hash, string, error) {
	switch {
	case f.Size < 0:
	case f.Large != nil && isHex(f.Large.SHA256, 2*sha256.Size):
		return sha256.New(), f.Large.SHA256, nil
	case f.Large == nil && isHex(f.Blob, 2*sha1.Size):
		h := sha1.New()
		fmt.Fprintf(h, "blob %d\x00", f.Size)
		return h, f.Blob, nil
	}
	return nil, "", fmt.Errorf("%s: the hub lists no checksum, so what it sends could not be verified; set %s to "+
		"another mirror", f.Name, EndpointVariable)
}

// errContent marks a file that is another than the hub lists.
var errContent = errors.New("wrong content")

// verify compares size and checksum of a file on disk.
func (f *File) verify(path string) error {
	h, expected, err := f.checksum()
	if err != nil {
		return err
	}
	content, err := os.Open(path)
	if err != nil {
		return err
	}
	defer content.Close()
	size, err := io.CopyBuffer(h, struct{ io.Reader }{content}, make([]byte, 256<<10))
	if err != nil {
		return err
	}
	if found := hex.EncodeToString(h.Sum(nil)); size != f.Size || found != expected {
		kind := map[bool]string{true: "SHA-256", false: "git object"}[f.Large != nil]
		return fmt.Errorf("%s: %w: expected %s %s, found %s", f.Name, errContent, kind, expected, found)
	}
	return nil
}

// Fetch makes sure that the file is whole and verified in dir.
func (c *Client) Fetch(ctx context.Context, commit string, f File, dir string) error {
	if _, _, err := f.checksum(); err != nil {
		return err
	}
	path := filepath.Join(dir, f.Name)
	part := path + partSuffix
	if size := sizeOf(path); size > 0 || f.Size == 0 {
		if f.verify(path) == nil {
			return nil
		}
		if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		c.advance(-min(size, f.Size))
	}
	resumed := sizeOf(part) > 0
	for {
		if err := c.download(ctx, commit, f, part); err != nil {
			return err
		}
		err := f.verify(part)
		if err == nil {
			return os.Rename(part, path)
		}
		if removal := os.Remove(part); removal != nil || !errors.Is(err, errContent) {
			return errors.Join(err, removal)
		}
		c.advance(-f.Size)
		// The fault may lie in what an earlier attempt left: once more, from the first byte.
		if !resumed {
			return fmt.Errorf(
				"%w: the hub or what lies between sent something else; pull again, or from another endpoint", err)
		}
		resumed = false
	}
}

// download appends to part until it has the size of the file. It goes on after broken connections, as long as each
// few attempts make the part longer than it ever was: a server that starts again from the first byte brings nothing
// new.
func (c *Client) download(ctx context.Context, commit string, f File, part string) error {
	out, err := os.OpenFile(part, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return err
	}
	defer out.Close()
	d := &download{Client: c, File: f, out: out, have: sizeOf(part)}
	d.address = c.Endpoint + "/" + c.name + "/resolve/" + commit + "/" + url.PathEscape(f.Name)
	longest := d.have
	for attempt := 0; d.have != f.Size; {
		err := d.more(ctx)
		if err == nil {
			continue
		}
		if broken := new(brokenError); !errors.As(err, broken) {
			return fmt.Errorf("%s: %w", f.Name, err)
		}
		if attempt++; d.have > longest {
			longest, attempt = d.have, 1
		}
		if attempt >= c.Attempts {
			return fmt.Errorf("%s: the connection broke %d times without bringing anything new, after %d of %d "+
				"bytes: %w; pull again to go on from there", f.Name, attempt, longest, f.Size, err)
		}
		if err := c.pause(ctx, attempt, err); err != nil {
			return err
		}
	}
	return out.Sync()
}

// brokenError marks a failure that another attempt may not meet.
type brokenError struct{ error }

func (e brokenError) Unwrap() error { return e.error }

// download is a part of a file on its way.
type download struct {
	*Client
	File
	address string
	out     *os.File
	have    int64 // bytes
}

// restart throws away what is there.
func (d *download) restart() error {
	d.advance(-min(d.have, d.Size))
	d.have = 0
	return d.out.Truncate(0)
}

// more asks for the bytes that are missing and appends what comes.
func (d *download) more(ctx context.Context) error {
	if d.have > d.Size {
		return d.restart()
	}
	response, err := d.get(ctx, d.address, d.have)
	if err != nil {
		var status *statusError
		if errors.As(err, &status) && status.status == http.StatusRequestedRangeNotSatisfiable && d.have > 0 {
			return cmp.Or(d.restart(), error(brokenError{err}))
		}
		return err
	}
	defer response.Body.Close()
	if response.StatusCode == http.StatusOK && d.have > 0 { // the server sends everything, asked or not
		if err := d.restart(); err != nil {
			return err
		}
	}
	if response.StatusCode == http.StatusPartialContent {
		want := fmt.Sprintf("bytes %d-%d/%d", d.have, d.Size-1, d.Size)
		if found := response.Header.Get("Content-Range"); found != want {
			return fmt.Errorf("asked for %s, the answer holds %.60q", want, found)
		}
	}
	if left := d.Size - d.have; response.ContentLength >= 0 && response.ContentLength != left {
		return fmt.Errorf("expected %d bytes, the answer has %d", left, response.ContentLength)
	}
	buffer := make([]byte, 256<<10)
	for d.have < d.Size {
		n, err := response.Body.Read(buffer[:min(int64(len(buffer)), d.Size-d.have)])
		if n > 0 {
			if _, err := d.out.Write(buffer[:n]); err != nil {
				return err
			}
			d.have += int64(n)
			d.advance(int64(n))
		}
		if err != nil && d.have < d.Size {
			if errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return brokenError{err}
		}
	}
	return nil
}

// sizeOf is the size of a file, 0 when there is none.
func sizeOf(path string) int64 {
	info, err := os.Stat(path)
	if err != nil {
		return 0
	}
	return info.Size()
}
