package models

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"infill/internal/safetensors"
)

// Int8 reports whether the model's matrices are stored as whole numbers: see
// Scale.
func (b *Bundle) Int8() bool { return b.int8 }

// Scale returns the name of the tensor with the scales of a matrix in int8: a
// number for each row, by which the row's whole numbers are multiplied.
func Scale(matrix string) string { return matrix + "_scale" }

// matrices returns the names of the matrices that may be in int8: the word
// embeddings, the output matrix, and those of the layers. The small matrix of
// the head is not among them. In int8, it costs as much accuracy as a third of
// all layers, and saves no time.
func (c Config) matrices() []string {
	l := c.Layout()
	names := []string{l.Words.Name, l.Decoder.Weight, l.Projection.Weight}
	for _, layer := range l.Layers {
		for _, part := range []Linear{layer.Query, layer.Key, layer.Value, layer.Mixed, layer.Up, layer.Gate,
			layer.Down, layer.PositionKey, layer.PositionQuery} {
			names = append(names, part.Weight)
		}
	}
	return slices.DeleteFunc(names, func(name string) bool { return name == "" })
}

// checkScales returns an error unless the scales of the matrix t are finite,
// positive, and as many as t has rows.
func (b *Bundle) checkScales(t Tensor) error {
	name := Scale(t.Name)
	scales, ok := b.weights.Tensor(name)
	switch {
	case !ok:
		return fmt.Errorf("%s: tensor %s is missing, the scales of %s in int8", b.weights.Path, name, t.Name)
	case scales.DType != safetensors.F32 || !slices.Equal(scales.Shape, t.Shape[:1]):
		return fmt.Errorf("%s: tensor %s is %s of shape %v, want F32 of shape %v, a scale for each row of %s",
			b.weights.Path, name, scales.DType, scales.Shape, t.Shape[:1], t.Name)
	}
	list, err := b.weights.Float32s(name)
	if err != nil {
		return err
	}
	for i, scale := range list {
		if !(scale > 0) || math.IsInf(float64(scale), 0) {
			return fmt.Errorf("%s: tensor %s: the scale of row %d is %g, not a positive number", b.weights.Path, name,
				i, scale)
		}
	}
	return nil
}

// Quantize writes a copy of the model b to the store, under the given name,
// with the matrices of matrices in int8. It calls describe with the copy, and
// writes the result as README.md before the copy appears in the store.
//
// The largest number of a row becomes 127 or -127, and all others are rounded
// to the nearest whole number of such steps.
func (s *Store) Quantize(ctx context.Context, b *Bundle, name string,
	describe func(*Bundle) ([]byte, error)) (*Bundle, error) {
	switch {
	case b.Graph != "":
		return nil, fmt.Errorf("model %s is an ONNX graph that others exported, and cannot be made int8: take a model "+
			"of one of the families %s", b.Name, strings.Join(Families(), ", "))
	case b.int8:
		return nil, fmt.Errorf("model %s is in int8 already", b.Name)
	case name == b.Name: // the store keeps one model of a name
		return nil, fmt.Errorf("model %s would be replaced by its copy in int8: give the copy another name", name)
	case name == BuiltInName:
		return nil, fmt.Errorf("model %s is part of the program and cannot be replaced", name)
	}
	if err := CheckName(name); err != nil {
		return nil, err
	}
	m := Manifest{Name: name, Licence: b.Manifest.Licence, Source: b.Manifest.Source, Segments: b.Manifest.Segments,
		Float: b.Name, Description: cmp.Or(b.Manifest.Description, b.Description) + ", in int8"}
	return s.place(ctx, name, "", "", func(dir string) (*Manifest, error) {
		names := []string{weightsName}
		for _, file := range append(tokenizerFiles(), configName, "LICENSE", "NOTICE") {
			if !exists(b.Dir, file) {
				continue
			}
			names = append(names, file)
			if err := copyFile(filepath.Join(b.Dir, file), filepath.Join(dir, file)); err != nil {
				return nil, err
			}
		}
		if err := b.writeInt8(ctx, filepath.Join(dir, weightsName)); err != nil {
			return nil, err
		}
		copied := &Bundle{Name: name, Dir: dir}
		var err error
		copied.Manifest, err = newManifest(dir, m, names)
		if err != nil {
			return nil, err
		}
		if err := copied.load(); err != nil {
			return nil, err
		}
		card, err := describe(copied)
		if err != nil {
			return nil, err
		}
		if err := writeFile(filepath.Join(dir, cardName), bytes.NewReader(card)); err != nil {
			return nil, err
		}
		return s.seal(ctx, name, dir, dir+string(filepath.Separator), m, append(names, cardName))
	})
}

const cardName = "README.md"

// writeInt8 writes the model's weights to path, the matrices in int8.
func (b *Bundle) writeInt8(ctx context.Context, path string) error {
	whole := map[string]bool{}
	for _, name := range b.Config.matrices() {
		whole[name] = true
	}
	var tensors []safetensors.Data
	for _, want := range b.Config.Tensors() {
		t, _ := b.Tensor(want.Name)
		if !whole[want.Name] {
			tensors = append(tensors,
				safetensors.Data{Name: want.Name, DType: t.DType, Shape: t.Shape, Content: t.Bytes})
			continue
		}
		tensors = append(tensors,
			safetensors.Data{Name: want.Name, DType: safetensors.Int8, Shape: t.Shape, Content: func() ([]byte, error) {
				steps, _, err := round(ctx, t)
				return steps, err
			}},
			safetensors.Data{Name: Scale(want.Name), DType: safetensors.F32, Shape: t.Shape[:1],
				Content: func() ([]byte, error) {
					_, scales, err := round(ctx, t)
					return scales, err
				}})
	}
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	err = safetensors.Write(file, map[string]string{"format": "pt"}, tensors)
	return errors.Join(err, file.Sync(), file.Close())
}

// round returns the rows of a matrix in whole numbers from -127 to 127, and the
// scales of the rows, float32.
func round(ctx context.Context, t Tensor) (steps, scales []byte, err error) {
	if ctx.Err() != nil {
		return nil, nil, ctx.Err()
	}
	raw, err := t.Bytes()
	if err != nil {
		return nil, nil, err
	}
	for row := range slices.Chunk(t.DType.Format().Float32s(raw), t.Shape[1]) {
		largest := float32(0)
		for _, x := range row {
			largest = max(largest, x, -x) // NaN stays
		}
		scale := largest / most
		if scale == 0 {
			scale = 1 // for a row of zeros
		}
		if !(scale > 0) || math.IsInf(float64(scale), 0) {
			return nil, nil, fmt.Errorf("%s: tensor %s: row %d has the number %g", t.Path, t.Name,
				len(steps)/t.Shape[1], largest)
		}
		scales = binary.LittleEndian.AppendUint32(scales, math.Float32bits(scale))
		for _, x := range row {
			n := math.RoundToEven(float64(x) / float64(scale))
			steps = append(steps, byte(int8(min(max(n, -most), most))))
		}
	}
	return steps, scales, nil
}

// most is the largest whole number of a matrix in int8.
const most = 127
