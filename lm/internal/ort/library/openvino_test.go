package library

import (
	"os"
	"path/filepath"
	"testing"
)

func TestOpenVINOPins(t *testing.T) {
	if found := openVINO("darwin", "arm64"); found != nil {
		t.Errorf("%d files for macOS", len(found))
	}
	o, err := Options{OpenVINO: true, CacheDir: t.TempDir(), goos: "linux", goarch: "amd64"}.withDefaults()
	if err != nil || len(o.pins) != 1 {
		t.Fatalf("%d pins, %v", len(o.pins), err)
	}
	if p := o.pins[0]; len(p.sha256) != 64 || p.release() != openVINOVersion || p.members[0].as != FileName("linux") {
		t.Errorf("pin %+v", p)
	}
	provider, _ := o.provider()
	found := false
	for _, m := range o.pins[0].members {
		if len(m.sha256) != 64 || m.size == 0 {
			t.Errorf("%s has no digest or size", m.as)
		}
		found = found || m.as == provider
	}
	if !found {
		t.Errorf("%s is not kept", provider)
	}
	if want := filepath.Join(o.CacheDir, "onnxruntime", openVINOVersion, "linux-amd64-openvino"); o.folder() != want {
		t.Errorf("folder %s, want %s", o.folder(), want)
	}
}

// The device auto goes by what was measured, and by nothing where nothing was.
func TestOpenVINOFaster(t *testing.T) {
	path := filepath.Join(t.TempDir(), "libonnxruntime.so")
	if OpenVINOFaster(path) {
		t.Error("faster without a measurement")
	}
	for _, test := range []struct {
		openVINO, cpu float64
		want          bool
	}{{200, 100, true}, {110, 100, false}, {50, 100, false}} {
		if err := (Measured{test.openVINO, test.cpu}).Write(path); err != nil {
			t.Fatal(err)
		}
		if got := OpenVINOFaster(path); got != test.want {
			t.Errorf("%v: faster %v", test, got)
		}
	}
	if err := os.WriteFile(filepath.Join(filepath.Dir(path), measuredName), []byte("{"), 0o644); err != nil {
		t.Fatal(err)
	}
	if OpenVINOFaster(path) {
		t.Error("faster by a damaged measurement")
	}
}
