package models

import (
	"encoding/json"
	"fmt"
)

// importedFamily is the model_type of models that others exported as ONNX graphs. The import writes their config.json.
const importedFamily = "onnx"

// graphName is the file with the graph of an imported model.
const graphName = "model.onnx"

// fewestPositions is enough for two special tokens, a blank and a word; every real model takes longer texts.
const fewestPositions = 4

// Imported is the config.json of an imported model.
type Imported struct {
	ModelType      string   `json:"model_type"` // "onnx"
	Architectures  []string `json:"architectures"`
	VocabularySize int      `json:"vocab_size"`
	MaxPositions   int      `json:"max_position_embeddings"`
	// GraphData lists the files that hold the graph's weights, beside the graph.
	GraphData []string `json:"onnx_data"`
	// ExportedType and TokenizerClass come from the exporter's config.json; they say how to read a tokenizer without
	// tokenizer.json.
	ExportedType   string `json:"exported_model_type,omitempty"`
	TokenizerClass string `json:"tokenizer_class,omitempty"`
	// Segments is [Config].Segments, if the exporter's config.json gives it.
	Segments int `json:"segments,omitempty"`
	// Gradient reports whether the graph can be differentiated; if not, NoGradient says why.
	Gradient   bool   `json:"gradient"`
	NoGradient string `json:"no_gradient,omitempty"`
}

// parseImported reads the config.json of an imported model. It sets only one of the widths, to a guess on which the
// size of batches depends.
func parseImported(data []byte) (Config, error) {
	var c Imported
	if err := json.Unmarshal(data, &c); err != nil {
		return Config{}, fmt.Errorf("not valid JSON for an imported model: %w", err)
	}
	if c.VocabularySize < 1 || c.VocabularySize > maxVocabulary {
		return Config{}, fmt.Errorf("vocab_size is %d, not between 1 and %d", c.VocabularySize, maxVocabulary)
	}
	if c.MaxPositions < fewestPositions || c.MaxPositions > maxWidth {
		return Config{},
			fmt.Errorf("max_position_embeddings is %d, not between %d and %d", c.MaxPositions, fewestPositions,
				maxWidth)
	}
	for _, name := range c.GraphData {
		if !inside(name) || name == graphName {
			return Config{}, fmt.Errorf("onnx_data: %.100q is not a file beside the graph", name)
		}
	}
	return Config{
		ModelType: importedFamily, Architectures: c.Architectures, VocabularySize: c.VocabularySize,
		MaxPositions:     c.MaxPositions,
		Segments:         min(c.Segments, 2),
		IntermediateSize: 3072, Imported: &c,
	}, nil
}
