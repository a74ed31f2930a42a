package pytorch

import (
	"context"
	"fmt"
	"io"
	"slices"

	"infill/internal/safetensors"
)

// maxGrowth bounds what is read and written by the size of the source: only tensors that share a storage, and strides
// of 0, make it larger, and a small file could ask for any disk to be filled. Small files are free to.
const (
	maxGrowth  = 4
	blockBytes = 64 << 10
)

// Convert writes the tensors as a safetensors file, each with its own element type, row-major. Matrices that are the
// same piece of a storage (tied weights) are written once, under the first name and under every name that wanted tells.
// Each storage is compared with the archive's checksum.
func (f *File) Convert(ctx context.Context, w io.Writer, wanted func(name string) bool) error {
	type piece struct {
		storage *storage
		offset  int64
		layout  string
	}
	seen := map[piece]bool{}
	total := 0.0
	var data []safetensors.Data
	for _, t := range f.tensors {
		p := piece{t.storage, t.offset, fmt.Sprint(t.shape, t.strides)}
		if seen[p] && len(t.shape) > 1 && !wanted(t.name) {
			continue
		}
		seen[p] = true
		total += float64(max(t.elements, t.storage.elements)) * float64(t.storage.dtype.Size())
		data = append(data, safetensors.Data{Name: t.name, DType: t.storage.dtype, Shape: t.shape,
			Content: func() ([]byte, error) {
				if ctx.Err() != nil {
					return nil, ctx.Err()
				}
				return t.ordered()
			}})
	}
	if total > maxGrowth*float64(f.size)+blockBytes {
		return fmt.Errorf("its tensors would take %.0f bytes, more than %d times as much as the file: they share "+
			"storages as weights do not", total, maxGrowth)
	}
	return safetensors.Write(w, map[string]string{"format": "pt"}, data)
}

// ordered reads the elements, row-major and little-endian.
func (t tensor) ordered() ([]byte, error) {
	all, err := read(t.storage.file, t.storage.file.UncompressedSize64)
	if err != nil {
		return nil, err
	}
	size, rows := t.storage.dtype.Size(), int64(1)
	at := t.offset * size
	// As many of the last dimensions as lie in row-major order are copied in one piece.
	inner := len(t.shape)
	for inner > 0 && (t.strides[inner-1] == rows || t.shape[inner-1] == 1) {
		inner--
		rows *= int64(t.shape[inner])
	}
	if inner == 0 || t.elements == 0 {
		return all[at : at+t.elements*size], nil
	}
	ordered, index := make([]byte, 0, t.elements*size), make([]int, inner)
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
