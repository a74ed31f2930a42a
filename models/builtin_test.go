package models_test

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gofrs/flock"
	"github.com/google/go-cmp/cmp"

	"infill/internal/check"
	"infill/internal/modelstest"
	"infill/models"
	"infill/tokenize"
)

var update = flag.Bool("update", false, "write small-uncased/manifest.json or a table of ../docs again")

func TestBuiltInManifest(t *testing.T) {
	files := os.DirFS(models.BuiltInName)
	want, err := models.NewManifest(models.BuiltInName, models.Manifest{
		Name:        models.BuiltInName,
		Description: "English, uncased, 6 layers, hidden size 384; trained for infill",
		Family:      "bert",
		Licence:     "Apache-2.0",
		Source: "sentence-transformers/all-MiniLM-L6-v2, trained on as a masked language model for infill; see " +
			"README.md",
		Revision: "3",
		// docs/model/second.py masks one text at a time.
		Segments: 1,
	})
	check.OK(t, err)
	if *update {
		check.OK(t, os.WriteFile(filepath.Join(models.BuiltInName, models.ManifestName), want.Encode(),
			0o644))
	}
	stored := check.Must(fs.ReadFile(files, models.ManifestName))(t)
	if diff := cmp.Diff(string(want.Encode()), string(stored)); diff != "" {
		t.Errorf("%s does not describe the files beside it; run go generate ./models (-want +stored):\n%s",
			models.ManifestName, diff)
	}
	weights := sum(t, filepath.Join(models.BuiltInName, "model.safetensors"))
	if card := read(t, models.BuiltInName, "README.md"); !bytes.Contains(card, []byte(weights)) {
		t.Errorf("the model card does not give the SHA-256 of the weights, %s", weights)
	}
}

// openBuiltIn opens the built-in model in a new store.
func openBuiltIn(t testing.TB) (*models.Store, *models.Bundle) {
	t.Helper()
	store := &models.Store{Dir: filepath.Join(t.TempDir(), "models")}
	b := check.Must(store.Open(""))(t)
	return store, b
}

func TestOpenBuiltIn(t *testing.T) {
	_, b := openBuiltIn(t)
	for _, name := range append(b.Manifest.Files, models.ManifestFile{Path: "manifest.json"}) {
		if !bytes.Equal(read(t, b.Dir, name.Path), read(t, models.BuiltInName, name.Path)) {
			t.Errorf("%s was placed with other bytes", name.Path)
		}
		info, err := os.Stat(filepath.Join(b.Dir, name.Path))
		if err != nil || info.Mode().Perm()&0o444 == 0 || info.Mode().Perm()&0o133 != 0 {
			t.Errorf("%s: mode %v, %v", name.Path, info.Mode(), err)
		}
	}
	if b.Name != "small-uncased" || b.Config.VocabularySize != 30522 ||
		!regexp.MustCompile("^[0-9a-f]{64}$").MatchString(b.SHA256) {
		t.Errorf("bundle %+v", b)
	}
	folder := check.Must(models.Open("./small-uncased"))(t)
	if folder.SHA256 != b.SHA256 {
		t.Errorf("the same files as a folder have the identity %s, built in %s", folder.SHA256, b.SHA256)
	}
	// The places of the weights against a plain reading of the header.
	raw := read(t, models.BuiltInName, "model.safetensors")
	start := 8 + int64(binary.LittleEndian.Uint64(raw))
	var header map[string]struct {
		Offsets [2]int64 `json:"data_offsets"`
	}
	check.OK(t, json.Unmarshal(raw[8:start], &header))
	for _, want := range b.Config.Tensors() {
		tensor, ok := b.Tensor(want.Name)
		stored := want.Name
		if stored == "cls.predictions.decoder.bias" {
			stored = "cls.predictions.bias" // the built-in model's name for it
		}
		if begin, end := header[stored].Offsets[0], header[stored].Offsets[1]; !ok || tensor.Offset != start+begin ||
			tensor.Length != end-begin {
			t.Errorf("tensor %s: %+v, want bytes %d to %d", want.Name, tensor, start+begin, start+end)
		}
	}
}

