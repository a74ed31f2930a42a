package models

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"

	"infill/internal/safetensors"
)

// Tensor is where a file has a weight, row-major and little-endian.
type Tensor struct {
	Name  string
	DType string // of an element, as safetensors names it, such as "F32"
	Shape []int  // empty for a scalar
	// Offset counts bytes from the start of the file, and Length is in bytes.
	Offset, Length int64
	Path           string // the file, without links
}

// Bytes reads the elements, as the file has them.
func (t Tensor) Bytes() ([]byte, error) {
	return safetensors.Tensor{Name: t.Name, Offset: t.Offset, Length: t.Length, Path: t.Path}.Bytes()
}

// Tensor returns the weight with the given name, or false if there is none.
// Names are those of today's reference implementation (see Config.Layout). If
// the bundle lacks the name, Tensor looks for other names of the same weight:
// gamma or beta of the first BERT checkpoints for a LayerNorm, the head's bias
// for the decoder's, names without the beginning of the body's names, and the
// output matrix for word embeddings that are tied to it.
func (b *Bundle) Tensor(name string) (Tensor, bool) {
	t, ok := b.weight(name)
	return Tensor{Name: t.Name, DType: string(t.DType), Shape: t.Shape, Offset: t.Offset, Length: t.Length,
		Path: t.Path}, ok
}

// weight returns the weight that Tensor describes.
func (b *Bundle) weight(name string) (safetensors.Tensor, bool) {
	for _, known := range otherNames(name, b.renamed) {
		t, ok := b.weights.Tensor(known)
		if ok {
			return t, true
		}
	}
	return safetensors.Tensor{}, false
}

// otherNames returns the names that a weight may have, the usual one first.
// renamed has pairs of beginnings, the second for the first.
func otherNames(name string, renamed [][2]string) []string {
	list := []string{name}
	for _, old := range [][2]string{
		{"LayerNorm.weight", "LayerNorm.gamma"}, {"LayerNorm.bias", "LayerNorm.beta"},
		{"predictions.decoder.bias", "predictions.bias"}, {"lm_head.decoder.bias", "lm_head.bias"},
	} {
		stem, found := strings.CutSuffix(name, old[0])
		if found {
			list = append(list, stem+old[1])
		}
	}
	for _, known := range list {
		for _, pair := range renamed {
			rest, found := strings.CutPrefix(known, pair[0])
			if found {
				list = append(list, pair[1]+rest)
			}
		}
	}
	return list
}

// bare lets names below the head lack their beginning, such as "bert.".
func (c Config) bare() [][2]string {
	first, _, _ := strings.Cut(c.Layout().Words.Name, ".")
	return [][2]string{{first + ".", ""}}
}

// checkWeights returns an error if the weights do not fit the config. It
// ignores tensors that the graph does not read (a pooler, position ids).
func (b *Bundle) checkWeights() error {
	b.renamed = b.Config.bare()
	if err := b.untie(); err != nil {
		return err
	}
	body, head := b.Config.tensors()
	// Check the head first: a sentence encoder or a classifier may differ
	// elsewhere too, but lacks the head.
	for _, want := range head {
		if _, ok := b.weight(want.Name); !ok {
			return fmt.Errorf(
				"%s: no masked-language-model head: tensor %s is missing (architectures in config.json: %s)",
				b.weights.Path, want.Name, strings.Join(b.Config.Architectures, ", "))
		}
	}
	matrices := b.Config.matrices()
	for _, want := range slices.Concat(body, head) {
		t, ok := b.weight(want.Name)
		switch {
		case !ok:
			return fmt.Errorf("%s: tensor %s is missing", b.weights.Path, want.Name)
		case !slices.Equal(t.Shape, want.Shape):
			return fmt.Errorf("%s: tensor %s has shape %v, config.json asks for %v", b.weights.Path, want.Name, t.Shape,
				want.Shape)
		case t.DType == safetensors.Int8 && slices.Contains(matrices, want.Name):
			b.int8 = true
		case t.DType.Format() == 0:
			return fmt.Errorf("%s: tensor %s holds %s; floating-point weights are needed (F16, BF16, F32, F64)",
				b.weights.Path, want.Name, t.DType)
		}
	}
	more := b.Config
	more.Layers++
	further, _ := more.tensors()
	for _, t := range further {
		_, ok := b.weight(t.Name)
		if ok && !slices.ContainsFunc(body, func(own Tensor) bool { return own.Name == t.Name }) {
			return fmt.Errorf("%s: config.json has num_hidden_layers %d, and the weights have another layer (%s): one "+
				"of them is of another model", b.weights.Path, b.Config.Layers, t.Name)
		}
	}
	if b.int8 {
		return b.checkInt8()
	}
	return nil
}

// untie makes the model use the stored output matrix if it differs from the
// word embeddings, even if config.json ties both. The reference implementation
// does so since transformers 5. If only the output matrix is stored, it is also
// the word embeddings: of two names of one tensor, save_model of safetensors
// writes the first by the alphabet.
func (b *Bundle) untie() error {
	c := b.Config
	c.TieWordEmbeddings = false
	l := c.Layout()
	words, embedded := b.weight(l.Words.Name)
	own, decoded := b.weight(l.Decoder.Weight)
	if !b.Config.TieWordEmbeddings || !decoded {
		return nil
	}
	if !embedded {
		b.renamed = append(b.renamed, [2]string{l.Words.Name, l.Decoder.Weight})
		return nil
	}
	// The middle is enough, because matrices that were trained apart differ in every row.
	middle := func(t safetensors.Tensor) ([]byte, error) {
		size := min(t.Length, 1<<20)
		t.Offset += (t.Length - size) / 2
		t.Length = size
		return t.Bytes()
	}
	first, firstErr := middle(words)
	second, secondErr := middle(own)
	// In int8, equal steps can stand for different numbers.
	b.Config.TieWordEmbeddings = own.DType == words.DType && own.DType != safetensors.Int8 &&
		own.Length == words.Length && bytes.Equal(first, second)
	return cmp.Or(firstErr, secondErr)
}
