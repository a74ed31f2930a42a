package infill

import "runtime/debug"

// Version is the version of this module in the program it is built into, or
// "devel" where the build does not know it.
func Version() string {
	build, ok := debug.ReadBuildInfo()
	if !ok {
		return unknownVersion
	}
	module := build.Main
	for _, d := range build.Deps {
		if d.Path == modulePath {
			module = *d
		}
	}
	if module.Path != modulePath || module.Version == "" || module.Version == "(devel)" {
		return unknownVersion
	}
	return module.Version
}

const (
	modulePath     = "infill"
	unknownVersion = "devel"
)
