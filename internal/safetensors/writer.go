package safetensors

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
)

// Data is a tensor to write.
type Data struct {
	Name  string
	DType DType
	Shape []int
	// Content returns the elements, row-major and little-endian, as many bytes as
	// DType and Shape need. Write calls it once.
	Content func() ([]byte, error)
}

// Write writes a safetensors file. It orders tensors by decreasing element size
// and then by name, as the reference implementation does. So each tensor is
// aligned to its elements, and the same content gives the same bytes.
func Write(w io.Writer, metadata map[string]string, tensors []Data) error {
	tensors = slices.Clone(tensors)
	slices.SortStableFunc(tensors, func(a, b Data) int {
		return cmp.Or(cmp.Compare(b.DType.Size(), a.DType.Size()), strings.Compare(a.Name, b.Name))
	})
	header := map[string]any{}
	if len(metadata) > 0 {
		header[metadataKey] = metadata
	}
	lengths := make([]int64, len(tensors))
	var end int64
	for i, t := range tensors {
		if t.Name == metadataKey {
			return fmt.Errorf("a tensor cannot be named %s", metadataKey)
		}
		if _, ok := header[t.Name]; ok {
			return fmt.Errorf("tensor %q is given twice", t.Name)
		}
		length, err := byteSize(t.DType, t.Shape)
		if err != nil {
			return fmt.Errorf("tensor %q: %w", t.Name, err)
		}
		if length > math.MaxInt64-end {
			return fmt.Errorf("tensor %q: shape %v of %s is more than 64 bits can count", t.Name, t.Shape, t.DType)
		}
		lengths[i] = length
		// JSON would write a nil shape as null.
		header[t.Name] = entry{t.DType, append([]int{}, t.Shape...), []int64{end, end + length}}
		end += length
	}
	encoded, err := json.Marshal(header)
	if err != nil {
		return err
	}
	encoded = append(encoded, bytes.Repeat([]byte{' '}, -len(encoded)&7)...)
	if len(encoded) > MaxHeaderBytes {
		return fmt.Errorf("the header would take %d bytes, more than the %d that can be read back", len(encoded),
			MaxHeaderBytes)
	}
	if _, err := w.Write(append(binary.LittleEndian.AppendUint64(nil, uint64(len(encoded))), encoded...)); err != nil {
		return err
	}
	for i, t := range tensors {
		if err := t.write(w, lengths[i]); err != nil {
			return fmt.Errorf("tensor %q: %w", t.Name, err)
		}
	}
	return nil
}

// write writes the content of a tensor, which must have length bytes.
func (t Data) write(w io.Writer, length int64) error {
	content, err := t.Content()
	if err != nil {
		return err
	}
	if int64(len(content)) != length {
		return fmt.Errorf("content of %d bytes where its shape %v takes %d", len(content), t.Shape, length)
	}
	_, err = w.Write(content)
	return err
}
