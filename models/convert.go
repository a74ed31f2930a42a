package models

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"infill/internal/regular"
	"infill/models/internal/pytorch"
)

// convert turns pytorch_model.bin among the named files into model.safetensors, which appears whole or not at all, and
// removes it. It gives the files that there are now, and what the weights were converted from. After an error what was
// filled stays, to go on with, unless going on would end there again.
func (p *draft) convert(ctx context.Context, files []string) (now []string, from []ManifestFile, err error) {
	defer func() {
		var system *fs.PathError
		if err != nil && ctx.Err() == nil && !errors.As(err, &system) {
			err = errors.Join(err, os.RemoveAll(p.dir()))
		}
	}()
	content, err := regular.ReadFS(os.DirFS(p.dir()), configName, maxConfigBytes)
	if err != nil {
		return nil, nil, err
	}
	config, err := ParseConfig(content)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", configName, err)
	}
	original, err := newManifest(os.DirFS(p.dir()), Manifest{}, pytorch.FileName)
	if err != nil {
		return nil, nil, err
	}
	pickle, weights := filepath.Join(p.dir(), pytorch.FileName), filepath.Join(p.dir(), weightsName)
	source, err := pytorch.Open(pickle)
	if err != nil {
		return nil, nil, err
	}
	defer source.Close() // where an error comes before
	unfinished := weights + ".converting"
	to, err := os.Create(unfinished)
	if err != nil {
		return nil, nil, err
	}
	wanted := config.Tensors()
	if err = source.Convert(ctx, to, func(name string) bool {
		return slices.ContainsFunc(wanted, func(t Tensor) bool { return t.Name == name })
	}); err != nil {
		err = fmt.Errorf("%s: %w", pickle, err)
	} else {
		err = to.Sync()
	}
	if err = errors.Join(err, to.Close(), source.Close()); err == nil {
		err = os.Rename(unfinished, weights)
	}
	if err != nil {
		return nil, nil, errors.Join(err, removeIfThere(unfinished))
	}
	now = append(slices.DeleteFunc(slices.Clone(files), func(name string) bool { return name == pytorch.FileName }),
		weightsName)
	return now, original.Files, os.Remove(pickle)
}
