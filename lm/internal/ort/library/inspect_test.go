package library

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

func TestInspectELF(t *testing.T) {
	path := filepath.Join(t.TempDir(), "libonnxruntime.so")
	for _, version := range []string{"1.24.1", "1.8.0", ""} {
		library := compiled(t, version)
		write(t, path, library)
		info, err := Inspect(path)
		if err != nil {
			t.Fatal(err)
		}
		if info.Version != version || info.OS != "linux" || info.Arch != runtime.GOARCH ||
			info.Size != int64(len(library)) || info.Path != path {
			t.Errorf("version %q: %+v", version, info)
		}
	}
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Inspect(program); err == nil {
		// Position-independent programs are shared objects to ELF; what they are not is onnxruntime.
		t.Log("this test program passes for a shared library")
	}
}

// binding is the folder of onnxruntime_go's source, which carries real libraries of three platforms.
func binding(t *testing.T) string {
	t.Helper()
	output, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/yalue/onnxruntime_go").Output()
	folder := strings.TrimSpace(string(output))
	if err != nil || folder == "" {
		t.Skip("the module onnxruntime_go is not on this machine")
	}
	return filepath.Join(folder, "test_data")
}

func TestInspectRealLibraries(t *testing.T) {
	folder := binding(t)
	for _, test := range []struct{ name, goos, goarch, needs string }{
		{"onnxruntime.dll", "windows", "amd64", ""},
		{"onnxruntime_arm64.dylib", "darwin", "arm64", "/usr/lib/libc++.1.dylib"},
		{"onnxruntime_arm64.so", "linux", "arm64", "libstdc++.so.6"},
	} {
		t.Run(test.name, func(t *testing.T) {
			path := filepath.Join(folder, test.name)
			info, err := Inspect(path)
			if err != nil {
				t.Fatal(err)
			}
			if info.OS != test.goos || info.Arch != test.goarch || info.Version != "1.24.1" {
				t.Errorf("%+v", info)
			}
			if test.needs != "" && !slices.Contains(info.Needs, test.needs) {
				t.Errorf("needs %q, among them not %q", info.Needs, test.needs)
			}
			// However short it is cut, it is an error: the loader would die of it.
			whole, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			short := filepath.Join(t.TempDir(), test.name)
			for _, length := range []int{0, 1, 3, 4, 63, 64, 100, 300, 1000, 4096, len(whole) / 3,
				len(whole) - len(whole)/8} {
				write(t, short, whole[:length])
				if _, err := Inspect(short); err == nil {
					t.Errorf("the first %d of %d bytes pass", length, len(whole))
				}
			}
		})
	}
}

func FuzzInspect(f *testing.F) {
	f.Add(compiled(f, "1.24.1"))
	f.Add([]byte("MZ and not much more"))
	f.Add([]byte("\xcf\xfa\xed\xfe"))
	f.Add([]byte("\xca\xfe\xba\xbe\x00\x00\x00\x02"))
	path := filepath.Join(f.TempDir(), "library")
	f.Fuzz(func(t *testing.T, data []byte) {
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Inspect(path); err != nil {
			wantOneLine(t, err, path)
		}
	})
}
