package library

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestFindTakesTheFirstThatServes(t *testing.T) {
	folder := t.TempDir()
	file := func(name string, data []byte) string {
		path := filepath.Join(folder, name)
		write(t, path, data)
		return path
	}
	good := compiled(t, "1.24.1")
	foreign := append([]byte{}, good...)
	foreign[18], foreign[19] = 0xf3, 0 // e_machine: RISC-V
	var (
		absent = candidate{name: "absent", path: filepath.Join(folder, "absent", "libonnxruntime.so")}
		empty  = candidate{name: "folder", path: folder}
		old    = candidate{name: "old", path: file("old/libonnxruntime.so", compiled(t, "1.20.1"))}
		other  = candidate{name: "other", path: file("foreign/libonnxruntime.so", foreign)}
		silent = candidate{name: "silent", path: file("silent/libonnxruntime.so", compiled(t, ""))}
		text   = candidate{name: "text", path: file("text/libonnxruntime.so", []byte("not a library"))}
		cut    = candidate{name: "cut", path: file("cut/libonnxruntime.so", good[:len(good)/2])}
		first  = candidate{name: "first", path: file("first/libonnxruntime.so", good)}
		newer  = candidate{name: "newer", path: file("newer/libonnxruntime.so", compiled(t, "1.30.0"))}
		named  = func(p candidate) candidate { p.named = true; return p }
	)
	for _, test := range []struct {
		name    string
		places  []candidate
		want    string // the place taken
		version string
		errors  []string
	}{
		{"first", []candidate{first, newer}, "first", "1.24.1", nil},
		{"newer", []candidate{newer, first}, "newer", "1.30.0", nil},
		{"behind bad ones", []candidate{absent, empty, old, other, silent, text, cut, first}, "first", "1.24.1", nil},
		{"named", []candidate{named(newer), first}, "newer", "1.30.0", nil},
		// The user's own library may be a build without a version record; lm/ort asks it.
		{"named, no version", []candidate{named(silent), first}, "silent", "", nil},
		{"none", []candidate{absent, empty}, "", "", []string{"no usable onnxruntime library found"}},
		{"old", []candidate{old}, "", "",
			[]string{"passed over: " + old.path + ": found version 1.20.1, wanted 1.24.1 or newer"}},
		{"foreign", []candidate{other}, "", "",
			[]string{other.path + ": made for linux/riscv, wanted linux/" + runtime.GOARCH}},
		{"no version", []candidate{silent}, "", "", []string{silent.path + ": records no version"}},
		{"text", []candidate{text}, "", "", []string{text.path + ": not a shared library"}},
		{"truncated", []candidate{cut}, "", "", []string{cut.path + ": "}},
		{"all bad ones are told", []candidate{old, text}, "", "", []string{old.path, text.path}},
		{"named and old", []candidate{named(old), first}, "", "",
			[]string{"old=" + old.path, "found version 1.20.1, wanted 1.24.1 or newer", "correct the variable"}},
		{"named and absent", []candidate{named(absent), first}, "", "",
			[]string{"there is no such file", "correct the variable"}},
		{"named and a folder", []candidate{named(empty), first}, "", "",
			[]string{"not a file", "correct the variable"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			o := Options{CacheDir: t.TempDir(), candidates: at(test.places...)}
			found, err := Find(context.Background(), o)
			if test.errors != nil {
				wantOneLine(t, err, test.errors...)
				if named := test.places[0].named; errors.Is(err, ErrNotFound) == named {
					t.Errorf("wraps ErrNotFound: %t, named: %t", !named, named)
				}
			} else if err != nil {
				t.Fatal(err)
			}
			if found.Place != test.want || found.Version != test.version {
				t.Errorf("found %+v, want place %q, version %q", found, test.want, test.version)
			}
			if found.Path != "" && !filepath.IsAbs(found.Path) {
				t.Errorf("path %q is not absolute", found.Path)
			}
		})
	}
}

// A library that the user named and that does not serve is an error; nothing is fetched behind the user's back.
func TestEnsureFetchesOnlyWhereNothingIsNamed(t *testing.T) {
	fetched := 0
	o := Options{
		CacheDir: t.TempDir(),
		pins:     []pin{{source: "counting"}},
		sources: map[string]source{"counting": sourceFunc(
			func(context.Context, pin, string, *progress) (brought, error) {
				fetched++
				return brought{}, errors.New("nothing there")
			})},
		candidates: at(candidate{name: Variable, path: filepath.Join(t.TempDir(), "absent"), named: true}),
	}
	_, err := Ensure(context.Background(), o)
	wantOneLine(t, err, Variable, "there is no such file")
	if fetched != 0 {
		t.Error("fetched although the user named a library")
	}
	o.candidates = at()
	_, err = Ensure(context.Background(), o)
	wantOneLine(t, err, "counting: nothing there", "infill setup", Variable)
	if fetched != 1 {
		t.Errorf("fetched %d times", fetched)
	}
}

