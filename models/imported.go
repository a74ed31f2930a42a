package models

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"infill/internal/object"
	"infill/internal/regular"
)

// importedFamily is the model_type of models that others exported as ONNX graphs. Their config.json is written when
// they are imported.
const importedFamily = "onnx"

// graphName is the file with the graph of an imported model.
const graphName = "model.onnx"

// fewestPositions: two special tokens, a blank and a word; no model takes so short texts.
const fewestPositions = 4

// Imported is the config.json of an imported model.
type Imported struct {
	ModelType      string   `json:"model_type"` // "onnx"
	Architectures  []string `json:"architectures"`
	VocabularySize int      `json:"vocab_size"`
	MaxPositions   int      `json:"max_position_embeddings"`
	// GraphData lists the files that hold the graph's weights, beside the graph.
	GraphData []string `json:"onnx_data"`
	// ExportedType and TokenizerClass are from the exporter's config.json; they say how to read a tokenizer
	// without tokenizer.json.
	ExportedType   string `json:"exported_model_type,omitempty"`
	TokenizerClass string `json:"tokenizer_class,omitempty"`
	// Segments is [Config].Segments, where the exporter's config.json says how many there are.
	Segments int `json:"segments,omitempty"`
	// Gradient reports whether the graph can be differentiated; if not, NoGradient says why.
	Gradient   bool   `json:"gradient"`
	NoGradient string `json:"no_gradient,omitempty"`
}

// parseImported reads the config.json of an imported model. Of the widths only one is given, a guess that the size of
// batches depends on.
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

// openGraph finds the files of an imported model.
func (b *Bundle) openGraph() ([]string, error) {
	used := append([]string{graphName}, b.Config.Imported.GraphData...)
	for _, name := range used {
		if _, err := regular.Stat(b.files, name); err != nil {
			return nil, b.absent(name, err)
		}
	}
	b.Graph = filepath.Join(b.Dir, graphName)
	return used, nil
}

// ImportGraph copies an ONNX graph that others exported into the store under a name, with the files that hold its
// weights, which lie beside it, and the tokenizer's files in the folder tokenizer. c is what its config.json is to say.
// The caller has made sure that its weights are finite numbers.
func (s *Store) ImportGraph(ctx context.Context, graph, tokenizer, name string, c Imported) (*Bundle, error) {
	graph, err := filepath.Abs(graph)
	if err != nil {
		return nil, err
	}
	if tokenizer, err = filepath.Abs(tokenizer); err != nil {
		return nil, err
	}
	files := map[string]string{graphName: graph}
	for _, name := range c.GraphData {
		files[name] = filepath.Join(filepath.Dir(graph), filepath.FromSlash(name))
	}
	for _, name := range append(tokenizerFiles(), "README.md", "LICENSE") {
		from := filepath.Join(tokenizer, name)
		if _, err := os.Lstat(from); err == nil {
			files[name] = from
		}
	}
	c.ModelType = importedFamily
	config, err := object.EncodeIndent(c, "", "  ")
	if err != nil {
		return nil, err
	}
	return s.take(ctx, tokenizer, name, Manifest{Source: graph, FiniteWeights: true}, files, append(config, '\n'))
}

// renamedError is an error whose text says to where it says from.
type renamedError struct {
	error
	from, to string
}

func (e *renamedError) Error() string { return strings.ReplaceAll(e.error.Error(), e.from, e.to) }
func (e *renamedError) Unwrap() error { return e.error }
