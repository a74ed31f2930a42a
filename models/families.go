package models

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// A family is a kind of masked language model: the keys of its config.json, and
// the names of its tensors. The package internal/bert computes with the
// tensors, by the Config and the Layout.
type family struct {
	padding      int  // the id of the padding token if config.json does not give it
	afterPadding bool // whether positions start at the id of the padding token + 1
	parse        func(r *configReader, c *Config)
	layout       func(c Config) Layout
}

// families returns the families by model_type, with keys and names of
// transformers, which wrote nearly every bundle there is.
func families() map[string]family {
	roberta := family{padding: 1, afterPadding: true, parse: parseRoBERTa,
		layout: bertNames("roberta.", lmHead).layout}
	return map[string]family{
		"bert":        {parse: parseBERT, layout: bertNames("bert.", clsHead).layout},
		"deberta-v2":  {parse: parseDeBERTa, layout: debertaLayout},
		"distilbert":  {parse: parseDistilBERT, layout: distilBERT.layout},
		"electra":     {parse: parseELECTRA, layout: electraLayout},
		"roberta":     roberta,
		"xlm-roberta": roberta,
		"camembert":   roberta,
		"data2vec-text": {padding: 1, afterPadding: true, parse: parseRoBERTa,
			layout: bertNames("data2vec_text.", lmHead).layout},
		"ernie":      {parse: parseErnie, layout: ernieLayout},
		"albert":     {parse: parseALBERT, layout: albertLayout},
		"modernbert": {padding: 50283, parse: parseModernBERT, layout: modernBERTLayout},
	}
}

// Families lists the supported values of model_type, sorted.
func Families() []string { return slices.Sorted(maps.Keys(families())) }

// UnusedPositions returns how many rows of the position table stand for no
// position, by the model_type and the id of the padding token. If padding is
// nil, the id is the family's. Models that this program does not run are like
// RoBERTa if their model_type has that name.
func UnusedPositions(modelType string, padding *int) int {
	if strings.Contains(modelType, "roberta") {
		modelType = "roberta"
	}
	f := families()[modelType]
	if !f.afterPadding {
		return 0
	}
	return *cmp.Or(padding, &f.padding) + 1
}

// standard reads the keys of BERT's config, which several families share. A size
// without a default is required.
func (r *configReader) standard(c *Config, activation string) {
	r.sizes(c, bertKeys)
	positionsUnused := UnusedPositions(c.ModelType, &c.PaddingID)
	c.MaxPositions -= positionsUnused
	c.PositionOffset = positionsUnused
	if c.MaxPositions < 1 {
		r.fail("max_position_embeddings is %d, of which %d rows stand for no position", c.MaxPositions+positionsUnused,
			positionsUnused)
	}
	c.TypeVocabularySize = r.size("type_vocab_size", 2, maxWidth)
	c.Segments = min(c.TypeVocabularySize, 2)
	c.LayerNormEpsilon = r.number("layer_norm_eps", 1e-12, 0, 1)
	only(r, "position_embedding_type", get(r, "position_embedding_type", "absolute"), "absolute")
	c.Activation = r.activation("hidden_act", activation)
}

// bertKeys are the keys, in most families, of the width, the number of layers,
// their heads and the inner width.
var bertKeys = [4]string{"hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size"}

func (r *configReader) sizes(c *Config, keys [4]string) {
	c.HiddenSize = r.size(keys[0], 0, maxWidth)
	c.EmbeddingSize = c.HiddenSize
	c.Layers = r.size(keys[1], 0, maxLayers)
	c.Heads = r.size(keys[2], 0, maxWidth)
	if r.err == nil && c.HiddenSize%c.Heads != 0 {
		r.fail("%s %d is not a multiple of %s %d", keys[0], c.HiddenSize, keys[2], c.Heads)
	}
	c.IntermediateSize = r.size(keys[3], 0, maxWidth)
	c.MaxPositions = r.size("max_position_embeddings", 0, maxWidth)
}

func parseBERT(r *configReader, c *Config) { r.standard(c, "gelu") }

// parseErnie reads ERNIE's config. The first of its tasks is to fill blanks.
func parseErnie(r *configReader, c *Config) {
	parseBERT(r, c)
	if get(r, "use_task_id", false) {
		c.Tasks = r.size("task_type_vocab_size", 3, maxWidth)
	}
}

