package main

import (
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"infill/cmd/infill/internal/cli"
	"infill/cmd/infill/internal/terminal"
	"infill/internal/modelstest"
	"infill/lm"
	"infill/models"
)

// TestModelScripts runs scripts with a cache folder of their own and a hub on loopback.
func TestModelScripts(t *testing.T) {
	found, err := lm.EnsureLibrary(t.Context(), "cpu", nil)
	if err != nil {
		t.Fatal(err)
	}
	exports, err := filepath.Abs(filepath.Join("..", "..", "testdata", "import"))
	if err != nil {
		t.Fatal(err)
	}
	type serverKey struct{}
	testscript.Run(t, testscript.Params{
		Dir:                 filepath.Join("testdata", "models"),
		UpdateScripts:       *update,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(env *testscript.Env) error {
			server := modelstest.NewHub(t)
			env.Values[serverKey{}] = server
			env.Setenv("HF_ENDPOINT", server.URL)
			env.Setenv("INFILL_ONNXRUNTIME", found.Path)
			env.Setenv(models.CacheVariable, filepath.Join(env.WorkDir, "cache"))
			env.Setenv("HF_TOKEN_PATH", filepath.Join(env.WorkDir, "token"))
			env.Setenv("FIRST", server.First)
			env.Setenv("SECOND", server.Second)
			env.Setenv("TOKEN", server.Token)
			env.Setenv("EXPORTS", exports)
			return modelstest.Write(filepath.Join(env.WorkDir, "tiny"), modelstest.Tiny, modelstest.Options{Seed: 5})
		},
		Condition: func(condition string) (bool, error) {
			if condition == "int8" {
				return lm.CheckInt8() == nil, nil
			}
			return false, fmt.Errorf("unknown condition %q", condition)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"alter":   alter,
			"compare": compare,
			// hub STATE changes what the hub does from here on.
			"hub": func(ts *testscript.TestScript, neg bool, args []string) {
				server := ts.Value(serverKey{}).(*modelstest.Hub)
				if neg || len(args) != 1 {
					ts.Fatalf("usage: hub private|gated|wrong|cut|hang|down|well|moved")
				}
				server.Private, server.Gated = args[0] == "private", args[0] == "gated"
				server.Answer(nil)
				switch args[0] {
				case "wrong": // other bytes than the list of files tells
					server.Answer(func(w http.ResponseWriter, r *http.Request) bool {
						if !strings.HasPrefix(r.URL.Path, "/blobs/") {
							return false
						}
						_, err := w.Write(make([]byte, len(server.Commits[server.First]["model.safetensors"])))
						return err == nil
					})
				case "cut":
					server.Answer(server.Cut(4000))
				case "hang":
					server.Answer(server.Hang(4000))
				case "down":
					server.Answer(func(w http.ResponseWriter, _ *http.Request) bool {
						http.Error(w, "down", http.StatusNotImplemented)
						return true
					})
				case "moved":
					server.Refs["main"] = server.Second
				}
			},
		},
	})
}

// Progress goes to standard error, to a terminal alone, and never the token.
func TestPullProgress(t *testing.T) {
	for _, c := range []struct {
		name     string
		terminal bool
		args     []string
		shown    bool
	}{
		{"terminal", true, nil, true},
		{"pipe", false, nil, false},
		{"quiet terminal", true, []string{"-q"}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := modelstest.NewHub(t)
			s.Private = true
			// Slow enough for a bar to come.
			s.Answer(func(_ http.ResponseWriter, r *http.Request) bool {
				if strings.HasPrefix(r.URL.Path, "/blobs/") {
					time.Sleep(800 * time.Millisecond)
				}
				return false
			})
			t.Setenv("HF_ENDPOINT", s.URL)
			t.Setenv("HF_TOKEN", s.Token)
			t.Setenv(models.CacheVariable, t.TempDir())
			var out, errs strings.Builder
			code := Main(t.Context(), &terminal.Streams{Out: &out, Err: &errs, ErrTerminal: c.terminal},
				append([]string{"models", "pull", "org/tiny"}, c.args...))
			stdout, stderr := out.String(), errs.String()
			if code != cli.ExitDone {
				t.Fatalf("exit code %d: %s", code, stderr)
			}
			if shown := strings.Contains(stderr, "model.safetensors") &&
				strings.Contains(stderr, "%"); shown != c.shown {
				t.Errorf("progress shown: %t, want %t: %q", shown, c.shown, stderr)
			}
			if !c.shown && stderr != "" {
				t.Errorf("standard error %q", stderr)
			}
			if quiet := c.args != nil; (stdout == "") != quiet || !quiet && strings.Count(stdout, "\n") != 1 {
				t.Errorf("standard output %q", stdout)
			}
			if strings.Contains(stdout+stderr, s.Token) {
				t.Errorf("the token is printed: %q", stdout+stderr)
			}
		})
	}
}

func TestBundleScripts(t *testing.T) { scripts(t, "bundle") }
