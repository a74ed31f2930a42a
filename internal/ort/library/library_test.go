package library

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"infill/internal/check"
	"infill/internal/regular"
	"infill/models"
)

func write(t testing.TB, path string, data []byte) {
	t.Helper()
	check.OK(t, errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, data, 0o755)))
}

// newWheel is a wheel with a library of some bytes, and the carrier for it.
func newWheel(t *testing.T, library string) (path string, c carrier) {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("the wheel is one for Linux, and pip a shell script")
	}
	var b bytes.Buffer
	archive := zip.NewWriter(&b)
	inside := "onnxruntime/capi/libonnxruntime.so." + Version
	for name, content := range map[string]string{"readme": "x", inside: library, "../evil": "x"} {
		entry, err := archive.Create(name)
		if err == nil {
			_, err = entry.Write([]byte(content))
		}
		check.OK(t, err)
	}
	check.OK(t, archive.Close())
	path = filepath.Join(t.TempDir(), "onnxruntime.whl")
	write(t, path, b.Bytes())
	return path, carrier{pip{"onnxruntime", "some_platform"}, Version, int64(b.Len()), digest(b.Bytes()),
		[]member{{Path: inside, Name: "libonnxruntime.so"}}}
}

// newTar is an archive as the publisher's and npm's, with a library of some
// bytes.
func newTar(t *testing.T, inside, library string) []byte {
	t.Helper()
	var b bytes.Buffer
	zipped := gzip.NewWriter(&b)
	archive := tar.NewWriter(zipped)
	for _, f := range []struct{ name, content string }{{"../evil", "x"}, {"./" + inside, library}, {"readme", "x"}} {
		check.OK(t, archive.WriteHeader(&tar.Header{Name: f.name, Size: int64(len(f.content)), Mode: 0o644}))
		_, err := archive.Write([]byte(f.content))
		check.OK(t, err)
	}
	check.OK(t, errors.Join(archive.Close(), zipped.Close()))
	return b.Bytes()
}

