//go:build unix

package hub_test

import (
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"testing"

	"infill/models"
	"infill/models/hub"
)

// TestPullWithinLimit is the other process of TestPullWithoutRoom.
func TestPullWithinLimit(t *testing.T) {
	text := os.Getenv("INFILL_TEST_FILE_SIZE_LIMIT")
	if text == "" {
		t.Skip("only run by TestPullWithoutRoom")
	}
	limit, err := strconv.ParseUint(text, 10, 63)
	if err != nil {
		t.Fatal(err)
	}
	signal.Ignore(syscall.SIGXFSZ)
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: limit, Max: limit}); err != nil {
		t.Skip(err)
	}
	_, err = hub.Pull(t.Context(), models.NewStore(os.Getenv("INFILL_TEST_STORE")), "org/tiny", hub.Options{Endpoint: os.Getenv("INFILL_TEST_ENDPOINT")})
	if err != nil {
		fmt.Printf("\nfailed: %v\n", err)
	}
}
