//go:build linux || darwin

package hub

import "golang.org/x/sys/unix"

// freeBytes returns how many bytes the user may write to the disk of dir.
func freeBytes(dir string) (free uint64, known bool) {
	var disk unix.Statfs_t
	err := unix.Statfs(dir, &disk)
	if err != nil {
		return 0, false
	}
	return disk.Bavail * uint64(disk.Bsize), true
}
