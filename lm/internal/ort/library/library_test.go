package library

import (
	"archive/zip"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"infill/internal/check"
	"infill/models"
)

func write(t testing.TB, path string, data []byte) {
	t.Helper()
	check.OK(t, errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, data, 0o755)))
}

// newWheel is a wheel with a library of some bytes, and the pin for it.
func newWheel(t *testing.T, library string) (path string, w *wheel) {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("the wheel is one for Linux, and pip a shell script")
	}
	var b bytes.Buffer
	archive := zip.NewWriter(&b)
	for name, content := range map[string]string{"readme": "x",
		"onnxruntime/capi/libonnxruntime.so." + Version: library, "../evil": "x"} {
		entry, err := archive.Create(name)
		if err == nil {
			_, err = entry.Write([]byte(content))
		}
		check.OK(t, err)
	}
	check.OK(t, archive.Close())
	path = filepath.Join(t.TempDir(), "onnxruntime.whl")
	write(t, path, b.Bytes())
	sum := sha256.Sum256(b.Bytes())
	return path, &wheel{"onnxruntime", "some_platform", int64(b.Len()), hex.EncodeToString(sum[:]),
		[]string{"libonnxruntime.so." + Version}}
}

// python replaces python3 by a script.
func python(t *testing.T, body string) {
	t.Helper()
	folder := t.TempDir()
	write(t, filepath.Join(folder, "python3"), []byte("#!/bin/sh\n"+body+"\n"))
	t.Setenv("PATH", folder+string(os.PathListSeparator)+"/usr/bin:/bin")
}

// brings is what a script does that leaves a file as pip would.
func brings(path string) string {
	return `test "$1 $2 $3" = "-m pip download" || exit 3; while [ "$1" != --dest ]; do shift; done; cp '` + path +
		`' "$2"`
}

// cache gives the test a cache folder, and no library that is named.
func cache(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	t.Setenv(models.CacheVariable, dir)
	t.Setenv(Variable, "")
	return filepath.Join(dir, "onnxruntime", Version, runtime.GOOS+"-"+runtime.GOARCH)
}

func TestFetch(t *testing.T) {
	folder := cache(t)
	wheel, pin := newWheel(t, "the library")
	python(t, brings(wheel))
	var told bytes.Buffer
	o := Options{wheel: pin, Progress: &told}
	write(t, folder+".fetch/half", nil) // as a killed process leaves it
	found := check.Must(Ensure(t.Context(), o))(t)
	if want := filepath.Join(folder, "libonnxruntime.so"); found.Path != want || found.Version != Version ||
		found.Place != "cache" || !found.Usable {
		t.Errorf("found %+v", found)
	}
	entries, err := os.ReadDir(filepath.Dir(folder))
	if err != nil || len(entries) != 2 { // and the lock
		t.Errorf("left %v, %v", entries, err)
	}
	if lines := strings.Split(strings.TrimSpace(told.String()), "\n"); len(lines) != 2 ||
		!strings.HasPrefix(lines[0], "fetching onnxruntime "+Version) || !strings.Contains(lines[1], "is in "+folder) {
		t.Errorf("told %q", lines)
	}
	// What is there is not fetched again.
	python(t, "exit 9")
	if again, err := Fetch(t.Context(), o); err != nil || again != found {
		t.Errorf("again: %+v, %v", again, err)
	}
}

func TestFetchRefuses(t *testing.T) {
	wheel, pin := newWheel(t, "the library")
	other, _ := newWheel(t, "another")
	for name, c := range map[string]struct{ script, want string }{
		"another wheel": {brings(other), "expected SHA-256 " + pin.sha256},
		"nothing":       {"exit 0", "pip left 0 files"},
		"no network": {`echo "WARNING: Retrying after connection broken by 'NewConnectionError(resolution)': /x/" >&2
			echo "ERROR: No matching distribution found" >&2; exit 1`,
			"pip cannot reach the package index: 'NewConnectionError(resolution)"},
		"no release": {`echo "ERROR: Could not find a version" >&2; exit 1`, "pip: Could not find a version"},
		"no pip":     {`echo "/usr/bin/python3: No module named pip" >&2; exit 1`, "No module named pip"},
		"no word":    {"exit 3", "exit status 3"},
	} {
		t.Run(name, func(t *testing.T) {
			folder := cache(t)
			python(t, c.script)
			_, err := Fetch(t.Context(), Options{wheel: pin})
			check.Says(t, err, c.want, "cannot fetch onnxruntime "+Version, "run `infill setup`", Variable)
			if entries, err := os.ReadDir(filepath.Dir(folder)); err != nil || len(entries) != 1 {
				t.Errorf("left %v, %v", entries, err)
			}
		})
	}
	t.Run("no python", func(t *testing.T) {
		cache(t)
		t.Setenv("PATH", t.TempDir())
		_, err := Fetch(t.Context(), Options{wheel: pin})
		check.Says(t, err, "there is no python3 with pip")
	})
	t.Run("stopped", func(t *testing.T) {
		cache(t)
		python(t, "exec sleep 100")
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		_, err := Fetch(ctx, Options{wheel: pin})
		check.Says(t, err, "stopped")
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %v", err)
		}
	})
	t.Run("no such platform", func(t *testing.T) {
		cache(t)
		_, err := Fetch(t.Context(), Options{goos: "linux", goarch: "riscv64"})
		check.Says(t, err, "is published for linux/riscv64", Variable)
	})
	t.Run("cache is a file", func(t *testing.T) {
		t.Setenv(models.CacheVariable, wheel)
		_, err := Fetch(t.Context(), Options{wheel: pin})
		check.Says(t, err, "cannot make the cache folder", models.CacheVariable)
	})
}

