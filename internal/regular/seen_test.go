package regular_test

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"infill/internal/regular"
)

func TestUnchanged(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("files are read at each start there")
	}
	const name = "weights"
	for what, change := range map[string]func(t *testing.T, path string){
		"nothing": nil,
		"written": func(t *testing.T, path string) { write(t, path, "sound") },
		"written, its time set back": func(t *testing.T, path string) {
			info, err := os.Stat(path)
			if err != nil {
				t.Fatal(err)
			}
			write(t, path, "wrong")
			if err := os.Chtimes(path, info.ModTime(), info.ModTime()); err != nil {
				t.Fatal(err)
			}
		},
		"replaced": func(t *testing.T, path string) {
			write(t, path+"2", "other")
			if err := os.Rename(path+"2", path); err != nil {
				t.Fatal(err)
			}
		},
		"gone": func(t *testing.T, path string) {
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(what, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, name)
			write(t, path, "sound")
			if regular.Unchanged(dir, name) {
				t.Error("unchanged since it was never read")
			}
			if regular.Remember(dir, time.Now(), name); regular.Unchanged(dir, name) {
				t.Error("remembered though it was written just now")
			}
			later := time.Now().Add(time.Minute)
			if regular.Remember(dir, later, name, "absent"); regular.Unchanged(dir, name) {
				t.Error("remembered without one of its files")
			}
			if regular.Remember(dir, later, name); !regular.Unchanged(dir, name) {
				t.Error("not remembered")
			}
			if regular.Unchanged(dir, name, "absent") {
				t.Error("unchanged without one of its files")
			}
			time.Sleep(20 * time.Millisecond) // clocks of file systems may be as coarse as a tick
			if change != nil {
				change(t, path)
			}
			if regular.Unchanged(dir, name) != (change == nil) {
				t.Errorf("unchanged: %t", regular.Unchanged(dir, name))
			}
		})
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}
