package models_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"infill/internal/check"
	"infill/internal/safetensors"
	"infill/models"
)

// stored reads what the reference implementation wrote for a family, with keys
// altered; nil removes a key.
func stored(t testing.TB, folder string, change map[string]any) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "internal", "bert", "testdata", folder, "config.json"))
	check.OK(t, err)
	var fields map[string]any
	check.OK(t, json.Unmarshal(data, &fields))
	for key, value := range change {
		fields[key] = value
		if value == nil {
			delete(fields, key)
		}
	}
	if data, err = json.Marshal(fields); err != nil {
		t.Fatal(err)
	}
	return data
}

// What is read from the configs that the reference implementation writes, and
// from their older forms.
func TestParseConfigOfFamilies(t *testing.T) {
	type change = map[string]any
	sizes := models.Config{EmbeddingSize: 16, HiddenSize: 16, Layers: 2, Heads: 2, IntermediateSize: 24,
		Activation:     "gelu",
		HeadActivation: "gelu", MaxPositions: 20, TypeVocabularySize: 2, LayerNormEpsilon: 1e-12,
		TieWordEmbeddings: true}
	for _, c := range []struct {
		name, folder string
		change       change
		want         func(*models.Config)
	}{
		{"bert", "bert", nil, func(c *models.Config) { c.VocabularySize = 62 }},
		{"distilbert", "distilbert", nil, func(c *models.Config) { c.VocabularySize, c.TypeVocabularySize = 62, 0 }},
		{"electra", "electra", nil,
			func(c *models.Config) { c.VocabularySize, c.EmbeddingSize, c.Activation = 62, 12, "relu" }},
		{"electra of the usual width", "electra-unprojected", change{"embedding_size": nil, "hidden_size": 128},
			func(c *models.Config) {
				c.VocabularySize, c.EmbeddingSize, c.HiddenSize = 62, 128, 128
			}},
		{"roberta", "roberta", nil, func(c *models.Config) {
			c.VocabularySize, c.TypeVocabularySize, c.LayerNormEpsilon = 300, 1, 1e-5
			c.PaddingID, c.PositionOffset = 1, 2
		}},
		{"roberta without pad_token_id", "roberta", change{"pad_token_id": nil}, func(c *models.Config) {
			c.VocabularySize, c.TypeVocabularySize, c.LayerNormEpsilon = 300, 1, 1e-5
			c.PaddingID, c.PositionOffset = 1, 2
		}},
		{"roberta with a row for a second segment, which it does not use", "roberta", change{"type_vocab_size": 2},
			func(c *models.Config) {
				c.VocabularySize, c.TypeVocabularySize, c.LayerNormEpsilon = 300, 2, 1e-5
				c.PaddingID, c.PositionOffset, c.Segments = 1, 2, 1
			}},
		{"camembert", "xlm-roberta", change{"model_type": "camembert"}, func(c *models.Config) {
			c.VocabularySize, c.TypeVocabularySize, c.LayerNormEpsilon = 76, 1, 1e-5
			c.PaddingID, c.PositionOffset = 1, 2
		}},
		{"albert", "albert", nil, func(c *models.Config) {
			c.VocabularySize, c.EmbeddingSize, c.Groups, c.PerGroup = 76, 12, 1, 1
			c.Activation, c.HeadActivation = "gelu_tanh", "gelu_tanh"
		}},
		{"albert with groups", "albert-groups", nil, func(c *models.Config) {
			c.VocabularySize, c.EmbeddingSize, c.Groups, c.PerGroup, c.Layers = 76, 12, 2, 2, 8
		}},
		{"deberta-v2", "deberta-v2", nil, func(c *models.Config) {
			c.VocabularySize, c.TypeVocabularySize, c.LayerNormEpsilon = 80, 0, 1e-7
			c.Relative = &models.RelativeAttention{Span: 4, Buckets: 4, Farthest: 20, ContentToPosition: true,
				PositionToContent: true,
				SharedKey:         true, NormEmbeddings: true, Convolution: 3, ConvolutionActivation: "gelu"}
		}},
		{"deberta-v2 in the older writing", "deberta-v2",
			change{"pos_att_type": "p2c|c2p", "norm_rel_ebd": "none", "conv_kernel_size": nil, "position_buckets": -1},
			func(c *models.Config) {
				c.VocabularySize, c.TypeVocabularySize, c.LayerNormEpsilon = 80, 0, 1e-7
				c.Relative = &models.RelativeAttention{Span: 20, Farthest: 20, ContentToPosition: true,
					PositionToContent: true, SharedKey: true}
			}},
		{"ernie", "ernie", nil, func(c *models.Config) { c.VocabularySize, c.Tasks = 62, 3 }},
		{"modernbert", "modernbert", nil, modern},
		{"modernbert of the first generation", "modernbert",
			change{"layer_types": nil, "rope_parameters": nil, "global_attn_every_n_layers": 3,
				"global_rope_theta": 160000.0, "local_rope_theta": 10000.0}, modern},
		{"modernbert with other angles", "modernbert",
			change{"rope_parameters": nil, "global_rope_theta": 5e4, "local_rope_theta": 2e4}, func(c *models.Config) {
				modern(c)
				c.PreNorm.GlobalTheta, c.PreNorm.LocalTheta = 5e4, 2e4
			}},
	} {
		want := sizes
		if c.want(&want); want.Segments == 0 {
			want.Segments = min(want.TypeVocabularySize, 2)
		}
		got, err := models.ParseConfig(stored(t, c.folder, c.change))
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		got.ModelType, got.Architectures = "", nil
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}

func modern(c *models.Config) {
	c.VocabularySize, c.TypeVocabularySize, c.LayerNormEpsilon, c.PaddingID, c.Layers = 315, 0, 1e-5, 305, 4
	c.PreNorm = &models.PreNorm{Window: []int{0, 2, 2, 0}, GlobalTheta: 160000, LocalTheta: 10000, DecoderBias: true}
}

func TestParseConfigOfFamiliesRefuses(t *testing.T) {
	for _, c := range []struct {
		folder, key string
		value       any
		want        string
	}{
		{"distilbert", "dim", nil, "dim is missing"},
		{"distilbert", "n_heads", 3, "dim 16 is not a multiple of n_heads 3"},
		{"distilbert", "activation", "mish", `activation "mish" is not supported`},
		{"electra", "embedding_size", 0, "embedding_size is 0"},
		{"electra", "num_attention_heads", 5, "hidden_size 16 is not a multiple of num_attention_heads 5"},
		{"roberta", "max_position_embeddings", 2,
			"max_position_embeddings is 2, of which 2 rows stand for no position"},
		{"roberta", "position_embedding_type", "relative_key_query",
			`position_embedding_type "relative_key_query" is not supported`},
		{"roberta", "pad_token_id", 300, "pad_token_id 300 is outside the vocabulary of 300"},
		{"albert", "num_hidden_groups", 3, "num_hidden_layers 2 is not a multiple of num_hidden_groups 3"},
		{"albert", "inner_group_num", 1000, "num_hidden_layers times inner_group_num is 2000"},
		{"albert", "inner_group_num", 0, "inner_group_num is 0"},
		{"deberta-v2", "relative_attention", false, "relative_attention false is not supported (supported: true)"},
		{"deberta-v2", "pos_att_type", "p2p|c2p", `pos_att_type "p2p" is not supported (supported: c2p, p2c)`},
		{"deberta-v2", "norm_rel_ebd", "rms", `norm_rel_ebd "rms" is not supported`},
		{"deberta-v2", "embedding_size", 8, "embedding_size 8 is not supported (supported: hidden_size, 16)"},
		{"deberta-v2", "attention_head_size", 4, "attention_head_size 4 is not supported (supported: 8)"},
		{"deberta-v2", "conv_kernel_size", 4, "conv_kernel_size is 4, not an odd number"},
		{"deberta-v2", "conv_groups", 2, "conv_groups 2 is not supported"},
		{"deberta-v2", "position_buckets", 1, "position_buckets 1 with max_relative_positions 20"},
		{"deberta-v2", "max_relative_positions", 1 << 30, "max_relative_positions 1073741824 are no scale"},
		{"modernbert", "num_attention_heads", 16, "hidden_size 16 over num_attention_heads 16 is odd"},
		{"modernbert", "layer_types", []string{"full_attention"}, "layer_types names 1 layers, num_hidden_layers is 4"},
		{"modernbert", "layer_types", []string{"a", "b", "c", "d"},
			`layer_types: "a" is not supported (supported: full_attention, sliding_attention)`},
		{"modernbert", "local_attention", 1, "a layer with a window would see one position"},
		{"modernbert", "rope_parameters", map[string]any{"sliding_attention": map[string]any{"type": "linear"}},
			`rope_type of sliding_attention "linear" is not supported`},
		{"modernbert", "rope_parameters", map[string]any{"rope_type": "default"},
			"rope_parameters: string where a value of type object belongs"},
		{"modernbert", "rope_scaling", map[string]any{"type": "linear"}, "rope_scaling is not supported"},
		{"modernbert", "rope_parameters", map[string]any{"full_attention": map[string]any{"rope_type": "yarn"}},
			`rope_type of full_attention "yarn" is not supported`},
		{"modernbert", "rope_parameters", map[string]any{"sliding_attention": map[string]any{"rope_theta": 0.5}},
			"rope_theta of sliding_attention is 0.5"},
		{"modernbert", "hidden_activation", "swiglu", `hidden_activation "swiglu" is not supported`},
	} {
		_, err := models.ParseConfig(stored(t, c.folder, map[string]any{c.key: c.value}))
		check.Says(t, err, c.want)
	}
}

// The tensors that a config asks for are those that the reference
// implementation stores, but for those that no graph reads.
func TestTensorsOfFamilies(t *testing.T) {
	unread := []string{"roberta.embeddings.position_ids", "cls.predictions.bias", "lm_head.bias", "predictions.bias"}
	folders, err := filepath.Glob(filepath.Join("..", "internal", "bert", "testdata", "*", "config.json"))
	if err != nil || len(folders) == 0 {
		t.Fatal(folders, err)
	}
	for _, file := range folders {
		dir := filepath.Dir(file)
		b, err := models.Open(dir)
		if err != nil {
			t.Error(err)
			continue
		}
		read := map[string]bool{}
		for _, want := range b.Config.Tensors() {
			tensor, ok := b.Tensor(want.Name)
			if !ok {
				t.Errorf("%s: no tensor %s", dir, want.Name)
			}
			read[tensor.Name] = true
		}
		for _, name := range b.Weights().Names() {
			if !read[name] && !slices.Contains(unread, name) {
				t.Errorf("%s: tensor %s is stored and not read", dir, name)
			}
		}
	}
}

// Each family's bundle without its head is refused, and the head named.
func TestFamiliesWithoutHead(t *testing.T) {
	for folder, head := range map[string]string{
		"bert": "cls.predictions.transform.dense.weight", "distilbert": "vocab_transform.weight",
		"electra": "generator_predictions.dense.weight",
		"roberta": "lm_head.dense.weight", "xlm-roberta": "lm_head.dense.weight", "albert": "predictions.dense.weight",
		"deberta-v2":        "lm_predictions.lm_head.dense.weight",
		"deberta-v2-legacy": "cls.predictions.transform.dense.weight",
		"modernbert":        "head.dense.weight",
		"data2vec-text":     "lm_head.dense.weight", "ernie": "cls.predictions.transform.dense.weight",
	} {
		for _, encoder := range []bool{false, true} {
			dir := copyOf(t, folder)
			b := check.Must(models.Open(dir))(t)
			_, parts := b.Config.TensorParts()
			rewrite(t, dir, func(d *safetensors.Data) bool {
				if encoder { // as it is stored by itself
					_, d.Name, _ = strings.Cut(d.Name, ".")
				}
				return !slices.ContainsFunc(parts, func(part models.Tensor) bool {
					stored, _ := b.Tensor(part.Name)
					return strings.HasSuffix(stored.Name, d.Name)
				})
			})
			_, err := models.Open(dir)
			check.Says(t, err, "no masked-language-model head: tensor "+head+" is missing")
		}
	}
}

// copyOf copies a family's bundle.
func copyOf(t testing.TB, folder string) string {
	t.Helper()
	dir := t.TempDir()
	check.OK(t, os.CopyFS(dir, os.DirFS(filepath.Join("..", "internal", "bert", "testdata", folder))))
	return dir
}

// Each family of transformers' mapping for masked language models is run, or
// refused in one line with a remedy, and the documentation says which.
func TestMaskedMapping(t *testing.T) {
	page := string(read(t, filepath.Join("..", "docs", "reference"), "models.md"))
	for _, name := range strings.Fields(string(read(t, "testdata", "masked_mapping.txt"))) {
		_, err := models.ParseConfig([]byte(fmt.Sprintf(`{"model_type": %q}`, name)))
		runs := slices.Contains(models.Families(), name)
		if err == nil || strings.Contains(err.Error(), "infill models import") == runs ||
			strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: error %v", name, err)
		}
		if row := regexp.MustCompile("`" + name + "`.*\\| (yes|no: .*) \\|\n").FindStringSubmatch(page); row == nil ||
			(row[1] == "yes") != runs {
			t.Errorf("%s: the documentation has %q", name, row)
		}
	}
}
