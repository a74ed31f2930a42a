package imported

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"infill/lm/onnx"
	"infill/models"
)

// ImportOptions say what a graph alone does not.
type ImportOptions struct {
	Tokenizer string // folder with the tokenizer's files, and perhaps the model's own config.json; required
	Name      string // of the model in the store; required
	Positions int    // longest text in tokens; 0: as config.json or tokenizer_config.json in Tokenizer say
}

// Import copies an exported graph, the files that hold its weights and its
// tokenizer into the store. A graph that cannot be differentiated is imported
// too: Imported.NoGradient of the bundle names the operator.
func Import(ctx context.Context, store *models.Store, file string, o ImportOptions) (*models.Bundle, error) {
	path, err := filepath.Abs(file)
	if err != nil {
		return nil, err
	}
	m, err := open(path, models.GraphName)
	if err != nil {
		return nil, err
	}
	settings, err := m.settings(o)
	if err != nil {
		return nil, err
	}
	// Nothing is copied here: the store does that, and this folder goes again.
	staging, err := os.MkdirTemp("", "infill-import-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(staging)
	link := func(from, name string) error {
		to := filepath.Join(staging, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			return err
		}
		return os.Symlink(from, to)
	}
	if err := link(path, models.GraphName); err != nil {
		return nil, err
	}
	for _, name := range settings.GraphData {
		if err := link(filepath.Join(filepath.Dir(path), filepath.FromSlash(name)), name); err != nil {
			return nil, err
		}
	}
	tokenizer, err := filepath.Abs(o.Tokenizer)
	if err != nil {
		return nil, err
	}
	for _, name := range append(models.TokenizerFiles(), "README.md", "LICENSE") {
		if _, err := os.Stat(filepath.Join(tokenizer, name)); err == nil {
			if err := link(filepath.Join(tokenizer, name), name); err != nil {
				return nil, err
			}
		}
	}
	config, err := json.MarshalIndent(settings, "", "  ")
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(staging, "config.json"), append(config, '\n'), 0o644); err != nil {
		return nil, err
	}
	b, err := store.Import(ctx, staging, o.Name)
	if err != nil {
		// The staging folder is nothing to the user.
		return nil, errors.New(strings.ReplaceAll(err.Error(), staging+string(filepath.Separator), tokenizer+string(filepath.Separator)))
	}
	return b, nil
}

// settings makes the config.json of an imported model.
func (m *model) settings(o ImportOptions) (*models.Imported, error) {
	given, err := readSettings(o.Tokenizer)
	if err != nil {
		return nil, err
	}
	if o.Positions > 0 {
		given.positions = o.Positions
	}
	if given.positions <= 0 {
		return nil, fmt.Errorf("neither config.json nor tokenizer_config.json in %s tells the longest text that the model takes: say how many tokens", o.Tokenizer)
	}
	vocabulary, err := m.vocabulary()
	if err != nil {
		return nil, err
	}
	if given.tokens > vocabulary {
		return nil, fmt.Errorf("%s: output %s has %d columns, the tokenizer %d tokens: the graph has no masked-language-model head, or is of another model", m.path, m.output.Name, vocabulary, given.tokens)
	}
	c := &models.Imported{
		ModelType: models.ImportedFamily, ExportedType: given.modelType, TokenizerClass: given.class,
		Architectures: given.architectures, VocabularySize: vocabulary, MaxPositions: given.positions,
		GraphData: slices.Sorted(maps.Keys(m.Files(models.GraphName))), Gradient: true,
	}
	for name, least := range m.Files(models.GraphName) {
		at := filepath.Join(filepath.Dir(m.path), filepath.FromSlash(name))
		info, err := os.Stat(at)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil, fmt.Errorf("%s: the file with its weights is missing: %s", m.path, at)
		case err != nil:
			return nil, err
		case info.Size() < least:
			return nil, fmt.Errorf("%s: damaged: %d bytes, the graph needs %d", at, info.Size(), least)
		}
	}
	if _, err := m.conditionals("trial", vocabulary); err != nil {
		return nil, err
	}
	if _, err := m.gradient("trial", vocabulary); err != nil {
		c.Gradient, c.NoGradient = false, strings.TrimPrefix(err.Error(), "onnx: ")
	}
	return c, nil
}

// vocabulary is the number of columns of the logits.
func (m *model) vocabulary() (int, error) {
	g := onnx.New("trial")
	in := inputs(g, onnx.Symbol("rows"))
	logits, err := m.bind(g, in)
	if err != nil {
		return 0, err
	}
	if s := logits.Shape; !logits.Unranked && len(s) == 3 {
		if n, ok := s[2].Size(); ok {
			return int(n), nil
		}
	}
	if s := m.output.Shape; len(s) == 3 && s[2] > 0 {
		return int(s[2]), nil
	}
	return 0, fmt.Errorf("%s: output %s does not tell how many tokens it is over: a masked language model's is [rows × tokens × vocabulary]", m.path, m.output.Name)
}

// given is what the files beside the tokenizer tell.
type given struct {
	positions, tokens int
	architectures     []string
	modelType, class  string
}

func readSettings(dir string) (given, error) {
	var g given
	config := struct {
		ModelType     string   `json:"model_type"`
		Class         string   `json:"tokenizer_class"`
		Architectures []string `json:"architectures"`
		Positions     int      `json:"max_position_embeddings"`
		Padding       int      `json:"pad_token_id"`
		Longest       float64  `json:"model_max_length"`
	}{}
	for _, name := range []string{"tokenizer_config.json", "config.json"} {
		content, err := os.ReadFile(filepath.Join(dir, name))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil {
			err = json.Unmarshal(content, &config)
		}
		if err != nil {
			return g, fmt.Errorf("%s: %w", filepath.Join(dir, name), err)
		}
	}
	g.architectures, g.modelType, g.class = config.Architectures, config.ModelType, config.Class
	switch {
	case config.Positions > 0:
		g.positions = config.Positions
		if strings.Contains(config.ModelType, "roberta") {
			// Its positions are counted from behind the padding's.
			g.positions -= config.Padding + 1
		}
	case config.Longest > 0 && config.Longest < 1<<20: // "none" is written as 1e30
		g.positions = int(config.Longest)
	}
	words, err := os.ReadFile(filepath.Join(dir, "vocab.txt"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return g, err
	}
	g.tokens = len(bytes.Split(bytes.TrimRight(words, "\n"), []byte{'\n'}))
	return g, nil
}
