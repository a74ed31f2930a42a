package models

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"
)

// Config is the architecture of a bundle, from its config.json. Families name
// these values differently; here, each value has one name.
type Config struct {
	ModelType      string // family, such as "bert"
	Architectures  []string
	VocabularySize int
	// width of the word embeddings and of the vectors that the output matrix
	// multiplies; in most families HiddenSize
	EmbeddingSize int
	HiddenSize    int
	Layers        int // layers that a text passes; shared weights count each time
	// Groups and PerGroup say how layers share weights (ALBERT):
	// Layers/PerGroup steps are spread over Groups sets of weights, and each
	// set has PerGroup layers. Both are 0 if every layer has its own weights.
	Groups, PerGroup int
	Heads            int
	IntermediateSize int
	// Activation and HeadActivation name the nonlinearities of the
	// feed-forward blocks and of the head: "gelu", x Φ(x) with the error
	// function; "gelu_tanh", its tanh approximation; "relu"; "tanh"; "silu", x
	// times logistic x.
	Activation, HeadActivation string
	MaxPositions               int // longest text, in tokens, special tokens included
	// PositionOffset is the row of the position table for position 0: RoBERTa
	// leaves the rows up to its padding id unused.
	PositionOffset int
	// PositionTable reports whether a DeBERTa adds position embeddings to the
	// word embeddings, as other families do.
	PositionTable      bool
	TypeVocabularySize int // 0 without segment embeddings
	// Segments is 2 if the second text of a pair has the segment id 1.
	// This holds in families with segments, unless a manifest says that
	// the model was trained with one segment. Otherwise, all tokens have
	// the segment id 0.
	Segments         int
	Tasks            int // number of task embeddings (ERNIE adds the first), or 0
	LayerNormEpsilon float64
	PaddingID        int
	// TieWordEmbeddings reports whether the output matrix is the matrix of
	// word embeddings.
	TieWordEmbeddings bool
	// PreNorm holds the settings of families whose layers normalise before each
	// block, and is nil in other families.
	PreNorm *PreNorm
	// Relative holds the settings that only DeBERTa has, and is nil in
	// every other family.
	Relative *RelativeAttention
	// Imported describes an ONNX graph that others exported, with only the fields
	// that every model needs; nil for every family.
	Imported *Imported
}

// RelativeAttention describes DeBERTa's attention (He et al. 2021), in which
// distances between tokens have embeddings.
type RelativeAttention struct {
	Span     int // number of embeddings for distances to one side
	Buckets  int // distances above Buckets/2 share embeddings, on a logarithmic scale; if 0, each distance has its own
	Farthest int // all distances from this one on share one embedding
	// These say which scores are added: query content with key distance, and
	// key content with query distance.
	ContentToPosition, PositionToContent bool
	// SharedKey reports whether content and distances share the query and key matrices.
	SharedKey bool
	// NormEmbeddings reports whether the embeddings of distances are normalised.
	NormEmbeddings bool
	// Convolution is the width of a convolution beside the first layer, or 0
	// without a convolution.
	Convolution           int
	ConvolutionActivation string
	// Legacy reports whether the tensors of the head have BERT's names.
	Legacy bool
}

// PreNorm holds the settings of families whose layers normalise before each
// block: ModernBERT (Warner et al. 2024).
type PreNorm struct {
	// Window bounds, for each layer, the distance that a position sees: |i −
	// j| ≤ Window. 0 means no bound.
	Window []int
	// GlobalTheta and LocalTheta are the bases of the rotary angles of layers
	// without and with a window.
	GlobalTheta, LocalTheta float64
	// These say which parts have a bias.
	NormBias, AttentionBias, FeedForwardBias, HeadBias, DecoderBias bool
}

// activations maps the names of activations in config.json to the names in Config.
func activations() map[string]string {
	return map[string]string{
		"gelu": "gelu", "gelu_python": "gelu", "gelu_new": "gelu_tanh", "gelu_pytorch_tanh": "gelu_tanh",
		"gelu_fast": "gelu_tanh",
		"relu":      "relu", "tanh": "tanh", "silu": "silu", "swish": "silu",
	}
}

// These limits are far above any real model. They keep a damaged config from
// asking for absurd amounts of memory.
const (
	maxConfigBytes = 1 << 20
	maxVocabulary  = 1 << 24
	maxWidth       = 1 << 20
	maxLayers      = 1 << 10
)

