package library

import (
	"archive/zip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/gofrs/flock"

	"infill/internal/regular"
)

// Fetch downloads the pinned wheel into the cache, unless another process has just done so, and returns the library in
// it. If ctx ends, Fetch removes what it has downloaded.
func Fetch(ctx context.Context, o Options) (Library, error) {
	w := o.wheel
	if w == nil {
		w = published(o.os(), o.arch(), o.CUDA)
	}
	if w == nil {
		return Library{}, fmt.Errorf("no onnxruntime library of version %s is published for %s; build one and name "+
			"it in %s", Version, o.platform(), Variable)
	}
	folder, err := o.folder()
	if err != nil {
		return Library{}, err
	}
	shelf := filepath.Dir(folder)
	if err := os.MkdirAll(shelf, 0o755); err != nil {
		return Library{}, fmt.Errorf("cannot make the cache folder: %w; name another in INFILL_CACHE", err)
	}
	lock := flock.New(filepath.Join(shelf, ".lock"))
	if err := o.acquire(ctx, lock); err != nil {
		return Library{}, err
	}
	defer lock.Unlock()
	if seen := o.cached(folder); seen.Usable {
		return seen, nil
	}
	start := time.Now()
	o.say("fetching onnxruntime %s for %s, %d MB, by pip", Version, o.platform(), w.size>>20)
	if err := w.fetch(ctx, Version, folder); ctx.Err() != nil {
		return Library{}, fmt.Errorf("fetching onnxruntime stopped: %w", ctx.Err())
	} else if err != nil {
		return Library{}, fmt.Errorf("cannot fetch onnxruntime %s for %s: %w; connect this machine and run `infill "+
			"setup`, or name a library of version %s or newer in %s", Version, o.platform(), err, MinimumVersion,
			Variable)
	}
	seen := o.cached(folder)
	if !seen.Usable {
		return Library{}, fmt.Errorf("%s: %s", seen.Path, seen.Reason)
	}
	o.say("onnxruntime %s is in %s (%.1f s)", seen.Version, folder, time.Since(start).Seconds())
	return seen, nil
}

func (o Options) say(format string, arguments ...any) {
	if o.Progress != nil {
		fmt.Fprintf(o.Progress, format+"\n", arguments...)
	}
}

// acquire takes the lock. If another process holds the lock, acquire tells the user, and waits.
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

// fetch downloads the wheel, checks it, and puts its members into folder. The caller holds the lock.
func (w *wheel) fetch(ctx context.Context, version, folder string) error {
	// The temporary folder is beside the final one, so that the last step is a rename inside one file system. Remains
	// of killed processes are removed first.
	temporary := folder + ".fetch"
	if err := errors.Join(os.RemoveAll(temporary), os.MkdirAll(filepath.Join(temporary, "unpacked"),
		0o755)); err != nil {
		return err
	}
	defer os.RemoveAll(temporary)
	if err := w.download(ctx, version, temporary); err != nil {
		return err
	}
	found, err := filepath.Glob(filepath.Join(temporary, "*.whl"))
	if err == nil && len(found) != 1 {
		err = fmt.Errorf("pip left %d files *.whl, expected one", len(found))
	}
	if err != nil {
		return err
	}
	if digest, err := regular.SHA256(found[0]); err != nil {
		return err
	} else if digest != w.sha256 {
		return fmt.Errorf("%s: expected SHA-256 %s, found %s", filepath.Base(found[0]), w.sha256, digest)
	}
	unpacked := filepath.Join(temporary, "unpacked")
	if err := w.unpack(found[0], version, unpacked); err != nil {
		return err
	}
	// Between the two calls there is no folder: other processes see an empty cache, and wait for the lock.
	return errors.Join(os.RemoveAll(folder), os.Rename(unpacked, folder))
}

// download makes pip download the wheel into folder.
func (w *wheel) download(ctx context.Context, version, folder string) error {
	command := exec.CommandContext(ctx, "python3", "-m", "pip", "download", "--quiet", "--disable-pip-version-check",
		"--no-input", "--no-deps", "--only-binary", ":all:", "--python-version", "3.12", "--implementation", "cp",
		"--abi", "cp312", "--platform", w.tag, "--retries", "1", "--timeout", "10", "--dest", folder,
		w.name+"=="+version)
	// TMPDIR makes pip use our temporary folder, which we remove. PIP_REQUIRE_VIRTUALENV=0 overrides the user's
	// setting, because nothing is installed here.
	command.Env = append(os.Environ(), "TMPDIR="+folder, "TEMP="+folder, "TMP="+folder, "PIP_REQUIRE_VIRTUALENV=0")
	command.WaitDelay = 2 * time.Second
	words, err := command.CombinedOutput()
	switch {
	case err == nil:
		return nil
	case errors.Is(err, exec.ErrNotFound):
		return errors.New("there is no python3 with pip, which brings it")
	}
	// pip's error only says that pip found nothing; a warning before the error says why.
	for line := range strings.Lines(string(words)) {
		line = strings.TrimSpace(line)
		if _, broken, found := strings.Cut(line, "connection broken by "); found {
			return fmt.Errorf("pip cannot reach the package index: %.160s", broken)
		}
		if strings.HasPrefix(line, "ERROR: ") || strings.Contains(line, "No module named pip") {
			return fmt.Errorf("pip: %.200s", strings.TrimPrefix(line, "ERROR: "))
		}
	}
	return fmt.Errorf("pip: %w", err)
}

// unpack writes w.members, and nothing else, into folder, and removes the version from their names.
func (w *wheel) unpack(file, version, folder string) error {
	archive, err := zip.OpenReader(file)
	if err != nil {
		return fmt.Errorf("%s: %w", filepath.Base(file), err)
	}
	defer archive.Close()
	for _, name := range w.members {
		entry, err := archive.Open(path.Join("onnxruntime/capi", name))
		if err != nil {
			return fmt.Errorf("%s: %w", filepath.Base(file), err)
		}
		as := name
		if i := strings.Index(name, version); i > 0 { // such as libonnxruntime.so.1.31.1
			as = name[:i-1] + name[i+len(version):]
		}
		err = place(filepath.Join(folder, as), entry)
		entry.Close()
		if err != nil {
			return err
		}
	}
	return nil
}

// place writes one member to disk and syncs it.
func place(path string, content io.Reader) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o755)
	if err != nil {
		return err
	}
	_, err = io.Copy(file, content)
	return errors.Join(err, file.Sync(), file.Close())
}
