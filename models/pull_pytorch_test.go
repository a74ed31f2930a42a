package models_test

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"infill/internal/modelstest"
	"infill/models"
)

// holdPickled puts a bundle that torch.save wrote in place of the hub's model.
func holdPickled(t testing.TB, s *modelstest.Hub, name string) map[string][]byte {
	t.Helper()
	content := map[string][]byte{}
	for name, text := range files(t, filepath.Join("internal", "pytorch", "testdata", name)) {
		content[name] = []byte(text)
	}
	delete(content, "expected.safetensors")
	content["training_args.bin"] = []byte("not to be fetched")
	s.Hold(firstCommit, content)
	return content
}

// A repository that has only pytorch_model.bin is fetched, converted, stored, opened, verified and listed.
func TestPullConverts(t *testing.T) {
	for _, name := range []string{"bundle", "bundle-first"} {
		t.Run(name, func(t *testing.T) {
			s := modelstest.NewHub(t)
			weights := holdPickled(t, s, name)["pytorch_model.bin"]
			store := newStore(t)
			o, seen := observed(s)
			b := pull(t, store, "org/tiny", o)
			if seen.Converted != 1 {
				t.Errorf("told %d times of the conversion", seen.Converted)
			}
			if got, want := slices.Sorted(maps.Keys(files(t, b.Dir))), []string{"config.json", "manifest.json",
				"model.safetensors", "tokenizer_config.json", "vocab.txt"}; !slices.Equal(got, want) {
				t.Errorf("stored %q, want %q", got, want)
			}
			if diff := cmp.Diff([]models.ManifestFile{{Path: "pytorch_model.bin", Size: int64(len(weights)),
				SHA256: fmt.Sprintf("%x", sha256.Sum256(weights))}}, b.Manifest.ConvertedFrom); diff != "" {
				t.Errorf("converted from (-want +got):\n%s", diff)
			}
			if len(s.Seen("training_args.bin")) > 0 {
				t.Error("training_args.bin was asked for")
			}
			// As an import of the same folder makes it.
			imported, err := newStore(t).Import(t.Context(), pickledBundle(t, name), "org/tiny")
			if err != nil || imported.SHA256 != b.SHA256 {
				t.Errorf("imported %+v, %v; pulled %s", imported, err, b.SHA256)
			}
			if problems, err := verify(t, store, t.Context(), "org/tiny"); err != nil || len(problems) > 0 {
				t.Errorf("verified: %v, %v", problems, err)
			}
			entries, err := store.List()
			if err != nil {
				t.Fatal(err)
			}
			if last := entries[len(entries)-1]; last.Name != "org/tiny" || last.Problem != nil ||
				last.Manifest.SHA256() != b.SHA256 || !slices.Equal(last.Refs, []string{"main"}) {
				t.Errorf("listed %+v", last)
			}
			s.Forget()
			pull(t, store, "org/tiny", s.Options())
			if seen := s.Seen(".bin"); len(seen) > 0 {
				t.Errorf("fetched again: %v", seen)
			}
		})
	}
}

// What is damaged after conversion is fetched and converted once more.
func TestPullConvertsAgain(t *testing.T) {
	s := modelstest.NewHub(t)
	holdPickled(t, s, "bundle")
	store := newStore(t)
	b := pull(t, store, "org/tiny", s.Options())
	path := filepath.Join(b.Dir, "model.safetensors")
	whole := files(t, b.Dir)["model.safetensors"]
	if err := os.WriteFile(path, []byte("damaged"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Open("org/tiny"); err == nil || !strings.Contains(err.Error(), "model.safetensors: damaged") {
		t.Errorf("error %v", err)
	}
	b = pull(t, store, "org/tiny", s.Options())
	if files(t, b.Dir)["model.safetensors"] != whole {
		t.Error("the second conversion is not the first")
	}
}

func TestPullPrefersSafetensors(t *testing.T) {
	s := modelstest.NewHub(t)
	s.Commits[firstCommit]["pytorch_model.bin"] = []byte("not to be fetched")
	b := pull(t, newStore(t), "org/tiny", s.Options())
	if len(s.Seen(".bin")) > 0 || b.Manifest.ConvertedFrom != nil {
		t.Errorf("requests %v, converted from %v", s.Seen(".bin"), b.Manifest.ConvertedFrom)
	}
}

func TestPullRefusesPickles(t *testing.T) {
	s := modelstest.NewHub(t)
	content := holdPickled(t, s, "bundle")
	whole, err := os.ReadFile(filepath.Join("internal", "pytorch", "testdata", "whole.bin"))
	if err != nil {
		t.Fatal(err)
	}
	content["pytorch_model.bin"] = whole
	store := newStore(t)
	_, err = store.Pull(t.Context(), "org/tiny", s.Options())
	refused(t, err, `pytorch_model.bin: the pickle names "torch.nn.modules.linear.Linear", which is no part of a state dict`)
	if _, err := store.Open("org/tiny"); !errors.Is(err, models.ErrNotStored) {
		t.Errorf("error %v", err)
	}
	if left, err := filepath.Glob(filepath.Join(store.Dir, "*", ".partial-*")); err != nil || len(left) > 0 {
		t.Errorf("what was refused still takes room: %v, %v", left, err)
	}
}
