package models_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"infill/internal/check"
	"infill/internal/modelstest"
	"infill/models"
)

// altered is the tiny model's config.json with one key set, or removed
// where value is nil.
func altered(t testing.TB, key string, value any) []byte {
	t.Helper()
	var fields map[string]any
	check.OK(t, json.Unmarshal([]byte(modelstest.Tiny), &fields))
	fields[key] = value
	if value == nil {
		delete(fields, key)
	}
	data := check.Must(json.Marshal(fields))(t)
	return data
}

func TestParseConfigAccepts(t *testing.T) {
	for _, c := range []struct {
		key    string
		value  any
		change func(*models.Config)
	}{
		{"type_vocab_size", nil, func(c *models.Config) { c.TypeVocabularySize, c.Segments = 2, 2 }},
		{"layer_norm_eps", nil, func(c *models.Config) { c.LayerNormEpsilon = 1e-12 }},
		{"layer_norm_eps", 1e-5, func(c *models.Config) { c.LayerNormEpsilon = 1e-5 }},
		{"pad_token_id", nil, func(c *models.Config) { c.PaddingID = 0 }},
		{"pad_token_id", 3, func(c *models.Config) { c.PaddingID = 3 }},
		{"tie_word_embeddings", nil, func(c *models.Config) { c.TieWordEmbeddings = true }},
		{"tie_word_embeddings", false, func(c *models.Config) { c.TieWordEmbeddings = false }},
		{"hidden_act", nil, func(c *models.Config) { c.Activation = "gelu" }},
		{"hidden_act", "gelu_new",
			func(c *models.Config) { c.Activation, c.HeadActivation = "gelu_tanh", "gelu_tanh" }},
		{"hidden_act", "gelu_pytorch_tanh",
			func(c *models.Config) { c.Activation, c.HeadActivation = "gelu_tanh", "gelu_tanh" }},
		{"hidden_act", "relu", func(c *models.Config) { c.Activation, c.HeadActivation = "relu", "relu" }},
		{"position_embedding_type", "absolute", func(*models.Config) {}},
		{"transformers_version", "4.0", func(*models.Config) {}},
		{"quantization_config", json.RawMessage("null"), func(*models.Config) {}},
	} {
		want := check.Must(models.ParseConfig([]byte(modelstest.Tiny)))(t)
		c.change(&want)
		got, err := models.ParseConfig(altered(t, c.key, c.value))
		if err != nil {
			t.Errorf("%s = %v: %v", c.key, c.value, err)
			continue
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s = %v (-want +got):\n%s", c.key, c.value, diff)
		}
	}
}

func TestParseConfigRefuses(t *testing.T) {
	for _, c := range []struct {
		key   string
		value any
		want  string
	}{
		{"model_type", nil, "model_type is missing"},
		{"model_type", "gpt2",
			`model_type "gpt2" is not supported (supported: ` + strings.Join(models.Families(), ", ") + ")"},
		{"model_type", "bart", `model_type "bart" is not supported (supported: `},
		{"model_type", 7, "model_type: number where a value of type string belongs"},
		{"vocab_size", nil, "vocab_size is missing"},
		{"vocab_size", 0, "vocab_size is 0, not between 1 and"},
		{"vocab_size", 1 << 40, "vocab_size is 1099511627776, not between"},
		{"vocab_size", "many", "vocab_size: string where a value of type int belongs"},
		{"vocab_size", 1.5, "vocab_size: number 1.5 where a value of type int belongs"},
		{"hidden_size", nil, "hidden_size is missing"},
		{"hidden_size", -16, "hidden_size is -16"},
		{"num_hidden_layers", nil, "num_hidden_layers is missing"},
		{"num_hidden_layers", 100000, "num_hidden_layers is 100000"},
		{"num_attention_heads", nil, "num_attention_heads is missing"},
		{"num_attention_heads", 3, "hidden_size 16 is not a multiple of num_attention_heads 3"},
		{"intermediate_size", nil, "intermediate_size is missing"},
		{"max_position_embeddings", nil, "max_position_embeddings is missing"},
		{"type_vocab_size", 0, "type_vocab_size is 0"},
		{"hidden_act", "swiglu",
			`hidden_act "swiglu" is not supported (supported: gelu, gelu_fast, gelu_new, gelu_python, gelu_pytorch_tanh, relu, silu, swish, tanh)`},
		{"position_embedding_type", "relative_key",
			`position_embedding_type "relative_key" is not supported (supported: absolute)`},
		{"is_decoder", true, "attends in both directions"},
		{"add_cross_attention", true, "attends in both directions"},
		{"layer_norm_eps", -1, "layer_norm_eps is -1"},
		{"layer_norm_eps", 1, "layer_norm_eps is 1, not between"},
		{"layer_norm_eps", json.RawMessage("null"), "layer_norm_eps is null: write the number"},
		{"quantization_config", map[string]any{"quant_method": "bitsandbytes", "load_in_8bit": true},
			"quantization_config (bitsandbytes): infill reads no quantized weights; take the model that these were"},
		{"pad_token_id", 64, "pad_token_id 64 is outside the vocabulary of 64"},
		{"pad_token_id", -1, "pad_token_id -1 is outside"},
		{"padding", strings.Repeat("x", 1<<20), "more than the 1048576"},
	} {
		_, err := models.ParseConfig(altered(t, c.key, c.value))
		check.Says(t, err, c.want)
	}
	for _, text := range []string{"", "{", "[]", "null", "7"} {
		if _, err := models.ParseConfig([]byte(text)); err == nil {
			t.Errorf("%q is taken for a config", text)
		}
	}
}

// FuzzParseConfig: no panic, and an accepted config asks for nothing absurd.
func FuzzParseConfig(f *testing.F) {
	f.Add(altered(f, "none", nil))
	f.Add([]byte(`{"model_type":"bert","layer_norm_eps":1e400}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := models.ParseConfig(data)
		if err != nil {
			return
		}
		if c.HiddenSize%c.Heads != 0 || c.VocabularySize < 1 || c.VocabularySize > 1<<24 || c.PaddingID < 0 ||
			c.PaddingID >= c.VocabularySize ||
			c.Layers < 1 || c.Layers > 1<<10 || !(c.LayerNormEpsilon >= 0 && c.LayerNormEpsilon < 1) {
			t.Errorf("accepted: %+v", c)
		}
	})
}
