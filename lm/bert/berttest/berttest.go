// Package berttest makes small BERT bundles with random weights for tests.
package berttest

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"infill/lm/onnx"
	"infill/lm/onnx/reference"
	"infill/models"
	"infill/models/safetensors"
)

// MaskID is [MASK] in every bundle made here.
const MaskID = 4

// Shape is what a bundle's config.json says; zero values get the smallest
// sensible size.
type Shape struct {
	Vocabulary, Hidden, Layers, Heads, Intermediate, Positions int
	Activation                                                 string  // "gelu" when empty
	Untied                                                     bool    // the output matrix is not the embedding matrix
	Spread                                                     float64 // standard deviation of the weights; 0.02 when zero
}

// Base is the shape of BERT-base.
func Base() Shape {
	return Shape{Vocabulary: 30522, Hidden: 768, Layers: 12, Heads: 12, Intermediate: 3072, Positions: 512}
}

// Write fills dir with a bundle of random float32 weights. The vocabulary is
// [PAD] [UNK] [CLS] [SEP] [MASK] word5 word6 …
func Write(t testing.TB, dir string, s Shape) *models.Bundle {
	t.Helper()
	s = s.withDefaults()
	config, err := json.Marshal(map[string]any{
		"model_type": "bert", "architectures": []string{"BertForMaskedLM"}, "vocab_size": s.Vocabulary, "hidden_size": s.Hidden,
		"num_hidden_layers": s.Layers, "num_attention_heads": s.Heads, "intermediate_size": s.Intermediate, "hidden_act": s.Activation,
		"max_position_embeddings": s.Positions, "type_vocab_size": 2, "layer_norm_eps": 1e-12, "tie_word_embeddings": !s.Untied,
	})
	must(t, err)
	must(t, os.WriteFile(filepath.Join(dir, "config.json"), config, 0o644))
	must(t, os.WriteFile(filepath.Join(dir, "tokenizer_config.json"), []byte(`{"do_lower_case": true}`), 0o644))
	vocabulary := bytes.NewBufferString("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n")
	for i := MaskID + 1; i < s.Vocabulary; i++ {
		fmt.Fprintf(vocabulary, "word%d\n", i)
	}
	must(t, os.WriteFile(filepath.Join(dir, "vocab.txt"), vocabulary.Bytes(), 0o644))

	w := weights{rng: rand.New(rand.NewPCG(1, 1)), spread: s.Spread}
	h := s.Hidden
	w.tensor("bert.embeddings.word_embeddings.weight", 0, s.Vocabulary, h)
	w.tensor("bert.embeddings.position_embeddings.weight", 0, s.Positions, h)
	w.tensor("bert.embeddings.token_type_embeddings.weight", 0, 2, h)
	w.norm("bert.embeddings.LayerNorm", h)
	for i := range s.Layers {
		p := fmt.Sprintf("bert.encoder.layer.%d.", i)
		for _, part := range []string{"query", "key", "value"} {
			w.linear(p+"attention.self."+part, h, h)
		}
		w.linear(p+"attention.output.dense", h, h)
		w.norm(p+"attention.output.LayerNorm", h)
		w.linear(p+"intermediate.dense", s.Intermediate, h)
		w.linear(p+"output.dense", h, s.Intermediate)
		w.norm(p+"output.LayerNorm", h)
	}
	w.linear("cls.predictions.transform.dense", h, h)
	w.norm("cls.predictions.transform.LayerNorm", h)
	w.tensor("cls.predictions.bias", 0, s.Vocabulary)
	if s.Untied {
		w.tensor("cls.predictions.decoder.weight", 0, s.Vocabulary, h)
	}
	file, err := os.Create(filepath.Join(dir, "model.safetensors"))
	must(t, err)
	must(t, safetensors.Write(file, nil, w.tensors))
	must(t, file.Close())
	bundle, err := models.Open(dir)
	must(t, err)
	return bundle
}

// Weights reads the weights of a graph of a bundle in dir, for
// reference.Evaluate: 32-bit numbers, from where the graph says they lie.
func Weights(dir string) func(onnx.Initializer) (reference.Array, error) {
	return func(i onnx.Initializer) (reference.Array, error) {
		if i.Value.DType != onnx.Float {
			return reference.Array{}, fmt.Errorf("%s: only 32-bit weights are read here", i.Value)
		}
		file, err := os.Open(filepath.Join(dir, i.Location.File))
		if err != nil {
			return reference.Array{}, err
		}
		defer file.Close()
		values := make([]float32, i.Location.Length/4)
		if err := binary.Read(io.NewSectionReader(file, i.Location.Offset, i.Location.Length), binary.LittleEndian, values); err != nil {
			return reference.Array{}, err
		}
		w := reference.Array{Data: make([]float64, len(values))}
		for k, x := range values {
			w.Data[k] = float64(x)
		}
		for _, d := range i.Value.Shape {
			n, _ := d.Size()
			w.Shape = append(w.Shape, int(n))
		}
		return w, nil
	}
}

func (s Shape) withDefaults() Shape {
	for _, d := range []struct {
		value    *int
		fallback int
	}{{&s.Vocabulary, 30}, {&s.Hidden, 8}, {&s.Layers, 2}, {&s.Heads, 2}, {&s.Intermediate, 12}, {&s.Positions, 16}} {
		if *d.value == 0 {
			*d.value = d.fallback
		}
	}
	if s.Activation == "" {
		s.Activation = "gelu"
	}
	if s.Spread == 0 {
		s.Spread = 0.02
	}
	return s
}

type weights struct {
	rng     *rand.Rand
	spread  float64
	tensors []safetensors.Data
}

func (w *weights) tensor(name string, mean float64, shape ...int) {
	n := 1
	for _, s := range shape {
		n *= s
	}
	content := make([]byte, 0, 4*n)
	for range n {
		content = binary.LittleEndian.AppendUint32(content, math.Float32bits(float32(mean+w.spread*w.rng.NormFloat64())))
	}
	w.tensors = append(w.tensors, safetensors.Data{Name: name, DType: safetensors.F32, Shape: shape, Content: bytes.NewReader(content)})
}

func (w *weights) linear(name string, out, in int) {
	w.tensor(name+".weight", 0, out, in)
	w.tensor(name+".bias", 0, out)
}

func (w *weights) norm(name string, size int) {
	w.tensor(name+".weight", 1, size)
	w.tensor(name+".bias", 0, size)
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
