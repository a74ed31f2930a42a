package ort

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"infill/internal/check"
)

// fakeToolkit makes libraries of CUDA and cuDNN, and a provider that needs
// them.
func fakeToolkit(t *testing.T, names []string) (made []string, provider string) {
	if runtime.GOOS != "linux" {
		t.Skip("the libraries are made as on Linux")
	}
	for _, name := range names {
		made = append(made, compile(t, name, "int here(void) { return 1; }", "-Wl,-soname,"+name))
	}
	provider = compile(t, "libonnxruntime_providers_cuda.so", "int provider(void) { return 1; }",
		append([]string{"-Wl,--no-as-needed"}, made...)...)
	return made, provider
}

// The provider's file tells which version of CUDA it needs, and the version
// tells the names of pip's wheels.
func TestToolkitOf(t *testing.T) {
	for _, test := range []struct {
		version       string
		names, wheels []string
	}{
		{"13", []string{"libcublas.so.13", "libcudart.so.13"}, []string{"nvidia-cublas", "nvidia-cuda-runtime"}},
		{"12", []string{"libcudart.so.12", "libcufft.so.11"},
			[]string{"nvidia-cuda-runtime-cu12", "nvidia-cufft-cu12"}},
	} {
		_, provider := fakeToolkit(t, test.names)
		needed := check.Must(toolkitOf(provider))(t)
		if needed.version != test.version || !slices.Equal(needed.names, append(test.names, "libcudnn.so.9")) {
			t.Errorf("the provider for CUDA %s needs %+v", test.version, needed)
		}
		for i, name := range test.names {
			if got := needed.wheel(name); got != test.wheels[i] {
				t.Errorf("%s is in %s, want %s", name, got, test.wheels[i])
			}
		}
		if got := needed.wheel("libcudnn.so.9"); got != "nvidia-cudnn-cu"+test.version {
			t.Errorf("cuDNN is in %s", got)
		}
	}
}

// A provider loads once the libraries in pip's wheels are open.
func TestPreload(t *testing.T) {
	names := []string{"libcublas.so.13", "libcudart.so.13", "libcudnn.so.9"}
	made, provider := fakeToolkit(t, names)
	needed := check.Must(toolkitOf(provider))(t)
	check.Says(t, needed.preload([]string{t.TempDir()}), "CUDA 13", "libcublas.so.13 (in pip's nvidia-cublas)",
		"libcudart.so.13 (in pip's nvidia-cuda-runtime)", "libcudnn.so.9 (in pip's nvidia-cudnn-cu13)")
	// A file of the right name that does not load is named, with what the
	// loader says.
	damaged := t.TempDir()
	check.OK(t, os.WriteFile(filepath.Join(damaged, names[0]), []byte("no library"), 0o600))
	check.Says(t, needed.preload([]string{damaged}), filepath.Join(damaged, names[0]))

	environment := t.TempDir()
	wheel := filepath.Join(environment, "lib", "python3.12", "site-packages", "nvidia", "cu13", "lib")
	check.OK(t, os.MkdirAll(wheel, 0o755))
	for i, path := range made {
		check.OK(t, os.Rename(path, filepath.Join(wheel, names[i])))
	}
	if _, err := openLibrary(provider); err == nil {
		t.Fatal("the loader finds the libraries by itself, so that this test shows nothing")
	}
	t.Setenv("VIRTUAL_ENV", environment)
	check.OK(t, needed.preload(wheelFolders()))
	loaded := check.Must(openLibrary(provider))(t)
	check.OK(t, closeLibrary(loaded))
}

func TestToolkitOfNoProvider(t *testing.T) {
	path := filepath.Join(t.TempDir(), "libonnxruntime_providers_cuda.so")
	_, err := toolkitOf(path)
	check.Says(t, err, path, "no such file")
	check.OK(t, os.WriteFile(path, []byte(strings.Repeat("no library ", 20)), 0o600))
	_, err = toolkitOf(path)
	check.Says(t, err, path, "bad magic")
}
