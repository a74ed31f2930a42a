package ort

import (
	"context"
	"os"
	"sync"
	"testing"

	"infill/lm/internal/ort/library"
)

var foundLibrary = sync.OnceValues(func() (library.Library, error) {
	return library.Ensure(context.Background(), library.Options{Progress: os.Stderr})
})

// testLibrary is the onnxruntime library that the tests run on: found, or fetched as for a user.
func testLibrary(tb testing.TB) string {
	tb.Helper()
	found, err := foundLibrary()
	if err != nil {
		tb.Skipf("no onnxruntime library: %v", err)
	}
	return found.Path
}
