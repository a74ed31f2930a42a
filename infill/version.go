package infill

import (
	"reflect"
	"runtime/debug"
	"strings"
)

// release is the version and commit of a build by cmd/release; "" in other builds.
var release string

// Version returns the version of this module in the running program, or "devel"
// if the build does not record a version.
func Version() string {
	const unknown = "devel"
	if release != "" {
		return release
	}
	build, ok := debug.ReadBuildInfo()
	if !ok {
		return unknown
	}
	path := strings.TrimSuffix(reflect.TypeFor[Filler]().PkgPath(), "/infill") // path of this module
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
