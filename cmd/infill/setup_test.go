package main

import (
	"context"
	"testing"

	"infill/cmd/infill/internal/terminal"
)

func TestSetupFlags(t *testing.T) {
	var got *setupOptions
	keep := func(_ context.Context, o *setupOptions) error { got = o; return nil }
	if err := parse(t, newCmdSetup(&terminal.Streams{}, keep), "--cuda -q"); err != nil {
		t.Fatal(err)
	}
	compareOptions(t, setupOptions{cuda: true, quiet: true}, *got)
	checkUsage(t, parse(t, newCmdSetup(&terminal.Streams{}, keep), "now"), `unexpected argument "now"`)
}

func TestSetupScripts(t *testing.T) { scripts(t, "library") }
