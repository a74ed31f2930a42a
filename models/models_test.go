package models_test

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"infill/internal/modelstest"
	"infill/models"
)

func TestDefault(t *testing.T) {
	t.Setenv(models.DefaultVariable, "")
	store := newStore(t)
	opened := func(want string) {
		t.Helper()
		if b, err := store.Open(""); err != nil || b.Name != want {
			t.Errorf("the default is %+v, %v; want %s", b, err, want)
		}
	}
	opened(models.BuiltInName)
	if _, err := store.SetDefault("org/tiny"); err == nil {
		t.Error("a model that is not here became the default")
	}
	pull(t, store, "org/tiny", modelstest.NewHub(t).Options())
	if _, err := store.SetDefault("org/tiny"); err != nil {
		t.Fatal(err)
	}
	opened("org/tiny")
	t.Setenv(models.DefaultVariable, models.BuiltInName)
	opened(models.BuiltInName)
	t.Setenv(models.DefaultVariable, "")
	if err := os.WriteFile(filepath.Join(store.Dir, ".default"), []byte("\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Open(""); err == nil ||
		!strings.Contains(err.Error(), "it is empty; infill models use small-uncased goes back") {
		t.Errorf("of an empty file: %v", err)
	}
	if _, err := store.SetDefault(models.BuiltInName); err != nil {
		t.Fatal(err)
	}
	opened(models.BuiltInName)
}

// TestRecommended: every short name can be pulled, and leads to the repository that the table names.
func TestRecommended(t *testing.T) {
	list := models.Recommended()
	if len(list) < 6 {
		t.Errorf("%d models", len(list))
	}
	for _, r := range list {
		_, err := newStore(t).Find(r.Name)
		if err == nil || !strings.Contains(err.Error(), r.Repository) || models.CheckName(r.Repository) != nil {
			t.Errorf("%s: %v, want it to name %s", r.Name, err, r.Repository)
		}
		if r.Languages == "" || r.Parameters < 23 || r.Megabytes < 4*int64(r.Parameters) || r.Licence == "" ||
			r.Time < 1 || r.Quality == "" {
			t.Errorf("%+v", r)
		}
	}
}

func TestCacheDir(t *testing.T) {
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ name, infill, xdg, want string }{
		{"set", "/somewhere/else", "/ignored", "/somewhere/else"},
		{"relative", "beside", "/ignored", filepath.Join(here, "beside")},
		{"xdg", "", "/xdg/cache", "/xdg/cache/infill"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if runtime.GOOS == "windows" && c.infill == "" {
				t.Skip("the folder comes from the system on Windows")
			}
			t.Setenv(models.CacheVariable, c.infill)
			t.Setenv("XDG_CACHE_HOME", c.xdg)
			got, err := models.CacheDir()
			if err != nil {
				t.Fatal(err)
			}
			if got != filepath.FromSlash(c.want) {
				t.Errorf("CacheDir() = %s, want %s", got, c.want)
			}
		})
	}
}
