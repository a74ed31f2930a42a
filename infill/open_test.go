package infill_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"infill/infill"
)

// TestOpenFaults: a model, a tokenizer and a library that are not there, or are
// no such thing, are errors of Open, or of the first fill.
func TestOpenFaults(t *testing.T) {
	damaged := t.TempDir()
	if err := os.CopyFS(damaged, os.DirFS(mini)); err != nil {
		t.Fatal(err)
	}
	// The checksums are right, and the tokenizer is empty.
	bundle := t.TempDir()
	if err := os.CopyFS(bundle, os.DirFS(mini)); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(bundle, "tokenizer.json")
	old, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := os.ReadFile(filepath.Join(bundle, "manifest.json"))
	if err != nil {
		t.Fatal(err)
	}
	listed := strings.NewReplacer(fmt.Sprint(len(old)), "2", fmt.Sprintf("%x", sha256.Sum256(old)),
		fmt.Sprintf("%x", sha256.Sum256([]byte("{}")))).Replace(string(manifest))
	for path, text := range map[string]string{
		filepath.Join(damaged, "tokenizer.json"): "{}", path: "{}", filepath.Join(bundle, "manifest.json"): listed,
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for model, want := range map[string]string{"no-such-model": "no-such-model", damaged: "expected 461345 bytes",
		bundle: filepath.Base(bundle) + ": tokenizer.json: unsupported tokenizer"} {
		f, err := infill.Open(infill.OpenOptions{Model: model})
		if f != nil || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, error %v", model, f, err)
		}
	}
	missing := errors.New("no library")
	for name, find := range map[string]func(context.Context) (string, error){
		"no library":          func(context.Context) (string, error) { return "", missing },
		"a file that is none": func(context.Context) (string, error) { return path, nil },
	} {
		loaded := false
		f, err := infill.Open(infill.OpenOptions{Model: mini, FindLibrary: find,
			Loaded: func(infill.Model) { loaded = true }})
		if err != nil {
			t.Fatal(err)
		}
		r, err := f.Fill(t.Context(), infill.Request{Template: "he had [MASK] me"}, nil)
		if err == nil || r != nil || loaded || name == "no library" && !errors.Is(err, missing) {
			t.Errorf("%s: %v, error %v, loaded %v", name, r, err, loaded)
		}
		f.Close()
	}
}

// TestOpened: Loaded is called when the model runs, not before.
func TestOpened(t *testing.T) {
	var loaded []infill.Model
	f, err := infill.Open(infill.OpenOptions{Model: mini, Threads: 1,
		Loaded: func(m infill.Model) { loaded = append(loaded, m) }})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if calls, rows := f.Calls(); calls != 0 || rows != 0 || f.Rate() != 0 || len(loaded) > 0 {
		t.Errorf("before it runs: %d calls, %d rows, %v rows a second, loaded %v", calls, rows, f.Rate(), loaded)
	}
	r, err := f.Fill(t.Context(), infill.Request{Template: "he had [MASK] me"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	calls, rows := f.Calls()
	if calls == 0 || rows != r.Stats.ModelRows || len(loaded) != 1 || loaded[0] != f.Model() {
		t.Errorf("%d calls, %d rows of %d, loaded %v", calls, rows, r.Stats.ModelRows, loaded)
	}
}
