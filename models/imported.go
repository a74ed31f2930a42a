package models

import (
	"encoding/json"
	"fmt"
)

// importedFamily is the model_type of models that others exported as ONNX
// graphs. Import writes it to config.json.
const importedFamily = "onnx"

const graphName = "model.onnx"

// fewestPositions has room for two special tokens, a blank and a word; every
// real model takes longer texts.
const fewestPositions = 4

// Imported is the content of the config.json of an imported model.
type Imported struct {
	ModelType      string   `json:"model_type"` // always "onnx"
	Architectures  []string `json:"architectures"`
	VocabularySize int      `json:"vocab_size"`
	MaxPositions   int      `json:"max_position_embeddings"`
	// GraphData lists the files in the graph's folder that hold its weights.
	GraphData []string `json:"onnx_data"`
	// ExportedType and TokenizerClass come from the exporter's config.json.
	// They say how to read a tokenizer that has no tokenizer.json.
	ExportedType   string `json:"exported_model_type,omitempty"`
	TokenizerClass string `json:"tokenizer_class,omitempty"`
	// Segments is [Config].Segments if the exporter's config.json gives it, else 0.
	Segments int `json:"segments,omitempty"`
	// Gradient reports whether the graph can be differentiated. If not,
	// NoGradient says why.
	Gradient   bool   `json:"gradient"`
	NoGradient string `json:"no_gradient,omitempty"`
}

// parseImported reads the config.json of an imported model. Of the widths, it
// sets only IntermediateSize, to a guess that decides the size of batches.
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
