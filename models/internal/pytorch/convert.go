package pytorch

import (
	"bufio"
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

// Convert writes the tensors as a safetensors file, each with its own element type, row-major, a block at a time.
// Matrices that are the same piece of a storage (tied weights) are written once, under the first name and under every
// name that wanted tells; a nil wanted tells them all.
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
		p := piece{t.storage, t.offset, fmt.Sprint(t.Shape, t.strides)}
		if seen[p] && len(t.Shape) > 1 && wanted != nil && !wanted(t.Name) {
			continue
		}
		seen[p] = true
		if !t.contiguous() && t.span > maxSpanBytes/t.DType.Size() {
			return fmt.Errorf("tensor %.100q: its elements are spread over %d bytes in another order than row-major, "+
				"more than the %d that are accepted",
				t.Name, t.span*t.DType.Size(), maxSpanBytes)
		}
		total += float64(t.elements()) * float64(t.DType.Size())
		data = append(data, safetensors.Data{Name: t.Name, DType: t.DType, Shape: t.Shape, Content: t.content()})
	}
	if limit := maxGrowth*float64(f.size) + blockBytes; total > limit {
		return fmt.Errorf("its tensors would take %.0f bytes, more than %d times as much as the file: they share "+
			"storages as weights do not", total, maxGrowth)
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

func (t Tensor) elements() int64 {
	n := int64(1)
	for _, d := range t.Shape {
		n *= int64(d)
	}
	return n
}

// contiguous reports whether the elements lie one after the other in row-major order.
func (t Tensor) contiguous() bool {
	next := int64(1)
	for i, d := range slices.Backward(t.Shape) {
		if d != 1 && t.strides[i] != next {
			return t.span == 0
		}
		next *= int64(d)
	}
	return true
}

// content yields the elements, row-major and little-endian. Nothing is read, and no memory taken, before it is.
func (t Tensor) content() io.Reader {
	size := t.DType.Size()
	raw := io.NewSectionReader(t.storage.content, t.offset*size, t.span*size)
	if t.contiguous() {
		return raw
	}
	return &strided{Tensor: t, raw: raw, left: t.elements(), index: make([]int, len(t.Shape))}
}

// strided yields the elements of a tensor that is not contiguous, a block at a time.
type strided struct {
	Tensor
	raw   *io.SectionReader
	all   []byte // from the first element to the last
	index []int  // of the next element
	left  int64
	block []byte
}

// Read implements io.Reader.
func (s *strided) Read(p []byte) (int, error) {
	if len(s.block) == 0 {
		if s.left == 0 {
			s.all = nil
			return 0, io.EOF
		}
		if s.all == nil {
			s.all = make([]byte, s.raw.Size())
			if _, err := io.ReadFull(s.raw, s.all); err != nil {
				return 0, err
			}
		}
		s.fill()
	}
	n := copy(p, s.block)
	s.block = s.block[n:]
	return n, nil
}

func (s *strided) fill() {
	size := s.DType.Size()
	count := min(s.left, blockBytes/size)
	s.left -= count
	block := make([]byte, 0, count*size)
	at := int64(0)
	for i, k := range s.index {
		at += int64(k) * s.strides[i]
	}
	for range count {
		block = append(block, s.all[at*size:(at+1)*size]...)
		for i := len(s.index) - 1; i >= 0; i-- {
			s.index[i]++
			at += s.strides[i]
			if s.index[i] < s.Shape[i] {
				break
			}
			at -= int64(s.Shape[i]) * s.strides[i]
			s.index[i] = 0
		}
	}
	s.block = block
}
