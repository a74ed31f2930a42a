package models_test

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"infill/models"
)

// Whatever the files of a bundle hold, it opens or is refused in one line that
// names the folder, within a second and 64 MiB.
func FuzzBundle(f *testing.F) {
	dir := tiny(f, false)
	names := []string{"config.json", "vocab.txt", "tokenizer_config.json", "model.safetensors"}
	for i, name := range names {
		content := read(f, dir, name)
		f.Add(uint8(i), content[:min(4096, len(content))])
	}
	f.Add(uint8(0), []byte(
		`{"model_type": "bert", "vocab_size": 16777216, "hidden_size": 1048576, "num_hidden_layers": 1024}`))
	f.Add(uint8(0), []byte(strings.Repeat("[", 10000)))
	f.Add(uint8(3), []byte("\xff\xff\xff\xff\xff\xff\xff\x7f{}"))
	f.Fuzz(func(t *testing.T, which uint8, content []byte) {
		target := t.TempDir()
		for _, name := range names {
			write(t, target, name, read(t, dir, name))
		}
		write(t, target, names[int(which)%len(names)], content)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		start := time.Now()
		_, err := models.Open(target)
		took := time.Since(start)
		runtime.ReadMemStats(&after)
		if err != nil &&
			(strings.Contains(err.Error(), "\n") || !strings.Contains(err.Error(), filepath.Base(target))) {
			t.Errorf("error %q", err)
		}
		if used := after.TotalAlloc - before.TotalAlloc; used > 64<<20+16*uint64(len(content)) {
			t.Errorf("%d bytes allocated for a file of %d", used, len(content))
		}
		if took > 10*time.Second { // a loaded machine is slow
			t.Errorf("took %v", took)
		}
		_ = os.RemoveAll(target)
	})
}
