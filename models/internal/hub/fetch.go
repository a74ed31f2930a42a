package hub

import (
	"context"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
)

const partSuffix = ".part"

// FetchAll makes sure that each file is whole and verified at its path, and tells progress of them all.
func (c *Client) FetchAll(ctx context.Context, commit string, files []File, paths []string) error {
	var have, total int64
	for i := range files {
		f := &files[i]
		if err := c.complete(ctx, commit, f); err != nil {
			return err
		}
		total += f.Size
		have += min(f.Size, max(sizeOf(paths[i]), sizeOf(paths[i]+partSuffix)))
	}
	c.Progress.Begin(len(files), have, total)
	c.begun = true
	for i, f := range files {
		c.Progress.File(f.Name)
		if err := c.Fetch(ctx, commit, f, paths[i]); err != nil {
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

// complete makes sure that size and checksum of a file are known. Some mirrors leave them out of the list of Files;
// they stand in headers as well.
func (c *Client) complete(ctx context.Context, commit string, f *File) error {
	switch {
	case f.Large != nil:
		f.Size = f.Large.Size
	case f.Listed != nil:
		f.Size = *f.Listed
	default:
		f.Size = -1
	}
	if _, _, err := f.checksum(); err == nil {
		return nil
	}
	response, err := c.send(ctx, c.direct, http.MethodHead, c.fileURL(commit, f.Name), 0)
	if err != nil {
		return fmt.Errorf("%s: %w", f.Name, err)
	}
	defer response.Body.Close()
	if response.StatusCode >= 400 {
		return fmt.Errorf("%s: %w", f.Name, c.statusError(response))
	}
	if at := response.Header.Get("X-Repo-Commit"); at != "" && at != commit {
		return fmt.Errorf("%s: the hub answers for commit %.60q, not %s", f.Name, at, commit)
	}
	tag, size := response.Header.Get("X-Linked-Etag"), response.Header.Get("X-Linked-Size")
	if tag == "" {
		tag = response.Header.Get("Etag")
	}
	if size == "" {
		size = response.Header.Get("Content-Length")
	}
	tag = strings.Trim(strings.TrimPrefix(tag, "W/"), `"`)
	listed, err := strconv.ParseInt(size, 10, 64)
	if err != nil || listed < 0 {
		return fmt.Errorf("%s: the hub does not tell the size", f.Name)
	}
	f.Size, f.Listed = listed, &listed
	switch {
	case isHex(tag, 2*sha256.Size):
		f.Large = &struct {
			SHA256 string `json:"sha256"`
			Size   int64  `json:"size"`
		}{tag, f.Size}
	case isHex(tag, 2*sha1.Size):
		f.Blob, f.Large = tag, nil
	}
	_, _, err = f.checksum()
	return err
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
	return nil, "", fmt.Errorf("%s: the hub tells no checksum, so what it sends could not be verified", f.Name)
}

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
	if size != f.Size {
		return &checksumError{fmt.Sprintf("%s: expected %d bytes, found %d", f.Name, f.Size, size)}
	}
	if found := hex.EncodeToString(h.Sum(nil)); found != expected {
		kind := "SHA-256"
		if f.Large == nil {
			kind = "git object"
		}
		return &checksumError{fmt.Sprintf("%s: wrong content: expected %s %s, found %s", f.Name, kind, expected, found)}
	}
	return nil
}

type checksumError struct{ message string }

func (e *checksumError) Error() string { return e.message }

// Fetch makes sure that the file at path is whole and verified.
func (c *Client) Fetch(ctx context.Context, commit string, f File, path string) error {
	if err := c.complete(ctx, commit, &f); err != nil {
		return err
	}
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
		if err := c.download(ctx, c.fileURL(commit, f.Name), part, f); err != nil {
			return err
		}
		err := f.verify(part)
		if err == nil {
			return os.Rename(part, path)
		}
		if removal := os.Remove(part); removal != nil {
			return errors.Join(err, removal)
		}
		var wrong *checksumError
		if !errors.As(err, &wrong) {
			return err
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
func (c *Client) download(ctx context.Context, address, part string, f File) error {
	out, err := os.OpenFile(part, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return err
	}
	defer out.Close()
	restart := func(have int64) error {
		c.advance(-min(have, f.Size))
		return out.Truncate(0)
	}
	longest := sizeOf(part)
	for attempt := 0; ; {
		have := sizeOf(part)
		if have > f.Size {
			if err := restart(have); err != nil {
				return err
			}
			have = 0
		}
		if have == f.Size {
			return out.Sync()
		}
		err := c.piece(ctx, address, out, f, have, restart)
		var broken brokenError
		if err == nil {
			continue
		}
		if !errors.As(err, &broken) {
			return fmt.Errorf("%s: %w", f.Name, err)
		}
		attempt++
		if have := sizeOf(part); have > longest {
			longest, attempt = have, 1
		}
		if attempt >= c.Attempts {
			return fmt.Errorf("%s: the connection broke %d times without bringing anything new, after %d of %d "+
				"bytes: %w; pull again to go on from there", f.Name, attempt, longest, f.Size, err)
		}
		if err := c.pause(ctx, attempt, err); err != nil {
			return err
		}
	}
}

// brokenError marks a failure that another attempt may not meet.
type brokenError struct{ error }

func (e brokenError) Unwrap() error { return e.error }

// piece asks for the bytes from have on and appends what comes.
func (c *Client) piece(ctx context.Context, address string, out *os.File, f File, have int64,
	restart func(int64) error) error {
	response, err := c.get(ctx, address, have)
	if err != nil {
		var status *statusError
		if errors.As(err, &status) && status.status == http.StatusRequestedRangeNotSatisfiable && have > 0 {
			if err := restart(have); err != nil {
				return err
			}
			return brokenError{err}
		}
		return err
	}
	defer response.Body.Close()
	if response.StatusCode == http.StatusOK && have > 0 {
		// The server sends everything, asked or not.
		if err := restart(have); err != nil {
			return err
		}
		have = 0
	}
	if response.StatusCode == http.StatusPartialContent {
		want := fmt.Sprintf("bytes %d-%d/%d", have, f.Size-1, f.Size)
		if found := response.Header.Get("Content-Range"); found != want {
			return fmt.Errorf("asked for %s, the answer holds %.60q", want, found)
		}
	}
	if response.ContentLength >= 0 && response.ContentLength != f.Size-have {
		return fmt.Errorf("expected %d bytes, the answer has %d", f.Size-have, response.ContentLength)
	}
	buffer := make([]byte, 256<<10)
	for have < f.Size {
		n, err := response.Body.Read(buffer[:min(int64(len(buffer)), f.Size-have)])
		if n > 0 {
			if _, err := out.Write(buffer[:n]); err != nil {
				return err
			}
			have += int64(n)
			c.advance(int64(n))
		}
		if err != nil && have < f.Size {
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
