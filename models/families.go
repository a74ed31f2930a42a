package models

import (
	"cmp"
	"fmt"
	"strings"
)

// A family is a way to write down a masked language model: the keys of its config.json, and the names of its tensors.
// What the tensors then compute is said by lm/internal/bert, in terms of the Config and the Layout.
type family struct {
	padding int // the id of the padding token where config.json does not give it
	parse   func(r *configReader, c *Config)
	layout  func(c Config) Layout
}

// families are the values of model_type that can be run. Keys and names are those of Hugging Face's transformers, which
// wrote nearly every bundle there is.
func families() map[string]family {
	roberta := family{1, parseRoBERTa, robertaLayout("roberta.")}
	return map[string]family{
		"bert":          {0, parseBERT, bertLayout},
		"deberta-v2":    {0, parseDeBERTa, debertaLayout},
		"distilbert":    {0, parseDistilBERT, distilBERTLayout},
		"electra":       {0, parseELECTRA, electraLayout},
		"roberta":       roberta,
		"xlm-roberta":   roberta,
		"camembert":     roberta,
		"data2vec-text": {1, parseRoBERTa, robertaLayout("data2vec_text.")},
		"ernie":         {0, parseErnie, ernieLayout},
		"albert":        {0, parseALBERT, albertLayout},
		"modernbert":    {50283, parseModernBERT, modernBERTLayout},
	}
}

// Families lists the supported values of model_type, sorted.
func Families() []string { return sortedKeys(families()) }

// standard reads the keys that BERT's config has and several families took over. The fallbacks are those of the
// reference implementation; sizes without one are required.
func (r *configReader) standard(c *Config, positionsUnused int) {
	r.sizes(c, bertKeys)
	c.MaxPositions -= positionsUnused
	c.PositionOffset = positionsUnused
	if c.MaxPositions < 1 {
		r.fail("max_position_embeddings is %d, of which %d rows stand for no position", c.MaxPositions+positionsUnused,
			positionsUnused)
	}
	c.TypeVocabularySize = r.size("type_vocab_size", 2, maxWidth)
	c.Segments = min(c.TypeVocabularySize, 2)
	c.LayerNormEpsilon = r.number("layer_norm_eps", 1e-12, 0, 1)
	only(r, "position_embedding_type", r.text("position_embedding_type", "absolute"), "absolute")
}

// bertKeys are the keys of sizes in most families: the width, the layers, their heads and the inner width.
var bertKeys = [4]string{"hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size"}

func (r *configReader) sizes(c *Config, keys [4]string) {
	c.HiddenSize = r.size(keys[0], 0, maxWidth)
	c.EmbeddingSize = c.HiddenSize
	c.Layers = r.size(keys[1], 0, maxLayers)
	r.heads(c, keys[2], keys[0])
	c.IntermediateSize = r.size(keys[3], 0, maxWidth)
	c.MaxPositions = r.size("max_position_embeddings", 0, maxWidth)
}

func parseBERT(r *configReader, c *Config) {
	r.standard(c, 0)
	c.Activation = r.activation("hidden_act", "gelu")
}

// parseErnie: where tasks have embeddings, the first stands for filling in.
func parseErnie(r *configReader, c *Config) {
	parseBERT(r, c)
	if r.flag("use_task_id", false) {
		c.Tasks = r.size("task_type_vocab_size", 3, maxWidth)
	}
}

func parseDistilBERT(r *configReader, c *Config) {
	r.sizes(c, [4]string{"dim", "n_layers", "n_heads", "hidden_dim"})
	c.LayerNormEpsilon = 1e-12 // written into the reference implementation
	c.Activation = r.activation("activation", "gelu")
}

func parseELECTRA(r *configReader, c *Config) {
	r.standard(c, 0)
	c.EmbeddingSize = r.size("embedding_size", 128, maxWidth)
	c.Activation = r.activation("hidden_act", "gelu")
	c.HeadActivation = "gelu" // whatever the layers use
}

// parseRoBERTa: positions are counted from the padding id + 1, and the table has as many rows more. Both texts of a
// pair are of the first segment, however many have embeddings.
func parseRoBERTa(r *configReader, c *Config) {
	r.standard(c, c.PaddingID+1)
	c.Segments = 1
	c.Activation = r.activation("hidden_act", "gelu")
	c.HeadActivation = "gelu"
}

