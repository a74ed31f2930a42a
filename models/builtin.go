package models

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/gofrs/flock"
	"github.com/google/renameio/v2/maybe"
)

//go:generate go test -run TestBuiltInManifest -update .

//go:embed small-uncased
var embedded embed.FS

// BuiltInName is the model that is part of the program.
const BuiltInName = "small-uncased"

// builtIn gives the files of the built-in model and its manifest.
func builtIn() (fs.FS, *Manifest, error) {
	files, err := fs.Sub(embedded, BuiltInName)
	if err != nil {
		return nil, nil, err
	}
	encoded, err := fs.ReadFile(files, manifestName)
	if err != nil {
		return nil, nil, fmt.Errorf("the program was built without the model %s: %w", BuiltInName, err)
	}
	manifest, err := parseManifest(encoded)
	if err != nil {
		return nil, nil,
			fmt.Errorf("the program was built with a wrong %s of the model %s: %w", manifestName, BuiltInName, err)
	}
	return files, manifest, nil
}

// builtInDir is where the built-in model lies in the store. Programs of different versions can share a cache: each has
// its own folder in it.
func (s *Store) builtInDir(manifest *Manifest) string {
	return filepath.Join(s.folder(BuiltInName), manifest.SHA256()[:12])
}

// openBuiltIn writes the files of the built-in model into the store, because onnxruntime reads weights by file and
// offset, and opens them. Files there that somebody has written to since are compared with the program's own bytes.
func (s *Store) openBuiltIn() (*Bundle, error) {
	files, manifest, err := builtIn()
	if err != nil {
		return nil, err
	}
	dir := s.builtInDir(manifest)
	if !placed(files, dir, manifest) {
		if err := place(files, dir, manifest); err != nil {
			return nil, fmt.Errorf("the built-in model %s cannot be placed in %s: %w; make room for %d MB there, or set "+
				"%s to a folder that can be written",
				BuiltInName, dir, err, (manifest.Size()+1<<20-1)>>20, CacheVariable)
		}
	}
	manifest.FiniteWeights = true // TestOpenBuiltIn looks at them
	// Small files are read from the program itself.
	b := &Bundle{Name: BuiltInName, Dir: dir, Manifest: manifest, files: files}
	if err := b.load(); err != nil {
		return nil, err
	}
	return b, nil
}

// placed reports whether all files are there, and nobody has written to them since.
func placed(files fs.FS, dir string, manifest *Manifest) bool {
	same, err := equal(files, manifestName, filepath.Join(dir, manifestName))
	return same && err == nil && manifest.unchanged(dir)
}

// place writes the files that differ, each whole or not at all, and leaves all others as they are. The manifest comes
// last: it is older than no file that is whole.
func place(files fs.FS, dir string, manifest *Manifest) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	lock := flock.New(filepath.Join(filepath.Dir(dir), lockName))
	if err := lock.Lock(); err != nil {
		return err
	}
	defer lock.Close()
	if placed(files, dir, manifest) {
		return nil // another process has written them while this one waited
	}
	var names []string
	for _, f := range manifest.Files {
		names = append(names, f.Path)
	}
	if err := clearLeftovers(dir, append(names, manifestName)); err != nil {
		return err
	}
	written := false
	for _, name := range append(names, manifestName) {
		target := filepath.Join(dir, filepath.FromSlash(name))
		same, err := equal(files, name, target)
		if err != nil {
			return err
		}
		if same && name != manifestName {
			continue
		}
		content, err := fs.ReadFile(files, name)
		if err != nil {
			return err
		}
		err = maybe.WriteFile(target, content, 0o644)
		if err != nil && (written || !same) { // else all is there, in a folder that cannot be written
			return err
		}
		written = true
	}
	return nil
}

// clearLeftovers removes what writers left that were killed. Whoever holds the lock is alone, so nobody writes now.
func clearLeftovers(dir string, names []string) error {
	for _, name := range names {
		// The names of renameio's temporary files.
		found, err := fs.Glob(os.DirFS(dir), "."+name+"[0-9]*")
		if err != nil {
			return err
		}
		for _, left := range found {
			if err := os.Remove(filepath.Join(dir, left)); err != nil {
				return err
			}
		}
	}
	return nil
}

// equal compares an embedded file with a placed one.
func equal(files fs.FS, name, placed string) (bool, error) {
	info, err := os.Lstat(placed)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil:
		return false, err
	case info.IsDir():
		return false, fmt.Errorf("%s is a folder where a file belongs", placed)
	case !info.Mode().IsRegular():
		return false, nil // a link, to anywhere; it is replaced, not followed
	}
	want, err := fs.ReadFile(files, name)
	if err != nil || info.Size() != int64(len(want)) {
		return false, err
	}
	found, err := os.ReadFile(placed)
	if errors.Is(err, fs.ErrPermission) {
		return false, nil // it can still be replaced, if the folder can be written
	}
	return bytes.Equal(want, found), err
}
