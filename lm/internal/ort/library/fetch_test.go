package library

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

// serving is a source whose archive is good.
func serving(t *testing.T, library []byte) (pin, source) {
	archive := zipped(t, entry{name: "readme"}, entry{name: "onnxruntime/capi/library", data: library})
	served := pin{source: "good", name: "onnxruntime", sha256: digestOf(archive),
		members: []member{{"onnxruntime/capi/library", FileName(runtime.GOOS), int64(len(library)), digestOf(library)}}}
	return served, sourceFunc(func(_ context.Context, pin pin, folder string, _ *progress) (brought, error) {
		path := filepath.Join(folder, "onnxruntime.whl")
		write(t, path, archive)
		return verified(path, pin.sha256)
	})
}

func failing(message string) source {
	return sourceFunc(
		func(context.Context, pin, string, *progress) (brought, error) { return brought{}, errors.New(message) })
}

func TestFetchTakesTheFirstSourceThatWorks(t *testing.T) {
	good := compiled(t, "1.24.1")
	served, working := serving(t, good)
	var told bytes.Buffer
	o := Options{
		CacheDir: t.TempDir(), Progress: &told,
		pins: []pin{{source: "first"}, {source: "second"}, served, {source: "never"}},
		sources: map[string]source{"first": failing("no way out"), "second": failing("no\n such\tclient"),
			"good": working, "never": failing("was asked")},
	}
	found, err := Fetch(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join(o.CacheDir, "onnxruntime", Version, runtime.GOOS+"-"+runtime.GOARCH)
	if found.Path != filepath.Join(folder, FileName(runtime.GOOS)) || found.Version != "1.24.1" ||
		found.Place != "cache" {
		t.Errorf("found %+v", found)
	}
	if data, err := os.ReadFile(found.Path); err != nil || !bytes.Equal(data, good) {
		t.Errorf("the placed file differs: %v", err)
	}
	var m manifest
	data, err := os.ReadFile(filepath.Join(folder, manifestName))
	if err == nil {
		err = json.Unmarshal(data, &m)
	}
	if err != nil {
		t.Fatal(err)
	}
	if m.Version != Version || m.Source != "good" || m.SHA256 != served.sha256 || len(m.Files) != 1 ||
		m.Files[0].SHA256 != digestOf(good) {
		t.Errorf("manifest %+v", m)
	}
	lines := strings.Split(strings.TrimSpace(told.String()), "\n")
	if len(lines) != 2 || !strings.HasPrefix(lines[0], "fetching onnxruntime "+Version) ||
		!strings.Contains(lines[1], "from good is in "+folder) {
		t.Errorf("told %q", lines)
	}
	if left, err := filepath.Glob(filepath.Join(filepath.Dir(folder), temporaryPrefix+"*")); err != nil ||
		len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	// A second fetch has nothing to do.
	o.sources = nil
	told.Reset()
	if again, err := Fetch(context.Background(), o); err != nil || again != found || told.Len() != 0 {
		t.Errorf("again: %+v, %v, told %q", again, err, told.String())
	}
}

func TestFetchErrorListsAllSources(t *testing.T) {
	served, working := serving(t, compiled(t, "1.19.2")) // the right digest of the wrong release
	other, _ := serving(t, compiled(t, "1.24.1"))
	other.source, other.sha256 = "altered", strings.Repeat("0", 64)
	o := Options{
		CacheDir: t.TempDir(),
		pins:     []pin{{source: "page"}, other, served, {source: "unheard of"}},
		sources: map[string]source{"page": failing("dial tcp: no such host"), "good": working,
			"altered": sourceFunc(func(ctx context.Context, pin pin, folder string, show *progress) (brought, error) {
				return working.bring(ctx, pin, folder, show)
			})},
		candidates: at(),
	}
	_, err := Ensure(context.Background(), o)
	wantOneLine(t, err,
		"cannot fetch onnxruntime "+Version+" for "+runtime.GOOS+"/"+runtime.GOARCH,
		"page: dial tcp: no such host",
		"altered: onnxruntime.whl: expected SHA-256 0000000",
		"good: found version 1.19.2, wanted 1.24.1 or newer",
		"unheard of: unknown source",
		"run `infill setup`", "in INFILL_ONNXRUNTIME")
	// What did not serve may stay in the cache, but is never taken.
	o.candidates = nil
	t.Setenv(Variable, "")
	if found, err := Find(context.Background(), o); err == nil && found.Place == "cache" {
		t.Errorf("found %+v", found)
	}
}

func TestFetchForAPlatformWithoutLibrary(t *testing.T) {
	for _, o := range []Options{
		{goos: "darwin", goarch: "amd64"}, {goos: "linux", goarch: "riscv64"}, {goos: "freebsd", goarch: "amd64"},
		{goos: "linux", goarch: "arm64", CUDA: true},
	} {
		o.CacheDir = t.TempDir()
		_, err := Fetch(context.Background(), o)
		wantOneLine(t, err, "is published for "+o.platform(), Variable)
		wantNothingLeft(t, o.CacheDir)
	}
}

func TestFetchStopped(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	o := Options{CacheDir: t.TempDir(), pins: []pin{{source: "slow"}, {source: "never"}}, sources: map[string]source{
		"slow": sourceFunc(func(ctx context.Context, _ pin, folder string, _ *progress) (brought, error) {
			write(t, filepath.Join(folder, "half"), make([]byte, 1000))
			cancel()
			<-ctx.Done()
			return brought{}, ctx.Err()
		}),
		"never": failing("was asked"),
	}}
	_, err := Fetch(ctx, o)
	wantOneLine(t, err, "stopped")
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	wantNothingLeft(t, o.CacheDir)
}

func TestFetchSweepsWhatKilledProcessesLeft(t *testing.T) {
	served, working := serving(t, compiled(t, "1.24.1"))
	o := Options{CacheDir: t.TempDir(), pins: []pin{served}, sources: map[string]source{"good": working}}
	left := filepath.Join(o.CacheDir, "onnxruntime", Version, temporaryPrefix+"123")
	write(t, filepath.Join(left, "download", "half"), make([]byte, 1000))
	if _, err := Fetch(context.Background(), o); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(left); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("still there: %v", err)
	}
}

