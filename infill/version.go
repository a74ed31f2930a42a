package infill

import (
	"reflect"
	"runtime/debug"
	"strings"
	"sync"
)

// Number is the version of this module: that of a release in its commit, and in those
// behind it the next one with "-dev". CITATION.cff, the pages and the wheel have the same.
const Number = "0.4.1-dev"

// commit is that of a build by cmd/release; "" in other builds.
var commit string

// Version returns Number and, where it is known, the commit of this module in the running
// program, as in "0.4.0+0123456789ab". go run records no commit.
func Version() string { return version() }

// version is read once: each result has a signature with it.
var version = sync.OnceValue(func() string {
	built := commit
	build, known := debug.ReadBuildInfo()
	if built == "" && known {
		built = commitOf(build)
	}
	if built == "" {
		return Number
	}
	return Number + "+" + built
})

// commitOf returns the commit of this module in a build, or "".
func commitOf(build *debug.BuildInfo) string {
	own := strings.TrimSuffix(reflect.TypeFor[Filler]().PkgPath(), "/infill") // path of this module
	if build.Main.Path != own {
		return "" // the commit is that of the module that uses this one
	}
	settings := map[string]string{}
	for _, s := range build.Settings {
		settings[s.Key] = s.Value
	}
	const digits = 12
	revision := settings["vcs.revision"]
	if len(revision) < digits {
		return ""
	}
	if settings["vcs.modified"] == "true" {
		return revision[:digits] + ".dirty"
	}
	return revision[:digits]
}
