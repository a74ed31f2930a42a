//go:build unix

package serve_test

import (
	"syscall"
	"testing"
	"time"
)

// processorTime is what this process has used: on a machine that others use too, a
// steadier measure than the clock.
func processorTime(t *testing.T) time.Duration {
	t.Helper()
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		t.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
