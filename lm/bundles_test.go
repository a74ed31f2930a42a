package lm_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"infill/internal/check"
	"infill/internal/modelstest"
	"infill/lm"
	"infill/models"
)

// tinyMask is [MASK] in every bundle that writeBundle makes.
const tinyMask = 4

// writeBundle makes a small BERT with random float32 weights of a standard
// deviation.
func writeBundle(t testing.TB, vocabulary int, spread float64) *models.Bundle {
	t.Helper()
	dir, config := t.TempDir(), fmt.Sprintf(`{"model_type": "bert", "architectures": ["BertForMaskedLM"],
		"vocab_size": %d, "hidden_size": 8, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 12,
		"max_position_embeddings": 16}`, vocabulary)
	check.OK(t, modelstest.Write(dir, config, modelstest.Options{Spread: spread, Seed: 1}))
	bundle := check.Must(models.Open(dir))(t)
	return bundle
}

// reference is a bundle of internal/bert/testdata with what the family's
// reference implementation computes from it in double precision; how,
// generate_reference.py there says.
type reference struct {
	Name   string // of the folder
	Bundle *models.Bundle
	Mask   int
	Cases  []referenceCase
	// SpreadBy is the text that spreads the inputs of the model in int8.
	SpreadBy []int `json:"spread_by"`
}

// referenceCase is a text and the rows in which one of its slots is masked.
type referenceCase struct {
	IDs   []int
	Slots []int
	// LogProbability is [slots × vocabulary], nats: row i masks slot i.
	LogProbability [][]float64 `json:"log_probability"`
	// Gradient is [slots × slots × width]: of row i's log-probability of slot
	// i's token, by the word embedding that enters at slot j.
	Gradient [][][]float64
}

func references(t testing.TB) []reference {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("..", "internal", "bert", "testdata", "*", "reference.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no reference values, %v", err)
	}
	var list []reference
	for _, file := range files {
		data := check.Must(os.ReadFile(file))(t)
		r := reference{Name: filepath.Base(filepath.Dir(file))}
		check.OK(t, json.Unmarshal(data, &r))
		if r.Bundle, err = models.Open(filepath.Dir(file)); err != nil {
			t.Fatal(err)
		}
		list = append(list, r)
	}
	return list
}

// Weights may be a link to a file of another name and folder, as in the cache
// of Hugging Face's programs, or in several files.
func TestLinkedWeights(t *testing.T) {
	plain := writeBundle(t, 30, 0.3)
	root := t.TempDir()
	blobs, snapshot := filepath.Join(root, "blobs"), filepath.Join(root, "snapshots", "1")
	check.OK(t, errors.Join(os.CopyFS(blobs, plain.FS()), os.MkdirAll(snapshot, 0o755)))
	for _, name := range []string{"config.json", "vocab.txt", "tokenizer_config.json", "model.safetensors"} {
		blob := fmt.Sprintf("%x", name)
		check.OK(t, errors.Join(os.Rename(filepath.Join(blobs, name), filepath.Join(blobs, blob)),
			os.Symlink(filepath.Join("..", "..", "blobs", blob), filepath.Join(snapshot, name))))
	}
	linked := check.Must(models.Open(snapshot))(t)
	folder := t.TempDir()
	check.OK(t, os.CopyFS(folder, plain.FS()))
	check.OK(t, modelstest.Shard(folder))
	divided := check.Must(models.Open(folder))(t)
	var energies [3][]float64
	for i, b := range []*models.Bundle{plain, linked, divided} {
		energies[i], _ = evaluateAll(t, newTarget(t, openBundle(t, b, tinyMask), lm.TargetOptions{}), []int{3, 1, 2}, 1)
	}
	if !slices.Equal(energies[0], energies[1]) || !slices.Equal(energies[0], energies[2]) {
		t.Errorf("energies %v", energies)
	}
}
