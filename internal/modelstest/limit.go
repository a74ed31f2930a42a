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
	limitVariable  = "INFILL_TEST_FILE_SIZE_LIMIT"
	folderVariable = "INFILL_TEST_FOLDER"
	failed         = "failed: "
	unlimited      = "this system has no limit on the size of files"
)

// InLittleRoom calls do(dir) in a new process that can make no file longer than limit bytes, as if the disk were full
// there, and gives its error. That process runs the same test up to this call, and gets the same dir.
func InLittleRoom(t *testing.T, limit uint64, dir string, do func(dir string) error) error {
	t.Helper()
	if text := os.Getenv(limitVariable); text != "" {
		limit, err := strconv.ParseUint(text, 10, 63)
		if err != nil {
			t.Fatal(err)
		}
		if limitFileSize(limit) != nil {
			t.Skip(unlimited)
		}
		if err := do(os.Getenv(folderVariable)); err != nil {
			fmt.Printf("\n%s%v\n", failed, err)
		}
		t.SkipNow() // the rest is the first process's
	}
	parts := strings.Split(t.Name(), "/")
	for i, part := range parts {
		parts[i] = "^" + regexp.QuoteMeta(part) + "$"
	}
	command := exec.Command(os.Args[0], "-test.run="+strings.Join(parts, "/"), "-test.v")
	command.Env = append(os.Environ(), limitVariable+"="+strconv.FormatUint(limit, 10), folderVariable+"="+dir)
	out, err := command.CombinedOutput()
	if bytes.Contains(out, []byte(unlimited)) {
		t.Skip(unlimited)
	}
	line, found := strings.CutPrefix(string(regexp.MustCompile(`(?m)^`+failed+`.*$`).Find(out)), failed)
	if err != nil || !found {
		t.Fatalf("the process gave %v and:\n%s", err, out)
	}
	return errors.New(line)
}
