package infill

import (
	"runtime/debug"
	"testing"
)

// TestCommitOf: a build of this module has its commit, and says whether files differ
// from it; the commit of a module that uses this one is another's.
func TestCommitOf(t *testing.T) {
	const commit = "0123456789abcdef0123456789abcdef01234567"
	for want, c := range map[string]struct{ path, revision, modified string }{
		"0123456789ab": {"infill", commit, "false"}, "0123456789ab.dirty": {"infill", commit, "true"},
	} {
		build := &debug.BuildInfo{Main: debug.Module{Path: c.path}, Settings: []debug.BuildSetting{
			{Key: "vcs.revision", Value: c.revision}, {Key: "vcs.modified", Value: c.modified}}}
		if got := commitOf(build); got != want {
			t.Errorf("%+v: %s, want %s", c, got, want)
		}
		build.Main.Path = "another"
		if got := commitOf(build); got != "" {
			t.Errorf("another module has the commit %s", got)
		}
	}
	if got := commitOf(&debug.BuildInfo{Main: debug.Module{Path: "infill"}}); got != "" {
		t.Errorf("no revision, but the commit %s", got)
	}
}
