package infill

import (
	"reflect"
	"runtime/debug"
	"strings"
	"sync"
)

// Number is the number of the version that this module is, or becomes when it is
// released. CITATION.cff, the README and the wheel have the same.
const Number = "0.3.0"

// release is the version and commit of a build by cmd/release; "" in other builds.
var release string

// Version returns the version of this module in the running program: Number in a
// release, and in a build of the commit that is tagged with it. In another build, and
// by go run, which records no commit, it is Number with "-dev" and the commit, if known.
func Version() string { return version() }

// version is read once: each result has a signature with it.
var version = sync.OnceValue(func() string {
	if release != "" {
		return release
	}
	build, known := debug.ReadBuildInfo()
	if !known {
		return Number + "-dev"
	}
	return versionOf(build)
})

// versionOf returns the version of a build that is no release of cmd/release.
func versionOf(build *debug.BuildInfo) string {
	version := Number + "-dev"
	own := strings.TrimSuffix(reflect.TypeFor[Filler]().PkgPath(), "/infill") // path of this module
	if build.Main.Path != own {
		return version // a commit would be that of the module that uses this one
	}
	if build.Main.Version == "v"+Number {
		return Number
	}
	settings := map[string]string{}
	for _, s := range build.Settings {
		settings[s.Key] = s.Value
	}
	const digits = 12
	commit := settings["vcs.revision"]
	if len(commit) < digits {
		return version
	}
	version += "+" + commit[:digits]
	if settings["vcs.modified"] == "true" {
		version += "-dirty"
	}
	return version
}