// Of many at once one fetches, and all have the library.
func TestFetchOnce(t *testing.T) {
	folder := cache(t)
	wheel, pin := newWheel(t, "the library")
	log := filepath.Join(t.TempDir(), "log")
	python(t, "echo asked >> '"+log+"'; sleep 0.3; "+brings(wheel))
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			if found, err := Ensure(t.Context(), Options{wheel: pin}); err != nil ||
				filepath.Dir(found.Path) != folder {
				t.Errorf("%+v, %v", found, err)
			}
		})
	}
	all.Wait()
	if asked, err := os.ReadFile(log); err != nil || string(asked) != "asked\n" {
		t.Errorf("pip was asked: %q, %v", asked, err)
	}
}

func TestFind(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the names are those of Linux")
	}
	cache(t)
	_, err := Find(Options{})
	if !errors.Is(err, ErrNotFound) {
		t.Fatal(err)
	}
	folder := t.TempDir()
	write(t, filepath.Join(folder, "libonnxruntime.so.1.20.1"), nil)
	write(t, filepath.Join(folder, "libonnxruntime.so.1.30.0"), nil)
	for name, c := range map[string]struct {
		cuda          bool
		version, says string
	}{
		"libonnxruntime.so.1.30.0": {false, "1.30.0", ""},
		"libonnxruntime.so.1.20.1": {false, "", "found version 1.20.1, wanted 1.24.1 or newer; correct the variable"},
		"absent.so":                {false, "", "there is no such file; correct the variable, or unset it"},
		".":                        {false, "", "not a file"},
		"./libonnxruntime.so.1.30.0": {true, "",
			"no CUDA provider (libonnxruntime_providers_cuda.so) beside it"},
	} {
		t.Setenv(Variable, folder+"/"+name)
		found, err := Find(Options{CUDA: c.cuda})
		if c.says != "" {
			check.Says(t, err, Variable+"=", c.says)
		} else if err != nil || found.Version != c.version || !found.Named || found.Place != Variable {
			t.Errorf("%s: %+v, %v", name, found, err)
		}
	}
}

// The places beside a program and in its Python environment.
func TestPlaces(t *testing.T) {
	home := t.TempDir()
	capi := filepath.Join(home, "lib", "python3.12", "site-packages", "onnxruntime", "capi")
	write(t, filepath.Join(capi, "libonnxruntime.so.1.31.0"), nil)
	if folders := PythonPackages(home); len(folders) != 2 || folders[0] != filepath.Dir(filepath.Dir(capi)) {
		t.Errorf("%v", folders)
	}
	o := Options{goos: "linux", goarch: "amd64"}
	l := o.in(Library{Place: "Python package"}, home, capi)
	if !l.Usable || l.Version != "1.31.0" {
		t.Errorf("%+v", l)
	}
	if l := o.in(Library{}, home); l.Found || l.Reason == "" || l.Path != home {
		t.Errorf("%+v", l)
	}
	cache(t)
	t.Setenv(Variable, filepath.Join(capi, "libonnxruntime.so.1.31.0"))
	var names []string
	places, err := survey(Options{})
	for _, l := range places {
		names = append(names, l.Place)
	}
	if got := strings.Join(names, ", "); err != nil || got != Variable+", beside the executable, cache" {
		t.Errorf("places %s, %v", got, err)
	}
}

func TestPublished(t *testing.T) {
	for _, platform := range [][2]string{{"linux", "amd64"}, {"linux", "arm64"}, {"darwin", "arm64"},
		{"windows", "amd64"}, {"windows", "arm64"}} {
		w := published(platform[0], platform[1], false)
		if w == nil || len(w.sha256) != 64 || w.size < 1e7 {
			t.Errorf("%v: %+v", platform, w)
		}
		if cuda := published(platform[0], platform[1],
			true); (cuda != nil) != (platform[0]+platform[1] == "linuxamd64") {
			t.Errorf("%v: CUDA %v", platform, cuda)
		}
	}
}

// What is pinned comes for real, where pip reaches it.
func TestRealFetch(t *testing.T) {
	if testing.Short() {
		t.Skip("fetches over the network")
	}
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip(err)
	}
	cache(t)
	found, err := Fetch(t.Context(), Options{})
	if err != nil {
		if strings.Contains(err.Error(), "SHA-256") || strings.Contains(err.Error(), "whl:") {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	if found.Version != Version || filepath.Base(found.Path) != FileName(runtime.GOOS) {
		t.Errorf("%+v", found)
	}
}

func TestServes(t *testing.T) {
	for version, want := range map[string]bool{
		"1.24.1": true, "1.24": true, "1.24.20260203": true, "1.30.0": true, "1.100.2": true,
		"1.23.9": false, "1.2": false, "2.0.0": false, "0.24.1": false, "": false, "one": false, "1": false,
	} {
		if got := Serves(version); got != want {
			t.Errorf("Serves(%q) = %t", version, got)
		}
	}
}