func parseDistilBERT(r *configReader, c *Config) {
	r.sizes(c, [4]string{"dim", "n_layers", "n_heads", "hidden_dim"})
	c.LayerNormEpsilon = 1e-12 // fixed in the reference implementation
	c.Activation = r.activation("activation", "gelu")
}

func parseELECTRA(r *configReader, c *Config) {
	r.standard(c, "gelu")
	c.EmbeddingSize = r.size("embedding_size", 128, maxWidth)
	c.HeadActivation = "gelu" // whatever the activation of the layers
}

// parseRoBERTa reads RoBERTa's config. Both texts of a pair are in the first
// segment, however many segments have embeddings.
func parseRoBERTa(r *configReader, c *Config) {
	r.standard(c, "gelu")
	c.Segments = 1
	c.HeadActivation = "gelu"
}

func parseALBERT(r *configReader, c *Config) {
	r.standard(c, "gelu_new")
	c.EmbeddingSize = r.size("embedding_size", 128, maxWidth)
	c.Groups = r.size("num_hidden_groups", 1, maxLayers)
	c.PerGroup = r.size("inner_group_num", 1, maxLayers)
	if r.err == nil && c.Layers%c.Groups != 0 {
		r.fail("num_hidden_layers %d is not a multiple of num_hidden_groups %d", c.Layers, c.Groups)
	}
	c.Layers *= c.PerGroup
	if c.Layers > maxLayers {
		r.fail("num_hidden_layers times inner_group_num is %d, more than %d", c.Layers, maxLayers)
	}
}

// parseDeBERTa reads the configs of deberta-v2: versions 2 and 3.
func parseDeBERTa(r *configReader, c *Config) {
	r.sizes(c, bertKeys)
	size := r.size("embedding_size", max(c.HiddenSize, 1), maxWidth)
	if size != c.HiddenSize {
		r.fail("embedding_size %d is not supported (supported: hidden_size, %d)", size, c.HiddenSize)
	}
	head := c.HiddenSize / max(c.Heads, 1)
	only(r, "attention_head_size", r.size("attention_head_size", max(head, 1), maxWidth), head)
	c.PositionTable = get(r, "position_biased_input", true)
	raw := string(r.fields["type_vocab_size"])
	if raw != "" && raw != "0" && raw != "null" {
		c.TypeVocabularySize = r.size("type_vocab_size", 1, maxWidth)
		c.Segments = min(c.TypeVocabularySize, 2)
	}
	c.LayerNormEpsilon = r.number("layer_norm_eps", 1e-7, 0, 1)
	c.Activation = r.activation("hidden_act", "gelu")
	only(r, "relative_attention", get(r, "relative_attention", false), true)
	a := &RelativeAttention{SharedKey: get(r, "share_att_key", false), Legacy: get(r, "legacy", true)}
	c.Relative = a
	read(r, "max_relative_positions", &a.Farthest)
	read(r, "position_buckets", &a.Buckets)
	if a.Farthest < 1 {
		a.Farthest = c.MaxPositions
	}
	a.Buckets = max(a.Buckets, 0)
	a.Span = a.Farthest
	if a.Buckets > 0 {
		a.Span = a.Buckets
	}
	if r.err == nil &&
		(a.Span > maxWidth || a.Farthest > maxWidth || a.Buckets == 1 || a.Buckets > 0 && a.Farthest-1 <= a.Buckets/2) {
		r.fail("position_buckets %d with max_relative_positions %d are no scale", a.Buckets, a.Farthest)
	}
	for _, kind := range r.kinds("pos_att_type") {
		only(r, "pos_att_type", kind, "c2p", "p2c")
		a.ContentToPosition = a.ContentToPosition || kind == "c2p"
		a.PositionToContent = a.PositionToContent || kind == "p2c"
	}
	for _, kind := range r.kinds("norm_rel_ebd") {
		only(r, "norm_rel_ebd", kind, "layer_norm", "none")
		a.NormEmbeddings = a.NormEmbeddings || kind == "layer_norm"
	}
	read(r, "conv_kernel_size", &a.Convolution)
	if a.Convolution != 0 {
		if a.Convolution < 0 || a.Convolution > 15 || a.Convolution%2 == 0 {
			r.fail("conv_kernel_size is %d, not an odd number up to 15", a.Convolution)
		}
		only(r, "conv_groups", r.size("conv_groups", 1, maxWidth), 1)
		a.ConvolutionActivation = r.activation("conv_act", "tanh")
	}
	if !a.Legacy {
		c.TieWordEmbeddings = true // without BERT's names, the head has no output matrix of its own
	}
}

