package infill

import (
	"reflect"
	"runtime/debug"
	"strings"
)

// release is the version that cmd/release builds, with its commit; "" in other builds.
var release string

// Version is the version of this module in the program that it is built into, or "devel" if the build does not know it.
func Version() string {
	const unknown = "devel"
	if release != "" {
		return release
	}
	build, ok := debug.ReadBuildInfo()
	if !ok {
		return unknown
	}
	path := strings.TrimSuffix(reflect.TypeFor[Filler]().PkgPath(), "/infill") // of this module
	module := build.Main
	for _, d := range build.Deps {
		if d.Path == path {
			module = *d
		}
	}
	if module.Path != path || module.Version == "" || module.Version == "(devel)" {
		return unknown
	}
	return module.Version
}
