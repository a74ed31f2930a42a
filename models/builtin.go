package models

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"time"
)

//go:generate go test -run TestBuiltInManifest -update .

//go:embed small-uncased
var embedded embed.FS

// BuiltInName is the name of the model that is part of the program.
const BuiltInName = "small-uncased"

// longestWait is how long to wait while another program places the model.
const longestWait = 30 * time.Second

// builtIn returns the built-in model's manifest and its folder in the store, one
// for each version of the program.
func (s *Store) builtIn() (m *Manifest, dir string, err error) {
	m, err = embeddedManifest()
	if err != nil {
		return nil, "", fmt.Errorf("the program was built without the model %s: %w", BuiltInName, err)
	}
	return m, filepath.Join(s.folder(BuiltInName), m.SHA256()[:revisionDigits]), nil
}

func embeddedManifest() (*Manifest, error) {
	encoded, err := embedded.ReadFile(path.Join(BuiltInName, manifestName))
	if err != nil {
		return nil, err
	}
	return parseManifest(encoded)
}

// openBuiltIn opens the built-in model in the store, because onnxruntime reads
// weights by file and offset. It writes files that are missing or damaged
// there, and leaves all others as they are.
func (s *Store) openBuiltIn() (*Bundle, error) {
	manifest, dir, err := s.builtIn()
	if err != nil {
		return nil, err
	}
	b, err := openDir(dir, true)
	if err == nil {
		b.Name = BuiltInName
		b.builtIn = true
		return b, nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), longestWait)
	defer cancel()
	b, err = s.place(ctx, BuiltInName, filepath.Base(dir), "", func(dir string) (*Manifest, error) {
		for _, f := range manifest.Files {
			if f.verify(dir) == nil {
				continue
			}
			target := filepath.Join(dir, f.Path)
			content, err := embedded.ReadFile(path.Join(BuiltInName, f.Path))
			if err != nil {
				return nil, err
			}
			// If the file is a link, a write without removal would follow the link.
			if err := os.RemoveAll(target); err != nil {
				return nil, err
			}
			if err := writeFile(target, content); err != nil {
				return nil, err
			}
		}
		return manifest, nil
	})
	if errors.Is(err, context.DeadlineExceeded) {
		return nil, fmt.Errorf("%w; end the process that holds %s, or set %s to another folder", err,
			filepath.Join(filepath.Dir(dir), lockName), CacheVariable)
	}
	if err != nil {
		return nil, fmt.Errorf("the built-in model %s cannot be placed in %s: %w; make room for %d MB there, or set "+
			"%s to a folder that can be written",
			BuiltInName, dir, err, (manifest.Size()+1<<20-1)>>20, CacheVariable)
	}
	b.builtIn = true
	return b, nil
}
