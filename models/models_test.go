package models_test

import (
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"

	"infill/internal/check"
	"infill/internal/modelstest"
	"infill/models"
)

func TestDefault(t *testing.T) {
	store := newStore(t)
	pull(t, store, "org/tiny", modelstest.NewHub(t).Options())
	for named, want := range map[string]string{"": models.BuiltInName, "org/tiny": "org/tiny"} {
		t.Setenv(models.DefaultVariable, named)
		if b, err := store.Open(""); err != nil || b.Name != want {
			t.Errorf("the default is %+v, %v; want %s", b, err, want)
		}
	}
}

// TestCacheDirs: goroutines may ask at once, as those do that open models.
func TestCacheDirs(t *testing.T) {
	t.Setenv(models.CacheVariable, "")
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	want := check.Must(models.CacheDir())(t)
	var asked sync.WaitGroup
	for range 8 {
		asked.Go(func() {
			got, err := models.CacheDir()
			if err != nil || got != want {
				t.Errorf("CacheDir() = %s, %v, want %s", got, err, want)
			}
		})
	}
	asked.Wait()
}

func TestCacheDir(t *testing.T) {
	here := check.Must(os.Getwd())(t)
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
			got := check.Must(models.CacheDir())(t)
			if got != filepath.FromSlash(c.want) {
				t.Errorf("CacheDir() = %s, want %s", got, c.want)
			}
		})
	}
	t.Setenv(models.CacheVariable, "")
	t.Setenv("XDG_CACHE_HOME", "")
	t.Setenv("HOME", "beside")
	if dir, err := models.CacheDir(); err == nil && runtime.GOOS != "windows" {
		t.Errorf("of a relative home: %s", dir)
	}
}
