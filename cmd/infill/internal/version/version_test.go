package version

import (
	"context"
	"testing"

	"infill/cmd/infill/internal/clitest"
	"infill/cmd/infill/internal/terminal"
)

func TestVersionFlags(t *testing.T) {
	var got *versionOptions
	keep := func(_ context.Context, o *versionOptions) error { got = o; return nil }
	if err := clitest.Parse(t, NewCmd(&terminal.Streams{}, keep), "--format json"); err != nil {
		t.Fatal(err)
	}
	clitest.CompareOptions(t, versionOptions{format: "json"}, *got)
}
