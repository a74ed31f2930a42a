package lm_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"infill/internal/modelstest"
	"infill/lm"
	"infill/models"
	"infill/tokenize"
)

// A model that was published without tokenizer.json is imported and filled: byte-level BPE in vocab.json and
// merges.txt.
func TestUnconvertedTokenizer(t *testing.T) {
	files := os.DirFS("../tokenize/testdata/unconverted/roberta")
	tokenizer, err := tokenize.Load(files)
	if err != nil {
		t.Fatal(err)
	}
	config, err := json.Marshal(map[string]any{"model_type": "roberta", "hidden_size": 16, "num_hidden_layers": 2,
		"num_attention_heads": 2, "intermediate_size": 32, "max_position_embeddings": 40,
		"vocab_size": tokenizer.VocabularySize()})
	if err != nil {
		t.Fatal(err)
	}
	weights, dir := t.TempDir(), t.TempDir()
	if err := modelstest.Write(weights, string(config), modelstest.Options{Spread: 0.3}); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(filepath.Join(weights, "model.safetensors"),
		filepath.Join(dir, "model.safetensors")); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(dir, files); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "config.json"), config, 0o644); err != nil {
		t.Fatal(err)
	}
	bundle, err := (&models.Store{Dir: t.TempDir()}).Import(t.Context(), dir, "my/model")
	if err != nil {
		t.Fatal(err)
	}
	if tokenizer, err = tokenize.Load(bundle.FS()); err != nil {
		t.Fatal(err)
	}
	m := openBundle(t, bundle, tokenizer.MaskID())
	template, err := tokenizer.Template("he had [MASK] me")
	if err != nil {
		t.Fatal(err)
	}
	target := targetOf(t, m, template.IDs, template.Slots, lm.TargetOptions{Support: [][]int{tokenizer.Fillable()}})
	energy := make([]float64, 1)
	if err := target.Energy(t.Context(), []int{3}, energy); err != nil || !(energy[0] < 0) {
		t.Errorf("energy %g, %v", energy[0], err)
	}
	if text := template.Fill([]int{tokenizer.Fillable()[3]}).Text; !strings.HasPrefix(text, "he had") ||
		!strings.HasSuffix(text, " me") {
		t.Errorf("filled: %q", text)
	}
}

// An imported graph with the tokenizer of a larger model is refused.
func TestImportWithAnotherTokenizer(t *testing.T) {
	_, err := lm.Import(t.Context(), &models.Store{Dir: t.TempDir()}, filepath.Join(exportFixtures, "sdpa-14.onnx"),
		"exported", "../tokenize/testdata/unconverted/roberta", 24)
	if err == nil || !strings.Contains(err.Error(), "the tokenizer has 481 tokens, the model embeds 64") {
		t.Errorf("error %v", err)
	}
}
