//go:build unix

package models_test

import (
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"testing"

	"infill/models"
)

// TestPlaceWithinLimit is the other process of TestOpenBuiltInWithoutRoom.
func TestPlaceWithinLimit(t *testing.T) {
	text := os.Getenv(limitVariable)
	if text == "" {
		t.Skip("only run by TestOpenBuiltInWithoutRoom")
	}
	limit, err := strconv.ParseUint(text, 10, 63)
	if err != nil {
		t.Fatal(err)
	}
	signal.Ignore(syscall.SIGXFSZ)
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: limit, Max: limit}); err != nil {
		t.Skip(err)
	}
	if _, err := models.Open(""); err != nil {
		fmt.Printf("\nfailed: %v\n", err)
	}
}