func TestFetchIntoAFolderThatCannotBe(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	write(t, file, nil)
	_, err := Fetch(context.Background(), Options{CacheDir: file, pins: []pin{{source: "never"}}})
	wantOneLine(t, err, "cannot make the cache folder", "INFILL_CACHE")
}

// Two processes at once: one fetches, and both have the library.
func TestTwoProcessesFetchOnce(t *testing.T) {
	library := compiled(t, "1.24.1")
	wheel := zipped(t, entry{name: "onnxruntime/capi/library", data: library})
	folder := t.TempDir()
	cacheDir, log, source := filepath.Join(folder, "cache"), filepath.Join(folder, "log"),
		filepath.Join(folder, "onnxruntime.whl")
	write(t, source, wheel)
	// The client is slow enough for the other process to come to the lock.
	script(t, "pip", "echo asked >>'"+log+"'; sleep 1; cp '"+source+"' .")
	task, err := json.Marshal(
		map[string]string{"Do": "fetch", "CacheDir": cacheDir, "Source": "pip", "SHA256": digestOf(wheel)})
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	outputs := make([]string, 3)
	for i := range outputs {
		all.Go(func() {
			command := exec.Command(self)
			command.Env = append(os.Environ(), childVariable+"="+string(task))
			output, err := command.CombinedOutput()
			if err != nil {
				t.Error(err)
			}
			outputs[i] = strings.TrimSpace(string(output))
		})
	}
	all.Wait()
	want := "cache 1.24.1 " +
		filepath.Join(cacheDir, "onnxruntime", Version, runtime.GOOS+"-"+runtime.GOARCH, FileName(runtime.GOOS))
	for _, output := range outputs {
		if output != want {
			t.Errorf("a process said %q, want %q", output, want)
		}
	}
	if asked, err := os.ReadFile(log); err != nil || string(asked) != "asked\n" {
		t.Errorf("the client was asked: %q, %v", asked, err)
	}
}

