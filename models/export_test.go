package models

import (
	"context"
	"io/fs"
	"os"

	"infill/internal/safetensors"
)

// What the tests of this folder see besides.

const ManifestName = manifestName

var ErrOffline, ParseManifest = errOffline, parseManifest

// allFiles names the files of a bundle, as far as a manifest lists them.
func allFiles(bundle fs.FS) (names []string, err error) {
	err = fs.WalkDir(bundle, ".", func(name string, entry fs.DirEntry, err error) error {
		if err == nil && entry.Type().IsRegular() && name != manifestName {
			names = append(names, name)
		}
		return err
	})
	return names, err
}

// NewManifest takes all files where none is named.
func NewManifest(bundle fs.FS, m Manifest, names ...string) (*Manifest, error) {
	if len(names) == 0 {
		var err error
		if names, err = allFiles(bundle); err != nil {
			return nil, err
		}
	}
	return newManifest(bundle, m, names...)
}

func WithWeights(weights *safetensors.File) *Bundle { return &Bundle{weights: weights} }

func (b *Bundle) Weights() *safetensors.File { return b.weights }

func (b *Bundle) Stored(name string) (safetensors.Tensor, bool) { return findTensor(b.weights, name) }

func (s *Store) Begin(ctx context.Context, name, revision string) (*draft, error) {
	return s.begin(ctx, name, revision)
}

func (p *draft) Dir() string { return p.dir() }

// Commit takes all files of the folder.
func (p *draft) Commit(m Manifest, ref string) (*Bundle, error) {
	names, err := allFiles(os.DirFS(p.dir()))
	if err != nil {
		return nil, err
	}
	return p.commit(context.Background(), m, ref, names...)
}

func (p *draft) Close() error { return p.lock.Close() }

func (c Config) TensorParts() (body, head []Tensor) { return c.tensors() }