// The places that the package itself looks at, in its order, seen by a program of its own.
func TestPlacesOfAProgram(t *testing.T) {
	good := compiled(t, "1.24.1")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile(self)
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	cacheDir, named, system := filepath.Join(folder, "cache"), filepath.Join(folder, "named.so"),
		filepath.Join(folder, "system")
	executable := filepath.Join(folder, "bin", "program")
	write(t, executable, program)
	task, err := json.Marshal(map[string]string{"Do": "find", "CacheDir": cacheDir})
	if err != nil {
		t.Fatal(err)
	}
	find := func(variable string) string {
		command := exec.Command(executable)
		command.Env = append(os.Environ(), childVariable+"="+string(task), Variable+"="+variable,
			"LD_LIBRARY_PATH="+system)
		output, err := command.Output()
		if err != nil {
			t.Fatal(err)
		}
		return strings.TrimSpace(string(output))
	}
	// From the last place to the first: each new file wins over all before it.
	write(t, filepath.Join(system, "libonnxruntime.so.1.24.1"), good)
	if got, want := find(""), "system 1.24.1 "+filepath.Join(system, "libonnxruntime.so.1.24.1"); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	cached := filepath.Join(cacheDir, "onnxruntime", Version, runtime.GOOS+"-"+runtime.GOARCH)
	write(t, filepath.Join(cached, FileName(runtime.GOOS)), good)
	writeManifest(t, cached, good)
	if got, want := find(""), "cache 1.24.1 "+filepath.Join(cached, FileName(runtime.GOOS)); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	beside := filepath.Join(folder, "lib", "libonnxruntime.so")
	write(t, beside, good)
	if got, want := find(""), "beside the executable 1.24.1 "+beside; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	nearer := filepath.Join(folder, "bin", "libonnxruntime.so.1")
	write(t, nearer, good)
	if got, want := find(""), "beside the executable 1.24.1 "+nearer; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	write(t, named, good)
	if got, want := find(named), Variable+" 1.24.1 "+named; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := find(filepath.Join(folder, "nowhere.so")); !strings.HasPrefix(got, "error: "+Variable+"=") {
		t.Errorf("got %q", got)
	}
}

func writeManifest(t *testing.T, folder string, library []byte) {
	t.Helper()
	data, err := json.Marshal(manifest{Version: Version, Source: "test", Files: []manifestFile{
		{Name: FileName(runtime.GOOS), Size: int64(len(library)), SHA256: digestOf(library)},
	}})
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(folder, manifestName), data)
}

func TestDamagedCache(t *testing.T) {
	good := compiled(t, "1.24.1")
	for _, test := range []struct {
		name   string
		damage func(t *testing.T, folder string)
		want   string
	}{
		{"truncated", func(t *testing.T, folder string) {
			write(t, filepath.Join(folder, FileName(runtime.GOOS)), good[:100])
		}, "damaged: 100 bytes, expected"},
		{"one bit", func(t *testing.T, folder string) {
			bad := append([]byte{}, good...)
			bad[len(bad)/2] ^= 1
			write(t, filepath.Join(folder, FileName(runtime.GOOS)), bad)
		}, "damaged: expected SHA-256 " + digestOf(good)},
		{"no manifest", func(t *testing.T, folder string) {
			if err := os.Remove(filepath.Join(folder, manifestName)); err != nil {
				t.Fatal(err)
			}
		}, "no manifest.json"},
		{"manifest is no JSON", func(t *testing.T, folder string) {
			write(t, filepath.Join(folder, manifestName), []byte("{"))
		}, "manifest.json: damaged"},
		{"manifest is empty", func(t *testing.T, folder string) {
			write(t, filepath.Join(folder, manifestName), []byte("{}"))
		}, "it lists no files"},
	} {
		t.Run(test.name, func(t *testing.T) {
			o := Options{CacheDir: t.TempDir(),
				pins: []pin{{source: "good",
					members: []member{{as: FileName(runtime.GOOS), path: "x", size: int64(len(good)),
						sha256: digestOf(good)}}}}}
			fetched := 0
			o.sources = map[string]source{"good": sourceFunc(
				func(_ context.Context, _ pin, folder string, _ *progress) (brought, error) {
					fetched++
					path := filepath.Join(folder, "x.whl")
					write(t, path, zipped(t, entry{name: "x", data: good}))
					return brought{path: path}, nil
				})}
			o.candidates = func(ctx context.Context, o Options) iter.Seq[candidate] {
				return at(candidate{name: "cache", path: filepath.Join(o.folder(), FileName(o.goos)), cached: true})(
					ctx, o)
			}
			found, err := Fetch(context.Background(), o)
			if err != nil {
				t.Fatal(err)
			}
			test.damage(t, filepath.Dir(found.Path))
			_, err = Find(context.Background(), o)
			wantOneLine(t, err, test.want)
			again, err := Ensure(context.Background(), o)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(found, again); diff != "" {
				t.Errorf("mended (-before +after):\n%s", diff)
			}
			if data, err := os.ReadFile(again.Path); err != nil || digestOf(data) != digestOf(good) {
				t.Errorf("the mended file differs: %v", err)
			}
			if fetched != 2 {
				t.Errorf("fetched %d times, want 2", fetched)
			}
		})
	}
}

