package pytorch

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"slices"

	"infill/internal/safetensors"
)

const (
	// maxGrowth bounds the result by the size of the source: only tensors that share a storage, and strides of 0, make
	// it larger, and a small file could ask for any disk to be filled.
	maxGrowth = 4
	// maxSpanBytes bounds a tensor that has to be held in memory, because its elements lie in another order than in the
	// result.
	maxSpanBytes = 2 << 30
	blockBytes   = 64 << 10
)

// Convert writes the tensors as a safetensors file, each with its own element type, row-major. Matrices that are the
// same piece of a storage (tied weights) are written once, under the first name and under every name that wanted
// tells; a nil wanted tells them all.
func (f *File) Convert(ctx context.Context, w io.Writer, wanted func(name string) bool) error {
	type piece struct {
		storage *storage
		offset  int64
		layout  string
	}
	seen := map[piece]bool{}
	total, scattered := 0.0, error(nil)
	var data []safetensors.Data
	for _, t := range f.tensors {
		p := piece{t.storage, t.offset, fmt.Sprint(t.Shape, t.strides)}
		if seen[p] && len(t.Shape) > 1 && wanted != nil && !wanted(t.Name) {
			continue
		}
		seen[p] = true
		if bytes := max(t.span, t.elements) * t.DType.Size(); !t.contiguous() && bytes > maxSpanBytes {
			scattered = fmt.Errorf("tensor %.100q: its %d bytes lie in another order than row-major, more than the %d "+
				"that are accepted", t.Name, bytes, maxSpanBytes)
		}
		total += float64(t.elements) * float64(t.DType.Size())
		data = append(data, safetensors.Data{Name: t.Name, DType: t.DType, Shape: t.Shape, Content: t.content()})
	}
	if limit := maxGrowth*float64(f.size) + blockBytes; total > limit {
		return fmt.Errorf("its tensors would take %.0f bytes, more than %d times as much as the file: they share "+
			"storages as weights do not", total, maxGrowth)
	}
	if scattered != nil {
		return scattered
	}
	buffered := bufio.NewWriterSize(contextWriter{ctx, w}, 4*blockBytes)
	if err := safetensors.Write(buffered, map[string]string{"format": "pt"}, data); err != nil {
		return err
	}
	return buffered.Flush()
}

type contextWriter struct {
	ctx context.Context
	io.Writer
}

func (w contextWriter) Write(p []byte) (int, error) {
	if err := w.ctx.Err(); err != nil {
		return 0, err
	}
	return w.Writer.Write(p)
}

// contiguous reports whether the elements lie one after the other in row-major order.
func (t Tensor) contiguous() bool {
	next := int64(1)
	for i, d := range slices.Backward(t.Shape) {
		if d != 1 && t.strides[i] != next {
			return t.elements == 0
		}
		next *= int64(d)
	}
	return true
}

// content yields the elements, row-major and little-endian. Nothing is read, and no memory taken, before it is.
func (t Tensor) content() io.Reader {
	raw := io.NewSectionReader(t.storage.content, t.offset*t.DType.Size(), t.span*t.DType.Size())
	if t.contiguous() {
		return raw
	}
	return &strided{Tensor: t, raw: raw}
}

// strided yields the elements of a tensor that is not contiguous.
type strided struct {
	Tensor
	raw     *io.SectionReader // from the first element to the last
	ordered *bytes.Reader
}

// Read implements io.Reader.
func (s *strided) Read(p []byte) (int, error) {
	if s.ordered == nil {
		all := make([]byte, s.raw.Size())
		if _, err := io.ReadFull(s.raw, all); err != nil {
			return 0, err
		}
		size, ordered := s.DType.Size(), []byte(nil)
		index, at := make([]int, len(s.Shape)), int64(0)
		for range s.elements {
			ordered = append(ordered, all[at*size:(at+1)*size]...)
			for i := len(index) - 1; i >= 0; i-- {
				index[i]++
				at += s.strides[i]
				if index[i] < s.Shape[i] {
					break
				}
				at -= int64(s.Shape[i]) * s.strides[i]
				index[i] = 0
			}
		}
		s.ordered = bytes.NewReader(ordered)
	}
	return s.ordered.Read(p)
}
