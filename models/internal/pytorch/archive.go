package pytorch

import (
	"archive/zip"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"path"
	"slices"
	"strings"
)

// maxDirectoryBytes bounds the archive's directory, of some 100 bytes for each storage.
const maxDirectoryBytes = 32 << 20

// errCut tells of a file that ends too early.
var errCut = errors.New("damaged or cut short")

// parse reads what torch 1.6 and later save: an archive of stored (not compressed) files, of which NAME/data.pkl is the
// pickle and NAME/data/KEY the storages.
func parse(r io.ReaderAt, size int64) (*File, error) {
	// archive/zip takes memory for every file that the directory lists.
	bounded := &boundedReader{ReaderAt: r, left: maxDirectoryBytes}
	archive, err := zip.NewReader(bounded, size)
	if err != nil && !errors.Is(err, zip.ErrInsecurePath) { // paths are only names here
		return nil, damaged(err)
	}
	bounded.left = math.MaxInt64
	files := map[string]*zip.File{}
	root := ""
	for _, f := range archive.File {
		if _, ok := files[f.Name]; ok {
			return nil, fmt.Errorf("%.100q is in the archive twice", f.Name)
		}
		files[f.Name] = f
		switch dir, name := path.Split(f.Name); {
		case name == "constants.pkl":
			return nil, errors.New("it holds a TorchScript program, and not a state dict of weights")
		case name == "data.pkl" && (root != "" || dir == ""):
			return nil, errors.New("the archive is not one of torch.save: it has two pickles, or one in no folder")
		case name == "data.pkl":
			root = dir
		}
	}
	if root == "" {
		return nil, errors.New("the archive is not one of torch.save: it has no data.pkl")
	}
	if order, ok := files[root+"byteorder"]; ok {
		content, err := readStored(order, size, 64)
		if err != nil {
			return nil, err
		}
		if got := strings.TrimSpace(string(content)); got != "little" {
			return nil, fmt.Errorf("storages of byte order %q are not read", got)
		}
	}
	data, err := readStored(files[root+"data.pkl"], size, maxPickleBytes)
	if err != nil {
		return nil, err
	}
	u := &unpickler{size: size}
	state, err := u.load(data)
	if err != nil {
		return nil, err
	}
	file := &File{size: size}
	if file.tensors, err = tensors(state); err != nil {
		return nil, err
	}
	for _, key := range slices.Sorted(maps.Keys(u.storages)) {
		s := u.storages[key]
		entry, ok := files[root+"data/"+key]
		if !ok {
			return nil, fmt.Errorf("storage %.40q is not in the archive", key)
		}
		at, err := stored(entry, size)
		if err != nil {
			return nil, err
		}
		length := s.elements * s.dtype.Size()
		if entry.UncompressedSize64 != uint64(length) {
			return nil, fmt.Errorf("storage %.40q has %d bytes, its %d elements of %s take %d", key,
				entry.UncompressedSize64, s.elements, s.dtype, length)
		}
		s.content = io.NewSectionReader(r, at, length)
		file.entries = append(file.entries, entry)
	}
	return file, nil
}

// stored checks that a file of the archive is stored as it is, and inside the archive, and gives its place.
func stored(f *zip.File, size int64) (int64, error) {
	const encrypted = 1
	if f.Method != zip.Store || f.CompressedSize64 != f.UncompressedSize64 || f.Flags&encrypted != 0 {
		return 0, fmt.Errorf("%.100q is compressed or encrypted, which torch.save never does", f.Name)
	}
	at, err := f.DataOffset()
	if err != nil {
		return 0, fmt.Errorf("%.100q: %w", f.Name, damaged(err))
	}
	if at < 0 || at > size || f.UncompressedSize64 > uint64(size-at) {
		return 0, fmt.Errorf("%.100q claims %d bytes, more than the archive has: %w", f.Name, f.UncompressedSize64,
			errCut)
	}
	return at, nil
}

// readStored reads a small file of the archive.
func readStored(f *zip.File, size int64, limit uint64) ([]byte, error) {
	if f.UncompressedSize64 > limit {
		return nil, fmt.Errorf("%.100q has %d bytes, more than the %d that are accepted", f.Name, f.UncompressedSize64,
			limit)
	}
	if _, err := stored(f, size); err != nil {
		return nil, err
	}
	content, err := f.Open()
	if err != nil {
		return nil, fmt.Errorf("%.100q: %w", f.Name, damaged(err))
	}
	defer content.Close()
	data, err := io.ReadAll(content)
	if err != nil {
		return nil, fmt.Errorf("%.100q: %w", f.Name, damaged(err))
	}
	return data, nil
}

// boundedReader fails once more than left bytes have been read.
type boundedReader struct {
	io.ReaderAt
	left int64
}

func (r *boundedReader) ReadAt(p []byte, at int64) (int, error) {
	if r.left -= int64(len(p)); r.left < 0 {
		return 0, fmt.Errorf("the archive's directory is larger than the %d bytes that are accepted", maxDirectoryBytes)
	}
	return r.ReaderAt.ReadAt(p, at)
}

// damaged gives an error of archive/zip that is one of the content our own words.
func damaged(err error) error {
	if errors.Is(err, zip.ErrChecksum) || errors.Is(err, zip.ErrFormat) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("%w (%w)", errCut, err)
	}
	return err
}
