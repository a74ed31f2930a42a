package lm_test

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"infill/internal/check"
	"infill/internal/ort/library"
	"infill/models"
)

var fetch = flag.Bool("fetch", false, "fetch onnxruntime by each carrier, over the network")

// With -fetch, the values of TestGolden hold with the library of each carrier that can be
// reached from here. A carrier is reached alone: the others' programs are not
// found, and their addresses lead nowhere.
func TestGoldenOfEachCarrier(t *testing.T) {
	if !*fetch {
		t.Skip("fetches over the network: give -fetch")
	}
	for _, carrier := range []struct {
		name, mirror, version string
		programs              []string
	}{
		{"pip", "http://127.0.0.1:9", "1.31.1", []string{"python3"}},
		{"release", "", "1.24.4", nil},
		{"npm", "http://127.0.0.1:9", "1.24.3", []string{"npm", "node", "env"}},
	} {
		t.Run(carrier.name, func(t *testing.T) {
			path := t.TempDir()
			for _, name := range carrier.programs {
				link(t, name, path)
			}
			t.Setenv("PATH", path)
			t.Setenv(models.CacheVariable, t.TempDir())
			t.Setenv(library.Variable, "")
			t.Setenv(library.MirrorVariable, carrier.mirror)
			found, err := library.Fetch(t.Context(), library.Options{})
			if err != nil {
				t.Skip(err)
			}
			if found.Version != carrier.version {
				t.Errorf("it brings version %s", found.Version)
			}
			// A process can load one library only.
			child := exec.Command(check.Must(os.Executable())(t), "-test.run", "^TestGolden$", "-test.v")
			child.Env = append(os.Environ(), library.Variable+"="+found.Path)
			output, err := child.CombinedOutput()
			if err != nil {
				t.Errorf("%v: %s", err, output)
			}
		})
	}
}

// link puts a program into folder under its name, or skips the test where it is
// not installed.
func link(t *testing.T, name, folder string) {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Skip(err)
	}
	if name == "python3" { // a shim of a version manager would not find its own programs
		output, err := exec.Command(path, "-c", "import sys; print(sys.executable, end='')").Output()
		if err != nil {
			t.Skip(fmt.Errorf("%s: %w", path, err))
		}
		path = string(output)
	}
	check.OK(t, os.Symlink(path, filepath.Join(folder, name)))
}
