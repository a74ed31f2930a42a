package models

// Layout holds the names of a model's weights, by the parts of its graph. A
// part with an empty name does not exist.
type Layout struct {
	Words, Positions, Segments, Tasks Table // embeddings
	EmbeddingNorm                     Norm
	Projection                        Linear // maps embeddings to hidden states
	// These are DeBERTa's embeddings of distances, and the convolution beside
	// the first layer.
	Distances       Table
	DistanceNorm    Norm
	Convolution     Linear
	ConvolutionNorm Norm
	Layers          []Layer
	FinalNorm       Norm // after the last layer
	// The head multiplies the output matrix, Decoder, by
	// norm(activation(dense(hidden state))).
	HeadDense Linear
	HeadNorm  Norm
	Decoder   Linear // its Weight is Words.Name if both are the same matrix
}

// Layer holds the parts of one transformer layer. The family decides whether
// norms come after each block or before it.
type Layer struct {
	Query, Key, Value, Mixed Linear // Mixed follows attention
	AttentionNorm            Norm
	// The feed-forward block is Down(activation(Up(x))); with a gate, the
	// activation is times Gate(x).
	Up, Gate, Down Linear
	OutputNorm     Norm

	// PositionKey and PositionQuery map the embeddings of distances (DeBERTa).
	PositionKey, PositionQuery Linear
}

// SharesMatrices reports whether several products of the layers read one matrix.
func (c Config) SharesMatrices() bool {
	seen := map[Linear]bool{}
	for _, l := range c.Layout().Layers {
		for _, product := range []Linear{l.Query, l.Key, l.Value, l.Mixed, l.Up, l.Gate, l.Down, l.PositionKey,
			l.PositionQuery} {
			if product.Weight != "" && seen[product] {
				return true
			}
			seen[product] = true
		}
	}
	return false
}

// Table is a table of embeddings: Rows rows, from row First on, of a tensor
// with First + Rows rows.
type Table struct {
	Name               string
	First, Rows, Width int
}

// Linear is a map y = W·x + b. W is Out rows, from row First on, of a tensor
// [Rows × In]; b of a bias [Rows].
type Linear struct {
	Weight, Bias         string
	First, Rows, Out, In int
	Taps                 int // width of a convolution, whose tensor is [Rows × In × Taps]; else 0
}

// Norm names the weight and bias of a layer normalisation.
type Norm struct {
	Weight, Bias string
	Width        int
}

func linear(name string, out, in int) Linear {
	return Linear{Weight: name + ".weight", Bias: name + ".bias", Rows: out, Out: out, In: in}
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

func (n Norm) biased(yes bool) Norm {
	if !yes {
		n.Bias = ""
	}
	return n
}

// Layout returns the names of the weights of this architecture.
func (c Config) Layout() Layout {
	f, ok := families()[c.ModelType]
	if !ok {
		return Layout{}
	}
	l := f.layout(c)
	if c.TieWordEmbeddings {
		l.Decoder.Weight = l.Words.Name
	}
	return l
}

// Tensors lists the weights that the graph reads, each once, by the names of
// Bundle.Tensor. Matrices are [output × input].
func (c Config) Tensors() []Tensor {
	body, head := c.tensors()
	return append(body, head...)
}

// tensors returns the weights below the head, and those of the head.
func (c Config) tensors() (body, head []Tensor) {
	seen := map[string]bool{} // parts may share a tensor
	add := func(name string, shape ...int) {
		if name != "" && !seen[name] {
			seen[name] = true
			body = append(body, Tensor{Name: name, Shape: shape})
		}
	}
	linears := func(parts ...Linear) {
		for _, part := range parts {
			shape := []int{part.Rows, part.In}
			if part.Taps > 0 {
				shape = append(shape, part.Taps)
			}
			add(part.Weight, shape...)
			add(part.Bias, part.Rows)
		}
	}
	norms := func(parts ...Norm) {
		for _, part := range parts {
			add(part.Weight, part.Width)
			add(part.Bias, part.Width)
		}
	}
	l := c.Layout()
	for _, t := range []Table{l.Words, l.Positions, l.Segments, l.Tasks, l.Distances} {
		add(t.Name, t.First+t.Rows, t.Width)
	}
	norms(l.EmbeddingNorm)
	linears(l.Projection)
	norms(l.DistanceNorm)
	linears(l.Convolution)
	norms(l.ConvolutionNorm)
	for _, layer := range l.Layers {
		linears(layer.Query, layer.Key, layer.Value, layer.Mixed)
		norms(layer.AttentionNorm)
		linears(layer.Up, layer.Gate, layer.Down)
		norms(layer.OutputNorm)
		linears(layer.PositionKey, layer.PositionQuery)
	}
	norms(l.FinalNorm)
	rest := len(body)
	linears(l.HeadDense)
	norms(l.HeadNorm)
	linears(l.Decoder)
	return body[:rest:rest], body[rest:]
}
