package lm

import (
	"context"

	"infill/lm/internal/imported"
	"infill/models"
)

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
