package ort

import (
	"context"
	"os"
	"sync"
	"testing"

	"infill/internal/ort/library"
)

var foundLibrary = sync.OnceValues(func() (library.Library, error) {
	return library.Ensure(context.Background(), library.Options{})
})

// testLibrary is the onnxruntime library that the tests run on: found, or
// fetched as for a user.
func testLibrary(tb testing.TB) string {
	tb.Helper()
	found, err := foundLibrary()
	if err != nil {
		tb.Skipf("no onnxruntime library: %v", err)
	}
	return found.Path
}

// Loading a library turns its telemetry off first.
func TestTelemetryIsOff(t *testing.T) {
	t.Setenv("ORT_DISABLE_TELEMETRY", "0")
	_, _ = load("/nowhere/at/all.so", false)
	environment.Lock()
	loaded := environment.library
	environment.Unlock()
	if got := os.Getenv("ORT_DISABLE_TELEMETRY"); loaded == "" && got != "1" {
		t.Errorf("ORT_DISABLE_TELEMETRY is %q when the library is loaded", got)
	}
}
