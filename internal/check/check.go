// Package check ends a test if a step fails, in one line of code each.
package check

import (
	"strings"
	"testing"
)

func OK(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Must ends the test for an error: check.Must(os.ReadFile(name))(t).
func Must[T any](value T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		OK(t, err)
		return value
	}
}

// Says fails the test unless err is one line that contains all parts.
func Says(t testing.TB, err error, parts ...string) {
	t.Helper()
	if err == nil {
		t.Errorf("no error, want one that says %q", parts)
		return
	}
	for _, part := range append(parts, "") {
		message := err.Error()
		if !strings.Contains(message, part) || strings.ContainsAny(message, "\n\r\t\x1b") {
			t.Errorf("error %q does not say %q in one line", message, part)
		}
	}
}
