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

// convertFile writes the weights that torch.save wrote, in the file at from, as safetensors at path. This appears whole
// or not at all.
func convertFile(ctx context.Context, from string, c Config, path string) error {
	source, err := pytorch.Open(from)
	if err != nil {
		return err
	}
	defer source.Close()
	wanted := map[string]bool{}
	for _, t := range c.Tensors() {
		wanted[t.Name] = true
	}
	unfinished := path + ".converting"
	to, err := os.Create(unfinished)
	if err != nil {
		return err
	}
	if err = source.Convert(ctx, to, func(name string) bool { return wanted[name] }); err != nil {
		err = fmt.Errorf("%s: %w", from, err)
	} else {
		err = to.Sync()
	}
	if err = errors.Join(err, to.Close()); err == nil {
		err = os.Rename(unfinished, path)
	}
	if err != nil {
		return errors.Join(err, removeIfThere(unfinished))
	}
	return nil
}

// convert turns pytorch_model.bin among the named files into model.safetensors and removes it. It gives the files that
// there are now, and what the weights were converted from. After an error what was filled stays, to go on with, unless
// going on would end there again.
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
	source, err := newManifest(os.DirFS(p.dir()), Manifest{}, pytorch.FileName)
	if err != nil {
		return nil, nil, err
	}
	pickle := filepath.Join(p.dir(), pytorch.FileName)
	if err := convertFile(ctx, pickle, config, filepath.Join(p.dir(), weightsName)); err != nil {
		return nil, nil, err
	}
	now = slices.DeleteFunc(slices.Clone(files), func(name string) bool { return name == pytorch.FileName })
	return append(now, weightsName), source.Files, os.Remove(pickle)
}
