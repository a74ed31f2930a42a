package models

import (
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

	"infill/internal/regular"
	"infill/internal/safetensors"
)

// Int8 reports whether the matrices are stored as whole numbers: see Scale.
func (b *Bundle) Int8() bool { return b.int8 }

// InFloat names the model of which b is a copy in int8, if b says which.
func (b *Bundle) InFloat() string { return strings.TrimSpace("the model in float " + b.Manifest.Float) }

// NoGradient says why the model cannot be differentiated; "" if it can be.
func (b *Bundle) NoGradient() string {
	if b.int8 {
		return "it is in int8; use " + b.InFloat()
	}
	if b.Config.Imported != nil {
		return b.Config.Imported.NoGradient
	}
	return ""
}

// Scale returns the name of the tensor with the scales of a matrix in int8: a
// number for each row, by which the row's whole numbers are multiplied.
func Scale(matrix string) string { return matrix + "_scale" }

// Spread says which matrices read one input, and which tensor has a factor for
// each channel of the input. In int8, the input is multiplied by the factors and
// the columns of the matrices are divided by them before both are rounded, so
// that a few large channels do not take most steps of a row (SmoothQuant, Xiao
// et al. 2023, arXiv:2211.10438).
type Spread struct {
	Name     string // of the tensor, float32 [Width]
	Matrices []string
	Width    int
}

// Spreads lists the spreads of a model in int8: of the inputs of attention in
// each layer. Those of the feed-forward blocks gain half as much, for as much
// time, and all others nothing.
func (c Config) Spreads() (list []Spread) {
	known := map[string]bool{} // layers may share matrices
	for _, layer := range c.Layout().Layers {
		s := Spread{Name: layer.Query.Weight + "_spread", Width: layer.Query.In}
		for _, part := range []Linear{layer.Query, layer.Key, layer.Value} {
			if !slices.Contains(s.Matrices, part.Weight) {
				s.Matrices = append(s.Matrices, part.Weight)
			}
		}
		if !known[s.Name] {
			known[s.Name] = true
			list = append(list, s)
		}
	}
	return list
}

// factors returns the factors of a spread, given the largest absolute value of
// each channel in some texts. They are powers of two, which round nothing.
func (s Spread) factors(b *Bundle, largest []float32) ([]float32, error) {
	if len(largest) != s.Width {
		return nil, fmt.Errorf("%d largest values of the input of %s, want %d", len(largest), s.Matrices[0], s.Width)
	}
	columns := make([]float32, s.Width)
	for _, name := range s.Matrices {
		t, _ := b.weight(name)
		raw, err := t.Bytes()
		if err != nil {
			return nil, err
		}
		for row := range slices.Chunk(t.DType.Format().Float32s(raw), s.Width) {
			for i, x := range row {
				columns[i] = max(columns[i], x, -x) // NaN stays
			}
		}
	}
	// At 0.5, inputs and matrices share the largest channels alike. Of 0.4 to
	// 0.85, this one cost the built-in model least.
	const inputs = 0.7
	const least = 1e-3 // of the largest channel
	input := slices.Max(largest) * least
	column := slices.Max(columns) * least
	list := make([]float32, s.Width)
	for i := range list {
		list[i] = 1
		by := math.Log2(float64(max(column, columns[i])))*(1-inputs) - math.Log2(float64(max(input, largest[i])))*inputs
		if !math.IsInf(by, 0) { // not all are zero
			list[i] = float32(math.Exp2(math.Round(by)))
		}
		if !positive(list[i]) {
			return nil, fmt.Errorf("channel %d of the input of %s has the largest value %g, and its columns %g", i,
				s.Matrices[0], largest[i], columns[i])
		}
	}
	return list, nil
}

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

// checkInt8 returns an error unless all matrices are in int8, each with its
// scales, and every spread has its factors.
func (b *Bundle) checkInt8() error {
	for _, name := range b.Config.matrices() {
		t, _ := b.weight(name)
		if t.DType != safetensors.Int8 {
			return fmt.Errorf("%s: tensor %s holds %s, and others I8: a model in int8 has all its matrices in I8",
				b.weights.Path, name, t.DType)
		}
		_, err := b.positives(Scale(t.Name), t.Shape[0], "a scale for each row of "+t.Name)
		if err != nil {
			return err
		}
	}
	for _, s := range b.Config.Spreads() {
		list, err := b.positives(s.Name, s.Width, "a factor for each column of "+s.Matrices[0])
		if err != nil {
			return err
		}
		for i, x := range list {
			fraction, _ := math.Frexp(float64(x))
			if fraction != 0.5 {
				return fmt.Errorf("%s: tensor %s: number %d is %g, not a power of two", b.weights.Path, s.Name, i, x)
			}
		}
	}
	return nil
}

