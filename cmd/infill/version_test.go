package main

import (
	"context"
	"testing"

	"infill/cmd/infill/internal/terminal"
)

func TestVersionFlags(t *testing.T) {
	var got *versionOptions
	keep := func(_ context.Context, o *versionOptions) error { got = o; return nil }
	if err := parse(t, newCmdVersion(&terminal.Streams{}, keep), "--format json"); err != nil {
		t.Fatal(err)
	}
	compareOptions(t, versionOptions{format: "json"}, *got)
}
