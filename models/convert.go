package models

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"infill/internal/regular"
	"infill/internal/safetensors"
	"infill/models/internal/pytorch"
)

// unconvertedFiles names the files of weights that torch.save wrote: one, or an index before its shards.
func unconvertedFiles(dir string) ([]string, error) {
	if _, err := os.Lstat(filepath.Join(dir, pytorch.FileName)); !errors.Is(err, fs.ErrNotExist) {
		return []string{pytorch.FileName}, err
	}
	shards, err := safetensors.WeightMap(filepath.Join(dir, pytorch.IndexName), ".bin")
	if err != nil {
		return nil, err
	}
	return append([]string{pytorch.IndexName}, slices.Compact(slices.Sorted(maps.Values(shards)))...), nil
}

// convert writes the weights in dir, of which names are the files, as a safetensors file.
func convert(ctx context.Context, dir string, names []string, c Config, to io.Writer) error {
	path, open := filepath.Join(dir, names[0]), pytorch.Open
	if names[0] == pytorch.IndexName {
		open = pytorch.OpenShards
	}
	file, err := open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	wanted := map[string]bool{}
	for _, t := range c.Tensors() {
		wanted[t.Name] = true
	}
	if err := file.Verify(ctx); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if err := file.Convert(ctx, to, func(name string) bool { return wanted[name] }); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

// convertFile writes the weights in dir as the file at path, which appears whole or not at all.
func convertFile(ctx context.Context, dir string, names []string, c Config, path string) error {
	unfinished := path + ".converting"
	to, err := os.Create(unfinished)
	if err != nil {
		return err
	}
	err = convert(ctx, dir, names, c, to)
	if err == nil {
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

// convertible reports whether weights of torch.save are among the named files.
func convertible(files []string) bool {
	return slices.Contains(files, pytorch.FileName) || slices.Contains(files, pytorch.IndexName)
}

// convert turns weights of torch.save among the named files into model.safetensors and removes them. It gives the files
// that there are now, and what the weights were converted from. After an error what was filled stays, to go on with,
// unless going on would end there again.
func (p *draft) convert(ctx context.Context, files []string) (now []string, from []ManifestFile, err error) {
	defer func() {
		var system *fs.PathError
		if err != nil && ctx.Err() == nil && !errors.As(err, &system) {
			err = errors.Join(err, os.RemoveAll(p.dir()))
		}
	}()
	names, err := unconvertedFiles(p.dir())
	if err != nil {
		return nil, nil, err
	}
	content, err := regular.ReadFS(os.DirFS(p.dir()), configName, maxConfigBytes)
	if err != nil {
		return nil, nil, err
	}
	config, err := ParseConfig(content)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", configName, err)
	}
	sources, err := newManifest(os.DirFS(p.dir()), Manifest{}, names...)
	if err != nil {
		return nil, nil, err
	}
	if err := convertFile(ctx, p.dir(), names, config, filepath.Join(p.dir(), weightsName)); err != nil {
		return nil, nil, err
	}
	for _, name := range names {
		if err := os.Remove(filepath.Join(p.dir(), name)); err != nil {
			return nil, nil, err
		}
	}
	now = slices.DeleteFunc(slices.Clone(files), func(name string) bool { return slices.Contains(names, name) })
	return append(now, weightsName), sources.Files, nil
}
