// Package pytorch reads the weights in a pytorch_model.bin, a state dict as
// torch.save stores it, and writes them as safetensors.
//
// Such a file is an archive of a pickle, a program that builds the state dict,
// and of the bytes of the tensors' storages. When Python loads a pickle, the
// pickle may call anything. Here it can name only a dozen classes and
// functions, and its length bounds its memory. Before the package reads any
// weights, it checks all that the pickle builds against the size of the file.
//
// The package reads the files of torch 1.6 and later (formats:
// torch/serialization.py and torch/csrc/jit/serialization of PyTorch). It
// does not read older forms, weights in several files, whole modules,
// TorchScript, pickle protocols other than 2, quantised and sparse tensors,
// and big-endian storages.
package pytorch

import (
	"archive/zip"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"path"
	"slices"
	"strings"

	"infill/internal/regular"
	"infill/internal/safetensors"
)

// FileName is the name that the Hugging Face hub gives to a file of torch.save.
const FileName = "pytorch_model.bin"

// maxDirectoryBytes bounds a directory: each storage takes some 100 bytes.
const maxDirectoryBytes = 32 << 20

// errCut is the error for a file that ends too early.
var errCut = errors.New("damaged or cut short")

// File is a checked file. Convert reads the storages.
type File struct {
	tensors []tensor // in the order of the state dict
	archive io.ReaderAt
	size    int64
}

type tensor struct {
	name  string
	shape []int // empty for a scalar

	storage  *storage
	elements int64
	offset   int64   // of the first element, in elements of the storage
	strides  []int64 // in elements
}

// storage is a run of elements that one or several tensors share.
type storage struct {
	dtype    safetensors.DType
	elements int64
	file     *zip.File // has the elements, little-endian
}

