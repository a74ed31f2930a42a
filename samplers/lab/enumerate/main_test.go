package main

import (
	"os"
	"path/filepath"
	"testing"
)

// The stored counts are what the program makes.
func TestStoredCounts(t *testing.T) {
	path := filepath.Join(t.TempDir(), "counts.csv")
	if err := write(path); err != nil {
		t.Fatal(err)
	}
	made, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	stored, err := os.ReadFile(filepath.Join("..", "ising-5x5.csv"))
	if err != nil {
		t.Fatal(err)
	}
	if string(made) != string(stored) {
		t.Error("ising-5x5.csv differs from a new count: go generate ./samplers/lab")
	}
	if err := write(filepath.Join(path, "none")); err == nil {
		t.Error("a file was taken for a folder")
	}
}
