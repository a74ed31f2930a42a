package lm

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"

	"infill/lm/internal/imported"
	"infill/models"
)

// Import copies an exported graph, the files that hold its weights and its
// tokenizer into the store. A graph that cannot be differentiated is imported
// too: Imported.NoGradient of the bundle names the operator. name is the
// model's in the store. tokenizer is the folder with the tokenizer's files, and
// perhaps the model's own config.json; positions is the longest text in tokens,
// 0: as config.json or tokenizer_config.json there say.
func Import(ctx context.Context, store *models.Store, file, name, tokenizer string, positions int) (*models.Bundle, error) {
	path, err := filepath.Abs(file)
	if err != nil {
		return nil, err
	}
	settings, err := imported.Settings(path, tokenizer, positions)
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
	tokenizer, err = filepath.Abs(tokenizer)
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
	b, err := store.Import(ctx, staging, name)
	if err != nil {
		// The staging folder is nothing to the user.
		return nil, errors.New(strings.ReplaceAll(err.Error(), staging+string(filepath.Separator), tokenizer+string(filepath.Separator)))
	}
	return b, nil
}