func digest(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

// program replaces a program by a script. No other program is found but the
// system's own.
func program(t *testing.T, name, body string) {
	t.Helper()
	folder := t.TempDir()
	write(t, filepath.Join(folder, name), []byte("#!/bin/sh\n"+body+"\n"))
	for _, tool := range []string{"cp", "sleep"} {
		path, err := exec.LookPath(tool)
		if err != nil {
			t.Skip(err)
		}
		check.OK(t, os.Symlink(path, filepath.Join(folder, tool)))
	}
	t.Setenv("PATH", folder)
}

func python(t *testing.T, body string) { t.Helper(); program(t, "python3", body) }

// brings is what a script does that leaves a file as pip would, in its current
// folder.
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

// lines is a Progress that writes lines.
type lines struct{ out io.Writer }

func (lines) Begin(string, int64, int64) {}

func (lines) Advance(int64) {}

func (l lines) Waiting(reason error, wait time.Duration) {
	l.Say(fmt.Sprintf("%s; next try in %s", reason, wait.Round(100*time.Millisecond)))
}

func (l lines) Say(line string) { fmt.Fprintln(l.out, line) }

func TestFetch(t *testing.T) {
	folder := cache(t)
	wheel, pin := newWheel(t, "the library")
	python(t, brings(wheel))
	var told bytes.Buffer
	o := Options{list: []carrier{pin}, Progress: lines{&told}}
	write(t, folder+".fetch/half", nil) // as a killed process leaves it
	found := check.Must(Ensure(t.Context(), o))(t)
	if want := filepath.Join(folder, "libonnxruntime.so"); found.Path != want || found.Version != Version ||
		found.Place != "cache" || !found.Usable {
		t.Errorf("found %+v", found)
	}
	if entries, err := os.ReadDir(filepath.Dir(folder)); err != nil || len(entries) != 1 {
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
		"nothing":       {"exit 0", "pip: it left 0 files"},
		"no network": {`echo "WARNING: Retrying after connection broken by 'NewConnectionError(resolution)': /x/" >&2
			echo "ERROR: No matching distribution found" >&2; exit 1`,
			"pip: it cannot reach the package index: 'NewConnectionError(resolution)"},
		"no release": {`echo "ERROR: Could not find a version" >&2; exit 1`, "pip: Could not find a version"},
		"no pip":     {`echo "/usr/bin/python3: No module named pip" >&2; exit 1`, "No module named pip"},
		"no word":    {"exit 3", "exit status 3"},
	} {
		t.Run(name, func(t *testing.T) {
			folder := cache(t)
			python(t, c.script)
			_, err := Fetch(t.Context(), Options{list: []carrier{pin}})
			check.Says(t, err, c.want, "cannot fetch onnxruntime for linux/", "run `infill setup`", Variable)
			if entries, err := os.ReadDir(filepath.Dir(folder)); err != nil || len(entries) != 0 {
				t.Errorf("left %v, %v", entries, err)
			}
		})
	}
	t.Run("no python", func(t *testing.T) {
		cache(t)
		t.Setenv("PATH", t.TempDir())
		_, err := Fetch(t.Context(), Options{list: []carrier{pin}})
		check.Says(t, err, "pip: there is no python3")
	})
	t.Run("stopped", func(t *testing.T) {
		cache(t)
		python(t, "exec sleep 100")
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		_, err := Fetch(ctx, Options{list: []carrier{pin}})
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
		_, err := Fetch(t.Context(), Options{list: []carrier{pin}})
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
			if found, err := Ensure(t.Context(), Options{list: []carrier{pin}}); err != nil ||
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
	packages := []string{filepath.Dir(filepath.Dir(capi))}
	if folders := PythonPackages(home); !slices.Equal(folders, packages) {
		t.Errorf("%v, want %v", folders, packages)
	}
	// The folder above the program's counts if pip has installed infill there.
	write(t, filepath.Join(home, "infill-0.3.0.dist-info", "METADATA"), nil)
	if folders := PythonPackages(home); !slices.Equal(folders, append(packages, home)) {
		t.Errorf("%v, want %v and %s", folders, packages, home)
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
	if got := strings.Join(names, ", "); err != nil || got != Variable+", beside the executable, cache, cache, cache" {
		t.Errorf("places %s, %v", got, err)
	}
}

func TestCarriers(t *testing.T) {
	for _, at := range []platform{{os: "linux", arch: "amd64"}, {os: "linux", arch: "arm64"},
		{os: "darwin", arch: "arm64"}, {os: "windows", arch: "amd64"}, {os: "windows", arch: "arm64"},
		{os: "linux", arch: "amd64", cuda: true}} {
		list := pins()[at.folder()].carriers()
		if len(list) == 0 || !Serves(list[0].version) {
			t.Fatalf("%v: %+v", at, list)
		}
		versions := map[string]bool{}
		for _, c := range list {
			versions[c.version] = true
			if c.members[0].Name != list[0].members[0].Name {
				t.Errorf("%v: %s has the library as %s", at, c.source, c.members[0].Name)
			}
			for _, m := range c.members {
				if len(c.sha256) != 64 && len(m.SHA256) != 64 {
					t.Errorf("%v: %s brings %s unchecked", at, c.source, m.Path)
				}
			}
		}
		if len(versions) != len(list) {
			t.Errorf("%v: two carriers share a folder of the cache", at)
		}
	}
}

// The first carrier that works is used; each that does not says why.
func TestFetchInTurn(t *testing.T) {
	wheel, byPip := newWheel(t, "pip's")
	inside := "onnxruntime-some-" + "1.24.4" + "/lib/libonnxruntime.so." + "1.24.4"
	content := newTar(t, inside, "the publisher's")
	served := content
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if served == nil || r.URL.Path != "/mirror/v"+"1.24.4"+"/some.tgz" {
			http.NotFound(w, r)
			return
		}
		_, _ = w.Write(served)
	}))
	defer server.Close()
	byRelease := carrier{release{"some.tgz"}, "1.24.4", 0, "",
		[]member{{inside, "libonnxruntime.so", digest([]byte("the publisher's"))}}}
	packed := newTar(t, "package/x/libonnxruntime.so.1", "npm's")
	archive := filepath.Join(t.TempDir(), "onnxruntime-node.tgz")
	write(t, archive, packed)
	byNPM := carrier{npm{"onnxruntime-node"}, "1.24.3", int64(len(packed)), digest(packed),
		[]member{{Path: "package/x/libonnxruntime.so.1", Name: "libonnxruntime.so"}}}
	o := Options{list: []carrier{byPip, byRelease, byNPM}}
	t.Setenv(MirrorVariable, server.URL+"/mirror/")
	npmScript := `test "$1" = pack || exit 3; cp '` + archive + `' .`
	pipFails := `echo "No module named pip" >&2; exit 1`

	for _, test := range []struct {
		name, program, script string
		served                []byte
		version, content      string
		says                  []string
	}{
		{"pip", "python3", brings(wheel), content, Version, "pip's", nil},
		{"release, as there is no pip", "python3", pipFails, content, "1.24.4", "the publisher's", nil},
		{"release, as there is no python", "nothing", "", content, "1.24.4", "the publisher's", nil},
		{"npm", "npm", npmScript, nil, "1.24.3", "npm's", nil},
		{"npm, as the release is another", "npm", npmScript, newTar(t, inside, "false"), "1.24.3", "npm's", nil},
		{"npm, as the release is half", "npm", npmScript, content[:len(content)/2], "1.24.3", "npm's", nil},
		{"none", "npm", `echo "npm error code E404" >&2; echo "npm error 404 Not Found" >&2; exit 1`, nil, "", "",
			[]string{"pip: there is no python3; 127.0.0.1:", "404 Not Found", MirrorVariable, "npm: 404 Not Found"}},
		{"false", "nothing", "", newTar(t, inside, "false"), "", "",
			[]string{inside + ": expected SHA-256 " + byRelease.members[0].SHA256 + ", found " +
				digest([]byte("false"))}},
		{"empty", "nothing", "", newTar(t, "other", "false"), "", "", []string{"some.tgz: it has no file " + inside,
			"npm: there is no npm"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			folder := cache(t)
			program(t, test.program, test.script)
			served = test.served
			var told bytes.Buffer
			o.Progress = lines{&told}
			found, err := Ensure(t.Context(), o)
			if test.version == "" {
				check.Says(t, err, test.says...)
				return
			}
			check.OK(t, err)
			got := check.Must(os.ReadFile(found.Path))(t)
			if found.Version != test.version || string(got) != test.content {
				t.Errorf("%+v, with %q\n%s", found, got, told.String())
			}
			// It is found again without any of them. A library of an earlier
			// carrier comes before it.
			served = nil
			t.Setenv("PATH", "")
			again, err := Ensure(t.Context(), o)
			if err != nil || again != found {
				t.Errorf("again: %+v, %v", again, err)
			}
			write(t, filepath.Join(folder, "libonnxruntime.so"), nil)
			again, err = Find(o)
			if err != nil || again.Version != Version {
				t.Errorf("beside pip's: %+v, %v", again, err)
			}
		})
	}
}

// Python and npm do not execute what lies in the user's folder.
func TestFetchInForeignFolder(t *testing.T) {
	cache(t)
	wheel, pin := newWheel(t, "the library")
	t.Chdir(t.TempDir())
	write(t, "pip.py", []byte("raise SystemExit('executed')"))
	python(t, `test -e pip.py && exit 4; `+brings(wheel))
	check.Must(Fetch(t.Context(), Options{list: []carrier{pin}}))(t)
}

var fetch = flag.Bool("fetch", false, "fetch onnxruntime by each carrier, over the network")

// With -fetch, what is pinned comes for real, where its carrier reaches it. The publisher's
// address was never reached from where these tests were written: its digests
// are those that others pin.
func TestRealFetch(t *testing.T) {
	if !*fetch {
		t.Skip("fetches over the network: give -fetch")
	}
	for _, c := range new(Options).carriers() {
		t.Run(c.source.String(), func(t *testing.T) {
			cache(t)
			found, err := Fetch(t.Context(), Options{list: []carrier{c}})
			if err != nil {
				if strings.Contains(err.Error(), "SHA-256") || strings.Contains(err.Error(), "it has no file") {
					t.Fatal(err)
				}
				t.Skip(err)
			}
			if found.Version != c.version || filepath.Base(found.Path) != c.members[0].Name {
				t.Errorf("%+v", found)
			}
		})
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

// Where the binding's module has a library, a fresh clone needs no download. The
// cache comes first, and another file in its place is not loaded.
func TestModule(t *testing.T) {
	folder := cache(t)
	for _, at := range []platform{{os: "linux", arch: "arm64"}, {os: "darwin", arch: "arm64"},
		{os: "windows", arch: "amd64"}} {
		file := pins()[at.folder()].Module
		o := Options{goos: at.os, goarch: at.arch}
		found, err := Find(o)
		if err != nil || found.Place != "Go module" || found.Version != "1.24.1" ||
			!strings.HasSuffix(filepath.ToSlash(found.Path), file.Path) {
			t.Errorf("%v: %+v, %v", at, found, err)
		}
		if got := check.Must(regular.SHA256(found.Path))(t); got != file.SHA256 {
			t.Errorf("%v: %s", at, got)
		}
		o.CUDA = true
		if found, err := Find(o); !errors.Is(err, ErrNotFound) {
			t.Errorf("%v with CUDA: %+v, %v", at, found, err)
		}
	}
	if found, err := Find(Options{goos: "linux", goarch: "amd64"}); !errors.Is(err, ErrNotFound) {
		t.Errorf("%+v, %v", found, err)
	}
	fetched := filepath.Join(filepath.Dir(folder), "linux-arm64", "libonnxruntime.so")
	write(t, fetched, []byte("as fetched"))
	if found, err := Find(Options{goos: "linux", goarch: "arm64"}); err != nil || found.Path != fetched {
		t.Errorf("%+v, %v", found, err)
	}
}