// state describes every file under dir but the lock: what it is, its size,
// its time of change.
func state(t testing.TB, dir string) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || entry.Name() == ".lock" {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		found[path] = info.Mode().String() + " " + info.ModTime().String()
		return nil
	})
	check.OK(t, err)
	return found
}

func TestOpenBuiltInMendsItsCopy(t *testing.T) {
	change := func(change func([]byte) []byte) func(path string) error {
		return func(path string) error {
			content, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			return os.WriteFile(path, change(content), 0o644)
		}
	}
	cut := func(size int64) func(string) error { return func(path string) error { return os.Truncate(path, size) } }
	store, b := openBuiltIn(t)
	// What others keep there is theirs.
	write(t, b.Dir, "notes.txt", []byte("mine"))
	write(t, filepath.Dir(b.Dir), "beside.txt", []byte("mine too"))
	for _, c := range []struct {
		name, file string
		spoil      func(path string) error
	}{
		{"nothing", "model.safetensors", func(string) error { return nil }},
		{"first byte", "model.safetensors", change(func(c []byte) []byte { c[0] ^= 1; return c })},
		{"cut", "model.safetensors", cut(12345678)},
		{"longer", "model.safetensors", change(func(c []byte) []byte { return append(c, 0) })},
		{"gone", "model.safetensors", os.Remove},
		{"vocabulary altered", "vocab.txt", change(func([]byte) []byte { return []byte("[PAD]\n") })},
		{"manifest altered", "manifest.json", cut(0)},
		{"link to nowhere", "config.json", func(path string) error {
			return errors.Join(os.Remove(path), os.Symlink("nowhere", path))
		}},
		{"folder in its place", "vocab.txt", func(path string) error {
			return errors.Join(os.Remove(path), os.Mkdir(path, 0o755))
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			before := state(t, store.Dir)
			check.OK(t, c.spoil(filepath.Join(b.Dir, c.file)))
			if _, err := store.Open(""); err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(read(t, b.Dir, c.file), read(t, models.BuiltInName, c.file)) {
				t.Errorf("%s is still damaged", c.file)
			}
			after := state(t, store.Dir)
			for _, name := range []string{c.file, "manifest.json"} {
				if c.name == "nothing" {
					break
				}
				delete(before, filepath.Join(b.Dir, name))
				delete(after, filepath.Join(b.Dir, name))
			}
			if diff := cmp.Diff(before, after); diff != "" {
				t.Errorf("other files changed (-before +after):\n%s", diff)
			}
		})
	}
}

// If a process is killed while it places the model, the next one makes the folder whole.
func TestOpenBuiltInGoesOn(t *testing.T) {
	// A cache folder may have any name.
	store := &models.Store{Dir: filepath.Join(t.TempDir(), "a [b")}
	b := check.Must(store.Open(""))(t)
	check.OK(t, os.Rename(b.Dir, filepath.Join(filepath.Dir(b.Dir), ".partial-"+filepath.Base(b.Dir))))
	write(t, filepath.Join(filepath.Dir(b.Dir), ".partial-"+filepath.Base(b.Dir)), "vocab.txt", []byte("half"))
	if _, err := store.Open(""); err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(filepath.Dir(b.Dir)); err != nil || len(left) != 2 { // the model and the lock
		t.Errorf("left: %v, %v", left, err)
	}
}

// Many at once, on an empty and then on a damaged cache: each gets a whole model.
func TestOpenBuiltInAtOnce(t *testing.T) {
	store := &models.Store{Dir: t.TempDir()}
	for range 2 {
		var group sync.WaitGroup
		var dir string
		var once sync.Once
		for range 4 {
			group.Go(func() {
				b, err := store.Open("")
				if err != nil {
					t.Error(err)
					return
				}
				once.Do(func() { dir = b.Dir })
				if err := b.Manifest.Verify(b.Dir); err != nil {
					t.Error(err)
				}
			})
		}
		group.Wait()
		if t.Failed() {
			return
		}
		check.OK(t, os.Truncate(filepath.Join(dir, "model.safetensors"), 100))
	}
}

