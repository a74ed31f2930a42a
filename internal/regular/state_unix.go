//go:build unix

package regular

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// stateOf changes whenever a file is written to, or another takes its name. written is when that was last.
func stateOf(path string) (state string, written time.Time, ok bool) {
	var s unix.Stat_t
	if unix.Lstat(path, &s) != nil || s.Mode&unix.S_IFMT != unix.S_IFREG {
		return "", written, false
	}
	written = time.Unix(s.Ctim.Unix())
	return fmt.Sprint(s.Size, s.Ino, time.Unix(s.Mtim.Unix()).UnixNano(), written.UnixNano()), written, true
}
