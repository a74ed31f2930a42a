package models

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func writeImported(t *testing.T, config string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range map[string]string{"config.json": config, "vocab.txt": "[PAD]\n[UNK]\n",
		"model.onnx": "a graph", "weights.bin": "weights", "README.md": "a card"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestOpenImported(t *testing.T) {
	const config = `{"model_type": "onnx", "architectures": ["X"], "vocab_size": 2, "max_position_embeddings": 8, "onnx_data": ["weights.bin"], "gradient": true}`
	dir := writeImported(t, config)
	b, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	if b.Graph != filepath.Join(dir, "model.onnx") || b.Config.VocabularySize != 2 || b.Config.MaxPositions != 8 ||
		b.weights != nil {
		t.Errorf("bundle %+v", b)
	}
	if _, err := b.Embeddings(); err == nil {
		t.Error("embeddings are read from a graph")
	}
	// Graph and weights are what the model computes, and part of what identifies it.
	for _, name := range []string{"model.onnx", "weights.bin"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("another"), 0o644); err != nil {
			t.Fatal(err)
		}
		changed, err := Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		if changed.SHA256 == b.SHA256 {
			t.Errorf("the SHA-256 stays when %s changes", name)
		}
		b = changed
	}
}

func TestImportGraphNamesItsFile(t *testing.T) {
	dir := writeImported(t, "{}")
	if err := os.WriteFile(filepath.Join(dir, "vocab.txt"), []byte("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n"),
		0o644); err != nil {
		t.Fatal(err)
	}
	store := &Store{Dir: t.TempDir(), Case: Uncased}
	b, err := store.ImportGraph(t.Context(), filepath.Join(dir, "model.onnx"), dir, "my/graph",
		Imported{VocabularySize: 5, MaxPositions: 8})
	if err != nil {
		t.Fatal(err)
	}
	if want := filepath.Join(dir, "model.onnx"); b.Manifest.Source != want {
		t.Errorf("source %s, want %s", b.Manifest.Source, want)
	}
}

func TestImportedConfigRefuses(t *testing.T) {
	for config, want := range map[string]string{
		`{"model_type": "onnx", "vocab_size": 0, "max_position_embeddings": 8}`:                                   "vocab_size is 0",
		`{"model_type": "onnx", "vocab_size": 9000000000, "max_position_embeddings": 8}`:                          "vocab_size",
		`{"model_type": "onnx", "vocab_size": 2, "max_position_embeddings": -1}`:                                  "max_position_embeddings is -1",
		`{"model_type": "onnx", "vocab_size": 2, "max_position_embeddings": 8, "onnx_data": ["../up"]}`:           "not a file beside",
		`{"model_type": "onnx", "vocab_size": 2, "max_position_embeddings": 8, "onnx_data": ["missing.bin"]}`:     "missing.bin",
		`{"model_type": "onnx", "vocab_size": "two", "max_position_embeddings": 8, "onnx_data": ["weights.bin"]}`: "not valid JSON",
		`{"model_type": "onnx", "vocab_size": 1, "max_position_embeddings": 8}`:                                   "2 tokens, config.json gives the model 1",
	} {
		_, err := Open(writeImported(t, config))
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: error %v, want %q", config, err, want)
		}
	}
}

// TestRenamedError: what an error is is not lost with the names in its text.
func TestRenamedError(t *testing.T) {
	err := error(&renamedError{fmt.Errorf("read /staging/x: %w", context.Canceled), "/staging/", "folder/"})
	if !errors.Is(err, context.Canceled) || err.Error() != "read folder/x: context canceled" {
		t.Error(err)
	}
}
