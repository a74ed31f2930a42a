package models_test

import (
	"bytes"
	"context"
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

	"infill/internal/check"
	"infill/internal/modelstest"
	"infill/internal/safetensors"
	"infill/models"
)

// pickledBundle copies a bundle that torch.save wrote.
func pickledBundle(t testing.TB, name string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "source")
	check.OK(t, os.CopyFS(dir, os.DirFS(filepath.Join("..", "internal", "pytorch", "testdata", name))))
	check.OK(t, os.RemoveAll(filepath.Join(dir, "expected.safetensors")))
	return dir
}

// Weights in pytorch_model.bin become those that the reference implementation
// writes as safetensors, in every form, under every name.
func TestImportConverts(t *testing.T) {
	expected, err := safetensors.Open(
		filepath.Join("..", "internal", "pytorch", "testdata", "bundle", "expected.safetensors"))
	check.OK(t, err)
	reference := models.WithWeights(expected)
	for _, name := range []string{"bundle", "bundle-first"} {
		t.Run(name, func(t *testing.T) {
			dir := pickledBundle(t, name)
			before := files(t, dir)
			store := &models.Store{Dir: filepath.Join(t.TempDir(), "models")}
			b := check.Must(store.Import(t.Context(), dir, "org/tiny"))(t)
			for _, want := range b.Config.Tensors() {
				got, dtype := content(t, b, want.Name)
				expected, expectedType := content(t, reference, want.Name)
				if dtype != expectedType || got != expected {
					t.Errorf("%s is not what the reference has", want.Name)
				}
			}
			if _, ok := b.Weights().Tensor("cls.predictions.decoder.weight"); ok {
				t.Error("the tied matrix is stored twice")
			}

			if b.Manifest.Revision != b.SHA256[:12] {
				t.Errorf("revision %s of %s", b.Manifest.Revision, b.SHA256)
			}
			if diff := cmp.Diff(before, files(t, dir)); diff != "" {
				t.Errorf("the source was changed (-before +after):\n%s", diff)
			}
			again := check.Must(store.Import(t.Context(), dir, "org/tiny"))(t)
			if diff := cmp.Diff(b.Manifest, again.Manifest); diff != "" {
				t.Errorf("imported again (-first +again):\n%s", diff)
			}
		})
	}
}

// With a decoder of its own in config.json, the tied matrix is there under both names.
func TestImportKeepsWhatConfigAsksFor(t *testing.T) {
	dir := pickledBundle(t, "bundle")
	config := strings.Replace(string(read(t, dir, "config.json")), "{", `{"tie_word_embeddings": false,`, 1)
	write(t, dir, "config.json", []byte(config))
	b, err := (&models.Store{Dir: filepath.Join(t.TempDir(), "models")}).Import(t.Context(), dir, "org/tiny")
	check.OK(t, err)
	first, _ := content(t, b, "cls.predictions.decoder.weight")
	if second, _ := content(t, b, "bert.embeddings.word_embeddings.weight"); first != second {
		t.Error("the tied matrices differ")
	}
}

// content reads a weight of a bundle.
func content(t testing.TB, b *models.Bundle, name string) (string, safetensors.DType) {
	t.Helper()
	tensor, ok := b.Tensor(name)
	if !ok {
		t.Fatalf("%s is not there", name)
	}
	raw := check.Must(tensor.Bytes())(t)
	return string(raw), safetensors.DType(tensor.DType)
}