// kinds reads a list of strings, or one string with | between them.
func (r *configReader) kinds(key string) []string {
	var list []string
	raw := r.fields[key]
	if len(raw) > 0 && raw[0] == '"' {
		for kind := range strings.SplitSeq(strings.ToLower(get(r, key, "")), "|") {
			list = append(list, strings.TrimSpace(kind))
		}
		return list
	}
	read(r, key, &list)
	return list
}

func parseModernBERT(r *configReader, c *Config) {
	r.sizes(c, bertKeys)
	if r.err == nil && c.HiddenSize/c.Heads%2 != 0 {
		r.fail("hidden_size %d over num_attention_heads %d is odd; rotary positions need pairs", c.HiddenSize, c.Heads)
	}
	c.LayerNormEpsilon = r.number("norm_eps", 1e-5, 0, 1)
	c.Activation = r.activation("hidden_activation", "gelu")
	c.HeadActivation = r.activation("classifier_activation", "gelu")
	c.PreNorm = &PreNorm{
		NormBias: get(r, "norm_bias", false), AttentionBias: get(r, "attention_bias", false),
		FeedForwardBias: get(r, "mlp_bias", false),
		HeadBias:        get(r, "classifier_bias", false), DecoderBias: get(r, "decoder_bias", true),
	}
	r.windows(c)
	r.rotary(c.PreNorm)
}

// windows reads the window of each layer, from the list layer_types or from the
// period of layers without a window.
func (r *configReader) windows(c *Config) {
	window := r.size("local_attention", 128, maxWidth) / 2
	var kinds []string
	if !read(r, "layer_types", &kinds) {
		every := r.size("global_attn_every_n_layers", 3, maxLayers)
		for i := 0; r.err == nil && i < c.Layers; i++ {
			kinds = append(kinds, "sliding_attention")
			if i%every == 0 {
				kinds[i] = "full_attention"
			}
		}
	}
	if len(kinds) != c.Layers {
		r.fail("layer_types names %d layers, num_hidden_layers is %d", len(kinds), c.Layers)
	}
	for _, kind := range kinds {
		sees := 0
		if only(r, "layer_types:", kind, "full_attention", "sliding_attention") == "sliding_attention" {
			sees = window
			if window == 0 {
				r.fail("local_attention is 1: a layer with a window would see one position")
			}
		}
		c.PreNorm.Window = append(c.PreNorm.Window, sees)
	}
}

// highestTheta is far above any model's base; float32 ends at 1e38.
const highestTheta = 1e12

// rotary reads the bases of the rotary angles, by older or newer keys.
func (r *configReader) rotary(m *PreNorm) {
	m.GlobalTheta = r.number("global_rope_theta", 160000, 1, highestTheta)
	m.LocalTheta = r.number("local_rope_theta", 10000, 1, highestTheta)
	raw, ok := r.fields["rope_scaling"]
	if ok && string(raw) != "null" {
		r.fail("rope_scaling is not supported")
	}
	var parameters map[string]rope
	read(r, "rope_parameters", &parameters)
	r.rope(&m.GlobalTheta, "full_attention", parameters)
	r.rope(&m.LocalTheta, "sliding_attention", parameters)
}

// rope is what newer configs say of the rotary angles of a kind of attention.
type rope struct {
	Theta *float64 `json:"rope_theta"`
	Type  string   `json:"rope_type"`
	Older string   `json:"type"` // the older name of the key rope_type
}

// rope sets the base for a kind of attention, where the parameters say it.
func (r *configReader) rope(theta *float64, kind string, parameters map[string]rope) {
	p := parameters[kind]
	only(r, "rope_parameters: rope_type of "+kind, cmp.Or(p.Type, p.Older, "default"), "default")
	if p.Theta != nil {
		*theta = *p.Theta
	}
	if !(*theta >= 1 && *theta < highestTheta) {
		r.fail("rope_parameters: rope_theta of %s is %g, not between 1 and %g", kind, *theta, highestTheta)
	}
}

