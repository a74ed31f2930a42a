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

// writer writes a graph of a model.
type writer = func(name string, m graphs.Model) (*onnx.Graph, error)

// graphOf writes a graph of a bundle's model. separator is the token that ends the first text of a pair.
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

// gradientOf is [graphOf] for graphs with a backward pass.
func gradientOf(b *models.Bundle, separator int, write writer) (*onnx.Graph, error) {
	g, err := graphOf(b, separator, write)
	if err != nil && b.Graph != "" && !b.Config.Imported.Gradient {
		err = &noGradientError{b.Name, err} // the import has said so already
	}
	return g, err
}

// noGradientError says that an imported model cannot be differentiated.
type noGradientError struct {
	model  string
	reason error
}

// Error returns one line that names the operator and says what works without a gradient.
func (e *noGradientError) Error() string {
	return fmt.Sprintf("model %s has no gradient: %v; use the gradient local, or a sampler without one", e.model,
		e.reason)
}

// Unwrap returns the reason.
func (e *noGradientError) Unwrap() error { return e.reason }

// Import copies an exported graph, the files that hold its weights and its tokenizer into the store. A graph
// that cannot be differentiated is imported too: NoGradient of its Config.Imported names the operator. name is
// the model's name in the store. tokenizer is the folder with the tokenizer's files, and perhaps the model's
// config.json. positions is the longest text in tokens; 0 takes it from config.json or tokenizer_config.json.
func Import(ctx context.Context, store *models.Store, file, name, tokenizer string,
	positions int) (*models.Bundle, error) {
	settings, err := imported.Settings(file, tokenizer, positions)
	if err != nil {
		return nil, err
	}
	return store.ImportGraph(ctx, file, tokenizer, name, *settings)
}
