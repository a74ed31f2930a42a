package library

import "fmt"

// MinimumVersion is the oldest onnxruntime that serves: the binding speaks version 24 of the C interface, and each
// release offers its own version of the interface and all before it.
const MinimumVersion = "1.24.1"

// Serves reports whether a library of this version offers the C interface that the binding speaks.
// Only major and minor count: they number the interface. Windows libraries record a build date in place of the patch.
func Serves(version string) bool {
	major, minor, ok := release(version)
	wantedMajor, wantedMinor, _ := release(MinimumVersion)
	return ok && major == wantedMajor && minor >= wantedMinor
}

func release(version string) (major, minor int, ok bool) {
	n, _ := fmt.Sscanf(version, "%d.%d", &major, &minor)
	return major, minor, n == 2
}