// names holds the names of the tensors of a model that descends from BERT.
type names struct {
	body  string // the beginning of all names except those of the head
	layer string // the beginning of the names of a layer, with %d for its number
	// parts names query, key, value and output matrix, their norm, the two
	// matrices of the feed-forward block, and its norm.
	parts [8]string
	head  [3]string // the dense matrix, the norm and the decoder
}

var (
	clsHead = [3]string{"cls.predictions.transform.dense", "cls.predictions.transform.LayerNorm",
		"cls.predictions.decoder"}
	lmHead     = [3]string{"lm_head.dense", "lm_head.layer_norm", "lm_head.decoder"}
	distilBERT = names{"distilbert.", "distilbert.transformer.layer.%d.",
		[8]string{"attention.q_lin", "attention.k_lin", "attention.v_lin", "attention.out_lin", "sa_layer_norm",
			"ffn.lin1", "ffn.lin2", "output_layer_norm"},
		[3]string{"vocab_transform", "vocab_layer_norm", "vocab_projector"}}
	albert = names{"albert.", "albert.encoder.albert_layer_groups.%d.albert_layers.%d.",
		[8]string{"attention.query", "attention.key", "attention.value", "attention.dense", "attention.LayerNorm",
			"ffn", "ffn_output", "full_layer_layer_norm"},
		[3]string{"predictions.dense", "predictions.LayerNorm", "predictions.decoder"}}
)

func bertNames(body string, head [3]string) names {
	return names{body, body + "encoder.layer.%d.",
		[8]string{"attention.self.query", "attention.self.key", "attention.self.value", "attention.output.dense",
			"attention.output.LayerNorm", "intermediate.dense", "output.dense", "output.LayerNorm"}, head}
}

func (n names) layout(c Config) Layout {
	table := func(name string, first, rows int) Table {
		return Table{Name: n.body + "embeddings." + name + ".weight", First: first, Rows: rows, Width: c.EmbeddingSize}
	}
	l := Layout{
		Words:         table("word_embeddings", 0, c.VocabularySize),
		Positions:     table("position_embeddings", c.PositionOffset, c.MaxPositions),
		EmbeddingNorm: norm(n.body+"embeddings.LayerNorm", c.EmbeddingSize),
		HeadDense:     linear(n.head[0], c.EmbeddingSize, c.HiddenSize),
		HeadNorm:      norm(n.head[1], c.EmbeddingSize),
		Decoder:       linear(n.head[2], c.VocabularySize, c.EmbeddingSize),
	}
	if c.TypeVocabularySize > 0 {
		l.Segments = table("token_type_embeddings", 0, c.TypeVocabularySize)
	}
	h := c.HiddenSize
	f := c.IntermediateSize
	for i := range c.Layers {
		numbers := []any{i}
		if c.PerGroup > 0 {
			numbers = []any{i / c.PerGroup * c.Groups / (c.Layers / c.PerGroup), i % c.PerGroup}
		}
		at := func(part int) string { return fmt.Sprintf(n.layer, numbers...) + n.parts[part] }
		l.Layers = append(l.Layers, Layer{
			Query: linear(at(0), h, h), Key: linear(at(1), h, h), Value: linear(at(2), h, h),
			Mixed: linear(at(3), h, h), AttentionNorm: norm(at(4), h),
			Up: linear(at(5), f, h), Down: linear(at(6), h, f), OutputNorm: norm(at(7), h),
		})
	}
	return l
}

func ernieLayout(c Config) Layout {
	l := bertNames("ernie.", clsHead).layout(c)
	if c.Tasks > 0 {
		l.Tasks = Table{Name: "ernie.embeddings.task_type_embeddings.weight", Rows: c.Tasks, Width: c.HiddenSize}
	}
	return l
}

func electraLayout(c Config) Layout {
	l := bertNames("electra.", [3]string{"generator_predictions.dense", "generator_predictions.LayerNorm",
		"generator_lm_head"}).layout(c)
	if c.EmbeddingSize != c.HiddenSize {
		l.Projection = linear("electra.embeddings_project", c.HiddenSize, c.EmbeddingSize)
	}
	return l
}