// Who waits for another process's fetch can be interrupted.
func TestWaitingForTheLockCanBeStopped(t *testing.T) {
	entered, leave := make(chan struct{}), make(chan struct{})
	o := Options{CacheDir: t.TempDir(), pins: []pin{{source: "slow"}}, sources: map[string]source{
		"slow": sourceFunc(func(context.Context, pin, string, *progress) (brought, error) {
			close(entered)
			<-leave
			return brought{}, errors.New("nothing after all")
		})}}
	done := make(chan error)
	go func() { _, err := Fetch(context.Background(), o); done <- err }()
	<-entered
	ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
	defer cancel()
	waiting := o
	var told bytes.Buffer
	waiting.Progress = &told
	_, err := Fetch(ctx, waiting)
	wantOneLine(t, err, "waiting for another process")
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(told.String(), "waiting for it") {
		t.Errorf("error %v, told %q", err, told.String())
	}
	close(leave)
	wantOneLine(t, <-done, "slow: nothing after all")
}

// On a terminal the moving line is erased, and the lines that stay remain.
func TestProgressOnATerminal(t *testing.T) {
	var screen bytes.Buffer
	show := newProgress(&screen)
	show.terminal = true
	show.line("fetching")
	for _, size := range []int64{1000, -1} {
		show.begin("somewhere", size)
		if n, err := show.Write(make([]byte, 400)); n != 400 || err != nil {
			t.Errorf("wrote %d, %v", n, err)
		}
		show.at(700)
		show.at(5000)
	}
	show.end()
	show.line("done")
	if !strings.Contains(screen.String(), "onnxruntime from somewhere") {
		t.Errorf("no moving line: %q", screen.String())
	}
	// What the terminal shows in the end: each carriage return starts its line again.
	var shown []string
	for _, line := range strings.Split(strings.TrimSuffix(screen.String(), "\n"), "\n") {
		line = line[strings.LastIndex(line, "\r")+1:]
		shown = append(shown, strings.TrimSpace(strings.ReplaceAll(line, "\x1b[K", "")))
	}
	if got := strings.Join(shown, "|"); got != "fetching|done" {
		t.Errorf("the screen shows %q of %q", got, screen.String())
	}

	// Nowhere to tell: nothing happens.
	silent := newProgress(nil)
	silent.line("x")
	silent.begin("x", 1)
	silent.at(1)
	silent.end()
}

func TestPins(t *testing.T) {
	known := sources(Version)
	for _, platform := range [][2]string{{"linux", "amd64"}, {"linux", "arm64"}, {"darwin", "arm64"},
		{"windows", "amd64"}, {"windows", "arm64"}} {
		for _, cuda := range []bool{false, true} {
			table := pins(platform[0], platform[1], cuda)
			if cuda && platform != [2]string{"linux", "amd64"} {
				if len(table) != 0 {
					t.Errorf("%v has CUDA pins", platform)
				}
				continue
			}
			if len(table) < 2 {
				t.Errorf("%v: %d sources", platform, len(table))
			}
			for _, pin := range table {
				if known[pin.source] == nil {
					t.Errorf("%v: unknown source %q", platform, pin.source)
				}
				if pin.members[0].as != FileName(platform[0]) {
					t.Errorf("%v: the first member is %q", platform, pin.members[0].as)
				}
				// Only a release may tell its digest itself; what a client brings is held against a pin.
				if pin.sha256 == "" && pin.source != "release" && pin.members[0].sha256 == "" {
					t.Errorf("%v: %s has no digest at all", platform, pin.source)
				}
				digests := []string{pin.sha256}
				for _, m := range pin.members {
					digests = append(digests, m.sha256)
				}
				for _, digest := range digests {
					if digest != "" && (len(digest) != 64 || strings.Trim(digest, "0123456789abcdef") != "") {
						t.Errorf("%v: %s: %q is no SHA-256", platform, pin.source, digest)
					}
				}
			}
		}
	}
}
