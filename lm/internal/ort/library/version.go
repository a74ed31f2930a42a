package library

import (
	"strconv"
	"strings"
)

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
	first, rest, found := strings.Cut(version, ".")
	if !found {
		return 0, 0, false
	}
	second, _, _ := strings.Cut(rest, ".")
	major, err := strconv.Atoi(first)
	if err != nil {
		return 0, 0, false
	}
	minor, err = strconv.Atoi(second)
	return major, minor, err == nil
}
