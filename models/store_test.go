package models_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gofrs/flock"
	"github.com/google/go-cmp/cmp"

	"infill/internal/check"
	"infill/internal/modelstest"
	"infill/models"
)

// another writes a tiny bundle that differs by its seed.
func another(t testing.TB, seed uint64) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "source")
	check.OK(t, modelstest.Write(dir, modelstest.Tiny, modelstest.Options{Seed: seed}))
	return dir
}

func verify(ctx context.Context, t testing.TB, store *models.Store, name string) ([]error, error) {
	t.Helper()
	entry := check.Must(store.Find(name))(t)
	return entry.Verify(ctx)
}

func TestStore(t *testing.T) {
	store := &models.Store{Dir: filepath.Join(t.TempDir(), "models")}
	ctx := t.Context()
	list := func() []string {
		t.Helper()
		entries := check.Must(store.List())(t)
		var names []string
		for _, e := range entries {
			if e.Problem != nil || e.Manifest == nil {
				t.Errorf("%s: %v", e.Name, e.Problem)
			}
			names = append(names, e.Name+" "+e.Revision)
		}
		return names
	}
	if got, want := list(), []string{"small-uncased 3"}; !slices.Equal(got, want) {
		t.Errorf("an empty store lists %q, want %q", got, want)
	}

	first := check.Must(store.Import(ctx, another(t, 1), "org/tiny"))(t)
	revision := first.SHA256[:12]
	if first.Dir != filepath.Join(store.Dir, "org--tiny", revision) || first.Manifest.Revision != revision ||
		first.Manifest.Family != "bert" {
		t.Errorf("imported %+v, manifest %+v", first, first.Manifest)
	}
	second := check.Must(store.Import(ctx, another(t, 2), "org/tiny"))(t)
	if _, err := store.Import(ctx, another(t, 3), "alone"); err != nil {
		t.Fatal(err)
	}
	place := func() {
		if _, err := store.Open(""); err != nil {
			t.Fatal(err)
		}
	}
	place()
	third := check.Must(store.Find("alone"))(t)
	// What is imported last takes the place of what was there.
	revision = second.SHA256[:12]
	want := []string{"small-uncased 3", "alone " + third.Revision, "org/tiny " + revision}
	if diff := cmp.Diff(want, list()); diff != "" {
		t.Errorf("list (-want +got):\n%s", diff)
	}
	t.Run("import again", func(t *testing.T) {
		again, err := store.Import(ctx, another(t, 2), "org/tiny")
		if err != nil || again.Dir != second.Dir {
			t.Errorf("imported to %v, %v", again, err)
		}
		if _, err := os.Stat(first.Dir); !os.IsNotExist(err) {
			t.Errorf("the first is still there: %v", err)
		}
	})
	t.Run("verify", func(t *testing.T) {
		for _, name := range []string{"org/tiny", "alone", "small-uncased"} {
			if problems, err := verify(ctx, t, store, name); err != nil || len(problems) > 0 {
				t.Errorf("%s: %v, %v", name, problems, err)
			}
		}
		write(t, second.Dir, "vocab.txt", []byte("other"))
		check.OK(t, os.Remove(filepath.Join(second.Dir, "config.json")))
		_, err := store.Open("org/tiny")
		check.Says(t, err, "infill models remove org/tiny@"+revision+", then import it again")
		problems, err := verify(ctx, t, store, "org/tiny")
		if err != nil || len(problems) != 2 {
			t.Fatalf("problems %v, %v; want two", problems, err)
		}
		for i, name := range []string{"config.json", "vocab.txt"} {
			if !strings.HasPrefix(problems[i].Error(), filepath.Join(second.Dir, name)+": ") {
				t.Errorf("problem %v is not about %s", problems[i], name)
			}
		}
		cancelled, cancel := context.WithCancel(ctx)
		cancel()
		if _, err := verify(cancelled, t, store, "alone"); !errors.Is(err, context.Canceled) {
			t.Errorf("error %v is not that of the context", err)
		}
	})
	t.Run("manifest damaged", func(t *testing.T) {
		write(t, second.Dir, "manifest.json", []byte("{"))
		entry, err := store.Find("org/tiny")
		if err != nil || entry.Problem == nil ||
			!strings.Contains(entry.Problem.Error(), filepath.Join(second.Dir, "manifest.json")+": not valid JSON") {
			t.Errorf("entry %+v, %v", entry, err)
		}
		if problems, err := verify(ctx, t, store, "org/tiny"); err != nil ||
			len(problems) != 1 {
			t.Errorf("problems %v, %v", problems, err)
		}
		// Import finds the damage and puts a whole copy there.
		mended := check.Must(store.Import(ctx, another(t, 2), "org/tiny"))(t)
		if err := mended.Manifest.Verify(mended.Dir); err != nil {
			t.Error(err)
		}
	})
	t.Run("remove", func(t *testing.T) {
		if _, err := store.Remove(ctx, "org/tiny@abcd"); !errors.Is(err, models.ErrNotStored) {
			t.Errorf("another revision: error %v", err)
		}
		if removed, err := store.Remove(ctx, "org/tiny@"+revision[:4]); err != nil || removed.Revision != revision {
			t.Errorf("removed %v, %v", removed, err)
		}
		if _, err := os.Stat(filepath.Join(store.Dir, "org--tiny")); !os.IsNotExist(err) {
			t.Errorf("the folder is still there: %v", err)
		}
		for _, name := range []string{"org/tiny", "org/tiny@main", "org/never"} {
			if _, err := store.Remove(ctx, name); !errors.Is(err, models.ErrNotStored) {
				t.Errorf("%s: error %v", name, err)
			}
		}
	})
	t.Run("built in", func(t *testing.T) {
		_, err := store.Remove(ctx, "small-uncased")
		check.Says(t, err, "is part of the program")
		_, err = store.Import(ctx, another(t, 1), "small-uncased")
		check.Says(t, err, "is part of the program")
	})
}

