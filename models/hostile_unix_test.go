//go:build unix

package models_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"infill/internal/check"
	"infill/models"
)

// Whatever stands instead of a file is refused by name, at once: a named pipe
// would be waited for, and a link to nothing is not the absence of a file.
func TestOpenRefusesWhatIsNoFile(t *testing.T) {
	for _, name := range []string{"config.json", "vocab.txt", "tokenizer_config.json", "tokenizer.json",
		"special_tokens_map.json", "model.safetensors",
		"pytorch_model.bin"} {
		for kind, make := range map[string]func(string) error{
			"a named pipe":                       func(path string) error { return unix.Mkfifo(path, 0o644) },
			"a link to a file that is not there": func(path string) error { return os.Symlink("nothing", path) },
			"not a regular file":                 func(path string) error { return os.Symlink("/dev/zero", path) },
		} {
			dir := tiny(t, false)
			path := filepath.Join(dir, name)
			check.OK(t, os.RemoveAll(path))
			if strings.HasPrefix(name, "pytorch") {
				check.OK(t, os.Remove(filepath.Join(dir, "model.safetensors")))
			}
			check.OK(t, make(path))
			_, err := models.Open(dir)
			if err == nil || !strings.Contains(err.Error(), name) {
				t.Errorf("%s is %s: %v", name, kind, err)
			}
			// A folder of pytorch weights is reported to be imported,
			// which looks at them.
			_, err = (&models.Store{Dir: t.TempDir()}).Import(t.Context(), dir, "org/tiny")
			check.Says(t, err, name, kind)
		}
	}
}