func parseALBERT(r *configReader, c *Config) {
	r.standard(c, 0)
	c.EmbeddingSize = r.size("embedding_size", 128, maxWidth)
	c.Groups = r.size("num_hidden_groups", 1, maxLayers)
	c.PerGroup = r.size("inner_group_num", 1, maxLayers)
	if r.err == nil && c.Layers%c.Groups != 0 {
		r.fail("num_hidden_layers %d is not a multiple of num_hidden_groups %d", c.Layers, c.Groups)
	}
	if c.Layers *= c.PerGroup; c.Layers > maxLayers {
		r.fail("num_hidden_layers times inner_group_num is %d, more than %d", c.Layers, maxLayers)
	}
	c.Activation = r.activation("hidden_act", "gelu_new")
}

// parseDeBERTa reads versions 2 and 3, which share the code and the name deberta-v2.
func parseDeBERTa(r *configReader, c *Config) {
	r.sizes(c, bertKeys)
	if size := r.size("embedding_size", max(c.HiddenSize, 1), maxWidth); size != c.HiddenSize {
		r.fail("embedding_size %d is not supported (supported: hidden_size, %d)", size, c.HiddenSize)
	}
	head := c.HiddenSize / max(c.Heads, 1)
	only(r, "attention_head_size", r.size("attention_head_size", max(head, 1), maxWidth), head)
	c.PositionTable = r.flag("position_biased_input", true)
	if raw := string(r.fields["type_vocab_size"]); raw != "" && raw != "0" && raw != "null" {
		c.TypeVocabularySize = r.size("type_vocab_size", 1, maxWidth)
		c.Segments = min(c.TypeVocabularySize, 2)
	}
	c.LayerNormEpsilon = r.number("layer_norm_eps", 1e-7, 0, 1)
	c.Activation = r.activation("hidden_act", "gelu")
	only(r, "relative_attention", r.flag("relative_attention", false), true)
	a := &RelativeAttention{SharedKey: r.flag("share_att_key", false), Legacy: r.flag("legacy", true)}
	c.Relative = a
	read(r, "max_relative_positions", &a.Farthest)
	read(r, "position_buckets", &a.Buckets)
	if a.Farthest < 1 {
		a.Farthest = c.MaxPositions
	}
	a.Buckets = max(a.Buckets, 0)
	if a.Span = a.Farthest; a.Buckets > 0 {
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
		c.TieWordEmbeddings = true // this head knows no other output matrix
	}
}