// positives returns the n numbers of the named tensor, and an error unless they
// are finite and positive. what says what they are.
func (b *Bundle) positives(name string, n int, what string) ([]float32, error) {
	t, ok := b.weights.Tensor(name)
	switch {
	case !ok:
		return nil, fmt.Errorf("%s: tensor %s is missing, %s in int8", b.weights.Path, name, what)
	case t.DType != safetensors.F32 || !slices.Equal(t.Shape, []int{n}):
		return nil, fmt.Errorf("%s: tensor %s is %s of shape %v, want F32 of shape [%d], %s", b.weights.Path, name,
			t.DType, t.Shape, n, what)
	}
	list, err := b.weights.Float32s(name)
	for i, x := range list {
		if !positive(x) {
			return nil, fmt.Errorf("%s: tensor %s: number %d is %g, not positive", b.weights.Path, name, i, x)
		}
	}
	return list, err
}

func positive(x float32) bool { return x > 0 && !math.IsInf(float64(x), 0) }

// Quantizable returns an error if the model cannot be made int8.
func (b *Bundle) Quantizable() error {
	switch {
	case b.Graph != "":
		return fmt.Errorf("model %s is an ONNX graph that others exported, and cannot be made int8: take a model of "+
			"one of the families %s", b.Name, strings.Join(Families(), ", "))
	case b.int8:
		return fmt.Errorf("model %s is in int8 already", b.Name)
	}
	return nil
}

// Quantize writes a copy of the model b to the store, under the given name,
// with the matrices of matrices in int8. largest has, for the name of each of
// Config.Spreads, the largest absolute value of each channel of the input in
// some texts. Quantize calls describe with the copy, and writes the result as
// README.md before the copy appears in the store.
//
// The largest number of a row becomes 127 or -127, and all others are rounded
// to the nearest whole number of such steps.
func (s *Store) Quantize(ctx context.Context, b *Bundle, name string, largest map[string][]float32,
	describe func(*Bundle) ([]byte, error)) (*Bundle, error) {
	if err := b.Quantizable(); err != nil {
		return nil, err
	}
	switch {
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
	if !b.stored {
		m.Float = b.Dir
	}
	return s.place(ctx, name, "", "", func(dir string) (*Manifest, error) {
		names := []string{weightsName}
		for _, file := range append(tokenizerFiles(), configName, "LICENSE", "NOTICE") {
			if !exists(b.Dir, file) {
				continue
			}
			names = append(names, file)
			if err := regular.Copy(filepath.Join(b.Dir, file), filepath.Join(dir, file)); err != nil {
				return nil, err
			}
		}
		if err := b.writeInt8(ctx, filepath.Join(dir, weightsName), largest); err != nil {
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
		if err := writeFile(filepath.Join(dir, cardName), card); err != nil {
			return nil, err
		}
		return s.seal(ctx, name, dir, dir+string(filepath.Separator), m, append(names, cardName))
	})
}

const cardName = "README.md"

func (b *Bundle) writeInt8(ctx context.Context, path string, largest map[string][]float32) error {
	whole := map[string]bool{}
	for _, name := range b.Config.matrices() {
		whole[name] = true
	}
	var tensors []safetensors.Data
	factors := map[string][]float32{} // of each matrix with a spread
	for _, s := range b.Config.Spreads() {
		list, err := s.factors(b, largest[s.Name])
		if err != nil {
			return err
		}
		var content []byte
		for _, x := range list {
			content = binary.LittleEndian.AppendUint32(content, math.Float32bits(x))
		}
		tensors = append(tensors, safetensors.Data{Name: s.Name, DType: safetensors.F32, Shape: []int{s.Width},
			Content: func() ([]byte, error) { return content, nil }})
		for _, name := range s.Matrices {
			factors[name] = list
		}
	}
	for _, want := range b.Config.Tensors() {
		t, _ := b.weight(want.Name)
		if !whole[want.Name] {
			tensors = append(tensors,
				safetensors.Data{Name: want.Name, DType: t.DType, Shape: t.Shape, Content: t.Bytes})
			continue
		}
		tensors = append(tensors,
			safetensors.Data{Name: want.Name, DType: safetensors.Int8, Shape: t.Shape, Content: func() ([]byte, error) {
				steps, _, err := round(ctx, t, factors[want.Name])
				return steps, err
			}},
			safetensors.Data{Name: Scale(want.Name), DType: safetensors.F32, Shape: t.Shape[:1],
				Content: func() ([]byte, error) {
					_, scales, err := round(ctx, t, factors[want.Name])
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

// round returns a matrix, its columns divided by factors if there are some, in
// whole numbers from -127 to 127, and its rows' float32 scales.
func round(ctx context.Context, t safetensors.Tensor, factors []float32) (steps, scales []byte, err error) {
	if ctx.Err() != nil {
		return nil, nil, ctx.Err()
	}
	raw, err := t.Bytes()
	if err != nil {
		return nil, nil, err
	}
	for row := range slices.Chunk(t.DType.Format().Float32s(raw), t.Shape[1]) {
		for i, factor := range factors {
			row[i] /= factor
		}
		largest := float32(0)
		for _, x := range row {
			largest = max(largest, x, -x) // NaN stays
		}
		scale := cmp.Or(largest/most, 1) // 1 for a row of zeros
		if !positive(scale) {
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
