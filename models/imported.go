package models

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
)

// ImportedFamily is the model_type of models that others exported as ONNX graphs. Their config.json is written when they
// are imported.
const ImportedFamily = "onnx"

// GraphName is the file with the graph of an imported model.
const GraphName = "model.onnx"

// Imported is the config.json of an imported model.
type Imported struct {
	ModelType      string   `json:"model_type"` // ImportedFamily
	Architectures  []string `json:"architectures"`
	VocabularySize int      `json:"vocab_size"`
	MaxPositions   int      `json:"max_position_embeddings"`
	// GraphData lists the files that hold the graph's weights, beside the graph.
	GraphData []string `json:"onnx_data"`
	// ExportedType and TokenizerClass are what the exporter's config.json says; a tokenizer without tokenizer.json is read by them.
	ExportedType   string `json:"exported_model_type,omitempty"`
	TokenizerClass string `json:"tokenizer_class,omitempty"`
	// Gradient tells whether the graph can be differentiated; where not, NoGradient says why.
	Gradient   bool   `json:"gradient"`
	NoGradient string `json:"no_gradient,omitempty"`
}

// parseImported reads a config.json that belongs to an imported model; nil where it is another's.
func parseImported(data []byte) (*Imported, error) {
	var c Imported
	var kind struct {
		ModelType any `json:"model_type"`
	}
	if json.Unmarshal(data, &kind) != nil || kind.ModelType != ImportedFamily {
		return nil, nil
	}
	if err := json.Unmarshal(data, &c); err != nil {
		return nil, fmt.Errorf("not valid JSON for an imported model: %w", err)
	}
	if c.VocabularySize < 1 || c.VocabularySize > maxVocabulary {
		return nil, fmt.Errorf("vocab_size is %d, not between 1 and %d", c.VocabularySize, maxVocabulary)
	}
	if c.MaxPositions < 1 || c.MaxPositions > maxWidth {
		return nil, fmt.Errorf("max_position_embeddings is %d, not between 1 and %d", c.MaxPositions, maxWidth)
	}
	for _, name := range c.GraphData {
		if !fs.ValidPath(name) || name == "." || name == GraphName || !filepath.IsLocal(filepath.FromSlash(name)) || strings.ContainsAny(name, "\\\n\x00") {
			return nil, fmt.Errorf("onnx_data: %.100q is not a file beside the graph", name)
		}
	}
	return &c, nil
}

// config is what of it other packages ask for. The widths are guesses that only the size of batches hangs on.
func (c *Imported) config() Config {
	return Config{
		ModelType: ImportedFamily, Architectures: c.Architectures, VocabularySize: c.VocabularySize, MaxPositions: c.MaxPositions,
		IntermediateSize: 3072,
	}
}

// openGraph finds the files of an imported model.
func (b *Bundle) openGraph() ([]string, error) {
	used := append([]string{GraphName}, b.Imported.GraphData...)
	for _, name := range used {
		info, err := fs.Stat(b.files, name)
		if err != nil {
			return nil, b.absent(name, err)
		}
		if !info.Mode().IsRegular() {
			return nil, fmt.Errorf("%s: not a regular file", filepath.Join(b.Dir, name))
		}
	}
	b.Graph = filepath.Join(b.Dir, GraphName)
	return used, nil
}
