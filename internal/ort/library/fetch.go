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

	"infill/models"
)

// Fetch downloads the library into the cache, unless another process has just
// done so, and returns it. It tries the carriers in their order; if none brings
// the library, the error says why of each. If ctx ends, Fetch removes what it
// has downloaded.
func Fetch(ctx context.Context, o Options) (Library, error) {
	list := o.carriers()
	if len(list) == 0 {
		return Library{}, fmt.Errorf("no onnxruntime library is published for %s; build one and name it in %s",
			o.platform(), Variable)
	}
	shelf, err := shelf()
	if err != nil {
		return Library{}, err
	}
	err = os.MkdirAll(shelf, 0o755)
	if err != nil {
		return Library{}, fmt.Errorf("cannot make the cache folder: %w; name another in %s", err, models.CacheVariable)
	}
	lock := flock.New(filepath.Join(shelf, ".lock"))
	err = o.acquire(ctx, lock)
	if err != nil {
		return Library{}, err
	}
	defer lock.Unlock()
	for i := range list {
		seen := o.cached(&list[i], shelf)
		if seen.Usable {
			return seen, nil
		}
	}
	var reasons []string
	for i := range list {
		c := &list[i]
		seen, err := o.fetch(ctx, c, shelf)
		if err == nil {
			return seen, nil
		}
		if ctx.Err() != nil {
			return Library{}, fmt.Errorf("fetching onnxruntime stopped: %w", ctx.Err())
		}
		reason := fmt.Sprintf("%s: %v", c.source, err)
		reasons = append(reasons, reason)
		o.say("%s", reason)
	}
	return Library{}, fmt.Errorf("cannot fetch onnxruntime for %s: %s; connect this machine and run `infill setup`, "+
		"or name a library of version %s or newer in %s", o.platform(), strings.Join(reasons, "; "), MinimumVersion,
		Variable)
}

// fetch downloads the library by one carrier, while the lock is held.
func (o Options) fetch(ctx context.Context, c *carrier, shelf string) (Library, error) {
	start := time.Now()
	size := ""
	if c.size > 0 {
		size = fmt.Sprintf(", %d MB", c.size>>20)
	}
	o.say("fetching onnxruntime %s for %s%s, by %s", c.version, o.platform(), size, c.source)
	folder := o.folder(c, shelf)
	// The temporary folder is beside the final one, for a rename in one file
	// system. Remains of killed processes go first.
	temporary := folder + ".fetch"
	unpacked := filepath.Join(temporary, "unpacked")
	arrived := filepath.Join(temporary, "arrived")
	err := errors.Join(os.RemoveAll(temporary), os.MkdirAll(unpacked, 0o755), os.MkdirAll(arrived, 0o755))
	if err != nil {
		return Library{}, err
	}
	defer os.RemoveAll(temporary)
	archive, err := c.source.bring(ctx, c, arrived, o.progress())
	if err != nil {
		return Library{}, err
	}
	err = c.unpack(archive, unpacked)
	if err != nil {
		return Library{}, err
	}
	// Between the two calls there is no folder: other processes see an empty
	// cache, and wait for the lock.
	err = errors.Join(os.RemoveAll(folder), os.Rename(unpacked, folder))
	if err != nil {
		return Library{}, err
	}
	seen := o.cached(c, shelf)
	if !seen.Usable {
		return Library{}, fmt.Errorf("%s: %s", seen.Path, seen.Reason)
	}
	o.say("onnxruntime %s is in %s (%.1f s)", seen.Version, folder, time.Since(start).Seconds())
	return seen, nil
}

// acquire takes the lock, and says so if it waits for another process.
func (o Options) acquire(ctx context.Context, lock *flock.Flock) error {
	locked, err := lock.TryLock()
	if err == nil && !locked {
		o.say("another process is fetching onnxruntime; waiting for it")
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
