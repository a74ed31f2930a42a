package modelstest

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

const (
	limitVariable = "INFILL_TEST_FILE_SIZE_LIMIT"
	failed        = "failed: "
)

// RunInLittleRoom runs a test of this test program in a new process that can make no file longer than limit bytes, as
// if the disk were full there, and gives the error that it tells. The test must call LittleRoom.
func RunInLittleRoom(t *testing.T, test string, limit int, environment ...string) error {
	t.Helper()
	command := exec.Command(os.Args[0], "-test.run=^"+test+"$", "-test.v")
	command.Env = append(append(os.Environ(), environment...), limitVariable+"="+strconv.Itoa(limit))
	out, err := command.CombinedOutput()
	if bytes.Contains(out, []byte("--- SKIP")) {
		t.Skip("this system has no limit on the size of files")
	}
	line, found := strings.CutPrefix(string(regexp.MustCompile(`(?m)^`+failed+`.*$`).Find(out)), failed)
	if err != nil || !found {
		t.Fatalf("the process gave %v and:\n%s", err, out)
	}
	return errors.New(line)
}

// LittleRoom limits the size of files and tells the error of do, in the process that RunInLittleRoom started. Elsewhere
// it skips the test.
func LittleRoom(t *testing.T, do func() error) {
	t.Helper()
	text := os.Getenv(limitVariable)
	if text == "" {
		t.Skip("runs in a process of its own")
	}
	limit, err := strconv.ParseUint(text, 10, 63)
	if err != nil {
		t.Fatal(err)
	}
	if err := limitFileSize(limit); err != nil {
		t.Skip(err)
	}
	if err := do(); err != nil {
		fmt.Printf("\n%s%v\n", failed, err)
	}
}
