package lm

import (
	"errors"
	"fmt"

	"infill/lm/bert"
	"infill/lm/imported"
	"infill/lm/onnx"
	"infill/models"
)

// conditionals is the graph of a model's log-probabilities.
func conditionals(b *models.Bundle) (*onnx.Graph, error) {
	if b.Graph != "" {
		return imported.Conditionals(b)
	}
	return bert.Conditionals(b)
}

// gradient is the graph with the backward pass.
func gradient(b *models.Bundle) (*onnx.Graph, error) {
	if b.Graph == "" {
		return bert.Gradient(b)
	}
	g, err := imported.Gradient(b)
	var none *onnx.NoRuleError
	if errors.As(err, &none) {
		return nil, &NoGradientError{Model: b.Name, Reason: none}
	}
	return g, err
}

// NoGradientError says that an imported model has operators that cannot be
// differentiated.
type NoGradientError struct {
	Model  string
	Reason *onnx.NoRuleError
}

// Error is one line that names the operator and says what works all the same.
func (e *NoGradientError) Error() string {
	return fmt.Sprintf("model %s has no gradient: %v; use the gradient local, or a sampler without one", e.Model, e.Reason)
}

// Unwrap gives the reason.
func (e *NoGradientError) Unwrap() error { return e.Reason }
