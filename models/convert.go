package models

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
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

// conversion is what a conversion reads and writes.
type conversion struct {
	from []string
	to   ManifestFile
}

// openSource opens a folder to be imported. Where its weights are to be converted, that is done once without writing:
// the bundle's checks see what will be written, and the file's size and hash come back.
func openSource(ctx context.Context, dir string) (*Bundle, *conversion, error) {
	var converted *conversion
	b, err := openDir(dir, false, func(b *Bundle) ([]string, error) {
		names, err := unconvertedFiles(b.Dir)
		if err != nil {
			return nil, err
		}
		t := trial{hash: sha256.New()}
		if err := convert(ctx, b.Dir, names, b.Config, &t); err != nil {
			return nil, err
		}
		if b.weights, err = safetensors.Parse(bytes.NewReader(t.head), t.size); err != nil {
			return nil, err
		}
		b.weights.Path = filepath.Join(b.Dir, names[0])
		converted = &conversion{names, ManifestFile{weightsName, t.size, hex.EncodeToString(t.hash.Sum(nil))}}
		return names, nil
	})
	return b, converted, err
}

// trial takes a safetensors file and keeps its size, its hash and its header.
type trial struct {
	hash hash.Hash
	size int64
	head []byte
}

// Write implements io.Writer.
func (t *trial) Write(p []byte) (int, error) {
	t.size += int64(len(p))
	const prefix = 8
	if len(t.head) < prefix || uint64(len(t.head)-prefix) < binary.LittleEndian.Uint64(t.head) {
		t.head = append(t.head, p...)
	}
	return t.hash.Write(p)
}

// converted is the manifest with the converted file in place of what it was made from.
func (m Manifest) converted(c *conversion) Manifest {
	files := m.Files
	m.Files, m.ConvertedFrom = []ManifestFile{c.to}, nil
	for _, f := range files {
		if slices.Contains(c.from, f.Path) {
			m.ConvertedFrom = append(m.ConvertedFrom, f)
		} else {
			m.Files = append(m.Files, f)
		}
	}
	slices.SortFunc(m.Files, func(a, b ManifestFile) int { return cmp.Compare(a.Path, b.Path) })
	return m
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