func TestImportRefusesPickles(t *testing.T) {
	other := func(name string) func(testing.TB, string) {
		return func(t testing.TB, dir string) {
			write(t, dir, "pytorch_model.bin", read(t, filepath.Join("..", "internal", "pytorch", "testdata"), name))
		}
	}
	for _, c := range []struct {
		name  string
		spoil func(testing.TB, string)
		want  []string
	}{
		{"code", other("whole.bin"), []string{"pytorch_model.bin: the pickle names " +
			"\"torch.nn.modules.linear.Linear\", which is no part of a state dict"}},
		{"no weights of the model", other("module.bin"), []string{"pytorch_model.bin: no masked-language-model head: " +
			"tensor cls.predictions.transform.dense.weight is missing"}},
		{"cut", func(t testing.TB, dir string) {
			content := read(t, dir, "pytorch_model.bin")
			write(t, dir, "pytorch_model.bin", content[:len(content)/2])
		}, []string{"pytorch_model.bin: damaged or cut short"}},
		{"damaged", func(t testing.TB, dir string) {
			content, weights := read(t, dir, "pytorch_model.bin"),
				read(t, filepath.Join("..", "internal", "pytorch", "testdata", "bundle"), "expected.safetensors")
			content[bytes.Index(content, weights[len(weights)-32:])] ^= 1
			write(t, dir, "pytorch_model.bin", content)
		}, []string{"pytorch_model.bin: ", "/data/", "damaged or cut short"}},
		{"config of another model", func(t testing.TB, dir string) {
			write(t, dir, "config.json",
				[]byte(strings.Replace(string(read(t, dir, "config.json")), `"hidden_size": 16`, `"hidden_size": 32`,
					1)))
		}, []string{"pytorch_model.bin: tensor bert.embeddings.word_embeddings.weight has shape [64 16], config.json " +
			"asks for [64 32]"}},
		{"folder", func(t testing.TB, dir string) {
			check.OK(t, errors.Join(os.Remove(filepath.Join(dir, "pytorch_model.bin")),
				os.Mkdir(filepath.Join(dir, "pytorch_model.bin"), 0o755)))
		}, []string{"pytorch_model.bin: not a regular file"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := pickledBundle(t, "bundle")
			c.spoil(t, dir)
			store := &models.Store{Dir: filepath.Join(t.TempDir(), "models")}
			_, err := store.Import(t.Context(), dir, "org/tiny")
			if err == nil || strings.Contains(err.Error(), "\n") || !strings.Contains(err.Error(), dir) {
				t.Fatalf("error %v does not name the folder in one line", err)
			}
			for _, want := range c.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("error %v does not say %q", err, want)
				}
			}
			if left, _ := filepath.Glob(filepath.Join(store.Dir, "org--tiny", ".partial*")); left != nil {
				t.Errorf("%v is left", left)
			}
		})
	}
}

func TestImportCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := (&models.Store{Dir: t.TempDir()}).Import(ctx, pickledBundle(t, "bundle"), "org/tiny"); !errors.Is(err,
		context.Canceled) {
		t.Errorf("error %v", err)
	}
}

// A disk that fills up leaves nothing that would be taken for weights, and the
// next import works.
func TestImportConvertsWithoutRoom(t *testing.T) {
	dir := pickledBundle(t, "bundle")
	store := &models.Store{Dir: filepath.Join(t.TempDir(), "models")}
	err := modelstest.InLittleRoom(t, 8192, store.Dir, func(stored string) error {
		_, err := (&models.Store{Dir: stored}).Import(t.Context(), dir, "org/tiny")
		return err
	})
	if !strings.Contains(err.Error(), "file too large") || !strings.Contains(err.Error(), store.Dir) {
		t.Errorf("error %v", err)
	}
	if left, _ := filepath.Glob(filepath.Join(store.Dir, "org--tiny", ".partial*")); left != nil {
		t.Errorf("%v is left", left)
	}
	if _, err := store.Open("org/tiny"); !errors.Is(err, models.ErrNotStored) {
		t.Errorf("error %v", err)
	}
	if _, err := store.Import(t.Context(), dir, "org/tiny"); err != nil {
		t.Error(err)
	}
}

// holdPickled puts a bundle that torch.save wrote in place of the hub's model.
func holdPickled(t testing.TB, s *modelstest.Hub, name string) map[string][]byte {
	t.Helper()
	content := map[string][]byte{}
	for name, text := range files(t, filepath.Join("..", "internal", "pytorch", "testdata", name)) {
		content[name] = []byte(text)
	}
	delete(content, "expected.safetensors")
	content["training_args.bin"] = []byte("not to be fetched")
	s.Hold(firstCommit, content)
	return content
}

// A repository that has only pytorch_model.bin is fetched, converted, stored,
// opened, verified and listed.
func TestPullConverts(t *testing.T) {
	for _, name := range []string{"bundle", "bundle-first"} {
		t.Run(name, func(t *testing.T) {
			s := modelstest.NewHub(t)
			weights := holdPickled(t, s, name)["pytorch_model.bin"]
			store := newStore(t)
			o := s.Options()
			b := pull(t, store, "org/tiny", o)
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
			if problems, err := verify(t.Context(), t, store, "org/tiny"); err != nil || len(problems) > 0 {
				t.Errorf("verified: %v, %v", problems, err)
			}
			entries := check.Must(store.List())(t)
			if last := entries[len(entries)-1]; last.Name != "org/tiny" || last.Problem != nil ||
				last.Manifest.SHA256() != b.SHA256 || last.Manifest.Ref != "main" {
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
