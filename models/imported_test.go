package models_test

import (
	"os"
	"path/filepath"
	"testing"

	"infill/internal/check"
	"infill/models"
)

func writeImported(t *testing.T, config string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range map[string]string{"config.json": config,
		"vocab.txt": "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n", "tokenizer_config.json": `{"do_lower_case": true}`,
		"model.onnx": "a graph", "weights.bin": "weights", "README.md": "a card"} {
		write(t, dir, name, []byte(content))
	}
	return dir
}

func TestOpenImported(t *testing.T) {
	const config = `{"model_type": "onnx", "architectures": ["X"], "vocab_size": 5, "max_position_embeddings": 8, "onnx_data": ["weights.bin"], "gradient": true}`
	dir := writeImported(t, config)
	b := check.Must(models.Open(dir))(t)
	if b.Graph != filepath.Join(dir, "model.onnx") || b.Config.VocabularySize != 5 || b.Config.MaxPositions != 8 ||
		b.Weights() != nil {
		t.Errorf("bundle %+v", b)
	}
	// The bundle's identity depends on the graph and its weights.
	for _, name := range []string{"model.onnx", "weights.bin"} {
		write(t, dir, name, []byte("another"))
		changed := check.Must(models.Open(dir))(t)
		if changed.SHA256 == b.SHA256 {
			t.Errorf("the SHA-256 stays when %s changes", name)
		}
		b = changed
	}
}

func TestImportGraphNamesItsFile(t *testing.T) {
	dir := writeImported(t, "{}")
	check.OK(t, os.Remove(filepath.Join(dir, "tokenizer_config.json")))
	store := &models.Store{Dir: t.TempDir(), Reading: models.Uncased}
	b, err := store.ImportGraph(t.Context(), filepath.Join(dir, "model.onnx"), dir, "my/graph",
		models.Imported{VocabularySize: 5, MaxPositions: 8}, nil)
	check.OK(t, err)
	if want := filepath.Join(dir, "model.onnx"); b.Manifest.Source != want {
		t.Errorf("source %s, want %s", b.Manifest.Source, want)
	}
}

func TestImportedConfigRefuses(t *testing.T) {
	for config, want := range map[string]string{
		`"vocab_size": 0, "max_position_embeddings": 8`:                                   "vocab_size is 0",
		`"vocab_size": 9000000000, "max_position_embeddings": 8`:                          "vocab_size",
		`"vocab_size": 2, "max_position_embeddings": -1`:                                  "max_position_embeddings is -1",
		`"vocab_size": 2, "max_position_embeddings": 8, "onnx_data": ["../up"]`:           "not a file beside",
		`"vocab_size": 2, "max_position_embeddings": 8, "onnx_data": ["missing.bin"]`:     "missing.bin",
		`"vocab_size": "two", "max_position_embeddings": 8, "onnx_data": ["weights.bin"]`: "not valid JSON",
		`"vocab_size": 1, "max_position_embeddings": 8`:                                   "the tokenizer has 5 tokens, the model embeds 1",
	} {
		b, err := models.Open(writeImported(t, `{"model_type": "onnx", `+config+`}`))
		if err == nil {
			_, err = b.Tokenizer()
		}
		check.Says(t, err, want)
	}
}
