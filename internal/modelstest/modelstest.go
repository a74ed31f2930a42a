// Package modelstest makes bundles with random weights, for tests.
package modelstest

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"

	"github.com/x448/float16"

	"infill/internal/safetensors"
	"infill/models"
)

// Tiny is the config.json of a BERT with about 5,000 weights.
const Tiny = `{"model_type": "bert", "architectures": ["BertForMaskedLM"], "vocab_size": 64, "hidden_size": 16, "num_hidden_layers": 2,
  "num_attention_heads": 2, "intermediate_size": 32, "hidden_act": "gelu", "max_position_embeddings": 24, "type_vocab_size": 2,
  "layer_norm_eps": 1e-12, "pad_token_id": 0, "tie_word_embeddings": true}`

// Options say how to draw the weights of a bundle.
type Options struct {
	DType  string  // "F16", or "F32", which is the default
	Spread float64 // standard deviation of the weights; default 0.02, BERT's own initialisation
	Seed   uint64
}

// Write makes a bundle without a manifest in dir, for a config.json of any
// family. Weights are normal with mean 0, or mean 1 for the scales of a
// LayerNorm. The vocabulary is that of a WordPiece tokenizer: special tokens,
// letters, letters that continue a word, and numbered words.
func Write(dir, config string, o Options) error {
	c, err := models.ParseConfig([]byte(config))
	if err != nil {
		return err
	}
	o.DType = cmp.Or(o.DType, "F32")
	o.Spread = cmp.Or(o.Spread, 0.02)
	random := rand.New(rand.NewPCG(o.Seed, 0))
	var tensors []safetensors.Data
	for _, t := range c.Tensors() {
		mean := 0.0
		if len(t.Shape) == 1 && strings.HasSuffix(t.Name, ".weight") {
			mean = 1 // for the scales of a LayerNorm
		}
		n := 1
		for _, d := range t.Shape {
			n *= d
		}
		tensors = append(tensors,
			safetensors.Data{Name: t.Name, DType: safetensors.DType(o.DType), Shape: t.Shape,
				Content: func() ([]byte, error) { return o.normal(mean, n, random), nil }})
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for name, content := range map[string]string{
		"config.json":           config,
		"vocab.txt":             strings.Join(vocabulary(c.VocabularySize), "\n") + "\n",
		"tokenizer_config.json": `{"do_lower_case": true, "tokenizer_class": "BertTokenizer"}`,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
			return err
		}
	}
	file, err := os.Create(filepath.Join(dir, "model.safetensors"))
	if err != nil {
		return err
	}
	buffered := bufio.NewWriterSize(file, 1<<20)
	return errors.Join(safetensors.Write(buffered, map[string]string{"format": "pt"}, tensors), buffered.Flush(),
		file.Close())
}

func vocabulary(n int) []string {
	words := []string{"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"}
	for _, prefix := range []string{"", "##"} {
		for letter := 'a'; letter <= 'z'; letter++ {
			words = append(words, prefix+string(letter))
		}
	}
	for len(words) < n {
		words = append(words, fmt.Sprintf("word%d", len(words)))
	}
	return words[:n]
}

// Shard divides the weights of the bundle in dir between two files, with an
// index, as save_pretrained of transformers does with a large model.
func Shard(dir string) error {
	weights := filepath.Join(dir, "model.safetensors")
	file, err := safetensors.Open(weights)
	if err != nil {
		return err
	}
	var parts [2][]safetensors.Data
	where := map[string]string{}
	shard := func(i int) string { return fmt.Sprintf("model-0000%d-of-00002.safetensors", i+1) }
	for i, name := range file.Names() {
		t, _ := file.Tensor(name)
		parts[i%2] = append(parts[i%2], safetensors.Data{Name: name, DType: t.DType, Shape: t.Shape, Content: t.Bytes})
		where[name] = shard(i % 2)
	}
	for i, part := range parts {
		var content bytes.Buffer
		err := safetensors.Write(&content, nil, part)
		if err != nil {
			return err
		}
		err = os.WriteFile(filepath.Join(dir, shard(i)), content.Bytes(), 0o644)
		if err != nil {
			return err
		}
	}
	index, err := json.Marshal(map[string]any{"metadata": map[string]int{"total_size": 1}, "weight_map": where})
	if err != nil {
		return err
	}
	return errors.Join(os.WriteFile(weights+".index.json", index, 0o644), os.Remove(weights))
}

// Bytes returns a function that returns content, for safetensors.Data.
func Bytes(content []byte) func() ([]byte, error) {
	return func() ([]byte, error) { return content, nil }
}

// normal returns n normally distributed numbers, encoded as o.DType.
func (o Options) normal(mean float64, n int, random *rand.Rand) (content []byte) {
	for range n {
		x := float32(mean + o.Spread*random.NormFloat64())
		if o.DType == "F16" {
			content = binary.LittleEndian.AppendUint16(content, float16.Fromfloat32(x).Bits())
		} else {
			content = binary.LittleEndian.AppendUint32(content, math.Float32bits(x))
		}
	}
	return content
}

// Int8 copies a bundle in int8 to the store dir, as Store.Quantize does.
func Int8(ctx context.Context, dir string, bundle *models.Bundle, largest map[string][]float32) (*models.Bundle,
	error) {
	noCard := func(*models.Bundle) ([]byte, error) { return nil, nil }
	return (&models.Store{Dir: dir}).Quantize(ctx, bundle, "int8", largest, noCard)
}

// Largest makes up the largest values of inputs: 1, 2, 4, to 128, and again.
func Largest(bundle *models.Bundle) map[string][]float32 {
	largest := map[string][]float32{}
	for _, s := range bundle.Config.Spreads() {
		for i := range s.Width {
			largest[s.Name] = append(largest[s.Name], float32(int(1)<<(i%8)))
		}
	}
	return largest
}
