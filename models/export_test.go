package models

import (
	"context"

	"infill/models/internal/safetensors"
)

// What the tests of this folder see besides.

var ErrOffline = errOffline

func (b *Bundle) Weights() *safetensors.File { return b.weights }

func (s *Store) Begin(ctx context.Context, name, revision string) (*draft, error) {
	return s.begin(ctx, name, revision)
}

func (p *draft) Dir() string { return p.dir() }

func (p *draft) Commit(m Manifest, ref string, files ...string) (*Bundle, error) {
	return p.commit(m, ref, files...)
}

func (p *draft) Close() error { return p.close() }

func WithWeights(weights *safetensors.File) *Bundle { return &Bundle{weights: weights} }

func (b *Bundle) Stored(name string) (safetensors.Tensor, bool) { return findTensor(b.weights, name) }
