package models

import (
	"bytes"
	"embed"
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
	var manifest *Manifest
	if err == nil {
		manifest, err = parseManifest(encoded)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("the program was built without the model %s: %w", BuiltInName, err)
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
	if err := place(files, dir, manifest); err != nil {
		return nil, fmt.Errorf("the built-in model %s cannot be placed in %s: %w; make room for %d MB there, or set "+
			"%s to a folder that can be written",
			BuiltInName, dir, err, (manifest.Size()+1<<20-1)>>20, CacheVariable)
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
func placed(dir string, manifest *Manifest) bool {
	found, err := readManifest(dir)
	return err == nil && bytes.Equal(found.Encode(), manifest.Encode()) && manifest.unchanged(dir)
}

// place writes the files that are not whole, each in one step, and leaves all others as they are. The manifest comes
// last: it is older than no file that is whole.
func place(files fs.FS, dir string, manifest *Manifest) error {
	if placed(dir, manifest) {
		return nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	lock := flock.New(filepath.Join(filepath.Dir(dir), lockName))
	if err := lock.Lock(); err != nil {
		return err
	}
	defer lock.Close()
	if placed(dir, manifest) {
		return nil // another process has written them while this one waited
	}
	if err := clearLeftovers(dir, manifest); err != nil {
		return err
	}
	written := false
	for _, f := range manifest.Files {
		target := filepath.Join(dir, filepath.FromSlash(f.Path))
		if f.verify(target) == nil {
			continue
		}
		content, err := fs.ReadFile(files, f.Path)
		if err == nil {
			err = maybe.WriteFile(target, content, 0o644)
		}
		if err != nil {
			return err
		}
		written = true
	}
	err := maybe.WriteFile(filepath.Join(dir, manifestName), manifest.Encode(), 0o644)
	if !written { // all is there, perhaps in a folder that cannot be written
		return nil
	}
	return err
}

// clearLeftovers removes what writers left that were killed. Whoever holds the lock is alone, so nobody writes now.
func clearLeftovers(dir string, manifest *Manifest) error {
	for _, f := range append(manifest.Files, ManifestFile{Path: manifestName}) {
		// The names of renameio's temporary files.
		found, err := fs.Glob(os.DirFS(dir), "."+f.Path+"[0-9]*")
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
