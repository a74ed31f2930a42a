package lm_test

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"infill/lm"
	"infill/models"
)

// The graph that onnxruntime has optimised is kept, gives the same numbers bit for bit, and is made again when it is
// damaged. Where it cannot be kept, the model runs all the same.
func TestKeptGraph(t *testing.T) {
	root := ownCache(t)
	bundle, err := models.Open("")
	if err != nil {
		t.Fatal(err)
	}
	scores := func() []float64 {
		t.Helper()
		m, err := lm.Open(t.Context(), bundle, lm.Options{Device: "cpu", MaskID: maskID})
		if err != nil {
			t.Fatal(err)
		}
		defer m.Close()
		s, err := m.Score(t.Context(), exampleIDs, []lm.Query{{Position: 1}, {Position: 2, Masked: []int{2}}})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	folder := func() string {
		found, err := filepath.Glob(filepath.Join(root, "precision", "*-fp32-*"))
		if err != nil || len(found) != 1 {
			t.Fatalf("kept %q, %v", found, err)
		}
		return found[0]
	}
	want := scores()
	kept := folder()
	content := map[string][]byte{}
	for _, name := range []string{"conditionals.bin", "conditionals.onnx", "conditionals.json"} {
		if content[name], err = os.ReadFile(filepath.Join(kept, name)); err != nil {
			t.Fatal(err)
		}
	}
	same := func(when string) {
		t.Helper()
		if got := scores(); !slices.Equal(got, want) {
			t.Errorf("%s: scores %v, want %v", when, got, want)
		}
		for name, bytesOf := range content {
			if now, err := os.ReadFile(filepath.Join(kept, name)); err != nil || !bytes.Equal(now, bytesOf) {
				t.Errorf("%s: %s has other bytes: %v", when, name, err)
			}
		}
	}
	same("the second time")
	for name, bytesOf := range content {
		damaged := bytes.Clone(bytesOf)
		damaged[len(damaged)/2] ^= 1
		if err := os.WriteFile(filepath.Join(kept, name), damaged, 0o644); err != nil {
			t.Fatal(err)
		}
		same("with a damaged " + name)
	}
	// What is made again removes what nobody used for a month, and nothing else.
	old, young := filepath.Join(root, "precision", "0123456789abcdef-int8-2"),
		filepath.Join(root, "precision", "fedcba9876543210-int8-2")
	for dir, days := range map[string]int{old: 31, young: 29} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		used := time.Now().AddDate(0, 0, -days)
		if err := os.Chtimes(dir, used, used); err != nil {
			t.Fatal(err)
		}
	}
	if err := lm.RemovePrepared(bundle.SHA256); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(kept); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%s: %v", kept, err)
	}
	same("made again")
	if _, err := os.Stat(old); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%s: %v", old, err)
	}
	if _, err := os.Stat(young); err != nil {
		t.Error(err)
	}
	if err := os.RemoveAll(kept); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(kept, nil, 0o644); err != nil { // where the folder belongs
		t.Fatal(err)
	}
	if got := scores(); !slices.Equal(got, want) {
		t.Errorf("not kept: scores %v, want %v", got, want)
	}
}