func TestSurvey(t *testing.T) {
	folder := t.TempDir()
	old, good := filepath.Join(folder, "old.so"), filepath.Join(folder, "good.so")
	write(t, old, compiled(t, "1.18.0"))
	write(t, good, compiled(t, "1.25.2"))
	absent := filepath.Join(folder, "absent.so")
	o := Options{CacheDir: folder, candidates: at(
		candidate{name: "system", path: old}, candidate{name: "cache", path: absent, cached: true},
		candidate{name: "system", path: good}, candidate{name: "system", path: old})}
	places, serves, mend, err := Survey(context.Background(), o)
	if err != nil || mend != "" {
		t.Fatal(mend, err)
	}
	passed := Library{Place: "system", Path: old, Found: true, Version: "1.18.0",
		Reason: "found version 1.18.0, wanted 1.24.1 or newer"}
	found := Library{Place: "system", Path: good, Found: true, Version: "1.25.2", Usable: true}
	if diff := cmp.Diff([]Library{passed, {Place: "cache", Path: absent, Reason: "nothing fetched yet"}, found, passed},
		places); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if serves != found {
		t.Errorf("%+v serves", serves)
	}

	o.candidates = at(candidate{name: "system", path: old})
	if _, serves, mend, err = Survey(context.Background(), o); err != nil || serves.Usable ||
		!strings.Contains(mend, "infill setup") {
		t.Errorf("%+v, %q, %v", serves, mend, err)
	}
	// As for Find, a library that the user named wins, and a bad one hides the good ones.
	o.candidates = at(candidate{name: Variable, path: old, named: true}, candidate{name: "system", path: good})
	if places, serves, mend, err = Survey(context.Background(), o); err != nil || serves.Usable ||
		!strings.Contains(mend, "correct the variable") ||
		!places[0].Named || !places[1].Usable {
		t.Errorf("%+v, %+v, %q, %v", places, serves, mend, err)
	}
}

func TestFindCUDA(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, "libonnxruntime.so")
	write(t, path, compiled(t, "1.24.1"))
	o := Options{CUDA: true, CacheDir: folder, candidates: at(candidate{name: "system", path: path})}
	_, err := Find(context.Background(), o)
	wantOneLine(t, err, "with CUDA", "no CUDA provider (libonnxruntime_providers_cuda.so) beside it")
	write(t, filepath.Join(folder, "libonnxruntime_providers_cuda.so"), nil)
	if found, err := Find(context.Background(), o); err != nil || found.Path != path {
		t.Errorf("%+v, %v", found, err)
	}
}

func TestServes(t *testing.T) {
	for version, want := range map[string]bool{
		"1.24.1": true, "1.24.0": true, "1.24": true, "1.24.20260203": true, "1.25.0": true, "1.30.0": true,
		"1.100.2": true,
		"1.23.9":  false, "1.9.0": false, "1.2": false, "2.0.0": false, "0.24.1": false, "": false, "one": false,
		"1": false, "1.x.1": false,
	} {
		if got := Serves(version); got != want {
			t.Errorf("Serves(%q) = %t", version, got)
		}
	}
}
