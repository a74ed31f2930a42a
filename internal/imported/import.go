package imported

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"infill/internal/graphs"
	"infill/internal/regular"
	"infill/models"
)

// Settings makes the config.json of the graph in file. tokenizer is the folder
// with the tokenizer's files. positions is the longest text in tokens; if 0,
// Settings reads it from config.json or tokenizer_config.json in tokenizer.
func Settings(file, tokenizer string, positions int) (*models.Imported, error) {
	name := filepath.Base(file)
	m, err := open(file)
	if err != nil {
		return nil, err
	}
	given, err := readSettings(tokenizer)
	if err != nil {
		return nil, err
	}
	if positions > 0 {
		given.positions = positions
	}
	if given.positions <= 0 {
		return nil, fmt.Errorf("neither config.json nor tokenizer_config.json in %s tells the longest text that the "+
			"model takes: give it by --positions", tokenizer)
	}
	if _, err := graphs.Conditionals("trial", m); err != nil { // Conditionals sets m.vocabulary
		return nil, err
	}
	if given.tokens > m.vocabulary {
		return nil, fmt.Errorf("%s: output %s has %d columns, the tokenizer %d tokens: the graph has no "+
			"masked-language-model head, or is of another model", m.path, m.output.Name, m.vocabulary, given.tokens)
	}
	c := &models.Imported{
		ExportedType: given.ModelType, TokenizerClass: given.Class,
		Architectures: given.Architectures, VocabularySize: m.vocabulary, MaxPositions: given.positions,
		Segments:  given.segments,
		GraphData: slices.Sorted(maps.Keys(m.Files(name))), Gradient: true,
	}
	for file, least := range m.Files(name) {
		at := filepath.Join(filepath.Dir(m.path), filepath.FromSlash(file))
		info, err := os.Stat(at)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil, fmt.Errorf("%s: the file with its weights is missing: %s", m.path, at)
		case err != nil:
			return nil, err
		case !info.Mode().IsRegular():
			return nil, fmt.Errorf("%s: not a regular file", at)
		case info.Size() < least:
			return nil, fmt.Errorf("%s: damaged: %d bytes, the graph needs %d", at, info.Size(), least)
		}
	}
	if _, err := graphs.Gradient("trial", m); err != nil {
		c.Gradient = false
		c.NoGradient = strings.TrimPrefix(err.Error(), "onnx: ")
	}
	return c, nil
}

// given holds settings read from the JSON files in the tokenizer's folder.
type given struct {
	ModelType     string   `json:"model_type"`
	Segments      int      `json:"type_vocab_size"`
	Class         string   `json:"tokenizer_class"`
	Architectures []string `json:"architectures"`
	Positions     int      `json:"max_position_embeddings"`
	Padding       *int     `json:"pad_token_id"`
	Longest       float64  `json:"model_max_length"`

	positions, tokens, segments int
}

func readSettings(dir string) (given, error) {
	var g given
	for _, name := range []string{"tokenizer_config.json", "config.json"} {
		content, err := regular.ReadFile(filepath.Join(dir, name), 1<<20)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return g, err
		}
		if err := json.Unmarshal(content, &g); err != nil {
			return g, fmt.Errorf("%s: %w", filepath.Join(dir, name), err)
		}
	}
	g.segments = min(g.Segments, 2)
	unused := models.UnusedPositions(g.ModelType, g.Padding)
	if unused > 0 { // as in RoBERTa, both texts of a pair are in the first segment
		g.segments = min(g.Segments, 1)
	}
	switch {
	case g.Positions > 0:
		g.positions = g.Positions - unused
	case g.Longest > 0 && g.Longest < 1<<20: // exporters write 1e30 for "no limit"
		g.positions = int(g.Longest)
	}
	words, err := regular.ReadFile(filepath.Join(dir, "vocab.txt"), 64<<20)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return g, err
	}
	g.tokens = len(bytes.Split(bytes.TrimRight(words, "\n"), []byte{'\n'}))
	return g, nil
}
