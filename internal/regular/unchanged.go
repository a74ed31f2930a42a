package regular

import "os"

// Unchanged reports that a file has its size and was last written before the list that has its checksum: nobody has
// written to it since. What a failing disk does is not seen so; `infill doctor` and `infill models verify` read
// everything.
func Unchanged(list, path string, size int64) bool {
	listed, err := os.Stat(list)
	if err != nil {
		return false
	}
	info, err := os.Lstat(path)
	return err == nil && info.Mode().IsRegular() && info.Size() == size && !info.ModTime().After(listed.ModTime())
}