// ConvertFile converts the file at path as Convert does. An error names the
// file and says what is wrong with it.
func ConvertFile(ctx context.Context, path string, w io.Writer, wanted func(name string) bool) error {
	f, err := regular.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	file, err := Parse(f, info.Size())
	if err == nil {
		err = file.Convert(ctx, w, wanted)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

// Parse reads and checks the descriptions of the tensors in a file of size
// bytes. The file is an archive without compression: NAME/data.pkl is the
// pickle, and NAME/data/KEY are the storages.
func Parse(r io.ReaderAt, size int64) (*File, error) {
	start := make([]byte, min(size, 24))
	if _, err := io.ReadFull(io.NewSectionReader(r, 0, size), start); err != nil {
		return nil, err
	}
	if !bytes.HasPrefix(start, []byte("PK\x03\x04")) {
		return nil, errors.New(
			"it is no archive as torch 1.6 and later save it: load it with a newer torch and save it again")
	}
	files, err := directory(r, size)
	if err != nil {
		return nil, err
	}
	roots := slices.DeleteFunc(slices.Collect(maps.Keys(files)),
		func(f string) bool { return path.Base(f) != "data.pkl" })
	if len(roots) != 1 || roots[0] == "data.pkl" {
		return nil, errors.New("the archive is not one of torch.save: it has no data.pkl in a folder, or two")
	}
	root := strings.TrimSuffix(roots[0], "data.pkl")
	order, ok := files[root+"byteorder"]
	if ok {
		content, err := read(order, 64)
		got := strings.TrimSpace(string(content))
		if err != nil || got != "little" {
			return nil, cmp.Or(err, fmt.Errorf("storages of byte order %q are not read", got))
		}
	}
	data, err := read(files[roots[0]], maxPickleBytes)
	if err != nil {
		return nil, err
	}
	u := &unpickler{size: size}
	state, err := u.load(data)
	if err != nil {
		return nil, err
	}
	for _, key := range slices.Sorted(maps.Keys(u.storages)) {
		s := u.storages[key]
		s.file = files[root+"data/"+key]
		if s.file == nil {
			return nil, fmt.Errorf("storage %.40q is not in the archive", key)
		}
		length := s.elements * s.dtype.Size()
		if s.file.UncompressedSize64 != uint64(length) {
			return nil, fmt.Errorf("storage %.40q has %d bytes, its %d elements of %s take %d", key,
				s.file.UncompressedSize64, s.elements, s.dtype, length)
		}
	}
	tensors, err := tensors(state)
	return &File{tensors, r, size}, err
}

// maxGrowth bounds the bytes read and written, as a multiple of the
// source. Tensors that share a storage, and strides of 0, make the result
// larger, so that a small file could fill any disk. Files may exceed the
// bound by blockBytes.
const (
	maxGrowth  = 4
	blockBytes = 64 << 10
)

// Convert writes the tensors as a safetensors file, each with its own element
// type, row-major. If several matrices are the same piece of a storage (tied
// weights), it writes the first, and each other one for whose name wanted
// returns true. It compares each storage, once, with the archive's checksum,
// and then reads of it what each tensor needs.
func (f *File) Convert(ctx context.Context, w io.Writer, wanted func(name string) bool) error {
	type piece struct {
		storage *storage
		offset  int64
		layout  string
	}
	seen := map[piece]bool{}
	checked := map[*storage]bool{}
	total := 0.0
	var data []safetensors.Data
	for _, t := range f.tensors {
		p := piece{t.storage, t.offset, fmt.Sprint(t.shape, t.strides)}
		if seen[p] && len(t.shape) > 1 && !wanted(t.name) {
			continue
		}
		seen[p] = true
		total += float64(max(t.elements, t.span())) * float64(t.storage.dtype.Size())
		data = append(data, safetensors.Data{Name: t.name, DType: t.storage.dtype, Shape: t.shape,
			Content: func() ([]byte, error) {
				if ctx.Err() != nil {
					return nil, ctx.Err()
				}
				if !checked[t.storage] {
					err := t.storage.check()
					if err != nil {
						return nil, err
					}
					checked[t.storage] = true
				}
				return t.ordered(f.archive)
			}})
	}
	if total > maxGrowth*float64(f.size)+blockBytes {
		return fmt.Errorf("its tensors would take %.0f bytes, more than %d times as much as the file: they share "+
			"storages as weights do not", total, maxGrowth)
	}
	return safetensors.Write(w, map[string]string{"format": "pt"}, data)
}

// span returns how many elements of its storage a tensor reaches over.
func (t tensor) span() int64 {
	if t.elements == 0 {
		return 0
	}
	last := int64(0)
	for i, n := range t.shape {
		last += int64(n-1) * t.strides[i]
	}
	return last + 1
}

// check compares a storage with the archive's checksum.
func (s *storage) check() error {
	content, err := s.file.Open()
	if err != nil {
		return fmt.Errorf("%.100q: %w (%w)", s.file.Name, errCut, err)
	}
	defer content.Close()
	_, err = io.Copy(io.Discard, content)
	if err != nil {
		return fmt.Errorf("%.100q: %w (%w)", s.file.Name, errCut, err)
	}
	return nil
}

// ordered reads the elements of t, row-major and little-endian.
func (t tensor) ordered(archive io.ReaderAt) ([]byte, error) {
	start, err := t.storage.file.DataOffset()
	if err != nil {
		return nil, fmt.Errorf("%.100q: %w (%w)", t.storage.file.Name, errCut, err)
	}
	all := make([]byte, t.span()*t.storage.dtype.Size())
	_, err = archive.ReadAt(all, start+t.offset*t.storage.dtype.Size())
	if err != nil {
		return nil, fmt.Errorf("%.100q: %w (%w)", t.storage.file.Name, errCut, err)
	}
	size := t.storage.dtype.Size()
	rows := int64(1)
	at := int64(0)
	// Copy together the last dimensions, as many as are in row-major order.
	inner := len(t.shape)
	for inner > 0 && (t.strides[inner-1] == rows || t.shape[inner-1] == 1) {
		inner--
		rows *= int64(t.shape[inner])
	}
	if inner == 0 || t.elements == 0 {
		return all[at : at+t.elements*size], nil
	}
	ordered := make([]byte, 0, t.elements*size)
	index := make([]int, inner)
	for range t.elements / rows {
		ordered = append(ordered, all[at:at+rows*size]...)
		for i := range slices.Backward(index) {
			index[i]++
			at += t.strides[i] * size
			if index[i] < t.shape[i] {
				break
			}
			at -= int64(t.shape[i]) * t.strides[i] * size
			index[i] = 0
		}
	}
	return ordered, nil
}

// directory returns the files of an archive, by their names.
func directory(r io.ReaderAt, size int64) (map[string]*zip.File, error) {
	// archive/zip takes memory for every file of the directory: it has a bound.
	bounded := &boundedReader{ReaderAt: r, left: maxDirectoryBytes}
	archive, err := zip.NewReader(bounded, size)
	if err != nil && !errors.Is(err, zip.ErrInsecurePath) { // paths are only names here
		return nil, fmt.Errorf("%w (%w)", errCut, err)
	}
	bounded.left = math.MaxInt64
	files := map[string]*zip.File{}
	for _, f := range archive.File {
		const encrypted = 1
		_, twice := files[f.Name]
		switch {
		case twice:
			return nil, fmt.Errorf("%.100q is in the archive twice", f.Name)
		case f.Method != zip.Store || f.CompressedSize64 != f.UncompressedSize64 || f.Flags&encrypted != 0:
			return nil, fmt.Errorf("%.100q is compressed or encrypted, which torch.save never does", f.Name)
		case f.UncompressedSize64 > uint64(size):
			return nil, fmt.Errorf("%.100q claims %d bytes, more than the archive has: %w", f.Name,
				f.UncompressedSize64, errCut)
		}
		files[f.Name] = f
	}
	return files, nil
}

// read reads a whole file of the archive. If the content does not match the
// archive's checksum, it returns an error.
func read(f *zip.File, limit uint64) ([]byte, error) {
	if f.UncompressedSize64 > limit {
		return nil, fmt.Errorf("%.100q has %d bytes, more than the %d that are accepted", f.Name, f.UncompressedSize64,
			limit)
	}
	content, err := f.Open()
	if err != nil {
		return nil, fmt.Errorf("%.100q: %w (%w)", f.Name, errCut, err)
	}
	defer content.Close()
	all := bytes.NewBuffer(make([]byte, 0, f.UncompressedSize64+bytes.MinRead))
	if _, err := all.ReadFrom(content); err != nil {
		return nil, fmt.Errorf("%.100q: %w (%w)", f.Name, errCut, err)
	}
	return all.Bytes(), nil
}

// boundedReader returns an error once more than left bytes have been read.
type boundedReader struct {
	io.ReaderAt
	left int64
}

func (r *boundedReader) ReadAt(p []byte, at int64) (int, error) {
	r.left -= int64(len(p))
	if r.left < 0 {
		return 0, fmt.Errorf("the archive's directory is larger than the %d bytes that are accepted", maxDirectoryBytes)
	}
	return r.ReaderAt.ReadAt(p, at)
}