func albertLayout(c Config) Layout {
	l := albert.layout(c)
	l.Projection = linear("albert.encoder.embedding_hidden_mapping_in", c.HiddenSize, c.EmbeddingSize)
	return l
}

func debertaLayout(c Config) Layout {
	h := c.HiddenSize
	a := c.Relative
	head := clsHead
	if !a.Legacy {
		head = [3]string{"lm_predictions.lm_head.dense", "lm_predictions.lm_head.LayerNorm", "lm_predictions.lm_head"}
	}
	l := bertNames("deberta.", head).layout(c)
	if !c.PositionTable {
		l.Positions = Table{}
	}
	l.Distances = Table{Name: "deberta.encoder.rel_embeddings.weight", Rows: 2 * a.Span, Width: h}
	if a.NormEmbeddings {
		l.DistanceNorm = norm("deberta.encoder.LayerNorm", h)
	}
	if a.Convolution > 0 {
		l.Convolution = linear("deberta.encoder.conv.conv", h, h)
		l.Convolution.Taps = a.Convolution
		l.ConvolutionNorm = norm("deberta.encoder.conv.LayerNorm", h)
	}
	for i := range l.Layers {
		layer := &l.Layers[i]
		self := fmt.Sprintf("deberta.encoder.layer.%d.attention.self.", i)
		layer.Query = linear(self+"query_proj", h, h)
		layer.Key = linear(self+"key_proj", h, h)
		layer.Value = linear(self+"value_proj", h, h)
		if a.SharedKey {
			layer.PositionKey = layer.Key
			layer.PositionQuery = layer.Query
			continue
		}
		if a.ContentToPosition {
			layer.PositionKey = linear(self+"pos_key_proj", h, h)
		}
		if a.PositionToContent {
			layer.PositionQuery = linear(self+"pos_query_proj", h, h)
		}
	}
	return l
}

// modernBERTLayout is ModernBERT's: query, key and value are thirds of one tensor,
// the factors of the feed-forward block halves of another.
func modernBERTLayout(c Config) Layout {
	h := c.HiddenSize
	f := c.IntermediateSize
	m := c.PreNorm
	part := func(name string, bias bool, i, parts, out, in int) Linear {
		l := linear(name, out, in).biased(bias)
		l.First = i * out
		l.Rows = parts * out
		return l
	}
	l := Layout{
		Words:         Table{Name: "model.embeddings.tok_embeddings.weight", Rows: c.VocabularySize, Width: h},
		EmbeddingNorm: norm("model.embeddings.norm", h).biased(m.NormBias),
		FinalNorm:     norm("model.final_norm", h).biased(m.NormBias),
		HeadDense:     linear("head.dense", h, h).biased(m.HeadBias),
		HeadNorm:      norm("head.norm", h).biased(m.NormBias),
		Decoder:       linear("decoder", c.VocabularySize, h).biased(m.DecoderBias),
	}
	for i := range c.Layers {
		prefix := fmt.Sprintf("model.layers.%d.", i)
		layer := Layer{
			Query:      part(prefix+"attn.Wqkv", m.AttentionBias, 0, 3, h, h),
			Key:        part(prefix+"attn.Wqkv", m.AttentionBias, 1, 3, h, h),
			Value:      part(prefix+"attn.Wqkv", m.AttentionBias, 2, 3, h, h),
			Mixed:      linear(prefix+"attn.Wo", h, h).biased(m.AttentionBias),
			Up:         part(prefix+"mlp.Wi", m.FeedForwardBias, 0, 2, f, h),
			Gate:       part(prefix+"mlp.Wi", m.FeedForwardBias, 1, 2, f, h),
			Down:       linear(prefix+"mlp.Wo", h, f).biased(m.FeedForwardBias),
			OutputNorm: norm(prefix+"mlp_norm", h).biased(m.NormBias),
		}
		if i > 0 { // layer 0 has no norm here, as the embeddings are already normalised
			layer.AttentionNorm = norm(prefix+"attn_norm", h).biased(m.NormBias)
		}
		l.Layers = append(l.Layers, layer)
	}
	return l
}
