//go:build unix

package batch

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"infill/internal/journal"
)

// TestOwnFiles: a run follows no link in its folder, and waits for no pipe.
func TestOwnFiles(t *testing.T) {
	dir, job := interrupted(t)
	must(t, job)
	folder := folderOf(job.Output.Path)
	mine := put(t, dir, "mine", "my notes")
	for _, name := range []string{outputPart, rejectsPart} {
		err := os.Symlink(mine, filepath.Join(folder, name))
		if err != nil {
			t.Fatal(err)
		}
	}
	s, err := Merge(t.Context(), job.Output.Path, false)
	if err != nil || s.Records != 300 || get(t, mine) != "my notes" {
		t.Error(s, err)
	}
	for _, path := range []string{journal.LockOf(pathOf(job.Output.Path, job.Shard)),
		journal.LockOf(filepath.Join(folder, outputPart)), pathOf(job.Output.Path, job.Shard)} {
		os.Remove(job.Output.Path)
		kept, _ := os.ReadFile(path)
		os.Remove(path)
		err := unix.Mkfifo(path, 0o666)
		if err != nil {
			t.Skip(err)
		}
		if path == journal.LockOf(filepath.Join(folder, outputPart)) {
			_, err = Merge(t.Context(), job.Output.Path, false)
		} else {
			_, err = Run(t.Context(), job)
		}
		if err == nil || !strings.Contains(err.Error(), "not a regular file: a named pipe") {
			t.Errorf("%s: %v", path, err)
		}
		os.Remove(path)
		put(t, "", path, string(kept))
	}
}