// Several revisions, which older versions kept, are listed and not opened.
func TestSeveralRevisions(t *testing.T) {
	store := newStore(t)
	for _, revision := range []string{"aaaa1111", "aaaa2222"} {
		check.OK(t, os.MkdirAll(filepath.Join(store.Dir, "org--tiny", revision), 0o755))
	}
	const remedy = "several revisions are stored, of which one is kept now: infill models remove org/tiny"
	_, err := store.Open("org/tiny")
	check.Says(t, err, remedy)
	list, err := store.List()
	if err != nil || len(list) != 2 || list[1].Problem == nil {
		t.Errorf("listed %+v, %v", list, err)
	}
	if b, err := store.Import(t.Context(), another(t, 1), "org/tiny"); err != nil || b.Name != "org/tiny" {
		t.Errorf("imported %+v, %v", b, err)
	}
	if _, err := store.Open("org/tiny"); err != nil {
		t.Error(err)
	}
}

// Whoever changes a model waits for those that do, and a name that leads
// elsewhere is refused.
func TestStoreNames(t *testing.T) {
	store := newStore(t)
	folder := filepath.Join(store.Dir, "org--tiny")
	check.OK(t, os.MkdirAll(folder, 0o755))
	lock := flock.New(filepath.Join(folder, ".lock"))
	check.OK(t, lock.Lock())
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if _, err := store.Import(ctx, another(t, 1), "org/tiny"); !errors.Is(err, context.DeadlineExceeded) ||
		!strings.Contains(err.Error(), "in use by another process") {
		t.Errorf("error %v", err)
	}
	check.OK(t, lock.Close())
	for _, name := range []string{"../tiny", "org/tiny/x", "org/.hidden", "org--tiny", "org/a..b", "org-/a", ""} {
		_, err := store.Import(t.Context(), another(t, 1), name)
		check.Says(t, err, fmt.Sprintf("%q is not the name of a model", name))
	}
}

// A refused model leaves nothing in the store, also where others wait for the
// lock.
func TestRefusedImports(t *testing.T) {
	store := &models.Store{Dir: filepath.Join(t.TempDir(), "models")}
	good, bad := another(t, 1), another(t, 2)
	check.OK(t, os.Remove(filepath.Join(bad, "vocab.txt")))
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			_, err := store.Import(t.Context(), bad, "my/model")
			check.Says(t, err, "save it with transformers")
		})
	}
	group.Wait()
	if left := check.Must(os.ReadDir(store.Dir))(t); len(left) > 0 {
		t.Errorf("left %v", left)
	}
	for i := range 16 {
		from := good
		if i%2 == 0 {
			from = bad
		}
		group.Go(func() {
			_, err := store.Import(t.Context(), from, "my/model")
			if (err == nil) != (from == good) {
				t.Errorf("import of %s: %v", from, err)
			}
		})
	}
	group.Wait()
	if problems, err := verify(t.Context(), t, store, "my/model"); err != nil || len(problems) > 0 {
		t.Errorf("problems %v, %v", problems, err)
	}
	check.Must(store.Remove(t.Context(), "my/model"))(t)
	if left := check.Must(os.ReadDir(store.Dir))(t); len(left) > 0 {
		t.Errorf("left %v", left)
	}
}

// ending is a context that ends when it has been asked once.
type ending struct {
	context.Context
	asked atomic.Bool
}

func (e *ending) Err() error {
	if e.asked.Swap(true) {
		return context.Canceled
	}
	return nil
}

// A context that ends at the moment at which the lock is taken leaves it free.
func TestLockOfAnEndedImport(t *testing.T) {
	store := newStore(t)
	check.Must(store.Import(t.Context(), another(t, 1), "org/tiny"))(t)
	_, err := store.Import(&ending{Context: t.Context()}, another(t, 2), "org/tiny")
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	lock := flock.New(filepath.Join(store.Dir, "org--tiny", ".lock"))
	if free, err := lock.TryLock(); !free {
		t.Errorf("the lock is held, %v", err)
	}
	check.OK(t, lock.Close())
}

// A second import of the same weights brings its manifest and its documents.
func TestImportOfAnotherManifest(t *testing.T) {
	store := newStore(t)
	dir := another(t, 1)
	for segments, card := range []string{"first", "second"} {
		write(t, dir, "README.md", []byte(card))
		check.OK(t, os.RemoveAll(filepath.Join(dir, "manifest.json")))
		m := check.Must(models.NewManifest(dir, models.Manifest{Segments: segments, Licence: card}))(t)
		write(t, dir, "manifest.json", m.Encode())
		check.Must(store.Import(t.Context(), dir, "org/tiny"))(t)
		b := check.Must(store.Open("org/tiny"))(t)
		if found := string(read(t, b.Dir, "README.md")); found != card || b.Manifest.Licence != card ||
			b.Manifest.Segments != segments {
			t.Errorf("README.md %s, manifest %+v; want %s, %d segments", found, b.Manifest, card, segments)
		}
	}
}

// Whoever opens a model while it is replaced finds one revision, or none.
func TestFindDuringImports(t *testing.T) {
	store := newStore(t)
	sources := []string{another(t, 1), another(t, 2)}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for i := range 10 {
			if _, err := store.Import(t.Context(), sources[i%2], "org/tiny"); err != nil {
				t.Error(err)
			}
		}
	}()
	for {
		select {
		case <-ended:
			return
		default:
		}
		if _, err := store.Find("org/tiny"); err != nil && !errors.Is(err, models.ErrNotStored) {
			t.Errorf("during an import: %v", err)
			<-ended
			return
		}
	}
}
