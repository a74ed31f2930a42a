package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"infill/cmd/infill/internal/cli"
	"infill/cmd/infill/internal/terminal"
	"infill/infill"
	"infill/lm"
	"infill/models"
	"infill/tokenize"
)

var update = flag.Bool("update", false, "write the scripts' expectations again")

// TestMain makes the test binary stand for the command, so that scripts and the
// tests with real processes run it as `infill`.
func TestMain(m *testing.M) {
	testscript.Main(prepared{m}, map[string]func(){"infill": main})
}

// prepared fetches what the command needs before the tests run: on a fresh
// machine `go test ./...` is the first to ask for it.
type prepared struct{ *testing.M }

func (p prepared) Run() int {
	// A developer's own default is nothing to the tests.
	if err := os.Setenv(models.DefaultVariable, models.BuiltInName); err != nil {
		panic(err)
	}
	if _, err := lm.EnsureLibrary(context.Background(), "cpu", nil); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	models := &kept{open: map[string]*opened{}}
	cli.OpenModel = models.filler
	defer models.close()
	return p.M.Run()
}

// kept holds the models that the calls of this process share: a start takes longer than most fills.
type kept struct {
	mutex sync.Mutex
	open  map[string]*opened // by folder
}

type opened struct {
	model     *lm.MaskedLM
	tokenizer *tokenize.Tokenizer
}

// filler opens a model as infill.Open does, but for all calls at once. A model of its own
// has a call that says on which device or cores it runs, and one whose folder a test may change.
func (k *kept) filler(o infill.OpenOptions) (*infill.Filler, error) {
	bundle, err := models.Open(o.Model)
	if err != nil {
		return nil, err
	}
	own := strings.HasPrefix(bundle.Dir, os.TempDir()) || o.Device != "auto" && o.Device != "cpu" || o.Threads > 0
	if own {
		return infill.Open(o)
	}
	k.mutex.Lock()
	defer k.mutex.Unlock()
	of := k.open[bundle.Dir]
	if of == nil {
		tokenizer, err := bundle.Tokenizer()
		if err != nil {
			return nil, err
		}
		m, err := lm.Open(context.Background(), bundle,
			lm.Options{MaskID: tokenizer.MaskID(), SeparatorID: tokenizer.SeparatorID(), Device: "cpu"})
		if err != nil {
			return nil, err
		}
		of = &opened{m, tokenizer}
		k.open[bundle.Dir] = of
	}
	return infill.New(borrowed{of.model}, of.tokenizer), nil
}

// ownModels has the calls of a test open models of their own, as the program does.
// That loads onnxruntime only when a model first runs.
func ownModels(t *testing.T) {
	shared := cli.OpenModel
	cli.OpenModel = infill.Open
	t.Cleanup(func() { cli.OpenModel = shared })
}

func (k *kept) close() {
	for _, of := range k.open {
		of.model.Close()
	}
}

// borrowed is a model that its user does not close.
type borrowed struct{ *lm.MaskedLM }

func (borrowed) Close() error { return nil }

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

// scripts runs those of testdata/script that belong to a command.
func scripts(t *testing.T, names ...string) {
	var files []string
	for _, name := range names {
		file, err := filepath.Abs(filepath.Join("testdata", "script", name+".txtar")) // scripts change the folder
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
	}
	root := userCache(t)
	bundle, err := models.Open("")
	if err != nil {
		t.Fatal(err)
	}
	found, err := lm.EnsureLibrary(t.Context(), "cpu", nil)
	if err != nil {
		t.Fatal(err)
	}
	docs, err := filepath.Abs(filepath.Join("..", "..", "docs"))
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Files:               files,
		UpdateScripts:       *update,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(env *testscript.Env) error {
			env.Setenv(models.CacheVariable, root)
			env.Setenv("BUNDLE", bundle.Dir)
			env.Setenv(models.DefaultVariable, models.BuiltInName)
			env.Setenv("LIBRARY", found.Path)
			env.Setenv("DOCS", docs)
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
			"call":    callMain,
			"compare": compare,
			"exits":   exits,
			"near":    near,
		},
	})
}

// TestScriptsAreRun: every script belongs to the test of a command.
func TestScriptsAreRun(t *testing.T) {
	tests, err := filepath.Glob("*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	var source []byte
	for _, test := range tests {
		content, err := os.ReadFile(test)
		if err != nil {
			t.Fatal(err)
		}
		source = append(source, content...)
	}
	scripts, err := filepath.Glob(filepath.Join("testdata", "script", "*.txtar"))
	if err != nil || len(scripts) == 0 {
		t.Fatal(err, scripts)
	}
	for _, script := range scripts {
		if name := strings.TrimSuffix(filepath.Base(script),
			".txtar"); !regexp.MustCompile(`scripts\(t,[^)]*"` + name + `"`).Match(source) {
			t.Errorf("no test runs %s", script)
		}
	}
}

// call calls Main as a process would be called, with the given standard input.
func call(t *testing.T, stdin io.Reader, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, err bytes.Buffer
	code = Main(t.Context(), &terminal.Streams{In: stdin, Out: &out, Err: &err}, args)
	return code, out.String(), err.String()
}
