package models

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"infill/internal/safetensors"
)

// Tensor says where the elements of a weight lie, row-major and little-endian.
type Tensor = safetensors.Tensor

// Tensor finds a weight by its name in today's reference implementation (see Config.Layout), also if the bundle
// uses an older name: gamma and beta of the first BERT checkpoints for the weight and bias of a LayerNorm, or
// the head's name for the decoder's bias. If both biases are stored, the reference implementation adds the
// decoder's.
func (b *Bundle) Tensor(name string) (Tensor, bool) { return findTensor(b.weights, name) }

// Float32s reads a weight, row-major, rounded to the nearest 32-bit number where it is stored in 64 bits.
func (b *Bundle) Float32s(name string) ([]float32, error) {
	if b.weights == nil {
		return nil, errors.New("an imported model's weights are part of its graph and cannot be read")
	}
	if t, ok := findTensor(b.weights, name); ok {
		name = t.Name
	}
	return b.weights.Float32s(name)
}

// Embeddings reads the word embeddings, [vocabulary × width] row-major.
func (b *Bundle) Embeddings() ([]float32, error) { return b.Float32s(b.Config.Layout().Words.Name) }

func findTensor(weights *safetensors.File, name string) (safetensors.Tensor, bool) {
	if t, ok := weights.Tensor(name); ok {
		return t, true
	}
	for _, old := range [][2]string{
		{"LayerNorm.weight", "LayerNorm.gamma"}, {"LayerNorm.bias", "LayerNorm.beta"},
		{"predictions.decoder.bias", "predictions.bias"}, {"lm_head.decoder.bias", "lm_head.bias"},
	} {
		if stem, found := strings.CutSuffix(name, old[0]); found {
			return weights.Tensor(stem + old[1])
		}
	}
	return safetensors.Tensor{}, false
}

// untie gives the model the output matrix that is stored beside its word embeddings if the two differ, whatever
// config.json says: so does the reference implementation, since transformers 5.
func (b *Bundle) untie() error {
	c := b.Config
	c.TieWordEmbeddings = false
	l := c.Layout()
	words, _ := b.weights.Tensor(l.Words.Name)
	own, both := b.weights.Tensor(l.Decoder.Weight)
	if !b.Config.TieWordEmbeddings || !both || own.Path == "" || words.Path == "" { // no path: it is to be converted
		return nil
	}
	tied, err := alike(own, words)
	b.Config.TieWordEmbeddings = tied
	return err
}

// alike compares a sample of the bytes of two tensors: matrices that were trained apart differ in every row.
func alike(a, b safetensors.Tensor) (bool, error) {
	const places, size = 256, 1024
	if a.DType != b.DType || a.Length != b.Length {
		return false, nil
	}
	for i := range int64(places) {
		at := i * max(a.Length-size, 0) / (places - 1)
		x, y := a, b
		x.Offset, x.Length, y.Offset, y.Length = a.Offset+at, min(size, a.Length), b.Offset+at, min(size, b.Length)
		first, firstErr := x.Bytes()
		second, secondErr := y.Bytes()
		if err := cmp.Or(firstErr, secondErr); err != nil || !slices.Equal(first, second) {
			return false, err
		}
	}
	return true, nil
}

// checkTensors holds the weights against the config. Tensors that the graph does not read (a pooler, position ids) may
// be there.
func (c Config) checkTensors(weights *safetensors.File) error {
	body, head := c.tensors()
	// A sentence encoder or a classifier differs in more than the head at times; the head is what to tell.
	for _, want := range head {
		if _, ok := findTensor(weights, want.Name); !ok {
			return fmt.Errorf(
				"%s: no masked-language-model head: tensor %s is missing (architectures in config.json: %s)",
				weights.Path, want.Name, strings.Join(c.Architectures, ", "))
		}
	}
	for _, want := range append(body, head...) {
		t, ok := findTensor(weights, want.Name)
		switch {
		case !ok:
			return fmt.Errorf("%s: tensor %s is missing", weights.Path, want.Name)
		case !slices.Equal(t.Shape, want.Shape):
			return fmt.Errorf("%s: tensor %s has shape %v, config.json asks for %v", weights.Path, want.Name, t.Shape,
				want.Shape)
		}
		if t.DType.Format() == 0 {
			return fmt.Errorf("%s: tensor %s holds %s; floating-point weights are needed (F16, BF16, F32, F64)",
				weights.Path, want.Name, t.DType)
		}
	}
	return nil
}
