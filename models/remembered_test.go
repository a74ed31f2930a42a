package models_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"

	"infill/internal/regular"
	"infill/models"
)

// Weights that were compared once are compared again where somebody has written to them, and mended.
func TestRememberedBuiltIn(t *testing.T) {
	const weights = "model.safetensors"
	store, b := openBuiltIn(t)
	regular.Remember(b.Dir, time.Now().Add(time.Minute), weights)
	if _, err := store.Open(""); err != nil {
		t.Fatal(err)
	}
	time.Sleep(20 * time.Millisecond)
	file, err := os.OpenFile(filepath.Join(b.Dir, weights), os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := file.WriteAt([]byte("damage"), 1<<20); err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Open(""); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(read(t, b.Dir, weights), read(t, models.BuiltInName, weights)) {
		t.Error("damaged weights are not mended")
	}
}
