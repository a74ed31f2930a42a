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

// Config is the architecture of a bundle, from its config.json. Families use different names for these values;
// here each has one name.
type Config struct {
	ModelType      string // family, such as "bert"
	Architectures  []string
	VocabularySize int
	// width of the word embeddings and of the vectors that the output matrix multiplies; most families: HiddenSize
	EmbeddingSize int
	HiddenSize    int
	Layers        int // layers that a text passes, shared weights counted each time
	// Groups and PerGroup say how layers share weights (ALBERT): Layers/PerGroup steps, spread over Groups sets of
	// weights of PerGroup layers each. Both are 0 if every layer has its own.
	Groups, PerGroup int
	Heads            int
	IntermediateSize int
	// The nonlinearities of the feed-forward blocks and of the head: "gelu", x Φ(x) with the error function;
	// "gelu_tanh", its tanh approximation; "relu"; "tanh"; "silu", x times the logistic function of x.
	Activation, HeadActivation string
	MaxPositions               int // longest sequence, in tokens, special tokens included
	// PositionOffset is the row of the position table that holds position 0: RoBERTa leaves the rows up to its padding
	// id unused.
	PositionOffset int
	// PositionTable reports whether a DeBERTa adds position embeddings to the words', as other families do.
	PositionTable      bool
	TypeVocabularySize int // 0: no segment embeddings
	// Segments is 2 if the second text of a pair has the segment id 1: in families with segments, unless a manifest
	// says that the model was trained with one. Otherwise all tokens have the segment id 0.
	Segments         int
	Tasks            int // the number of task embeddings (ERNIE adds the first); 0: none
	LayerNormEpsilon float64
	PaddingID        int
	// TieWordEmbeddings reports whether the output matrix is the word-embedding matrix, and not a different one.
	TieWordEmbeddings bool
	// PreNorm holds the settings of families whose layers normalise before each block; nil if they do it after.
	PreNorm *PreNorm
	// Relative holds the settings that DeBERTa alone has; nil in every other family.
	Relative *RelativeAttention
	// Imported describes an ONNX graph that others exported; nil for every family. Such a Config otherwise has only the
	// fields that every model needs.
	Imported *Imported
}

// RelativeAttention describes DeBERTa's attention (He et al. 2021): distances between tokens have embeddings of
// their own.
type RelativeAttention struct {
	Span     int // the number of embeddings for distances to one side
	Buckets  int // distances above Buckets/2 share embeddings, on a logarithmic scale; 0: every distance has its own
	Farthest int // all distances from this one on share one embedding
	// The added scores: of a query's content with the key's distance, and of a key's content with the query's distance.
	ContentToPosition, PositionToContent bool
	// SharedKey reports whether the matrices of content serve distances too.
	SharedKey bool
	// NormEmbeddings reports whether the distances' embeddings are normalised.
	NormEmbeddings bool
	// Convolution is the width of a convolution beside the first layer; 0 without one.
	Convolution           int
	ConvolutionActivation string
	// Legacy reports whether the tensors of the head have BERT's names.
	Legacy bool
}

// PreNorm holds the properties of families whose layers normalise before each block: ModernBERT (Warner et al. 2024).
type PreNorm struct {
	// Window bounds, for each layer, the distance that a position sees: |i − j| ≤ Window. 0 is no bound.
	Window []int
	// GlobalTheta and LocalTheta are the bases of the rotary angles of layers without and with a window.
	GlobalTheta, LocalTheta float64
	// The parts that have a bias.
	NormBias, AttentionBias, FeedForwardBias, HeadBias, DecoderBias bool
}

// activations maps the names of activations in config.json to those in Config.
func activations() map[string]string {
	return map[string]string{
		"gelu": "gelu", "gelu_python": "gelu", "gelu_new": "gelu_tanh", "gelu_pytorch_tanh": "gelu_tanh",
		"gelu_fast": "gelu_tanh",
		"relu":      "relu", "tanh": "tanh", "silu": "silu", "swish": "silu",
	}
}

// Limits far above any real model; they keep a damaged config from asking for absurd amounts of memory.
const (
	maxConfigBytes = 1 << 20
	maxVocabulary  = 1 << 24
	maxWidth       = 1 << 20
	maxLayers      = 1 << 10
)

// ParseConfig reads a config.json. Errors name the key, its value, and the accepted values.
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
	if r.err == nil {
		r.err = fmt.Errorf(format, arguments...)
	}
}

// read decodes the value of a key; false if there is none, or null.
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
		if k := wrongType.Type.Kind(); k == reflect.Struct || k == reflect.Map {
			kind = "object"
		}
		r.fail("%s: %s where a value of type %s belongs", key, wrongType.Value, kind)
	case err != nil:
		r.fail("%s: %w", key, err)
	}
	return err == nil
}

// size reads a size from 1 to limit; the key is required if fallback is 0.
func (r *configReader) size(key string, fallback, limit int) int {
	n := fallback
	switch found := read(r, key, &n); {
	case r.err != nil:
	case !found && fallback == 0:
		r.fail("%s is missing", key)
	case n < 1 || n > limit:
		r.fail("%s is %d, not between 1 and %d", key, n, limit)
	}
	return n
}

// get returns the value of a key, or the fallback if there is none.
func get[T any](r *configReader, key string, fallback T) T {
	read(r, key, &fallback)
	return fallback
}

// number reads a number of at least low and below high.
func (r *configReader) number(key string, fallback, low, high float64) float64 {
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

// only returns a value, and fails if it is not among the supported ones.
func only[T comparable](r *configReader, key string, value T, supported ...T) T {
	if r.err == nil && !slices.Contains(supported, value) {
		shown := fmt.Sprint(value)
		if text, ok := any(value).(string); ok {
			shown = fmt.Sprintf("%.40q", text)
		}
		list := strings.Trim(strings.ReplaceAll(fmt.Sprint(supported), " ", ", "), "[]")
		r.fail("%s %s is not supported (supported: %s)", key, shown, list)
	}
	return value
}
