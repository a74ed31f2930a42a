package ort

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"infill/internal/check"
	"infill/internal/onnx"
)

// childVariable makes the test binary act as a program of its own, for what is
// seen only from outside a process.
const childVariable = "INFILL_ORT_TEST_CHILD"

func TestMain(m *testing.M) {
	if task := os.Getenv(childVariable); task != "" {
		if err := child(task); err != nil {
			fmt.Println("child:", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// compile makes a shared library from C.
func compile(t *testing.T, name, source string, arguments ...string) string {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("the fake libraries are made as on Unix")
	}
	compiler, err := exec.LookPath("cc")
	if err != nil {
		t.Skip("no C compiler")
	}
	folder := t.TempDir()
	code, path := filepath.Join(folder, "fake.c"), filepath.Join(folder, name)
	check.OK(t, os.WriteFile(code, []byte(source), 0o600))
	output, err := exec.Command(compiler,
		append([]string{"-shared", "-fPIC", "-o", path, code}, arguments...)...).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	return path
}

// fakeLibrary is a library whose OrtGetApiBase offers nothing and tells a
// version.
func fakeLibrary(t *testing.T, version string) string {
	return compile(t, "libonnxruntime.so", fmt.Sprintf(`
		typedef struct { const void *(*get_api)(unsigned); const char *(*get_version)(void); } base;
		static const void *api(unsigned version) { (void)version; return 0; }
		static const char *version(void) { return %q; }
		static const base b = { api, version };
		const base *OrtGetApiBase(void) { return &b; }`, version))
}

func TestLibrariesThatDoNotServe(t *testing.T) {
	folder := t.TempDir()
	text := filepath.Join(folder, "notes.so")
	check.OK(t, os.WriteFile(text, []byte("this is no library"), 0o600))
	empty := filepath.Join(folder, "empty.so")
	check.OK(t, os.WriteFile(empty, nil, 0o600))
	old := fakeLibrary(t, "1.20.0")
	tests := []struct {
		name, path string
		want       []string
	}{
		{"missing", filepath.Join(folder, "absent.so"), []string{"absent.so"}},
		{"folder", folder, []string{"not a file"}},
		{"text", text, []string{text}},
		{"empty", empty, []string{empty}},
		{"old", old, []string{old, "found version 1.20.0", "wanted 1.24.1 or newer", "infill setup"}},
		{"newer, without the interface", fakeLibrary(t, "1.99.0"), []string{"found version 1.99.0", "C interface 24"}},
		{"nonsense version", fakeLibrary(t, "one"), []string{"found version one"}},
		{"another library", compile(t, "libother.so", "int other(void) { return 1; }"),
			[]string{"not an onnxruntime library", "OrtGetApiBase"}},
		{"base is null", compile(t, "libnull.so", "void *OrtGetApiBase(void) { return 0; }"),
			[]string{"not an onnxruntime library"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			check.Says(t, checkLibrary(test.path), test.want...)
		})
	}
}

// What a whole program sees of a library that does not serve: an error of Open,
// and its life.
func TestOpenOnAnOldLibraryInAProgram(t *testing.T) {
	output, diagnostics := runChild(t, "open "+fakeLibrary(t, "1.20.0"))
	if !strings.Contains(output, "found version 1.20.0, wanted 1.24.1 or newer") || diagnostics != "" {
		t.Errorf("output %q, standard error %q", output, diagnostics)
	}
}

func runChild(t *testing.T, task string) (output, diagnostics string) {
	t.Helper()
	program := check.Must(os.Executable())(t)
	command := exec.Command(program)
	command.Env = append(os.Environ(), childVariable+"="+task)
	var out, diagnosticsBuffer strings.Builder
	command.Stdout, command.Stderr = &out, &diagnosticsBuffer
	if err := command.Run(); err != nil {
		t.Fatalf("%v\n%s\n%s", err, out.String(), diagnosticsBuffer.String())
	}
	return out.String(), diagnosticsBuffer.String()
}

func child(task string) error {
	verb, argument, _ := strings.Cut(task, " ")
	ctx := context.Background()
	switch verb {
	case "open":
		_, err := Open(ctx, Options{LibraryPath: argument, Device: "cpu"})
		fmt.Println(err)
		return nil
	case "warnings", "warnings-loud":
		o := Options{LibraryPath: argument, Device: "cpu"}
		if verb == "warnings-loud" {
			o.warnings = true
		}
		return provoke(ctx, o)
	}
	return errors.New("unknown task " + verb)
}

// provoke does what makes onnxruntime warn and complain: an output whose
// declared shape is wrong, a graph that is refused, a run that fails.
func provoke(ctx context.Context, o Options) error {
	r, err := Open(ctx, o)
	if err != nil {
		return err
	}
	defer r.Close()
	g := expand()
	s, err := sessionOf(r, g, SessionOptions{})
	if err != nil {
		return err
	}
	// The run fails: 2 values cannot be stretched to 5.
	err = s.Run(ctx, []Tensor{vector(0, 0), Int64([]int64{1}, []int64{5})}, []Tensor{vector(make([]float32, 5)...)})
	if err == nil {
		return errors.New("an impossible run went well")
	}
	g.Outputs[0].Shape = onnx.FixedShape(3, 7)
	if _, err := sessionOf(r, g, SessionOptions{}); err != nil {
		return err
	}
	model, err := g.Encode()
	if err != nil {
		return err
	}
	if _, err := r.NewSession(model[:40], SessionOptions{}); err == nil {
		return errors.New("a damaged graph was taken")
	}
	return nil
}

func TestNothingOnStandardError(t *testing.T) {
	path := testLibrary(t)
	if _, diagnostics := runChild(t, "warnings "+path); diagnostics != "" {
		t.Errorf("standard error: %s", diagnostics)
	}
	// The same work does produce messages: the silence above is the severity's
	// doing.
	if _, diagnostics := runChild(t, "warnings-loud "+path); !strings.Contains(diagnostics, "[W:") ||
		!strings.Contains(diagnostics, "Expand") {
		t.Errorf("with warnings on, standard error: %q", diagnostics)
	}
}

func TestOneLibraryPerProcess(t *testing.T) {
	r := openCPU(t, Options{})
	again := openCPU(t, Options{})
	if r.library != again.library || r.Version() != again.Version() {
		t.Errorf("second Open: %s %s, first %s %s", again.library, again.Version(), r.library, r.Version())
	}
	if !strings.HasPrefix(r.Version(), "1.") {
		t.Errorf("version %q", r.Version())
	}
	_, err := Open(context.Background(), Options{LibraryPath: fakeLibrary(t, "1.24.1"), Device: "cpu"})
	check.Says(t, err, "already runs onnxruntime "+r.Version(), r.library)
	if path, err := Locate(context.Background(), "cpu", nil); err != nil || path != r.library {
		t.Errorf("Locate: %q, %v", path, err)
	}
}

func TestDevices(t *testing.T) {
	for name, want := range map[string]struct {
		device string
		index  int
	}{"": {"auto", 0}, "auto": {"auto", 0}, "cpu": {"cpu", 0}, "cuda": {"cuda", 0}, "cuda:0": {"cuda", 0},
		"cuda:12": {"cuda", 12}} {
		if device, index, err := parseDevice(name); err != nil || device != want.device || index != want.index {
			t.Errorf("%q: %q %d %v", name, device, index, err)
		}
	}
	for _, bad := range []string{"cuda:", "cuda:-1", "cuda:+1", "cuda:01", "cuda:x", "cpu:0", "auto:1", "gpu",
		"openvino", "CUDA"} {
		_, _, err := parseDevice(bad)
		check.Says(t, err, "is not one of auto, cpu, cuda, or cuda:N")
	}
	if _, err := Open(context.Background(), Options{Device: "tpu", LibraryPath: "nowhere"}); err == nil ||
		!strings.Contains(err.Error(), `"tpu" is not one of auto`) {
		t.Errorf("Open: %v", err)
	}
	if _, err := Open(context.Background(), Options{Threads: -1, LibraryPath: "nowhere"}); err == nil ||
		!strings.Contains(err.Error(), "threads -1") {
		t.Errorf("Open: %v", err)
	}
}

// With the CPU's library, cuda fails loudly and auto says what it took.
func TestCUDAWithoutProvider(t *testing.T) {
	path := testLibrary(t)
	if _, err := os.Stat(filepath.Join(filepath.Dir(path), "libonnxruntime_providers_cuda.so")); err == nil {
		t.Skip("this library has a CUDA provider")
	}
	_, err := Open(context.Background(), Options{LibraryPath: path, Device: "cuda"})
	if runtime.GOARCH == "amd64" && runtime.GOOS != "darwin" {
		check.Says(t, err, "cuda: ", "no CUDA provider", "infill setup --cuda")
	} else {
		check.Says(t, err, "cuda: ", "no CUDA provider for "+runtime.GOOS, "--device cpu")
	}
	r := openCPU(t, Options{Device: "auto"})
	if r.Device() != "cpu" || !strings.HasPrefix(r.Note(), "cuda: ") {
		t.Errorf("auto took %q, note %q", r.Device(), r.Note())
	}
	if r := openCPU(t, Options{Device: "cpu"}); r.Note() != "" {
		t.Errorf("cpu has a note: %q", r.Note())
	}
	ended, end := context.WithCancel(context.Background())
	end()
	for _, device := range []string{"auto", "cuda"} {
		if _, err := Open(ended, Options{LibraryPath: path, Device: device}); !errors.Is(err, context.Canceled) {
			t.Errorf("%s, interrupted: %v", device, err)
		}
	}
}

func TestDiagnoseCUDA(t *testing.T) {
	if runtime.GOOS != "linux" || runtime.GOARCH != "amd64" {
		t.Skip("the provider is for linux/amd64")
	}
	folder := t.TempDir()
	for _, name := range []string{"cuda", "shared"} {
		name = "libonnxruntime_providers_" + name + ".so"
		check.Says(t, prepareCUDA(filepath.Join(folder, "libonnxruntime.so"), 0), name+" is not beside it")
		check.OK(t, os.WriteFile(filepath.Join(folder, name), nil, 0o600))
	}
	// No machine has this many GPUs: either the driver is missing, or it says
	// so.
	check.Says(t, prepareCUDA(filepath.Join(folder, "libonnxruntime.so"), math.MaxInt32))
}

// The graph of the GPU trial is good: it computes on the CPU.
func TestTrialModel(t *testing.T) {
	s, err := openCPU(t, Options{}).NewSession(trialModel(),
		SessionOptions{Inputs: []string{"x"}, Outputs: []string{"y"}})
	check.OK(t, err)
	out := make([]float32, 2)
	check.OK(t, s.Run(context.Background(), []Tensor{vector(1, 2)}, []Tensor{vector(out...)}))
	if out[0] != 2 || out[1] != 4 {
		t.Errorf("x + x of 1, 2: %v", out)
	}
}

// CUDA itself, where a GPU and its libraries are.
func TestCUDAComputes(t *testing.T) {
	path, err := Locate(context.Background(), "cuda", nil)
	if err == nil {
		err = prepareCUDA(path, 0)
	}
	if err != nil {
		t.Skip(err)
	}
	r := openCPU(t, Options{LibraryPath: path, Device: "cuda"})
	if r.Device() != "cuda:0" {
		t.Errorf("device %q", r.Device())
	}
}

func TestThreads(t *testing.T) {
	for _, threads := range []int{1, 2} {
		r := openCPU(t, Options{Threads: threads})
		if r.Threads() != threads {
			t.Errorf("%d threads, want %d", r.Threads(), threads)
		}
		out := make([]float32, 3)
		s := newSession(t, r, double(), SessionOptions{NoPrepacking: threads == 2})
		check.OK(t, s.Run(context.Background(), []Tensor{vector(1, 2, 3)}, []Tensor{vector(out...)}))
		if out[2] != 6 {
			t.Errorf("3 + 3 = %v", out[2])
		}
	}
}
