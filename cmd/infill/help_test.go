package main

import (
	"bytes"
	"strings"
	"testing"

	"infill/cmd/infill/internal/terminal"
)

// TestEveryCommandHasUsage walks the tree, so that a new command is held to it too.
func TestEveryCommandHasUsage(t *testing.T) {
	root := newRoot(&terminal.Streams{Out: new(bytes.Buffer), Err: new(bytes.Buffer)})
	for _, cmd := range append(root.Commands(), root) {
		if cmd.Short == "" || cmd.Long == "" {
			t.Errorf("%s has no description", cmd.CommandPath())
		}
		if strings.HasSuffix(cmd.Short, ".") {
			t.Errorf("%s: a short description has no full stop", cmd.CommandPath())
		}
	}
}

func TestHelpScripts(t *testing.T) { scripts(t, "help") }
