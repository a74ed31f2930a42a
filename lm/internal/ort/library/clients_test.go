package library

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// The clients are played by shell scripts: what they are asked, what they leave, how they fail.
func TestClients(t *testing.T) {
	wheel := []byte("the bytes of a wheel")
	digest := digestOf(wheel)
	brings := func(name string) string { return "printf '%s' '" + string(wheel) + "' >" + name }
	for _, test := range []struct {
		name   string
		source source
		client string // "" for none
		script string
		want   []string // nil: it comes
	}{
		{"pip", pip{}, "pip", brings("a.whl"), nil},
		{"pip3", pip{}, "pip3", brings("a.whl"), nil},
		{"python3 -m pip", pip{}, "python3", `test "$1 $2 $3" = "-m pip download" && ` + brings("a.whl"), nil},
		{"pip is asked for one platform's wheel", pip{}, "pip",
			`case "$*" in *"--no-deps --only-binary :all: --python-version 3.12 --implementation cp --abi cp312 --platform some_platform"*"onnxruntime==` + Version + `") ` + brings("a.whl") + `;; *) echo "asked: $*" >&2; exit 1;; esac`, nil},
		{"no pip", pip{}, "", "", []string{"no pip client on this machine"}},
		{"python without pip", pip{}, "python3", `echo "/usr/bin/python3: No module named pip" >&2; exit 1`,
			[]string{"no pip client on this machine"}},
		{"pip cannot reach its index", pip{}, "pip",
			`echo "WARNING: Retrying (Retry(total=0)) after connection broken by 'NewConnectionError(name resolution)': /simple/" >&2; echo "ERROR: No matching distribution found" >&2; exit 1`,
			[]string{"cannot reach the package index: 'NewConnectionError(name resolution)"}},
		{"pip finds no such release", pip{}, "pip",
			`echo "ERROR: Could not find a version" >&2; echo "ERROR: No matching distribution found" >&2; exit 1`,
			[]string{"Could not find a version"}},
		{"pip fails without a word", pip{}, "pip", "exit 3", []string{"exit status 3"}},
		{"pip brings another wheel", pip{}, "pip", "echo other >a.whl", []string{"a.whl: expected SHA-256 " + digest}},
		{"pip brings nothing", pip{}, "pip", "exit 0", []string{"left 0 files *.whl, expected one"}},
		{"pip brings two", pip{}, "pip", brings("a.whl") + "; " + brings("b.whl"),
			[]string{"left 2 files *.whl, expected one"}},
		{"pip stands still", pip{stall: 300 * time.Millisecond}, "pip", "sleep 1000",
			[]string{"pip brought nothing for 300ms"}},
		{"pip is slow but moves", pip{stall: 600 * time.Millisecond}, "pip",
			"for i in 1 2 3 4 5; do echo more >>temporary/part; sleep 0.2; done; " + brings("a.whl"), nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			if test.client == "" {
				t.Setenv("PATH", toolsOnly(t))
			} else {
				script(t, test.client, test.script)
			}
			asked := pin{name: "onnxruntime", tag: "some_platform", sha256: digest}
			got, err := test.source.bring(context.Background(), asked, t.TempDir(), newProgress(nil))
			if test.want != nil {
				wantOneLine(t, err, test.want...)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if data, err := os.ReadFile(got.path); err != nil || string(data) != string(wheel) || got.sha256 != digest {
				t.Errorf("brought %+v, %v", got, err)
			}
		})
	}
}

// Stopping a client stops what it started, and leaves nothing in the cache.
func TestStoppedClientLeavesNothing(t *testing.T) {
	folder := t.TempDir()
	children := filepath.Join(folder, "children")
	script(t, "pip", "sleep 1000 & echo $! >'"+children+"'; wait")
	ctx, cancel := context.WithCancel(context.Background())
	o := Options{CacheDir: filepath.Join(folder, "cache"),
		pins: []pin{{source: "pip", name: "onnxruntime", tag: "any"}}}
	var process int
	go func() {
		defer cancel()
		for process == 0 && ctx.Err() == nil {
			data, _ := os.ReadFile(children)
			process, _ = strconv.Atoi(strings.TrimSpace(string(data)))
			time.Sleep(time.Millisecond)
		}
	}()
	_, err := Fetch(ctx, o)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	wantNothingLeft(t, o.CacheDir)
	// A killed child may stay a zombie for a moment, until its new parent looks.
	for range 500 {
		if alive(process) {
			time.Sleep(10 * time.Millisecond)
			continue
		}
		return
	}
	t.Errorf("the client's child %d still runs", process)
}

func alive(process int) bool {
	if stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", process)); err == nil {
		return !strings.Contains(string(stat), ") Z ")
	}
	found, err := os.FindProcess(process)
	return err == nil && found.Signal(syscall.Signal(0)) == nil
}

// everything makes the tests on real sources fetch for every platform, not just this machine's, and the CUDA library
// too.
var everything = flag.Bool("everything", false, "fetch every pinned file from every source, about 700 MB")

// Each source brings for real what the table pins. A source that cannot be reached is skipped with its reason; one that
// brings something else fails.
func TestRealSources(t *testing.T) {
	if testing.Short() {
		t.Skip("fetches over the network")
	}
	platforms := [][2]string{{runtime.GOOS, runtime.GOARCH}}
	if *everything {
		platforms = [][2]string{{"linux", "amd64"}, {"linux", "arm64"}, {"darwin", "arm64"}, {"windows", "amd64"},
			{"windows", "arm64"}}
	}
	for _, platform := range platforms {
		for _, cuda := range []bool{false, true} {
			if cuda && !*everything {
				continue
			}
			for _, pinned := range pins(platform[0], platform[1], cuda) {
				t.Run(fmt.Sprintf("%s-%s/cuda=%t/%s", platform[0], platform[1], cuda, pinned.source),
					func(t *testing.T) {
						o := Options{CacheDir: t.TempDir(), CUDA: cuda, goos: platform[0], goarch: platform[1],
							pins: []pin{pinned}}
						start := time.Now()
						found, err := Fetch(t.Context(), o)
						if err != nil {
							wantOneLine(t, err)
							// A digest or size that differs, and a file that is not where the table says, are the
							// table's faults.
							for _, fault := range []string{"SHA-256", "bytes", "holds no file", "wanted", "damaged"} {
								if strings.Contains(err.Error(), fault) {
									t.Fatal(err)
								}
							}
							t.Skipf("not reachable: %v", err)
						}
						if found.Version != pinned.release() {
							t.Errorf("version %q", found.Version)
						}
						t.Logf("%.1f s: %s", time.Since(start).Seconds(), found.Path)
					})
			}
		}
	}
}

// The clients' own messages, where they are installed but cannot reach anything: they end in seconds.
func TestRealClientsWithoutNetwork(t *testing.T) {
	if testing.Short() {
		t.Skip("waits for real clients")
	}
	// A port that nobody listens on.
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"} {
		t.Setenv(name, "http://127.0.0.1:9")
	}
	t.Setenv("NO_PROXY", "")
	t.Setenv("no_proxy", "")
	for client, source := range map[string]source{"pip": pip{}} {
		t.Run(client, func(t *testing.T) {
			if _, err := exec.LookPath(client); err != nil {
				t.Skip(err)
			}
			// A release that nobody has, so that no cache can bring it.
			asked := pin{name: "infill-no-such-package", tag: "any", sha256: strings.Repeat("0", 64)}
			_, err := source.bring(t.Context(), asked, t.TempDir(), newProgress(nil))
			wantOneLine(t, err)
			t.Log(err)
		})
	}
}
