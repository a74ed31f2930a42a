package hub

import "golang.org/x/sys/windows"

// freeBytes returns how many bytes the user may write to the disk of dir.
func freeBytes(dir string) (free uint64, known bool) {
	path, err := windows.UTF16PtrFromString(dir)
	if err != nil {
		return 0, false
	}
	err = windows.GetDiskFreeSpaceEx(path, &free, nil, nil)
	return free, err == nil
}
