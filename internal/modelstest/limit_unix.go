//go:build unix

package modelstest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"regexp"
	"strings"
	"syscall"
	"testing"
)

const (
	folderVariable = "INFILL_TEST_FOLDER"
	failed         = "failed: "
)

// InLittleRoom calls do(dir) in a new process in which no file can exceed limit
// bytes, as on a full disk, and returns the error of do. The new process runs
// the same test up to this call, with the same dir.
func InLittleRoom(t *testing.T, limit uint64, dir string, do func(dir string) error) error {
	t.Helper()
	folder := os.Getenv(folderVariable)
	if folder != "" {
		signal.Ignore(syscall.SIGXFSZ) // the signal would end the process before the write fails
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: limit, Max: limit}); err != nil {
			t.Fatal(err)
		}
		if err := do(folder); err != nil {
			fmt.Printf("\n%s%v\n", failed, err)
		}
		t.SkipNow() // only the first process runs what follows in the test
	}
	name := "^" + strings.ReplaceAll(regexp.QuoteMeta(t.Name()), "/", "$/^") + "$"
	command := exec.Command(os.Args[0], "-test.run="+name, "-test.v")
	command.Env = append(os.Environ(), folderVariable+"="+dir)
	out, err := command.CombinedOutput()
	line, found := strings.CutPrefix(string(regexp.MustCompile(`(?m)^`+failed+`.*$`).Find(out)), failed)
	if err != nil || !found {
		t.Fatalf("the process gave %v and:\n%s", err, out)
	}
	return errors.New(line)
}
