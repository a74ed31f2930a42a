package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"infill/lm"
	"infill/models"
)

var update = flag.Bool("update", false, "write the goldens and the scripts' expectations anew")

// TestMain makes the test binary stand for the command, so that scripts and the
// tests with real processes run it as `infill`.
func TestMain(m *testing.M) {
	testscript.Main(prepared{m}, map[string]func(){"infill": main})
}

// prepared fetches what the command needs before the tests run: on a fresh
// machine `go test ./...` is the first to ask for it.
type prepared struct{ *testing.M }

func (p prepared) Run() int {
	if _, err := lm.EnsureLibrary(context.Background(), false, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return p.M.Run()
}

// userCache is the folder with the library and the built-in model, where scripts,
// which have no home, find them.
func userCache(t testing.TB) string {
	t.Helper()
	root, err := models.CacheDir()
	if err != nil {
		t.Fatal(err)
	}
	return root
}

func TestScripts(t *testing.T) {
	root := userCache(t)
	bundle, err := models.Open("")
	if err != nil {
		t.Fatal(err)
	}
	found, err := lm.EnsureLibrary(t.Context(), false, nil)
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir:                 filepath.Join("testdata", "script"),
		UpdateScripts:       *update,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(env *testscript.Env) error {
			env.Setenv(models.CacheVariable, root)
			env.Setenv("BUNDLE", bundle.Dir)
			env.Setenv("LIBRARY", found.Path)
			if named := os.Getenv("INFILL_ONNXRUNTIME"); named != "" {
				env.Setenv("INFILL_ONNXRUNTIME", named)
			}
			return nil
		},
		Condition: func(condition string) (bool, error) {
			if condition == "cuda" {
				_, err := os.Stat("/dev/nvidia0")
				return err == nil, nil
			}
			return false, fmt.Errorf("unknown condition %q", condition)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"alter":   alter,
			"compare": compare,
		},
	})
}
