package lm

import (
	"context"
	"fmt"

	"infill/lm/internal/bert"
	"infill/lm/internal/graphs"
	"infill/lm/internal/imported"
	"infill/lm/internal/onnx"
	"infill/models"
)

// writer builds one of the graphs of a model: log-probabilities, say, or
// gradients.
type writer = func(name string, m graphs.Model) (*onnx.Graph, error)

// graphOf builds, by write, a graph of the model in b. separator is the token
// that ends the first text of a pair.
func graphOf(b *models.Bundle, separator int, write writer) (*onnx.Graph, error) {
	if b.Graph == "" {
		return write(b.Name, bert.Model{Bundle: b, Separator: separator})
	}
	m, err := imported.Open(b, separator)
	if err != nil {
		return nil, err
	}
	return write(b.Name, m)
}

// padded reports whether rows of the bundle's model may be padded.
func padded(b *models.Bundle) bool { return b.Graph == "" && bert.Model{Bundle: b}.Padded() }

// gradientOf does what [graphOf] does, for graphs with a backward pass.
func gradientOf(b *models.Bundle, separator int, write writer) (*onnx.Graph, error) {
	if b.Int8() {
		return nil, &noGradientError{b.Name, fmt.Errorf("it is in int8, which has none; use %s", inFloat(b))}
	}
	g, err := graphOf(b, separator, write)
	if err != nil && b.Graph != "" && !b.Config.Imported.Gradient {
		err = &noGradientError{b.Name, err} // Import has found this already
	}
	return g, err
}

// noGradientError is the error for an imported model that cannot be
// differentiated.
type noGradientError struct {
	model  string
	reason error
}

// Error returns one line that names the operator and says what works without a
// gradient.
func (e *noGradientError) Error() string {
	return fmt.Sprintf("model %s has no gradient: %v; use the gradient local, or a sampler without one", e.model,
		e.reason)
}

// Unwrap returns the error of the differentiation, which names the operator.
func (e *noGradientError) Unwrap() error { return e.reason }

// Import copies an exported graph, its files of weights and its tokenizer into
// the store, under the name given. It also imports a graph that cannot be
// differentiated: then Config.Imported.NoGradient names the operator. tokenizer
// is the folder with the tokenizer's files, and perhaps the model's
// config.json. positions is the length of the longest text in tokens; if 0,
// Import reads it from config.json or tokenizer_config.json.
func Import(ctx context.Context, store *models.Store, file, name, tokenizer string,
	positions int) (*models.Bundle, error) {
	settings, err := imported.Settings(file, tokenizer, positions)
	if err != nil {
		return nil, err
	}
	return store.ImportGraph(ctx, file, tokenizer, name, *settings)
}
