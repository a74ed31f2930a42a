package infill

import (
	"runtime/debug"
	"testing"
)

// TestVersionOf: a build of the tagged commit is the release, and any other names its
// commit.
func TestVersionOf(t *testing.T) {
	const commit = "0123456789abcdef0123456789abcdef01234567"
	for want, c := range map[string]struct{ path, version, modified string }{
		Number:                                  {"infill", "v" + Number, "false"},
		Number + "-dev+0123456789ab":            {"infill", "v" + Number + "-0.20261128000000-0123456789ab", "false"},
		Number + "-dev+0123456789ab" + "-dirty": {"infill", "v" + Number + "+dirty", "true"},
		Number + "-dev":                         {"another", "v" + Number, "false"},
	} {
		build := &debug.BuildInfo{Main: debug.Module{Path: c.path, Version: c.version}, Settings: []debug.BuildSetting{
			{Key: "vcs.revision", Value: commit}, {Key: "vcs.modified", Value: c.modified}}}
		if got := versionOf(build); got != want {
			t.Errorf("%+v: %s, want %s", c, got, want)
		}
	}
}
