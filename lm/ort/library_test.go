package ort

import (
	"os"
	"testing"
)

// testLibrary is the onnxruntime library that the tests run on.
func testLibrary(tb testing.TB) string {
	tb.Helper()
	path := os.Getenv("INFILL_ONNXRUNTIME")
	if path == "" {
		tb.Skip("no onnxruntime library: set INFILL_ONNXRUNTIME")
	}
	return path
}
