package regular

import (
	"encoding/json"
	"os"
	"path/filepath"
	"time"

	"github.com/google/renameio/v2/maybe"
)

// seenName is the file that [Remember] writes.
const seenName = ".verified.json"

// settled is how long a file must have been left alone before it was read: clocks of file systems are coarse, and of
// servers they are others.
const settled = 2 * time.Second

// Remember notes that files of a folder were read whole, from a moment on, and found sound. It notes nothing where one
// was written shortly before, or where the folder cannot be written: then they are read again the next time.
func Remember(dir string, since time.Time, names ...string) {
	states := remembered(dir)
	for _, name := range names {
		state, written, ok := stateOf(filepath.Join(dir, name))
		if !ok || !written.Before(since.Add(-settled)) {
			return
		}
		states[name] = state
	}
	if text, err := json.Marshal(states); err == nil {
		_ = maybe.WriteFile(filepath.Join(dir, seenName), append(text, '\n'), 0o644)
	}
}

// Unchanged reports that nobody has written to files of a folder since [Remember] noted them: size, times and place on
// the disk are the same. What a failing disk does is not seen so; `infill doctor` and `infill models verify` read
// everything.
func Unchanged(dir string, names ...string) bool {
	states := remembered(dir)
	for _, name := range names {
		if state, _, ok := stateOf(filepath.Join(dir, name)); !ok || states[name] != state {
			return false
		}
	}
	return true
}

// remembered is what was noted of a folder's files, empty if nothing was.
func remembered(dir string) map[string]string {
	states := map[string]string{}
	text, err := os.ReadFile(filepath.Join(dir, seenName))
	if err != nil || json.Unmarshal(text, &states) != nil || states == nil {
		return map[string]string{}
	}
	return states
}
