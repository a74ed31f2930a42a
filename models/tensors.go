package models

import (
	"fmt"
	"slices"
	"strings"

	"infill/models/safetensors"
)

// Tensor finds a weight by the name that the reference implementation gives it today ("bert.embeddings.…"), also where
// the bundle uses another one: gamma and beta of the first BERT checkpoints for the weight and bias of a LayerNorm, and
// the decoder's name for the bias that it shares with the head.
func (b *Bundle) Tensor(name string) (safetensors.Tensor, bool) {
	return findTensor(b.Weights, name)
}

func findTensor(weights *safetensors.File, name string) (safetensors.Tensor, bool) {
	if t, ok := weights.Tensor(name); ok {
		return t, true
	}
	for _, old := range [][2]string{{"LayerNorm.weight", "LayerNorm.gamma"}, {"LayerNorm.bias", "LayerNorm.beta"}, {"predictions.bias", "predictions.decoder.bias"}} {
		if stem, found := strings.CutSuffix(name, old[0]); found {
			return weights.Tensor(stem + old[1])
		}
	}
	return safetensors.Tensor{}, false
}

// TensorShape is the name and shape of a weight.
type TensorShape struct {
	Name  string
	Shape []int
}

// Tensors lists the weights that the family's graph reads, by the names that Bundle.Tensor takes. Matrices are
// [output × input].
func (c Config) Tensors() []TensorShape {
	h, f := c.HiddenSize, c.IntermediateSize
	list := []TensorShape{
		{"bert.embeddings.word_embeddings.weight", []int{c.VocabularySize, h}},
		{"bert.embeddings.position_embeddings.weight", []int{c.MaxPositions, h}},
		{"bert.embeddings.token_type_embeddings.weight", []int{c.TypeVocabularySize, h}},
		{"bert.embeddings.LayerNorm.weight", []int{h}},
		{"bert.embeddings.LayerNorm.bias", []int{h}},
	}
	for layer := range c.Layers {
		prefix := fmt.Sprintf("bert.encoder.layer.%d.", layer)
		for _, linear := range []struct {
			name    string
			out, in int
		}{
			{"attention.self.query", h, h}, {"attention.self.key", h, h}, {"attention.self.value", h, h},
			{"attention.output.dense", h, h}, {"intermediate.dense", f, h}, {"output.dense", h, f},
		} {
			list = append(list,
				TensorShape{prefix + linear.name + ".weight", []int{linear.out, linear.in}},
				TensorShape{prefix + linear.name + ".bias", []int{linear.out}})
		}
		for _, norm := range []string{"attention.output.LayerNorm", "output.LayerNorm"} {
			list = append(list, TensorShape{prefix + norm + ".weight", []int{h}}, TensorShape{prefix + norm + ".bias", []int{h}})
		}
	}
	list = append(list,
		TensorShape{headPrefix + "transform.dense.weight", []int{h, h}},
		TensorShape{headPrefix + "transform.dense.bias", []int{h}},
		TensorShape{headPrefix + "transform.LayerNorm.weight", []int{h}},
		TensorShape{headPrefix + "transform.LayerNorm.bias", []int{h}},
		TensorShape{headPrefix + "bias", []int{c.VocabularySize}})
	if !c.TieWordEmbeddings {
		list = append(list, TensorShape{headPrefix + "decoder.weight", []int{c.VocabularySize, h}})
	}
	return list
}

const headPrefix = "cls.predictions."

// checkTensors holds the weights against the config. Tensors that the graph does not read (a pooler, position ids) may
// be there.
func (c Config) checkTensors(weights *safetensors.File) error {
	for _, want := range c.Tensors() {
		t, ok := findTensor(weights, want.Name)
		switch {
		case !ok && strings.HasPrefix(want.Name, headPrefix):
			return fmt.Errorf("%s: no masked-language-model head: tensor %s is missing (architectures in config.json: %s)",
				weights.Path, want.Name, strings.Join(c.Architectures, ", "))
		case !ok:
			return fmt.Errorf("%s: tensor %s is missing", weights.Path, want.Name)
		case !slices.Equal(t.Shape, want.Shape):
			return fmt.Errorf("%s: tensor %s has shape %v, config.json asks for %v", weights.Path, want.Name, t.Shape, want.Shape)
		}
		switch t.DType {
		case safetensors.F16, safetensors.BF16, safetensors.F32, safetensors.F64:
		default:
			return fmt.Errorf("%s: tensor %s holds %s; floating-point weights are needed (F16, BF16, F32, F64)", weights.Path, want.Name, t.DType)
		}
	}
	return nil
}
