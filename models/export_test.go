package models

import (
	"io/fs"
	"os"

	"infill/internal/safetensors"
)

// What the tests of this folder see besides.

const ManifestName = manifestName

var ErrOffline, ParseManifest = errOffline, parseManifest

// NewManifest lists all files of a folder.
func NewManifest(dir string, m Manifest) (*Manifest, error) {
	var names []string
	err := fs.WalkDir(os.DirFS(dir), ".", func(name string, entry fs.DirEntry, err error) error {
		if err == nil && entry.Type().IsRegular() && name != manifestName {
			names = append(names, name)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return newManifest(dir, m, names)
}

func WithWeights(weights *safetensors.File) *Bundle { return &Bundle{weights: weights} }

func (b *Bundle) Weights() *safetensors.File { return b.weights }

func (c Config) TensorParts() (body, head []Tensor) { return c.tensors() }
