package models

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
)

// Config is the architecture of a bundle, from its config.json.
type Config struct {
	ModelType          string // family, such as "bert"
	Architectures      []string
	VocabularySize     int
	HiddenSize         int
	Layers             int
	Heads              int
	IntermediateSize   int
	Activation         Activation
	MaxPositions       int // longest sequence, in tokens, special tokens included
	TypeVocabularySize int
	LayerNormEpsilon   float64
	PaddingID          int
	// TieWordEmbeddings: the output matrix is the word-embedding matrix.
	TieWordEmbeddings bool
}

// Activation is the nonlinearity of the feed-forward blocks and of the head.
type Activation string

// The activations that the configs of BERT models name.
const (
	GELU     Activation = "gelu"      // x Φ(x), with the error function
	GELUTanh Activation = "gelu_tanh" // its tanh approximation: "gelu_new", "gelu_pytorch_tanh"
	ReLU     Activation = "relu"
)

// activations maps the names in use to what they compute.
func activations() map[string]Activation {
	return map[string]Activation{
		"gelu": GELU, "gelu_python": GELU,
		"gelu_new": GELUTanh, "gelu_pytorch_tanh": GELUTanh, "gelu_fast": GELUTanh,
		"relu": ReLU,
	}
}

// Families lists the values of model_type that can be run.
func Families() []string { return []string{"bert"} }

// Limits far above any real model; they keep a damaged config from asking for absurd amounts of memory.
const (
	maxConfigBytes = 1 << 20
	maxVocabulary  = 1 << 24
	maxWidth       = 1 << 20
	maxLayers      = 1 << 10
)

// ParseConfig reads a config.json. Errors name the key, the value found and what would be accepted.
func ParseConfig(data []byte) (Config, error) {
	if len(data) > maxConfigBytes {
		return Config{}, fmt.Errorf("%d bytes, more than the %d that a config can sensibly have", len(data), maxConfigBytes)
	}
	var raw struct {
		ModelType         *string  `json:"model_type"`
		Architectures     []string `json:"architectures"`
		VocabSize         *int     `json:"vocab_size"`
		HiddenSize        *int     `json:"hidden_size"`
		NumHiddenLayers   *int     `json:"num_hidden_layers"`
		NumAttentionHeads *int     `json:"num_attention_heads"`
		IntermediateSize  *int     `json:"intermediate_size"`
		HiddenAct         *string  `json:"hidden_act"`
		MaxPositions      *int     `json:"max_position_embeddings"`
		TypeVocabSize     *int     `json:"type_vocab_size"`
		LayerNormEps      *float64 `json:"layer_norm_eps"`
		PadTokenID        *int     `json:"pad_token_id"`
		PositionType      *string  `json:"position_embedding_type"`
		Tie               *bool    `json:"tie_word_embeddings"`
		IsDecoder         bool     `json:"is_decoder"`
		CrossAttention    bool     `json:"add_cross_attention"`
	}
	if err := json.Unmarshal(data, &raw); err != nil {
		var wrongType *json.UnmarshalTypeError
		if errors.As(err, &wrongType) && wrongType.Field != "" {
			return Config{}, fmt.Errorf("%s: %s where a value of type %s belongs", wrongType.Field, wrongType.Value, wrongType.Type)
		}
		return Config{}, fmt.Errorf("not valid JSON: %w", err)
	}
	if raw.ModelType == nil {
		return Config{}, errors.New("model_type is missing")
	}
	if !slices.Contains(Families(), *raw.ModelType) {
		return Config{}, fmt.Errorf("model_type %.40q is not supported (supported: %s)", *raw.ModelType, strings.Join(Families(), ", "))
	}
	c := Config{ModelType: *raw.ModelType, Architectures: raw.Architectures}
	for _, size := range []struct {
		key      string
		value    *int
		into     *int
		fallback int // of the reference implementation's BertConfig; 0: the key is required
		limit    int
	}{
		{"vocab_size", raw.VocabSize, &c.VocabularySize, 0, maxVocabulary},
		{"hidden_size", raw.HiddenSize, &c.HiddenSize, 0, maxWidth},
		{"num_hidden_layers", raw.NumHiddenLayers, &c.Layers, 0, maxLayers},
		{"num_attention_heads", raw.NumAttentionHeads, &c.Heads, 0, maxWidth},
		{"intermediate_size", raw.IntermediateSize, &c.IntermediateSize, 0, maxWidth},
		{"max_position_embeddings", raw.MaxPositions, &c.MaxPositions, 0, maxWidth},
		{"type_vocab_size", raw.TypeVocabSize, &c.TypeVocabularySize, 2, maxWidth},
	} {
		switch {
		case size.value == nil && size.fallback == 0:
			return Config{}, fmt.Errorf("%s is missing", size.key)
		case size.value == nil:
			*size.into = size.fallback
		case *size.value < 1 || *size.value > size.limit:
			return Config{}, fmt.Errorf("%s is %d, not between 1 and %d", size.key, *size.value, size.limit)
		default:
			*size.into = *size.value
		}
	}
	if c.HiddenSize%c.Heads != 0 {
		return Config{}, fmt.Errorf("hidden_size %d is not a multiple of num_attention_heads %d", c.HiddenSize, c.Heads)
	}
	name := valueOr(raw.HiddenAct, "gelu")
	var ok bool
	if c.Activation, ok = activations()[name]; !ok {
		return Config{}, fmt.Errorf("hidden_act %.40q is not supported (supported: %s)", name, strings.Join(sortedKeys(activations()), ", "))
	}
	if position := valueOr(raw.PositionType, "absolute"); position != "absolute" {
		return Config{}, fmt.Errorf("position_embedding_type %.40q is not supported (supported: absolute)", position)
	}
	if raw.IsDecoder || raw.CrossAttention {
		return Config{}, errors.New("is_decoder or add_cross_attention is true: a masked language model attends in both directions")
	}
	c.LayerNormEpsilon = valueOr(raw.LayerNormEps, 1e-12)
	if !(c.LayerNormEpsilon >= 0 && c.LayerNormEpsilon < 1) || math.IsInf(c.LayerNormEpsilon, 0) {
		return Config{}, fmt.Errorf("layer_norm_eps is %g, not between 0 and 1", c.LayerNormEpsilon)
	}
	c.PaddingID = valueOr(raw.PadTokenID, 0)
	if c.PaddingID < 0 || c.PaddingID >= c.VocabularySize {
		return Config{}, fmt.Errorf("pad_token_id %d is outside the vocabulary of %d", c.PaddingID, c.VocabularySize)
	}
	c.TieWordEmbeddings = valueOr(raw.Tie, true)
	return c, nil
}

func valueOr[T any](p *T, fallback T) T {
	if p == nil {
		return fallback
	}
	return *p
}