// ParseConfig reads a config.json. An error names key, value and valid values.
func ParseConfig(data []byte) (Config, error) {
	if len(data) > maxConfigBytes {
		return Config{},
			fmt.Errorf("%d bytes, more than the %d that a config can sensibly have", len(data), maxConfigBytes)
	}
	r := &configReader{}
	if err := json.Unmarshal(data, &r.fields); err != nil {
		return Config{}, fmt.Errorf("not valid JSON: %w", err)
	}
	name := get(r, "model_type", "")
	if r.err != nil {
		return Config{}, r.err
	}
	if name == "" {
		return Config{}, errors.New("model_type is missing")
	}
	if name == importedFamily {
		return parseImported(data)
	}
	family, ok := families()[name]
	if !ok {
		return Config{}, fmt.Errorf("model_type %.40q is not supported (supported: %s); a graph that was exported to "+
			"ONNX may run: infill models import", name, strings.Join(Families(), ", "))
	}
	c := Config{ModelType: name}
	read(r, "architectures", &c.Architectures)
	if get(r, "is_decoder", false) || get(r, "add_cross_attention", false) {
		r.fail("is_decoder or add_cross_attention is true: a masked language model attends in both directions")
	}
	var quantized map[string]any
	if read(r, "quantization_config", &quantized) {
		r.fail("quantization_config (%.40v): infill reads no quantized weights; take the model that these were made "+
			"of, and make it int8 with infill models quantize", quantized["quant_method"])
	}
	c.VocabularySize = r.size("vocab_size", 0, maxVocabulary)
	c.TieWordEmbeddings = get(r, "tie_word_embeddings", true)
	c.PaddingID = family.padding
	read(r, "pad_token_id", &c.PaddingID)
	if r.err == nil && (c.PaddingID < 0 || c.PaddingID >= c.VocabularySize) {
		r.fail("pad_token_id %d is outside the vocabulary of %d", c.PaddingID, c.VocabularySize)
	}
	family.parse(r, &c)
	c.HeadActivation = cmp.Or(c.HeadActivation, c.Activation)
	if r.err != nil {
		return Config{}, r.err
	}
	return c, nil
}

// configReader reads the keys of a config.json, and keeps the first error.
type configReader struct {
	fields map[string]json.RawMessage
	err    error
}

func (r *configReader) fail(format string, arguments ...any) {
	r.err = cmp.Or(r.err, fmt.Errorf(format, arguments...))
}

// read decodes the value of key to into. It returns false if the key is
// missing, null, or of another type.
func read[T any](r *configReader, key string, into *T) bool {
	raw, ok := r.fields[key]
	if !ok || string(raw) == "null" {
		return false
	}
	err := json.Unmarshal(raw, into)
	var wrongType *json.UnmarshalTypeError
	switch {
	case errors.As(err, &wrongType):
		kind := wrongType.Type.String()
		k := wrongType.Type.Kind()
		if k == reflect.Struct || k == reflect.Map {
			kind = "object"
		}
		r.fail("%s: %s where a value of type %s belongs", key, wrongType.Value, kind)
	case err != nil:
		r.fail("%s: %w", key, err)
	}
	return err == nil
}

func (r *configReader) size(key string, fallback, limit int) int {
	n := fallback
	found := read(r, key, &n)
	switch {
	case r.err != nil:
	case !found && fallback == 0:
		r.fail("%s is missing", key)
	case n < 1 || n > limit:
		r.fail("%s is %d, not between 1 and %d", key, n, limit)
	}
	return n
}

func get[T any](r *configReader, key string, fallback T) T {
	read(r, key, &fallback)
	return fallback
}

// number reads a number x with low <= x < high. Like transformers 5, it refuses
// null, which is no word for the fallback.
func (r *configReader) number(key string, fallback, low, high float64) float64 {
	if string(r.fields[key]) == "null" {
		r.fail("%s is null: write the number that the model was trained with", key)
	}
	read(r, key, &fallback)
	if !(fallback >= low && fallback < high) || math.IsInf(fallback, 0) {
		r.fail("%s is %g, not between %g and %g", key, fallback, low, high)
	}
	return fallback
}

func (r *configReader) activation(key, fallback string) string {
	name := only(r, key, get(r, key, fallback), slices.Sorted(maps.Keys(activations()))...)
	return activations()[name]
}

// only returns value, and fails unless it is supported, naming key.
func only[T comparable](r *configReader, key string, value T, supported ...T) T {
	if r.err == nil && !slices.Contains(supported, value) {
		shown := fmt.Sprint(value)
		text, ok := any(value).(string)
		if ok {
			shown = fmt.Sprintf("%.40q", text)
		}
		list := strings.Trim(strings.ReplaceAll(fmt.Sprint(supported), " ", ", "), "[]")
		r.fail("%s %s is not supported (supported: %s)", key, shown, list)
	}
	return value
}
