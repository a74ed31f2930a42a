package lm

import (
	"fmt"

	"infill/lm/internal/bert"
	"infill/lm/internal/imported"
	"infill/lm/internal/onnx"
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
	return g, withoutGradient(b, err)
}

// energy is the graph of a model's energies.
func energy(b *models.Bundle, mask int) (*onnx.Graph, error) {
	if b.Graph != "" {
		return imported.Energy(b, mask)
	}
	return bert.Energy(b, mask)
}

// energyGradient is the graph of a model's energies and their gradients.
func energyGradient(b *models.Bundle, mask int) (*onnx.Graph, error) {
	if b.Graph == "" {
		return bert.EnergyGradient(b, mask)
	}
	g, err := imported.EnergyGradient(b, mask)
	return g, withoutGradient(b, err)
}

// withoutGradient makes what import already knew a *noGradientError.
func withoutGradient(b *models.Bundle, err error) error {
	if err != nil && !b.Config.Imported.Gradient {
		return &noGradientError{b.Name, err}
	}
	return err
}

// noGradientError says that an imported model cannot be differentiated.
type noGradientError struct {
	model  string
	reason error
}

// Error is one line that names the operator and says what works all the same.
func (e *noGradientError) Error() string {
	return fmt.Sprintf("model %s has no gradient: %v; use the gradient local, or a sampler without one", e.model, e.reason)
}

// Unwrap gives the reason.
func (e *noGradientError) Unwrap() error { return e.reason }
