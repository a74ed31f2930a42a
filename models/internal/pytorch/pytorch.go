// Package pytorch reads the weights in a pytorch_model.bin, what torch.save writes of a state dict, and writes them as
// safetensors.
//
// Such a file holds a pickle, a program that builds the state dict, and beside it the bytes of the tensors' storages.
// Where Python loads one, the pickle may call anything. Here it can name a dozen classes and functions, and takes no
// memory that its own length does not pay for; all that comes out of it is checked against the size of the file before
// anything is read.
//
// The archive that torch 1.6 and later write is read (formats: torch/serialization.py and torch/csrc/jit/serialization
// of PyTorch). Not read: the forms before it, whole modules, TorchScript, pickle protocols other than 2, quantised and
// sparse tensors, big-endian storages.
package pytorch

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"

	"archive/zip"

	"infill/internal/regular"
	"infill/internal/safetensors"
)

// The names that such weights have in the layout of the Hugging Face hub: one file, or an index and the files that it
// names.
const (
	FileName  = "pytorch_model.bin"
	IndexName = FileName + ".index.json"
)

// File is a checked file, or a checked set of shards. Storages are read when they are converted.
type File struct {
	tensors []Tensor
	size    int64 // bytes of all files
	closers []io.Closer
	entries []*zip.File
}

// Tensor is one tensor of a state dict.
type Tensor struct {
	Name  string
	DType safetensors.DType
	Shape []int // empty for a scalar

	storage  *storage
	elements int64
	offset   int64   // of the first element in the storage, in elements
	span     int64   // elements from the first to the last, inclusive; 0 when there are none
	strides  []int64 // in elements
}

// storage is a run of elements that tensors look at.
type storage struct {
	dtype    safetensors.DType
	elements int64
	content  io.ReaderAt // the elements, little-endian
}

// Open reads and checks what a file says of its tensors. Errors name the file and what is wrong with it. Call Close at
// the end.
func Open(path string) (*File, error) {
	f, err := regular.Open(path)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	var file *File
	if err == nil {
		file, err = Parse(f, info.Size())
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	file.closers = []io.Closer{f}
	return file, nil
}

// Parse is Open for the content of a file of size bytes.
func Parse(r io.ReaderAt, size int64) (*File, error) {
	start := make([]byte, min(size, 24))
	if _, err := io.ReadFull(io.NewSectionReader(r, 0, size), start); err != nil {
		return nil, err
	}
	switch {
	case bytes.HasPrefix(start, []byte("PK\x03\x04")):
		return parse(r, size)
	case bytes.HasPrefix(start, []byte("version https://git-lfs")):
		return nil, errors.New("a pointer of Git LFS, not the file that it stands for")
	}
	return nil, errors.New(
		"it is no archive as torch 1.6 and later save it: load it with a newer torch and save it again")
}

// OpenShards reads an index and the files that it names, as Open does, and finds every tensor of the index in the file
// that it is said to be in.
func OpenShards(index string) (*File, error) {
	names, err := safetensors.WeightMap(index, ".bin")
	if err != nil {
		return nil, err
	}
	merged := &File{}
	found := map[string]bool{}
	for _, shard := range slices.Compact(slices.Sorted(maps.Values(names))) {
		file, err := Open(filepath.Join(filepath.Dir(index), shard))
		if err != nil {
			merged.Close()
			return nil, err
		}
		merged.closers = append(merged.closers, file.closers...)
		merged.entries = append(merged.entries, file.entries...)
		merged.size += file.size
		for _, t := range file.tensors {
			if names[t.Name] == shard {
				merged.tensors = append(merged.tensors, t)
				found[t.Name] = true
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if !found[name] {
			merged.Close()
			return nil, fmt.Errorf("%s: tensor %.100q is not in %s, where the index has it", index, name, names[name])
		}
	}
	return merged, nil
}

// Tensors lists the tensors in the order of the state dict, of shards shard by shard. Callers must not modify it.
func (f *File) Tensors() []Tensor { return f.tensors }

// Close closes the files.
func (f *File) Close() error {
	var errs []error
	for _, c := range f.closers {
		errs = append(errs, c.Close())
	}
	return errors.Join(errs...)
}

// Verify reads all storages and compares them with the archive's checksums.
func (f *File) Verify(ctx context.Context) error {
	buffer := make([]byte, blockBytes)
	for _, entry := range f.entries {
		content, err := entry.Open()
		if err == nil {
			_, err = io.CopyBuffer(contextWriter{ctx, io.Discard}, content, buffer)
			content.Close()
		}
		if err != nil {
			return fmt.Errorf("%.100q: %w", entry.Name, damaged(err))
		}
	}
	return nil
}