// A process that holds the lock and does not go on is waited for, but not for
// ever.
func TestOpenBuiltInLocked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // its clock does not wait
		store, b := openBuiltIn(t)
		check.OK(t, os.Remove(filepath.Join(b.Dir, "config.json")))
		lock := flock.New(filepath.Join(filepath.Dir(b.Dir), ".lock"))
		check.OK(t, lock.Lock())
		began := time.Now()
		_, err := store.Open("")
		check.Says(t, err, "model small-uncased is in use by another process",
			"end the process that holds "+lock.Path(),
			"or set INFILL_CACHE to another folder")
		if waited := time.Since(began); waited != 30*time.Second {
			t.Errorf("waited %v", waited)
		}
		check.OK(t, lock.Close())
		check.Must(store.Open(""))(t)
	})
}

func TestOpenBuiltInWithoutRoom(t *testing.T) {
	refused := func(t *testing.T, err error, parts ...string) {
		t.Helper()
		check.Says(t, err, append(parts, "the built-in model small-uncased cannot be placed in ",
			"make room for 45 MB there, or set INFILL_CACHE")...)
	}
	t.Run("cache is a file", func(t *testing.T) {
		dir := t.TempDir()
		write(t, dir, "cache", nil)
		t.Setenv("INFILL_CACHE", filepath.Join(dir, "cache"))
		_, err := models.Open("")
		refused(t, err, filepath.Join(dir, "cache"), "not a directory")
	})
	t.Run("read-only", func(t *testing.T) {
		if os.Getuid() == 0 {
			t.Skip("the superuser may write everywhere")
		}
		store, b := openBuiltIn(t)
		folders := []string{store.Dir, filepath.Dir(b.Dir), b.Dir}
		for _, dir := range folders {
			check.OK(t, os.Chmod(dir, 0o555))
			defer os.Chmod(dir, 0o755)
		}
		if _, err := store.Open(""); err != nil {
			t.Errorf("a whole copy in a read-only cache: %v", err)
		}
		check.OK(t, os.Truncate(filepath.Join(b.Dir, "model.safetensors"), 5))
		_, err := store.Open("")
		refused(t, err, "permission denied")
	})
	t.Run("full", func(t *testing.T) {
		root := t.TempDir()
		err := modelstest.InLittleRoom(t, 1<<20, root, func(root string) error {
			_, err := (&models.Store{Dir: filepath.Join(root, "models")}).Open("")
			return err
		})
		refused(t, err, root, "file too large")
		leftovers, err := filepath.Glob(filepath.Join(root, "models", "small-uncased", "*", ".*"))
		if err != nil || len(leftovers) > 0 {
			t.Errorf("left behind: %q, %v", leftovers, err)
		}
		// With room again, the same cache serves.
		if _, err := (&models.Store{Dir: filepath.Join(root, "models")}).Open(""); err != nil {
			t.Error(err)
		}
	})
}

// The short form of the built-in model's vocabulary, which is read at every
// start, and the long one, which other programs read, give one tokenizer.
func TestBuiltInTokenizer(t *testing.T) {
	b := check.Must(models.Open(models.BuiltInName))(t)
	short := check.Must(b.Tokenizer())(t)
	long := check.Must(tokenize.Load(b.FS()))(t)
	if short.SHA256() != long.SHA256() || short.VocabularySize() != long.VocabularySize() {
		t.Errorf("vocab.txt gives %s, tokenizer.json %s", short.SHA256(), long.SHA256())
	}
	for _, text := range []string{"He had [MASK] me.", "naïve 東京 café\u200b", "xq\x00zj"} {
		a := check.Must(short.Encode(text))(t)
		b := check.Must(long.Encode(text))(t)
		if !slices.Equal(a.IDs, b.IDs) {
			t.Errorf("%q: vocab.txt gives %v, tokenizer.json %v", text, a.IDs, b.IDs)
		}
	}
}
