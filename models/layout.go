package models

// Layout says where a model's weights lie: the names that a family gives to the parts that a graph is made of. A part whose name
// is empty is not there.
type Layout struct {
	Words, Positions, Segments Table  // embeddings
	Trigram                    Linear // of the embeddings of the next token, the token and the one before (MobileBERT)
	EmbeddingNorm              Norm
	Projection                 Linear // from embeddings to hidden states
	// DeBERTa's embeddings of distances, and the convolution beside its first layer.
	Distances       Table
	DistanceNorm    Norm
	Convolution     Linear
	ConvolutionNorm Norm
	Layers          []Layer
	FinalNorm       Norm // after the last layer
	// The head: the output matrix times norm(activation(dense(hidden state))).
	HeadDense Linear
	HeadNorm  Norm
	Decoder   Linear // its Weight is Words.Name where the two are tied
	// DecoderRest is further columns of the output matrix, [columns × vocabulary]: MobileBERT's embeddings are narrower than its
	// hidden states.
	DecoderRest Linear
}

// Layer is the parts of one transformer layer. Where the norms stand is the family's: after each block, or before it.
type Layer struct {
	Query, Key, Value, Mixed Linear // Mixed follows attention
	AttentionNorm            Norm
	Up, Gate, Down           Linear // the feed-forward block: Down(activation(Up(x))), the activation times Gate(x) where there is one
	OutputNorm               Norm

	// PositionKey and PositionQuery map the embeddings of distances (DeBERTa).
	PositionKey, PositionQuery Linear

	// MobileBERT's layers work on a narrower width: hidden states are narrowed on the way in, for queries and keys by Shared, and
	// widened on the way out; and feed-forward blocks stand before the last.
	Narrow, Shared, Widen             Linear
	NarrowNorm, SharedNorm, WidenNorm Norm
	Before                            []FeedForward
}

// FeedForward is a feed-forward block with the norm after it.
type FeedForward struct {
	Up, Down Linear
	Norm     Norm
}

// Table is rows of embeddings: Rows of them, from row First of a tensor of that many rows more.
type Table struct {
	Name               string
	First, Rows, Width int
}

// Linear is y = W·x + b: Out rows, from row First, of a tensor [Rows × In] and of its bias [Rows].
type Linear struct {
	Weight, Bias         string
	First, Rows, Out, In int
	Taps                 int // of a convolution: the tensor is [Rows × In × Taps]
}

// Norm is a layer normalisation.
type Norm struct {
	Weight, Bias string
	Width        int
	Plain        bool // it scales and shifts, and does not normalise
}

func linear(name string, out, in int) Linear {
	return Linear{Weight: name + ".weight", Bias: name + ".bias", Rows: out, Out: out, In: in}
}

// part is l as a part of a tensor of that many rows.
func (l Linear) part(first, rows int) Linear {
	l.First, l.Rows = first, rows
	return l
}

func (l Linear) biased(yes bool) Linear {
	if !yes {
		l.Bias = ""
	}
	return l
}

func norm(name string, width int) Norm {
	return Norm{Weight: name + ".weight", Bias: name + ".bias", Width: width}
}

func (n Norm) plain() Norm {
	n.Plain = true
	return n
}

func (n Norm) biased(yes bool) Norm {
	if !yes {
		n.Bias = ""
	}
	return n
}

func (c Config) positions(name string) Table {
	return Table{Name: name, First: c.PositionOffset, Rows: c.MaxPositions, Width: c.EmbeddingSize}
}

func (c Config) decoder(weight, bias string) Linear {
	return Linear{Weight: weight, Bias: bias, Rows: c.VocabularySize, Out: c.VocabularySize, In: c.EmbeddingSize}
}

// Layout is where the weights of a model of this architecture lie.
func (c Config) Layout() Layout {
	f, ok := findFamily(c.ModelType)
	if !ok {
		return Layout{}
	}
	l := f.layout(c)
	if c.TieWordEmbeddings {
		l.Decoder.Weight = l.Words.Name
	}
	return l
}

// TensorShape is the name and shape of a weight.
type TensorShape struct {
	Name  string
	Shape []int
	Scale bool // it scales a normalised value: around 1, where other weights are around 0
	Head  bool // it belongs to the masked-language-model head alone
}

// Tensors lists the weights that the family's graph reads, each once, by the names that Bundle.Tensor takes. Matrices are
// [output × input].
func (c Config) Tensors() []TensorShape {
	var list tensorList
	l := c.Layout()
	for _, t := range []Table{l.Words, l.Positions, l.Segments, l.Distances} {
		list.add(TensorShape{Name: t.Name, Shape: []int{t.First + t.Rows, t.Width}})
	}
	list.linear(l.Trigram)
	list.norm(l.EmbeddingNorm)
	list.linear(l.Projection)
	list.norm(l.DistanceNorm)
	list.linear(l.Convolution)
	list.norm(l.ConvolutionNorm)
	for _, layer := range l.Layers {
		for _, linear := range []Linear{layer.Query, layer.Key, layer.Value, layer.Mixed} {
			list.linear(linear)
		}
		list.norm(layer.AttentionNorm)
		for _, linear := range []Linear{layer.Up, layer.Gate, layer.Down} {
			list.linear(linear)
		}
		list.norm(layer.OutputNorm)
		for _, linear := range []Linear{layer.PositionKey, layer.PositionQuery, layer.Narrow, layer.Shared, layer.Widen} {
			list.linear(linear)
		}
		for _, norm := range []Norm{layer.NarrowNorm, layer.SharedNorm, layer.WidenNorm} {
			list.norm(norm)
		}
		for _, block := range layer.Before {
			list.linear(block.Up)
			list.linear(block.Down)
			list.norm(block.Norm)
		}
	}
	list.norm(l.FinalNorm)
	list.head = true
	list.linear(l.HeadDense)
	list.norm(l.HeadNorm)
	list.linear(l.Decoder)
	list.linear(l.DecoderRest)
	return list.tensors
}

// tensorList gathers tensors by name: parts may share one.
type tensorList struct {
	tensors []TensorShape
	seen    map[string]bool
	head    bool
}

func (l *tensorList) add(t TensorShape) {
	if t.Name == "" || l.seen[t.Name] {
		return
	}
	if l.seen == nil {
		l.seen = map[string]bool{}
	}
	l.seen[t.Name] = true
	t.Head = l.head
	l.tensors = append(l.tensors, t)
}

func (l *tensorList) linear(part Linear) {
	shape := []int{part.Rows, part.In}
	if part.Taps > 0 {
		shape = append(shape, part.Taps)
	}
	l.add(TensorShape{Name: part.Weight, Shape: shape})
	l.add(TensorShape{Name: part.Bias, Shape: []int{part.Rows}})
}

func (l *tensorList) norm(part Norm) {
	l.add(TensorShape{Name: part.Weight, Shape: []int{part.Width}, Scale: true})
	l.add(TensorShape{Name: part.Bias, Shape: []int{part.Width}})
}
