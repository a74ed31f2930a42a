//go:build unix

package regular

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestOpen(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	for _, err := range []error{
		os.WriteFile(at("file"), []byte("content"), 0o644), os.Symlink("file", at("link")),
		os.Symlink("nothing", at("dangling")),
		os.Mkdir(at("folder"), 0o755), unix.Mkfifo(at("pipe"), 0o644), os.Symlink("/dev/zero", at("device")),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range map[string]string{"file": "", "link": "", "dangling": "a link to a file that is not there",
		"folder": "a folder", "pipe": "a named pipe", "device": "not a regular file"} {
		opened, err := Open(at(name))
		_, read := ReadFile(at(name), 7)
		_, _, digested := Digest(at(name))
		_, within := ReadFS(os.DirFS(dir), name, 7)
		for _, err := range []error{err, read, digested, within} {
			if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) ||
				errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%s: %v, want %q", name, err, want)
			}
		}
		if opened != nil {
			opened.Close()
		} else if !strings.Contains(err.Error(), at(name)) {
			t.Errorf("%v does not name the file", err)
		}
	}
	if _, err := Open(at("absent")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("absent: %v", err)
	}
	if _, err := ReadFS(os.DirFS(dir), "absent", 7); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("absent: %v", err)
	}
	if _, err := ReadFile(at("file"), 6); err == nil || !strings.Contains(err.Error(), "7 bytes, more than the 6") {
		t.Errorf("too large: %v", err)
	}
}