// kinds reads a list, which may be written as text with | between its elements.
func (r *configReader) kinds(key string) []string {
	var list []string
	if raw := r.fields[key]; len(raw) > 0 && raw[0] == '"' {
		for kind := range strings.SplitSeq(strings.ToLower(r.text(key, "")), "|") {
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
		NormBias: r.flag("norm_bias", false), AttentionBias: r.flag("attention_bias", false),
		FeedForwardBias: r.flag("mlp_bias", false),
		HeadBias:        r.flag("classifier_bias", false), DecoderBias: r.flag("decoder_bias", true),
	}
	r.windows(c)
	r.rotary(c.PreNorm)
}

// rope is how positions rotate.
type rope struct {
	Theta *float64 `json:"rope_theta"`
	Type  string   `json:"rope_type"`
	Older string   `json:"type"` // the older key of the same
}

// set gives theta the configured base, if there is one; key is where the type stands.
func (p rope) set(r *configReader, key string, theta *float64) {
	only(r, key, cmp.Or(p.Type, p.Older, "default"), "default")
	if p.Theta != nil {
		*theta = *p.Theta
	}
}

// windows reads which layers see how far: a list of their kinds, or how often one without a window comes.
func (r *configReader) windows(c *Config) {
	window := r.size("local_attention", 128, maxWidth) / 2
	var kinds []string
	if !read(r, "layer_types", &kinds) {
		every := r.size("global_attn_every_n_layers", 3, maxLayers)
		for i := range c.Layers {
			if r.err != nil {
				return
			}
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
			if sees = window; window == 0 {
				r.fail("local_attention is 1: a layer with a window would see one position")
			}
		}
		c.PreNorm.Window = append(c.PreNorm.Window, sees)
	}
}

const highestTheta = 1e12

// rotary reads the bases of the angles, in the keys of either generation of configs.
func (r *configReader) rotary(m *PreNorm) {
	m.GlobalTheta = r.number("global_rope_theta", 160000, 1, highestTheta)
	m.LocalTheta = r.number("local_rope_theta", 10000, 1, highestTheta)
	if raw, ok := r.fields["rope_scaling"]; ok && string(raw) != "null" {
		r.fail("rope_scaling is not supported")
	}
	var parameters map[string]rope
	read(r, "rope_parameters", &parameters)
	for kind, theta := range map[string]*float64{"full_attention": &m.GlobalTheta, "sliding_attention": &m.LocalTheta} {
		parameters[kind].set(r, "rope_parameters: rope_type of "+kind, theta)
		if !(*theta >= 1 && *theta < highestTheta) {
			r.fail("rope_parameters: rope_theta of %s is %g, not between 1 and %g", kind, *theta, highestTheta)
		}
	}
}

// layers makes the parts of every layer.
func layers(c Config, layer func(i int) Layer) []Layer {
	list := make([]Layer, c.Layers)
	for i := range list {
		list[i] = layer(i)
	}
	return list
}

// encoder is the layout below the head as BERT's descendants have it, under the prefix of their names.
func encoder(c Config, prefix string, layer func(i int) Layer) Layout {
	l := Layout{
		Words: Table{Name: prefix + "embeddings.word_embeddings.weight", Rows: c.VocabularySize,
			Width: c.EmbeddingSize},
		Positions:     c.positions(prefix + "embeddings.position_embeddings.weight"),
		EmbeddingNorm: norm(prefix+"embeddings.LayerNorm", c.EmbeddingSize),
		Layers:        layers(c, layer),
	}
	if c.TypeVocabularySize > 0 {
		l.Segments = Table{Name: prefix + "embeddings.token_type_embeddings.weight", Rows: c.TypeVocabularySize,
			Width: c.EmbeddingSize}
	}
	return l
}

// head completes a layout by the head's names.
func (l Layout) head(c Config, dense, normalisation, decoder string) Layout {
	l.HeadDense, l.HeadNorm = linear(dense, c.EmbeddingSize, c.HiddenSize), norm(normalisation, c.EmbeddingSize)
	l.Decoder = c.decoder(decoder+".weight", decoder+".bias")
	return l
}

func (l Layout) bertHead(c Config) Layout {
	return l.head(c, "cls.predictions.transform.dense", "cls.predictions.transform.LayerNorm",
		"cls.predictions.decoder")
}

// layerOf makes a layer of the names of its query, key, value and output matrices, of the norm after them, of the two
// matrices of the feed-forward block, and of the norm after these.
func layerOf(c Config, prefix string, names [8]string) Layer {
	h, f := c.HiddenSize, c.IntermediateSize
	return Layer{
		Query: linear(prefix+names[0], h, h), Key: linear(prefix+names[1], h, h), Value: linear(prefix+names[2], h, h),
		Mixed: linear(prefix+names[3], h, h), AttentionNorm: norm(prefix+names[4], h),
		Up: linear(prefix+names[5], f, h), Down: linear(prefix+names[6], h, f), OutputNorm: norm(prefix+names[7], h),
	}
}

// bertLayer is a layer of BERT, ELECTRA and RoBERTa.
func bertLayer(c Config, prefix string) Layer {
	return layerOf(c, prefix,
		[8]string{"attention.self.query", "attention.self.key", "attention.self.value", "attention.output.dense",
			"attention.output.LayerNorm", "intermediate.dense", "output.dense", "output.LayerNorm"})
}

// bertEncoder is the encoder of BERT, ELECTRA and RoBERTa.
func bertEncoder(c Config, prefix string) Layout {
	return encoder(c, prefix, func(i int) Layer { return bertLayer(c, fmt.Sprintf("%sencoder.layer.%d.", prefix, i)) })
}

func bertLayout(c Config) Layout { return bertEncoder(c, "bert.").bertHead(c) }

func ernieLayout(c Config) Layout {
	l := bertEncoder(c, "ernie.").bertHead(c)
	if c.Tasks > 0 {
		l.Tasks = Table{Name: "ernie.embeddings.task_type_embeddings.weight", Rows: c.Tasks, Width: c.HiddenSize}
	}
	return l
}

func distilBERTLayout(c Config) Layout {
	return encoder(c, "distilbert.", func(i int) Layer {
		return layerOf(c, fmt.Sprintf("distilbert.transformer.layer.%d.", i),
			[8]string{"attention.q_lin", "attention.k_lin", "attention.v_lin", "attention.out_lin", "sa_layer_norm",
				"ffn.lin1", "ffn.lin2", "output_layer_norm"})
	}).head(c, "vocab_transform", "vocab_layer_norm", "vocab_projector")
}

func electraLayout(c Config) Layout {
	l := bertEncoder(c, "electra.").head(c, "generator_predictions.dense", "generator_predictions.LayerNorm",
		"generator_lm_head")
	if c.EmbeddingSize != c.HiddenSize {
		l.Projection = linear("electra.embeddings_project", c.HiddenSize, c.EmbeddingSize)
	}
	return l
}

// robertaLayout is RoBERTa's under a prefix.
func robertaLayout(prefix string) func(c Config) Layout {
	return func(c Config) Layout {
		return bertEncoder(c, prefix).head(c, "lm_head.dense", "lm_head.layer_norm", "lm_head.decoder")
	}
}

func albertLayout(c Config) Layout {
	l := encoder(c, "albert.", func(i int) Layer {
		steps := c.Layers / c.PerGroup
		group := i / c.PerGroup * c.Groups / steps
		return layerOf(c, fmt.Sprintf("albert.encoder.albert_layer_groups.%d.albert_layers.%d.", group, i%c.PerGroup),
			[8]string{"attention.query", "attention.key", "attention.value", "attention.dense", "attention.LayerNorm",
				"ffn", "ffn_output", "full_layer_layer_norm"})
	}).head(c, "predictions.dense", "predictions.LayerNorm", "predictions.decoder")
	l.Projection = linear("albert.encoder.embedding_hidden_mapping_in", c.HiddenSize, c.EmbeddingSize)
	return l
}

func debertaLayout(c Config) Layout {
	h, a := c.HiddenSize, c.Relative
	l := encoder(c, "deberta.",
		func(i int) Layer { return debertaLayer(c, fmt.Sprintf("deberta.encoder.layer.%d.", i)) })
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
	if a.Legacy {
		return l.bertHead(c)
	}
	const head = "lm_predictions.lm_head."
	l = l.head(c, head+"dense", head+"LayerNorm", "")
	l.Decoder = c.decoder("", head+"bias")
	return l
}

func debertaLayer(c Config, prefix string) Layer {
	h, a := c.HiddenSize, c.Relative
	layer, self := bertLayer(c, prefix), prefix+"attention.self."
	layer.Query, layer.Key = linear(self+"query_proj", h, h), linear(self+"key_proj", h, h)
	layer.Value = linear(self+"value_proj", h, h)
	if a.SharedKey {
		layer.PositionKey, layer.PositionQuery = layer.Key, layer.Query
		return layer
	}
	if a.ContentToPosition {
		layer.PositionKey = linear(self+"pos_key_proj", h, h)
	}
	if a.PositionToContent {
		layer.PositionQuery = linear(self+"pos_query_proj", h, h)
	}
	return layer
}

// modernBERTLayout: query, key and value are thirds of one tensor, the two factors of the feed-forward block halves of
// another.
func modernBERTLayout(c Config) Layout {
	h, f, m := c.HiddenSize, c.IntermediateSize, c.PreNorm
	return Layout{
		Words:         Table{Name: "model.embeddings.tok_embeddings.weight", Rows: c.VocabularySize, Width: h},
		EmbeddingNorm: norm("model.embeddings.norm", h).biased(m.NormBias),
		Layers: layers(c, func(i int) Layer {
			prefix := fmt.Sprintf("model.layers.%d.", i)
			layer := Layer{
				Query:      linear(prefix+"attn.Wqkv", h, h).part(0, 3*h).biased(m.AttentionBias),
				Key:        linear(prefix+"attn.Wqkv", h, h).part(h, 3*h).biased(m.AttentionBias),
				Value:      linear(prefix+"attn.Wqkv", h, h).part(2*h, 3*h).biased(m.AttentionBias),
				Mixed:      linear(prefix+"attn.Wo", h, h).biased(m.AttentionBias),
				Up:         linear(prefix+"mlp.Wi", f, h).part(0, 2*f).biased(m.FeedForwardBias),
				Gate:       linear(prefix+"mlp.Wi", f, h).part(f, 2*f).biased(m.FeedForwardBias),
				Down:       linear(prefix+"mlp.Wo", h, f).biased(m.FeedForwardBias),
				OutputNorm: norm(prefix+"mlp_norm", h).biased(m.NormBias),
			}
			if i > 0 { // the embeddings are normalised already
				layer.AttentionNorm = norm(prefix+"attn_norm", h).biased(m.NormBias)
			}
			return layer
		}),
		FinalNorm: norm("model.final_norm", h).biased(m.NormBias),
		HeadDense: linear("head.dense", h, h).biased(m.HeadBias),
		HeadNorm:  norm("head.norm", h).biased(m.NormBias),
		Decoder:   c.decoder("decoder.weight", "decoder.bias").biased(m.DecoderBias),
	}
}
