package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"infill/cmd/infill/internal/cli"
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

// TestFillFlagsInGroups: a new flag of filling is put into a group.
func TestFillFlagsInGroups(t *testing.T) {
	root := newRoot(&terminal.Streams{Out: new(bytes.Buffer), Err: new(bytes.Buffer)})
	first := 0
	root.LocalFlags().VisitAll(func(flag *pflag.Flag) {
		in := flag.Annotations[cli.GroupOf]
		if in == nil && flag.Name != "help" && flag.Name != "version" {
			t.Errorf("--%s is in no group", flag.Name)
		}
		if in != nil && in[0] == "0" {
			first++
		}
	})
	if first != 10 {
		t.Errorf("%d flags come first, want 10", first)
	}
}

func TestHelpScripts(t *testing.T) { scripts(t, "help") }
