package library

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/gofrs/flock"
	"github.com/google/renameio/v2/maybe"

	"infill/internal/object"
)

// Fetch brings the pinned release into the cache, unless another process has just done so, and returns it.
// Its error lists every source that was tried, why each failed, and what the user can do. When ctx ends nothing is left
// behind.
func Fetch(ctx context.Context, o Options) (Library, error) {
	o, err := o.withDefaults()
	if err != nil {
		return Library{}, err
	}
	if len(o.pins) == 0 {
		return Library{}, fmt.Errorf("no onnxruntime library of version %s is published for %s; build one and name "+
			"it in %s", o.variant().version, o.platform(), Variable)
	}
	folder := o.folder()
	shelf := filepath.Dir(folder)
	if err := os.MkdirAll(shelf, 0o755); err != nil {
		return Library{}, fmt.Errorf("cannot make the cache folder: %w; name another in INFILL_CACHE", err)
	}
	show := newProgress(o.Progress)
	defer show.end()

	lock := flock.New(filepath.Join(shelf, ".lock"))
	if err := acquire(ctx, lock, show); err != nil {
		return Library{}, err
	}
	defer lock.Unlock()

	cached := candidate{name: "cache", path: filepath.Join(folder, FileName(o.goos)), cached: true}
	if seen := o.examine(cached, true); seen.Usable {
		return seen, nil
	}
	sweep(shelf)

	start := time.Now()
	show.line("fetching onnxruntime %s for %s", o.variant().version, o.platform())
	var failures []string
	for _, pin := range o.pins {
		err := o.fetchFrom(ctx, pin, folder, show)
		show.end()
		if ctx.Err() != nil {
			return Library{}, fmt.Errorf("fetching onnxruntime stopped: %w", ctx.Err())
		}
		if err != nil {
			failures = append(failures,
				fmt.Sprintf("%s: %s", pin.source, strings.Join(strings.Fields(err.Error()), " ")))
			continue
		}
		seen := o.examine(cached, false)
		if !seen.Usable {
			failures = append(failures, fmt.Sprintf("%s: %s", pin.source, seen.Reason))
			continue
		}
		show.line("onnxruntime %s from %s is in %s (%.1f s)", seen.Version, pin.source, folder,
			time.Since(start).Seconds())
		return seen, nil
	}
	return Library{}, fmt.Errorf("cannot fetch onnxruntime %s for %s; tried %s; connect this machine and run `infill "+
		"setup`, or name a library of version %s or newer in %s",
		o.variant().version, o.platform(), strings.Join(failures, "; "), MinimumVersion, Variable)
}

// acquire waits for the lock, saying so when it must wait.
func acquire(ctx context.Context, lock *flock.Flock, show *progress) error {
	locked, err := lock.TryLock()
	if err == nil && !locked {
		show.line("another process is fetching onnxruntime; waiting for it")
		locked, err = lock.TryLockContext(ctx, 100*time.Millisecond)
	}
	if ctx.Err() != nil {
		return fmt.Errorf("waiting for another process that fetches onnxruntime: %w", ctx.Err())
	}
	if err != nil || !locked {
		return fmt.Errorf("cannot lock %s: %w", lock.Path(), err)
	}
	return nil
}

const temporaryPrefix = ".fetch-"

// sweep removes what killed processes left. The lock is held, so nobody is working there.
func sweep(shelf string) {
	left, err := filepath.Glob(filepath.Join(shelf, temporaryPrefix+"*"))
	if err != nil {
		return
	}
	for _, path := range left {
		_ = os.RemoveAll(path) // what stays is swept next time
	}
}

// fetchFrom brings one published file, checks it, and puts its members in place.
func (o Options) fetchFrom(ctx context.Context, pin pin, folder string, show *progress) error {
	source, known := o.sources[pin.source]
	if !known {
		return errors.New("unknown source")
	}
	// Beside the final folder, so that the last step is a rename inside one file system.
	temporary, err := os.MkdirTemp(filepath.Dir(folder), temporaryPrefix)
	if err != nil {
		return err
	}
	defer os.RemoveAll(temporary)
	download, unpacked := filepath.Join(temporary, "download"), filepath.Join(temporary, "unpacked")
	for _, path := range []string{download, unpacked} {
		if err := os.Mkdir(path, 0o755); err != nil {
			return err
		}
	}
	brought, err := source.bring(ctx, pin, download, show)
	if err != nil {
		return err
	}
	files, err := unpack(brought.path, pin.members, unpacked)
	if err != nil {
		return err
	}
	m := manifest{Version: pin.release(), Platform: o.platform(), Source: pin.source,
		Archive: filepath.Base(brought.path), SHA256: brought.sha256, Files: files}
	data, err := object.EncodeIndent(m, "", "  ")
	if err != nil {
		return err
	}
	if err := maybe.WriteFile(filepath.Join(unpacked, manifestName), append(data, '\n'), 0o644); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return replace(unpacked, folder, filepath.Join(temporary, "old"))
}

// replace puts a finished folder instead of whatever is there. The lock is held: between the two renames there is
// no folder, which other processes read as "nothing fetched yet" and then wait for the lock.
func replace(finished, folder, old string) error {
	if _, err := os.Lstat(folder); err == nil {
		if err := os.Rename(folder, old); err != nil {
			return err
		}
	}
	if err := os.Rename(finished, folder); err != nil {
		return err
	}
	return syncFolder(filepath.Dir(folder))
}
