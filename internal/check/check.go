// Package check ends a test at a failed step, with one line of code for each step.
package check

import (
	"strings"
	"testing"
)

// OK ends the test if there is an error.
func OK(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Must returns the value of a call that may fail, as in check.Must(os.ReadFile(name))(t).
func Must[T any](value T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		OK(t, err)
		return value
	}
}

// Says expects an error of one line that has all parts.
func Says(t testing.TB, err error, parts ...string) {
	t.Helper()
	if err == nil {
		t.Errorf("no error, want one that says %q", parts)
		return
	}
	for _, part := range append(parts, "") {
		if message := err.Error(); !strings.Contains(message, part) || strings.ContainsAny(message, "\n\r\t\x1b") {
			t.Errorf("error %q does not say %q in one line", message, part)
		}
	}
}
